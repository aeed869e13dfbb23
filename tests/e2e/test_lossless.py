"""The default pair, both directions, on real prompts: the ids are the target's own. A few of the
first direction in float32 are in `test_default_pair`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lossless import DIRECTIONS, NEW_TOKENS, Dtype, check_services

pytestmark = pytest.mark.real_model
FORWARD, REVERSE = DIRECTIONS


@pytest.mark.parametrize(
    ("dtype", "direction", "prompts", "new_tokens"),
    [
        pytest.param("float32", REVERSE, 1, 24, id="float32-one"),
        pytest.param("bfloat16", FORWARD, 1, 40, id="bfloat16-one"),
        *(
            pytest.param(dtype, direction, None, NEW_TOKENS, id=name, marks=pytest.mark.full)
            for dtype, direction, name in (
                ("float32", FORWARD, "float32-all"),
                ("float32", REVERSE, "float32-all-reverse"),
                ("bfloat16", FORWARD, "bfloat16-all"),
                ("bfloat16", REVERSE, "bfloat16-all-reverse"),
            )
        ),
    ],
)
def test_ids_are_those_of_the_target_alone(
    shared_prompts: Path,
    dtype: Dtype,
    direction: tuple[str, str],
    prompts: int | None,
    new_tokens: int,
) -> None:
    tally = check_services(shared_prompts, direction, dtype, prompts, new_tokens)
    assert tally.failed == 0
    assert tally.proven, "drafts were not both accepted and rejected"
