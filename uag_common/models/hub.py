"""Fetches a model from the hub into the hub's own cache.

Knows huggingface_hub and its errors; must not import torch. Imported only when a hub id is named,
since huggingface_hub comes with the engine. The hub's own variables hold (HF_HOME, HF_TOKEN,
HF_HUB_OFFLINE); UAG_OFFLINE counts as HF_HUB_OFFLINE.
"""

from __future__ import annotations

import sys
from pathlib import Path

from huggingface_hub import snapshot_download

# HTTPError is not exported on purpose, but it follows whichever HTTP client this version uses.
from huggingface_hub.errors import (  # type: ignore[attr-defined]
    GatedRepoError,
    HTTPError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils.tqdm import disable_progress_bars

from uag_common.errors import ModelNotFoundError, UagError
from uag_common.models.errors import DownloadError, NoWeightsError, OfflineError
from uag_common.models.reports import Progress
from uag_common.models.settings import StoreSettings
from uag_common.models.weights import weight_files

# Nothing that can run code, and no second copy of the weights in another layout.
WANTED = ["*.safetensors", "*.json", "*.jinja", "tokenizer.model", "*.txt"]
UNWANTED = ["*/*", "consolidated*"]


def snapshot(repository: str, revision: str, progress: Progress) -> Path:
    """The local directory of that revision.

    Raises ModelNotFoundError, NoWeightsError, CorruptModelError, DownloadError, OfflineError.
    """
    offline = StoreSettings.from_environment().offline
    place = "the hub's cache" if offline else "the hub"
    progress.note(f"looking for {repository}@{revision} in {place}")
    directory = _fetch(repository, revision, offline)
    try:
        weight_files(directory)
    except NoWeightsError as error:
        raise NoWeightsError(
            f"{repository}@{revision} has no model.safetensors on the hub, and files that can run "
            "code (.bin, .pt) are not loaded: load it with transformers once, `save_pretrained` it "
            "and give that directory"
        ) from error
    return directory


def _fetch(repository: str, revision: str, offline: bool) -> Path:
    if not sys.stderr.isatty():
        disable_progress_bars()
    try:
        return Path(
            snapshot_download(
                repository,
                revision=revision,
                allow_patterns=WANTED,
                ignore_patterns=UNWANTED,
                local_files_only=offline,
            )
        )
    except (HTTPError, OSError) as error:
        raise _explain(error, repository, revision, offline) from error


def _explain(error: Exception, repository: str, revision: str, offline: bool) -> UagError:
    match error:
        case GatedRepoError():
            return ModelNotFoundError(
                f"{repository} is gated: accept its terms on the hub and set HF_TOKEN"
            )
        case RepositoryNotFoundError():
            return ModelNotFoundError(
                f"the hub has no {repository}: check the spelling, or set HF_TOKEN if it is private"
            )
        case RevisionNotFoundError():
            return ModelNotFoundError(f"{repository} has no revision {revision!r} on the hub")
        case LocalEntryNotFoundError() if offline:
            return OfflineError(
                f"{repository}@{revision} is not in the hub's cache and the network is switched "
                "off: unset UAG_OFFLINE and HF_HUB_OFFLINE once, or give a local directory"
            )
        case LocalEntryNotFoundError():
            return DownloadError(
                f"{repository}@{revision} is not in the hub's cache and the hub cannot be "
                "reached: check the network, or give a local directory"
            )
    return DownloadError(f"{repository} cannot be fetched from the hub: {error}")
