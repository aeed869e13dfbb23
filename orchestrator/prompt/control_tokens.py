"""Where the tokenizer of a model finds control tokens in a text. Only the `tokenizers` library.

The library itself looks, with the normalizer and the flags of the file, but without a vocabulary:
what it finds is what it would find on the way to ids.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tokenizers import Tokenizer

from uag_common.tokenizer.tokenizer_spec import Component

_ANY_TEXT = "\0"


@dataclass(frozen=True, slots=True)
class ControlToken:
    """A control token at text[start:end], the blanks that it swallows included."""

    id: int
    start: int
    end: int


class ControlTokens:
    """The control tokens of one tokenizer."""

    def __init__(self, spec: Component, control_ids: Collection[int]) -> None:
        model = {"type": "WordLevel", "vocab": {_ANY_TEXT: 0}, "unk_token": _ANY_TEXT}
        absent = dict.fromkeys(
            ("pre_tokenizer", "post_processor", "decoder", "truncation", "padding")
        )
        self._library = Tokenizer.from_str(json.dumps({**spec, **absent, "model": model}))
        self._ids = {
            self._library.token_to_id(token["content"]): token["id"]
            for token in spec["added_tokens"]
            if token["id"] in control_ids
        }

    def find(self, text: str) -> Sequence[ControlToken]:
        """All of them, in order."""
        (encoding,) = self._library.encode_batch([text], add_special_tokens=False)
        return [
            ControlToken(self._ids[token_id], start, end)
            for token_id, (start, end) in zip(encoding.ids, encoding.offsets, strict=True)
            if token_id in self._ids
        ]

    def places(self, text: str) -> list[tuple[int, int]]:
        """Where they stand."""
        return [(token.start, token.end) for token in self.find(text)]
