"""Folders of the catalogue's models, as a user would have them; each is made once in a process."""

from __future__ import annotations

import atexit
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

from tokenizers import Tokenizer
from transformers import GenerationConfig
from transformers.utils import logging as transformers_logging

from tests.architectures.architecture import Architecture
from tests.architectures.teaching import taught
from tests.conversion.vocabularies import tokenizers_directory

transformers_logging.disable_progress_bar()

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


@cache
def model_folder(architecture: Architecture) -> Path:
    """Weights, configuration, tokenizer, chat template. It is deleted at the end of the process.
    Raises TokenizersMissingError."""
    source = tokenizers_directory() / architecture.tokenizer
    folder = _root() / architecture.name
    folder.mkdir()
    for name in TOKENIZER_FILES:
        shutil.copyfile(source / name, folder / name)
    if architecture.chat_template is not None:
        (folder / "chat_template.jinja").write_text(architecture.chat_template, encoding="utf-8")
    _write_network(architecture, folder)
    return folder


def _write_network(architecture: Architecture, folder: Path) -> None:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    # Each model has weights of its own, the same in each run.
    network = taught(architecture, tokenizer, seed=crc32(architecture.name.encode()))
    roles = architecture.roles
    ids = {
        "bos_token_id": roles.bos_id,
        "eos_token_id": list(roles.eos_ids) if len(roles.eos_ids) > 1 else roles.eos_ids[0],
        "pad_token_id": roles.pad_id,
    }
    for name, value in ids.items():
        setattr(network.config, name, value)
    if not architecture.masked:
        network.generation_config = GenerationConfig(**ids)
    network.save_pretrained(folder)


@cache
def _root() -> Path:
    root = TemporaryDirectory(prefix="uag-architectures-")
    atexit.register(root.cleanup)
    return Path(root.name)
