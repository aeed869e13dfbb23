from __future__ import annotations

import pytest

from uag_common.decoding import Choice
from uag_common.errors import InvalidRequestError
from verify_service.acceptance import choose_block


@pytest.mark.parametrize(
    ("candidates", "chosen", "accepted"),
    [
        ((), (5,), 0),
        ((1,), (1, 2), 1),
        ((1,), (2, 3), 0),
        ((1, 2, 3), (1, 2, 3, 4), 3),
        ((1, 9, 3), (1, 2, 3, 4), 1),
        ((9, 2, 3), (1, 2, 3, 4), 0),
        ((1, 2, 9), (1, 2, 3, 4), 2),
    ],
)
def test_accepted_up_to_the_first_difference(
    candidates: tuple[int, ...], chosen: tuple[int, ...], accepted: int
) -> None:
    asked: list[int] = []

    def choose(place: int) -> Choice:
        asked.append(place)
        return Choice(chosen[place], -0.5)

    told, following = choose_block(candidates, choose)
    assert told == tuple(Choice(token_id, -0.5) for token_id in candidates[:accepted])
    assert following == Choice(chosen[accepted], -0.5)
    # What comes after a difference was never chosen: it would have the wrong history.
    assert asked == list(range(accepted + 1))


@pytest.mark.parametrize(("fails_at", "accepted"), [(1, 0), (2, 1), (3, 2)])
def test_a_block_ends_before_a_place_where_nothing_can_be_chosen(
    fails_at: int, accepted: int
) -> None:
    """Without candidates the tokens before that place would have been told; so they are with them,
    and the failure is told where the place is asked for by itself."""

    def choose(place: int) -> Choice:
        if place == fails_at:
            raise InvalidRequestError("min_new_tokens", "leaves no token")
        return Choice(place + 1)

    told, following = choose_block((1, 2, 3), choose)
    assert [choice.id for choice in told] == list(range(1, accepted + 1))
    assert following.id == accepted + 1


def test_a_failure_at_the_first_place_is_told() -> None:
    def choose(_: int) -> Choice:
        raise InvalidRequestError("min_new_tokens", "leaves no token")

    with pytest.raises(InvalidRequestError):
        choose_block((1, 2, 3), choose)
