"""The core of a tokenizer: what is left when everything that adds or changes text is taken off.

Knows the components of the library. With the core, encoding is a function of the bytes: no prefix
space, no normalizer, no template, and no text that turns into a control token.
"""

from __future__ import annotations

import json
from typing import Any

from tokenizers import Tokenizer

from uag_common.tokenizer.byte_table import SPACE_MARK
from uag_common.tokenizer.errors import TokenizerError
from uag_common.tokenizer.tokenizer_spec import Component, Family, TokenizerSpec, flat

_SPACE_TO_MARK: Component = {
    "type": "Replace",
    "pattern": {"String": " "},
    "content": SPACE_MARK,
}
_NORMALIZER: dict[Family, Component | None] = {
    Family.BYTE_LEVEL: None,
    Family.SENTENCEPIECE: _SPACE_TO_MARK,
}


def core_json(spec: TokenizerSpec) -> str:
    """The tokenizer's file without all that the module's first lines name."""
    stripped = {**spec.raw, "model": _model(spec), "added_tokens": _added_tokens(spec)}
    stripped |= {"truncation": None, "padding": None, "post_processor": None, "decoder": None}
    if spec.family is not Family.WORDPIECE:
        stripped["normalizer"] = _NORMALIZER[spec.family]
        stripped["pre_tokenizer"] = _pre_tokenizer(spec)
    return json.dumps(stripped, ensure_ascii=False)


def core(text: str) -> Tokenizer:
    """The library's tokenizer of a `core_json`. Raises TokenizerError if the library refuses it."""
    try:
        return Tokenizer.from_str(text)
    except Exception as error:
        # The library raises bare exceptions for whatever it finds in the file.
        raise TokenizerError(f"tokenizer.json is refused by the library: {error}") from error


def has_pre_tokens(spec: TokenizerSpec) -> bool:
    """Whether the core cuts the text by a rule of its own before it merges."""
    return any(
        part["type"] != "ByteLevel" or part.get("use_regex", True)
        for part in flat(_pre_tokenizer(spec))
    )


def _model(spec: TokenizerSpec) -> Component:
    model = dict(spec.model)
    if "dropout" in model:
        model["dropout"] = None
    if isinstance(model["vocab"], dict):
        # The library gives an added token that its model does not know the next free id, which
        # moves as soon as a control token before it is taken away.
        text_ids = {token.content: token.id for token in spec.added if not token.control}
        model["vocab"] = {**text_ids, **model["vocab"]}
    return model


def _added_tokens(spec: TokenizerSpec) -> list[Component]:
    if spec.family is Family.WORDPIECE:
        return []
    moves = isinstance(spec.model["vocab"], list)
    kept = {
        token.id
        for token in spec.added
        if not token.control and not (moves and token.content not in spec.vocabulary)
    }
    return [token for token in spec.raw["added_tokens"] if token["id"] in kept]


def _pre_tokenizer(spec: TokenizerSpec) -> Component | None:
    parts = [bare for part in spec.components("pre_tokenizer") if (bare := _bare(part, spec))]
    return {"type": "Sequence", "pretokenizers": parts} if parts else None


def _bare(part: Component, spec: TokenizerSpec) -> Component | None:
    """The component without a prefix space; None where nothing of it is left."""
    bare: dict[str, Any] = dict(part)
    if part["type"] == "ByteLevel":
        bare["add_prefix_space"] = False
    elif part["type"] == "Metaspace":
        if part.get("split", True) is False:
            return None
        bare["prepend_scheme"] = "never"
        bare.pop("add_prefix_space", None)
    elif spec.family is Family.SENTENCEPIECE and part.get("pattern") == {"String": " "}:
        # The normalizer has left no spaces that it could split at.
        return None
    return bare
