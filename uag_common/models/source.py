"""Finds the local directory of whatever a user names as a model, fetching it if need be.

A name is, in this order: one of the catalogue, a `.gguf` file, a directory, a hub id `org/name` or
`org/name@revision`. Knows where each kind comes from and what a directory must hold; no torch.
"""

from __future__ import annotations

import re
from pathlib import Path

from uag_common.errors import ModelNotFoundError
from uag_common.models import catalogue
from uag_common.models.errors import CorruptModelError, DownloadError
from uag_common.models.reports import SILENT, Progress
from uag_common.models.store import ModelStore
from uag_common.models.weights import read_tensors, weight_files

HUB_ID = re.compile(r"(?P<repository>\w[\w.-]*/\w[\w.-]*)(@(?P<revision>\w[\w./-]*))?")


def resolve(spec: str, *, progress: Progress = SILENT) -> Path:
    """The directory to load: safetensors, config.json and tokenizer.json, all looked at.

    `spec` is a catalogue name, a directory, a `.gguf` file (converted once into the cache) or a
    hub id with an optional revision (fetched into the hub's own cache, whose environment variables
    HF_HOME, HF_TOKEN and HF_HUB_OFFLINE hold). Progress goes to `progress`.

    Raises ModelNotFoundError (NoWeightsError among them), CorruptModelError, ConversionError,
    DownloadError (OfflineError among them), NoSpaceError, BadSettingError; each names the remedy.
    """
    directory = _directory(spec, progress)
    check_directory(directory)
    return directory


def check_directory(directory: Path) -> None:
    """Raise ModelNotFoundError, NoWeightsError or CorruptModelError unless it can be loaded."""
    if not (directory / "config.json").is_file():
        raise ModelNotFoundError(
            f"{directory} has no config.json: give a directory that `save_pretrained` wrote"
        )
    for file in weight_files(directory):
        if not read_tensors(file):
            raise CorruptModelError(f"{file} holds no tensor: fetch it again")
    if not (directory / "tokenizer.json").is_file():
        raise ModelNotFoundError(
            f"{directory} has no tokenizer.json, and other forms of a tokenizer are not read: "
            "load it with transformers' AutoTokenizer and `save_pretrained` it there"
        )


def _directory(spec: str, progress: Progress) -> Path:
    if spec in catalogue.names():
        return ModelStore.from_environment().fetch(spec, progress)
    path = Path(spec).expanduser()
    if path.is_file() and path.suffix == ".gguf":
        return ModelStore.from_environment().convert_file(path, progress)
    if spec and path.is_dir():
        return path
    if (match := HUB_ID.fullmatch(spec)) and path.suffix != ".gguf":
        return _from_hub(match["repository"], match["revision"] or "main", progress)
    raise ModelNotFoundError(
        f"no model {spec!r}: give one of {', '.join(catalogue.names())}, a directory, "
        "a .gguf file, or a hub id such as org/name or org/name@revision"
    )


def _from_hub(repository: str, revision: str, progress: Progress) -> Path:
    try:
        from uag_common.models import hub
    except ImportError as error:
        raise DownloadError(
            f"{repository} is a hub id, which needs the engine: `pip install 'uag[engine]'`"
        ) from error
    return hub.snapshot(repository, revision, progress)
