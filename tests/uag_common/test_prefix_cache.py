from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import BYTES_PER_TOKEN, FakeSequence
from uag_common.decoding import PrefixReuse
from uag_common.model import TokenSequence
from uag_common.prefix_cache import WORTH_WAITING, PrefixCache

ROOM = 20 * BYTES_PER_TOKEN
SHARED = PrefixReuse(b"a")
KEPT = PrefixReuse(b"a", keep=True)
OTHER = PrefixReuse(b"b", keep=True)


def run(*ids: int) -> FakeSequence:
    """A sequence of a session whose forward has run all of it."""
    sequence = FakeSequence([])
    sequence.extend(ids)
    sequence.forward(1)
    return sequence


def keep(cache: PrefixCache, *ids: int, reuse: PrefixReuse = KEPT) -> None:
    cache.end(run(*ids), len(ids), reuse)


def found(cache: PrefixCache, *ids: int, reuse: PrefixReuse = SHARED) -> list[int]:
    fork = cache.fork(ids, reuse)
    return [] if fork is None else list(fork.ids)


@pytest.fixture
def cache() -> PrefixCache:
    return PrefixCache(ROOM)


def test_the_longest_common_prefix_is_found_and_one_token_is_left_to_run(
    cache: PrefixCache,
) -> None:
    keep(cache, 1, 2, 3, 4)
    keep(cache, 1, 2, 5)
    assert found(cache, 1, 2, 3, 9, 9) == [1, 2, 3]
    assert found(cache, 1, 2, 5, 6) == [1, 2, 5]
    assert found(cache, 1, 2, 3, 4) == [1, 2, 3]
    assert found(cache, 1) == []
    assert found(cache, 2, 1) == []


def test_a_fork_is_cached_and_leaves_the_kept_one_as_it_is(cache: PrefixCache) -> None:
    kept = run(1, 2, 3)
    cache.end(kept, 3, KEPT)
    fork = cache.fork((1, 2, 7, 8), SHARED)
    assert isinstance(fork, FakeSequence)
    fork.extend((7, 8))
    fork.forward(1)
    assert fork.fed == [(7, 8)]
    assert kept.ids == [1, 2, 3]
    assert found(cache, 1, 2, 3, 4) == [1, 2, 3]


def test_a_running_session_shares_what_it_says_until_it_ends(cache: PrefixCache) -> None:
    running = run(1, 2, 3)
    cache.share(running, 3, SHARED)
    running.extend((4, 5))
    running.forward(1)
    assert found(cache, 1, 2, 3, 4, 5) == [1, 2, 3]
    cache.share(running, 2, SHARED)
    assert found(cache, 1, 2, 3, 4, 5) == [1, 2]
    cache.end(running, 5, SHARED)
    assert found(cache, 1, 2, 3, 4, 5) == []
    assert (cache.kept_prefixes, cache.kept_bytes) == (0, 0)


def test_what_is_being_computed_is_worth_waiting_for_if_it_is_much(cache: PrefixCache) -> None:
    ids = range(WORTH_WAITING + 5)
    sequence = FakeSequence([])
    sequence.extend(ids)
    cache.share(sequence, len(ids), SHARED, computing=True)
    assert cache.coming((*ids, 1), SHARED)
    assert not cache.coming((*ids, 1), OTHER)
    assert not cache.coming(ids[:WORTH_WAITING], SHARED)
    cache.share(sequence, len(ids), SHARED)
    assert not cache.coming((*ids, 1), SHARED)


def test_what_is_not_cached_is_not_kept(cache: PrefixCache) -> None:
    sequence = run(1, 2, 3)
    sequence.extend((4,))
    cache.end(sequence, 3, KEPT)
    assert found(cache, 1, 2, 3, 4, 5) == [1, 2, 3]
    assert cache.kept_bytes == 3 * BYTES_PER_TOKEN
    cache.end(run(7, 8), 0, KEPT)
    assert cache.kept_prefixes == 1
    keep(cache, 1, 2, 3, 4)
    again = run(1, 2, 3)
    again.extend((4,))
    cache.end(again, 3, KEPT)
    assert (cache.kept_prefixes, cache.kept_bytes) == (1, 4 * BYTES_PER_TOKEN)


