from __future__ import annotations

import pytest

from benchmarks.emulation.scenario import Scenario, Telling

SCENARIO = Scenario("some-01", 0.0125, 0.02, 0.85, Telling.INFORMED, 0.0001, seed=7)


def test_it_is_found_in_a_prompt() -> None:
    prompt = f"User:\n{SCENARIO.line}\nWhy is the sky blue?\n\nAssistant:\n"
    assert Scenario.find(prompt.encode()) == SCENARIO


def test_a_prompt_may_have_none() -> None:
    assert Scenario.find(b"Why is [the] sky blue?") is None


@pytest.mark.parametrize("line", ["[emulation of=x step_ms=1]", SCENARIO.line.replace("0.85", "x")])
def test_a_bad_one_is_refused(line: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - what float and Enum say is good enough
        Scenario.find(line.encode())
