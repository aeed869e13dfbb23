from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import pytest

from uag_common.errors import StartError
from uag_common.settings import Settings, describe, load, setting


@dataclass(frozen=True, kw_only=True)
class Example(Settings):
    PREFIX: ClassVar[str] = "EXAMPLE_"

    name: str = setting("what it is called")
    count: int = setting("how many", default=3, minimum=0, maximum=9)
    share: float = setting("how much of it", default=0.5, minimum=0, maximum=1)
    color: Literal["red", "blue"] = setting("which colour", default="red")
    loud: bool = setting("whether it is loud", default=False)


def test_defaults_and_values() -> None:
    environment = {"EXAMPLE_NAME": "x", "EXAMPLE_LOUD": "true", "OTHER": "y"}
    assert load(Example, environment) == Example(name="x", loud=True)
    given = {"EXAMPLE_NAME": "x", "EXAMPLE_COUNT": "9", "EXAMPLE_COLOR": "blue"}
    assert load(Example, given) == Example(name="x", count=9, color="blue")


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("EXAMPLE_COUNT", "10", "EXAMPLE_COUNT=10: must be from 0 to 9"),
        ("EXAMPLE_COUNT", "-1", "EXAMPLE_COUNT=-1: must be from 0 to 9"),
        ("EXAMPLE_COUNT", "many", "must be a whole number"),
        ("EXAMPLE_COUNT", "1.5", "must be a whole number"),
        ("EXAMPLE_SHARE", "nan", "must be from 0 to 1"),
        ("EXAMPLE_SHARE", "much", "must be a number"),
        ("EXAMPLE_COLOR", "green", "must be one of red, blue"),
        ("EXAMPLE_LOUD", "perhaps", "must be one of true, false"),
        ("EXAMPLE_NAME", "", "EXAMPLE_NAME is empty"),
        ("EXAMPLE_CUONT", "1", "did you mean EXAMPLE_COUNT"),
        ("EXAMPLE_ZZZ", "1", "no such setting; known are EXAMPLE_NAME"),
    ],
)
def test_a_bad_variable_is_named_with_the_remedy(variable: str, value: str, words: str) -> None:
    with pytest.raises(StartError, match=words):
        load(Example, {"EXAMPLE_NAME": "x", variable: value})


def test_a_missing_variable_is_named() -> None:
    with pytest.raises(StartError, match="EXAMPLE_NAME is not set: what it is called"):
        load(Example, {})


def test_help_names_each_variable() -> None:
    text = describe(Example)
    assert "EXAMPLE_NAME (required)" in text
    assert "EXAMPLE_COUNT (default: 3)" in text
    assert "EXAMPLE_LOUD (default: false)" in text
