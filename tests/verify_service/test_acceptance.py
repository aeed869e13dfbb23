from __future__ import annotations

import pytest

from verify_service.acceptance import count_accepted


@pytest.mark.parametrize(
    ("candidates", "chosen", "accepted"),
    [
        ((), (5,), 0),
        ((1,), (1, 2), 1),
        ((1,), (2, 3), 0),
        ((1, 2, 3), (1, 2, 3, 4), 3),
        ((1, 9, 3), (1, 2, 3, 4), 1),
        ((9, 2, 3), (1, 2, 3, 4), 0),
    ],
)
def test_accepted_up_to_the_first_difference(
    candidates: tuple[int, ...], chosen: tuple[int, ...], accepted: int
) -> None:
    assert count_accepted(candidates, chosen) == accepted
