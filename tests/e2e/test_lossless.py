"""The default pair, both directions, on real prompts: the ids are the target's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lossless import NEW_TOKENS, Dtype, check_file

pytestmark = pytest.mark.real_model


@pytest.mark.parametrize(
    ("dtype", "limit", "new_tokens"),
    [
        pytest.param("float32", 2, 20, id="float32-few"),
        pytest.param("bfloat16", 1, 20, id="bfloat16-one"),
        pytest.param("float32", None, NEW_TOKENS, id="float32-all", marks=pytest.mark.full),
        pytest.param("bfloat16", None, NEW_TOKENS, id="bfloat16-all", marks=pytest.mark.full),
    ],
)
def test_ids_are_those_of_the_target_alone(
    shared_prompts: Path, dtype: Dtype, limit: int | None, new_tokens: int
) -> None:
    for tally in check_file(shared_prompts, dtype, limit, new_tokens):
        assert tally.failed == 0
        assert tally.proven, "drafts were not both accepted and rejected"
