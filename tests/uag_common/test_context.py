from __future__ import annotations

import pytest

from uag_common.context import HASHED_IDS, ContextVersion
from uag_common.errors import StaleContextError


def test_the_hash_is_what_the_contract_says() -> None:
    """A fixed value, for implementations in other languages to compare with."""
    assert ContextVersion.of((1, 2, 3), 3) == ContextVersion(3, 0x9E3D6A5F74569CD6)


def test_only_the_last_ids_are_hashed_and_the_length_counts() -> None:
    long = list(range(100))
    other = [7, *long[1:]]
    assert ContextVersion.of(long, 100) == ContextVersion.of(other, 100)
    assert ContextVersion.of(long, HASHED_IDS) != ContextVersion.of(other, HASHED_IDS)
    assert ContextVersion.of(long, 99) != ContextVersion.of(long, 100)


def test_a_prefix_is_checked_against_a_longer_context() -> None:
    version = ContextVersion.of((1, 2, 3), 2)
    version.check_prefix((1, 2, 9))
    with pytest.raises(StaleContextError):
        version.check_prefix((1, 9, 9))
    with pytest.raises(StaleContextError):
        version.check_prefix((1,))
    with pytest.raises(StaleContextError):
        version.check_whole((1, 2, 9))
    version.check_whole((1, 2))