def test_keys_share_nothing(cache: PrefixCache) -> None:
    keep(cache, 1, 2, 3)
    cache.share(run(1, 2, 3), 3, SHARED)
    assert found(cache, 1, 2, 3, 4, reuse=OTHER) == []
    assert found(cache, 1, 2, 3, 4, reuse=PrefixReuse()) == []
    keep(cache, 1, 2, reuse=OTHER)
    assert found(cache, 1, 2, 3, 4, reuse=OTHER) == [1, 2]
    assert found(cache, 1, 2, 3, 4) == [1, 2, 3]


def test_without_a_key_nothing_is_shared_or_kept(cache: PrefixCache) -> None:
    keyless = PrefixReuse(b"", keep=True)
    cache.share(run(1, 2), 2, keyless)
    assert found(cache, 1, 2, 3, reuse=keyless) == []
    keep(cache, 1, 2, reuse=keyless)
    assert found(cache, 1, 2, 3, reuse=keyless) == []
    assert cache.kept_prefixes == 0


def test_a_longer_one_replaces_its_own_beginning(cache: PrefixCache) -> None:
    keep(cache, 1, 2, 3)
    keep(cache, 1, 2, 3, 4)
    assert (cache.kept_prefixes, cache.kept_bytes) == (1, 4 * BYTES_PER_TOKEN)
    keep(cache, 1, 2)
    assert (cache.kept_prefixes, cache.kept_bytes) == (1, 4 * BYTES_PER_TOKEN)
    keep(cache, 1, 2, 9)
    assert cache.kept_prefixes == 2
    keep(cache, 1, 2, 3, 4, 5, reuse=OTHER)
    assert cache.kept_prefixes == 3


def test_the_least_recently_used_goes_first(cache: PrefixCache) -> None:
    for first in (1, 2, 3, 4):
        keep(cache, *[first] * 5)
    assert cache.kept_bytes == ROOM
    assert found(cache, 1, 1, 1, 1, 1, 1) == [1] * 5
    keep(cache, 5, 5)
    assert found(cache, 2, 2) == []
    assert found(cache, 1, 1) == [1]
    keep(cache, 3, 3)
    keep(cache, *[6] * 10)
    assert [bool(found(cache, first, 0)) for first in (1, 3, 4, 5, 6)] == [
        True,
        True,
        False,
        False,
        True,
    ]
    assert cache.kept_bytes <= ROOM


def test_what_is_larger_than_the_room_is_not_kept_and_drives_nothing_out(
    cache: PrefixCache,
) -> None:
    keep(cache, 1, 2)
    keep(cache, 1, 2, *[3] * 20)
    assert (cache.kept_prefixes, cache.kept_bytes) == (1, 2 * BYTES_PER_TOKEN)


def test_without_room_running_sessions_share_still() -> None:
    cache = PrefixCache(0)
    running = run(1, 2, 3)
    cache.share(running, 3, KEPT)
    assert found(cache, 1, 2, 3, 4) == [1, 2, 3]
    cache.end(running, 3, KEPT)
    assert (found(cache, 1, 2, 3, 4), cache.kept_prefixes) == ([], 0)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([KEPT, OTHER, SHARED, PrefixReuse()]),
            st.lists(st.integers(0, 1), min_size=1, max_size=8),
        ),
        max_size=30,
    )
)
def test_whatever_is_kept_a_fork_is_the_longest_of_its_key_and_room_is_kept(
    ends: Sequence[tuple[PrefixReuse, list[int]]],
) -> None:
    cache = PrefixCache(10**9)
    all_ends: list[tuple[bytes, list[int]]] = []
    small = PrefixCache(9 * BYTES_PER_TOKEN)
    for reuse, ids in ends:
        fork: TokenSequence | None = cache.fork((*ids, 0), reuse)
        wanted = max(
            (_common(old, ids) for key, old in all_ends if key == reuse.key and key), default=0
        )
        assert list(fork.ids if fork else ()) == ids[:wanted]
        keep(cache, *ids, reuse=reuse)
        keep(small, *ids, reuse=reuse)
        assert small.kept_bytes <= 9 * BYTES_PER_TOKEN
        if reuse.keep:
            all_ends.append((reuse.key, ids))


def _common(left: list[int], right: list[int]) -> int:
    return next(
        (n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b),
        min(len(left), len(right)),
    )
