"""The ten real tokenizers of the shared folder and those of the default models, each built once.

Knows where they lie.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from orchestrator.conversion.roles import Roles
from orchestrator.conversion.vocabulary import Vocabulary
from uag_common.models import catalogue
from uag_common.models.roles import read_roles
from uag_common.models.source import resolve

ANY_SIZE = 1 << 32
_DEFAULT_SHARED = Path(__file__).resolve().parents[3] / "shared"


class TokenizersMissingError(Exception):
    """The folder of the real tokenizers is not there; says how to get it."""


def shared_directory() -> Path:
    """The folder that holds `tokenizers/` and `cases/`: UAG_SHARED, or beside the repository."""
    return Path(os.environ.get("UAG_SHARED", _DEFAULT_SHARED))


def tokenizers_directory() -> Path:
    """The folder of the tokenizers; TokenizersMissingError if it is not there."""
    directory = shared_directory() / "tokenizers"
    if not (directory / "manifest.json").is_file():
        raise TokenizersMissingError(
            f"no tokenizers in {directory}: run `python -m tests.fetch_tokenizers`, "
            "or set UAG_SHARED to the folder that holds them"
        )
    return directory


@cache
def vocabulary(name: str) -> Vocabulary:
    """The vocabulary of that name in the manifest, or of a packaged model; KeyError if there is
    none."""
    return Vocabulary.build(tokenizer_json(name), roles(name))


def roles(name: str) -> Roles:
    """The roles of the vocabulary of that name; KeyError if there is none."""
    if name in catalogue.names():
        return Roles.ending(read_roles(resolve(name), ANY_SIZE).eos_ids)
    return _roles(_manifest()[name])


def tokenizer_json(name: str) -> str:
    """The text of the `tokenizer.json` of that name."""
    packaged = name in catalogue.names()
    folder = resolve(name) if packaged else tokenizers_directory() / name
    return (folder / "tokenizer.json").read_text(encoding="utf-8")


@cache
def _manifest() -> Mapping[str, Mapping[str, Mapping[str, int | list[int]]]]:
    text = (tokenizers_directory() / "manifest.json").read_text(encoding="utf-8")
    entries: Mapping[str, Mapping[str, Mapping[str, int | list[int]]]] = json.loads(text)[
        "tokenizers"
    ]
    return entries


def _roles(entry: Mapping[str, Mapping[str, int | list[int]]]) -> Roles:
    ids = entry["roles"]
    one = {name: token_id for name, token_id in ids.items() if isinstance(token_id, int)}
    extra = ids.get("extra_eos", [])
    more = extra if isinstance(extra, list) else [extra]
    return Roles(
        eos=frozenset([one["eos"], *more]),
        primary_eos=one["eos"],
        turn_start=one.get("turn_start"),
        turn_end=one.get("turn_end"),
    )
