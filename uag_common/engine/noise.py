"""Gumbel noise of tokens at a place: `uag_common.noise`'s keys, mixed and made numbers in tensors.

A logarithm differs in its last bit between libraries, so all services take torch's.
"""

from __future__ import annotations

import torch

from uag_common.decoding import NoisePosition
from uag_common.noise import FACTORS, INCREMENT, SHIFTS, mix, place_key, token_keys
from uag_common.tokenizer.token_table import TokenTable

BITS = 52
"""Of the hash in a uniform number: with 53 the largest rounds to 1, and its noise is infinite."""


class TokenNoise:
    """The noise of one vocabulary's tokens."""

    def __init__(self, table: TokenTable, device: torch.device) -> None:
        # The tokens' side is mixed once for all places.
        mixed = [_signed(mix(key)) for key in token_keys(table)]
        self._keys = torch.tensor(mixed, device=device)

    @property
    def device(self) -> torch.device:
        """Where the noise is made."""
        return self._keys.device

    def gumbel(
        self, seed: int, choice: int, position: NoisePosition, ids: torch.Tensor | None
    ) -> torch.Tensor:
        """Standard Gumbel values, float64, of the tokens `ids` (int64; None: of all) at a place.
        Each depends on the place and on the token's key alone; none is infinite."""
        keys = self._keys if ids is None else self._keys[ids]
        return as_gumbel(_mixed(keys ^ _signed(place_key(seed, choice, position))))


def as_gumbel(hashed: torch.Tensor) -> torch.Tensor:
    """Standard Gumbel values, float64, of hashes of 64 bits, int64."""
    uniform = _shifted(hashed, 64 - BITS).double().add_(0.5).mul_(2.0**-BITS)
    return uniform.log_().neg_().log_().neg_()


def _mixed(values: torch.Tensor) -> torch.Tensor:
    """`uag_common.noise.mix` of each of the int64 `values`, in place: int64 wraps around as 64 bits
    without a sign do."""
    values += _signed(INCREMENT)
    for shift, factor in zip(SHIFTS, FACTORS, strict=False):
        values ^= _shifted(values, shift)
        values *= _signed(factor)
    values ^= _shifted(values, SHIFTS[-1])
    return values


def _shifted(values: torch.Tensor, bits: int) -> torch.Tensor:
    """Shifted right with zeros coming in, where int64's own shift brings in the sign."""
    return (values >> bits).bitwise_and_((1 << (64 - bits)) - 1)


def _signed(bits: int) -> int:
    """64 bits as int64 reads them."""
    return bits - (1 << 64) if bits >> 63 else bits
