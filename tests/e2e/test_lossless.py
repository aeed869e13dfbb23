"""The default pair, both directions, on real prompts: the ids are the target's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lossless import Dtype, check_file

pytestmark = pytest.mark.real_model
FEW = 2


@pytest.mark.parametrize(
    ("dtype", "limit"),
    [
        pytest.param("float32", FEW, id="float32-few"),
        pytest.param("bfloat16", 1, id="bfloat16-one"),
        pytest.param("float32", None, id="float32-all", marks=pytest.mark.full),
        pytest.param("bfloat16", None, id="bfloat16-all", marks=pytest.mark.full),
    ],
)
def test_ids_are_those_of_the_target_alone(
    shared_prompts: Path, dtype: Dtype, limit: int | None
) -> None:
    for tally in check_file(shared_prompts, dtype, limit):
        assert tally.failed == 0
        assert tally.proven, "drafts were not both accepted and rejected"
