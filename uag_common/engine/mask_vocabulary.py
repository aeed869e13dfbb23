"""What a masked language model's tokenizer says of masks: what stands around one, and what may fill
it. Plain values, read once from the tokenizer's files. Knows no model.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uag_common.errors import StartError
from uag_common.model import TokenizerFile
from uag_common.tokenizer.byte_table import WORDPIECE_CONTINUATION, pieces
from uag_common.tokenizer.tokenizer_spec import Family, TokenizerSpec

_UNUSED = re.compile(r"\[unused\d+\]")
_FULL_STOP = "."


@dataclass(frozen=True, slots=True)
class MaskVocabulary:
    """A context and the mask behind it stand between `before` and `after`. The ids `never` fill a
    mask; `continuations` go on with a word, which one of `closed` does not leave open."""

    before: tuple[int, ...]
    mask: int
    after: tuple[int, ...]
    never: frozenset[int]
    continuations: frozenset[int]
    closed: frozenset[int]

    @classmethod
    def read(cls, files: Sequence[TokenizerFile], size: int) -> MaskVocabulary:
        """Of a model with `size` ids. Raises TokenizerError, and StartError if the files name no
        mask."""
        content = {file.name: file.content.decode() for file in files}
        spec = TokenizerSpec.parse(content["tokenizer.json"], frozenset())
        named = _named(content.get("tokenizer_config.json", "{}"), spec)
        if "mask" not in named:
            raise StartError("its tokenizer_config.json names no mask_token among its tokens")
        never = frozenset(_never(spec, size))
        stop = [spec.vocabulary[_FULL_STOP]] if _FULL_STOP in spec.vocabulary else []
        return cls(
            before=tuple(named[role] for role in ("cls",) if role in named),
            mask=named["mask"],
            # A text that ends is easier to fill in than one that breaks off.
            after=(*stop, *(named[role] for role in ("sep",) if role in named)),
            never=never,
            continuations=frozenset(_continuations(spec)),
            closed=never | frozenset(_closed(spec)),
        )

    def around(self, context: Sequence[int]) -> list[int]:
        """What the model sees of a context."""
        return [*self._start(context), *context, self.mask, *self.after]

    def mask_at(self, context: Sequence[int]) -> int:
        """Where in that the mask is."""
        return len(self._start(context)) + len(context)

    def _start(self, context: Sequence[int]) -> tuple[int, ...]:
        """A context that is seen from its very beginning may have it already."""
        return () if tuple(context[: len(self.before)]) == self.before else self.before

    def goes_on(self, token_id: int) -> bool:
        """Whether a word may go on after the token."""
        return token_id not in self.closed


def _named(tokenizer_config: str, spec: TokenizerSpec) -> Mapping[str, int]:
    """The ids of the tokens that the configuration names, by role."""
    ids = dict(spec.vocabulary) | {token.content: token.id for token in spec.added}
    roles: dict[str, Any] = json.loads(tokenizer_config)
    found = {}
    for role in ("cls", "sep", "mask"):
        token = roles.get(f"{role}_token")
        content = token.get("content") if isinstance(token, dict) else token
        if content in ids:
            found[role] = ids[content]
    return found


def _never(spec: TokenizerSpec, size: int) -> list[int]:
    """Control tokens, ids without a token, and places that a vocabulary keeps free."""
    table = pieces(spec)
    controls = [token_id for token_id, piece in enumerate(table) if piece is None]
    free = [token_id for text, token_id in spec.vocabulary.items() if _UNUSED.fullmatch(text)]
    return [*controls, *free, *range(len(table), size)]


def _continuations(spec: TokenizerSpec) -> list[int]:
    if spec.family is not Family.WORDPIECE:
        return []
    return [
        token_id
        for text, token_id in spec.vocabulary.items()
        if text.startswith(WORDPIECE_CONTINUATION)
    ]


def _closed(spec: TokenizerSpec) -> list[int]:
    """The pieces that are words by themselves, however the text goes on: marks and ideographs."""
    if spec.family is not Family.WORDPIECE:
        return []
    return [token_id for text, token_id in spec.vocabulary.items() if _stands_alone(text)]


def _stands_alone(text: str) -> bool:
    if len(text) != 1:
        return False
    if text.isascii():
        return not text.isalnum()
    return unicodedata.category(text).startswith("P") or unicodedata.name(text, "").startswith(
        "CJK"
    )
