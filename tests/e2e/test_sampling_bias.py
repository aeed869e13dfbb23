"""Sampled answers of the real pair are drawn from the target's own distribution."""

from __future__ import annotations

import pytest

from tests.lossless import DIRECTIONS
from tests.sampling_bias import STANDARD_ERRORS, measure

pytestmark = pytest.mark.real_model


@pytest.mark.parametrize(
    ("direction", "positions"),
    [
        pytest.param(DIRECTIONS[0], 128, id="a few positions"),
        pytest.param(DIRECTIONS[0], 2_000, id="forward", marks=pytest.mark.full),
        pytest.param(DIRECTIONS[1], 2_000, id="reverse", marks=pytest.mark.full),
    ],
)
def test_the_mean_of_likelihood_less_entropy_is_0(
    direction: tuple[str, str], positions: int
) -> None:
    bias = measure(*direction, positions)
    print(bias)
    assert bias.proven
    assert len(bias.differences) >= positions
    assert abs(bias.mean) <= STANDARD_ERRORS * bias.standard_error < bias.control
