"""The keys of the noise that draws tokens: of a token by what it means, of a place in an answer.

Equal keys give equal noise in every service, whatever its vocabulary, so a draft that draws with it
agrees with its target far more often than one with dice of its own (Daliri, Musco, Suresh,
"Coupling without Communication and Drafter-Invariant Speculative Decoding", arXiv 2408.07978).
Integers alone; `engine.noise` makes Gumbel values of them.
"""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from typing import Final

from uag_common.decoding import NoisePosition
from uag_common.tokenizer.token_table import TokenTable

MASK: Final = (1 << 64) - 1
INCREMENT: Final = 0x9E3779B97F4A7C15
FACTORS: Final = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
SHIFTS: Final = (30, 27, 31)
"""Of splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014)."""

# Kinds of tokens. No token of one kind shares a key with a token of another.
_TEXT: Final = b"text"
_EOS: Final = b"eos"
_CONTROL: Final = b"control"
_NUMBER: Final = b"number"


def token_keys(table: TokenTable) -> list[int]:
    """A key of 64 bits for each id of the vocabulary, of its own but for collisions of the hash.

    A token of text has that of its bytes. Of several with the same bytes one alone can have it: an
    ordinary piece before a byte of the fallback, then the lowest id; that is the one that models
    use, and another vocabulary has it too. EOS ids go by their rank, so that the preferred ones of
    two models agree; other control tokens by their content; ids without a token by their number.
    """
    keys = [0] * len(table.pieces)
    seen: Counter[tuple[bytes, bytes]] = Counter()
    for token_id in _in_order_of_rank(table):
        meaning = _meaning(table, token_id)
        keys[token_id] = _hash(*meaning, seen[meaning])
        seen[meaning] += 1
    return keys


def place_key(seed: int, choice: int, position: NoisePosition) -> int:
    """A key of 64 bits for a place in an answer."""
    key = 0
    for part in (seed, choice, position.offset, position.repeats):
        key = mix(key ^ part)
    return key


def mix(value: int) -> int:
    """The output function of splitmix64: 64 bits to 64 bits, one to one."""
    value = (value + INCREMENT) & MASK
    for shift, factor in zip(SHIFTS, FACTORS, strict=False):
        value = ((value ^ (value >> shift)) * factor) & MASK
    return value ^ (value >> SHIFTS[-1])


def _in_order_of_rank(table: TokenTable) -> dict[int, None]:
    ids = sorted(range(len(table.pieces)), key=table.fallback_ids.__contains__)
    return dict.fromkeys((*table.eos_ids, *ids))


def _meaning(table: TokenTable, token_id: int) -> tuple[bytes, bytes]:
    if token_id in table.eos_ids:
        return _EOS, b""
    piece = table.pieces[token_id]
    if piece is not None:
        return _TEXT, piece
    if token_id in table.controls:
        return _CONTROL, table.controls[token_id].encode()
    return _NUMBER, token_id.to_bytes(8, "little")


def _hash(kind: bytes, content: bytes, rank: int) -> int:
    salt = rank.to_bytes(8, "little")
    return int.from_bytes(
        blake2b(content, digest_size=8, salt=salt, person=kind).digest(), "little"
    )
