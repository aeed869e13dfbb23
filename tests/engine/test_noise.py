"""The noise against an implementation of its own in numpy, and as a source of chance."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from hashlib import blake2b

import numpy as np
import pytest
import torch

from tests.conversion.vocabularies import roles, tokenizer_json
from tests.engine.statistics import goodness_of_fit, independence
from tests.engine.tables import CPU, numbered, token_table
from uag_common.decoding import NoisePosition
from uag_common.engine.noise import TokenNoise, as_gumbel
from uag_common.noise import place_key, token_keys
from uag_common.tokenizer.token_table import TokenTable
from uag_common.tokenizer.tokenizer_spec import TokenizerSpec

Place = tuple[int, int, NoisePosition]

START = NoisePosition()
ALONG: dict[str, Callable[[int], Place]] = {
    "seed": lambda at: (at, 0, START),
    "choice": lambda at: (0, at, START),
    "offset": lambda at: (0, 0, NoisePosition(at)),
    "repeats": lambda at: (0, 0, NoisePosition(7, at)),
    "token": lambda at: (0, 0, NoisePosition(at)),
}
LEAST_PROBABILITY = 1e-4


def splitmix64(state: np.ndarray) -> np.ndarray:
    """The next output of a splitmix64 generator in that state."""
    z = state.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def numpy_uniform(
    pieces: Sequence[bytes], seed: int, choice: int, offset: int, repeats: int
) -> np.ndarray:
    """The uniform numbers of pieces of text that no other token spells."""
    digests = [blake2b(piece, digest_size=8, person=b"text").digest() for piece in pieces]
    tokens = splitmix64(np.frombuffer(b"".join(digests), dtype="<u8"))
    place = np.zeros(1, dtype=np.uint64)
    for part in (seed, choice, offset, repeats):
        place = splitmix64(place ^ np.uint64(part))
    mantissa = splitmix64(tokens ^ place) >> np.uint64(12)
    return np.asarray((mantissa.astype(np.float64) + 0.5) * 2.0**-52)


def noise(table: TokenTable) -> TokenNoise:
    return TokenNoise(table, CPU)


def uniform(gumbel: torch.Tensor) -> torch.Tensor:
    return (-(-gumbel).exp()).exp()


def along(source: TokenNoise, places: Iterable[Place]) -> torch.Tensor:
    """The noise of all tokens at each place, as uniform numbers: [places, tokens]."""
    return uniform(torch.stack([source.gumbel(*place, None) for place in places]))


@pytest.mark.parametrize(
    "place",
    [(0, 0, 0, 0), (1, 0, 0, 0), (2**64 - 1, 2**32 - 1, 2**63, 2**32 - 1), (42, 3, 1001, 2)],
)
def test_it_is_bit_equal_to_numpy(place: tuple[int, int, int, int]) -> None:
    pieces = [b"", b"\x00", b"\xff", *(b"piece %d" % number for number in range(5000))]
    expected = torch.from_numpy(numpy_uniform(pieces, *place))
    seed, choice, offset, repeats = place
    found = noise(token_table(pieces)).gumbel(seed, choice, NoisePosition(offset, repeats), None)
    assert found.dtype is torch.float64
    assert torch.equal(found, -torch.log(-torch.log(expected)))


def test_some_tokens_have_the_noise_that_they_have_among_all() -> None:
    source = noise(numbered(1000))
    ids = torch.tensor([7, 999, 0, 7])
    position = NoisePosition(5, 1)
    assert torch.equal(source.gumbel(1, 2, position, ids), source.gumbel(1, 2, position, None)[ids])


def test_the_extreme_hashes_give_finite_noise() -> None:
    lowest, highest = as_gumbel(torch.tensor([0, -1]))
    assert float(lowest) == pytest.approx(-math.log(53 * math.log(2)))
    assert float(highest) == pytest.approx(53 * math.log(2))


def test_a_million_values_are_finite_and_all_different() -> None:
    source = noise(numbered(100_000))
    drawn = torch.cat([source.gumbel(9, 0, NoisePosition(at), None) for at in range(10)])
    assert bool(drawn.isfinite().all())
    ordered = drawn.sort().values
    assert bool((ordered[1:] > ordered[:-1]).all())


def test_it_is_distributed_as_gumbel_noise() -> None:
    source = noise(numbered(100_000))
    for seed in (0, 1, 2**63):
        drawn = source.gumbel(seed, 0, START, None)
        counts = torch.histc(uniform(drawn), bins=256, min=0.0, max=1.0)
        expected = torch.full_like(counts, len(drawn) / 256)
        assert goodness_of_fit(counts, expected) > LEAST_PROBABILITY
        # Mean: Euler's constant. Variance: pi^2 / 6.
        assert float(drawn.mean()) == pytest.approx(0.5772, abs=0.02)
        assert float(drawn.var()) == pytest.approx(math.pi**2 / 6, abs=0.05)


@pytest.mark.parametrize("step", [1, 2, 256, 2**32])
@pytest.mark.parametrize("part", ALONG)
def test_neighbours_say_nothing_of_one_another(part: str, step: int) -> None:
    """Pairs of a place and the same place one step on; of a token and the next number's."""
    source = noise(
        token_table([number.to_bytes(8, "little") for number in range(0, 40 * step, step)])
    )
    values = along(source, [ALONG[part](at * step) for at in range(1500)])
    if part == "token":
        values = values.T
    before, after = values[:-1].flatten(), values[1:].flatten()
    assert independence(before, after) > LEAST_PROBABILITY
    assert abs(float(torch.corrcoef(torch.stack([before, after]))[0, 1])) < 0.02


