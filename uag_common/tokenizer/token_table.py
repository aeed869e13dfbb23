"""What each id of a model stands for: bytes, a control token, or nothing. Built once for a model.

Knows one tokenizer and the size of its model's vocabulary, no model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uag_common.tokenizer.byte_table import fallback_ids, pieces
from uag_common.tokenizer.errors import TokenizerError
from uag_common.tokenizer.tokenizer_spec import TokenizerSpec


@dataclass(frozen=True, slots=True, eq=False)
class TokenTable:
    """`pieces` has an entry for each row of the embedding: what the id spells, None for a control
    token and for an id that has no token.

    `fallback_ids` are the pieces of single bytes that stand beside those of characters (`<0x41>`
    beside `A`). `controls` has the content of each control token. The first of `eos_ids` is the one
    that the model prefers.
    """

    pieces: tuple[bytes | None, ...]
    fallback_ids: frozenset[int]
    controls: Mapping[int, str]
    eos_ids: tuple[int, ...]

    @classmethod
    def build(cls, tokenizer_json: str, eos_ids: Sequence[int], vocabulary_size: int) -> TokenTable:
        """Builds from the text of `tokenizer.json`; TokenizerError if it cannot be used, or has
        ids outside the vocabulary."""
        spec = TokenizerSpec.parse(tokenizer_json, frozenset(eos_ids))
        table = pieces(spec)
        missing = vocabulary_size - len(table)
        if missing < 0:
            raise TokenizerError(
                f"the tokenizer has ids up to {len(table) - 1}, but the model's embedding has "
                f"{vocabulary_size} rows: these two do not belong together"
            )
        return cls(
            pieces=(*table, *[None] * missing),
            fallback_ids=fallback_ids(spec),
            controls={token.id: token.content for token in spec.added if token.control},
            eos_ids=tuple(eos_ids),
        )
