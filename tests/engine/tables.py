"""Small vocabularies, and choosers over them. No model, no file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from uag_common.decoding import Decoding
from uag_common.engine.choose import Chooser
from uag_common.engine.noise import TokenNoise
from uag_common.tokenizer.token_table import TokenTable

CPU = torch.device("cpu")


def token_table(
    pieces: Sequence[bytes | None],
    eos_ids: Sequence[int] = (),
    controls: Mapping[int, str] | None = None,
    fallback_ids: Sequence[int] = (),
) -> TokenTable:
    return TokenTable(tuple(pieces), frozenset(fallback_ids), controls or {}, tuple(eos_ids))


def numbered(size: int) -> TokenTable:
    """Tokens "0", "1", and so on; the first is the EOS."""
    return token_table([None, *(b"%d" % token_id for token_id in range(1, size))], eos_ids=(0,))


def chooser(
    decoding: Decoding, table: TokenTable, answer_start: int = 0, noise: TokenNoise | None = None
) -> Chooser:
    return Chooser(decoding, answer_start, table.pieces, noise or TokenNoise(table, CPU), None)