def test_no_two_places_share_noise() -> None:
    """The parts of a place do not stand in for one another."""
    numbers = (0, 1, 2, 256)
    keys = {
        place_key(seed, choice, NoisePosition(offset, repeats))
        for seed in numbers
        for choice in numbers
        for offset in numbers
        for repeats in numbers
    }
    assert len(keys) == len(numbers) ** 4


def test_tokens_that_mean_different_things_do_not_share_noise() -> None:
    table = token_table(
        [
            b"<0x41>",
            b"A",
            b"A",
            b"A",
            None,
            None,
            None,
            None,
            b"",
            b"eos",
            b"control",
            (7).to_bytes(8, "little"),
        ],
        eos_ids=(4, 9),
        controls={4: "A", 5: "A", 6: "eos"},
        fallback_ids=(1,),
    )
    keys = token_keys(table)
    assert len(set(keys)) == len(keys)


def test_of_equal_bytes_the_ordinary_token_agrees_with_other_vocabularies() -> None:
    keys = token_keys(token_table([b"A", b"\xe2", b"A", b"A"], fallback_ids=(0, 1)))
    other = token_keys(token_table([b"B", b"A", b"\xe2"]))
    assert keys[2] == other[1]
    assert keys[1] == other[2], "a byte that is no character's is spelled by the fallback alone"
    assert len({*keys, *other}) == 5


def test_ends_of_answers_agree_by_rank_and_other_control_tokens_by_content() -> None:
    left = token_keys(
        token_table([None, None, b"a"], eos_ids=(1, 0), controls={0: "</s>", 1: "<e>"})
    )
    right = token_keys(token_table([b"</s>", b"x", None], eos_ids=(0,), controls={2: "<e>"}))
    assert left[1] == right[0]
    assert left[0] not in right
    assert left[1] != right[2]


@pytest.mark.usefixtures("real_tokenizers")
@pytest.mark.parametrize("name", ["gemma2", "llama2", "phi3", "qwen2", "starcoder", "distilbert"])
def test_no_tokens_of_a_real_vocabulary_share_noise(name: str) -> None:
    keys = real_keys(name)
    assert len(set(keys)) == len(keys)


@pytest.mark.usefixtures("real_tokenizers")
@pytest.mark.parametrize(
    ("target", "draft"), [("gemma2", "smollm2"), ("qwen2", "llama2"), ("phi3", "starcoder")]
)
def test_real_vocabularies_agree_on_all_bytes_that_both_spell(target: str, draft: str) -> None:
    left, right = keys_by_bytes(target), keys_by_bytes(draft)
    both = left.keys() & right.keys()
    assert len(both) > 5000
    assert all(left[piece] & right[piece] for piece in both)
    ends = [real_keys(name)[real(name).eos_ids[0]] for name in (target, draft)]
    assert ends[0] == ends[1]


@pytest.mark.usefixtures("real_tokenizers")
@pytest.mark.parametrize("name", ["llama2", "gemma2", "phi3"])
def test_of_two_that_spell_a_character_it_is_not_the_byte_that_agrees(name: str) -> None:
    plain = token_keys(token_table([bytes([byte]) for byte in range(128)]))
    ids = TokenizerSpec.parse(tokenizer_json(name), frozenset()).vocabulary
    for character in "Az09.!{":
        assert real_keys(name)[ids[character]] == plain[ord(character)]
        assert real_keys(name)[ids[f"<0x{ord(character):02X}>"]] != plain[ord(character)]


@cache
def real(name: str) -> TokenTable:
    """With rows in the embedding that no token has, as some models have them."""
    of_name = roles(name)
    primary = () if of_name.primary_eos is None else (of_name.primary_eos,)
    eos_ids = tuple(dict.fromkeys((*primary, *sorted(of_name.eos))))
    return TokenTable.build(tokenizer_json(name), eos_ids, 260_000)


@cache
def real_keys(name: str) -> list[int]:
    return token_keys(real(name))


def keys_by_bytes(name: str) -> dict[bytes, set[int]]:
    found: dict[bytes, set[int]] = {}
    for key, piece in zip(real_keys(name), real(name).pieces, strict=True):
        if piece:
            found.setdefault(piece, set()).add(key)
    return found
