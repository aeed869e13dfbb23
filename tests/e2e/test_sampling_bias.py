"""Sampled answers of the real pair are drawn from the target's own distribution; a few positions
are in `test_default_pair`."""

from __future__ import annotations

import pytest

from tests.lossless import DIRECTIONS
from tests.sampling_bias import STANDARD_ERRORS, measure

pytestmark = [pytest.mark.real_model, pytest.mark.full]


@pytest.mark.parametrize("direction", DIRECTIONS, ids=["forward", "reverse"])
def test_the_mean_of_likelihood_less_entropy_is_0(direction: tuple[str, str]) -> None:
    bias = measure(*direction, positions=2_000)
    print(bias)
    assert bias.proven
    assert abs(bias.mean) <= STANDARD_ERRORS * bias.standard_error < bias.control
