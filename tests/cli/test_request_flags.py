"""The flags of `uag generate` are the keywords of the client."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

import pytest

from orchestrator.cli.request_flags import add_request_flags, request_options
from orchestrator.client import Options
from uag_common.errors import InvalidRequestError

SCHEMA = '{"type": "string"}'
GRAMMAR = 'start: "ü"'


def options_of(*arguments: str) -> dict[str, object]:
    """What the flags ask for."""
    parser = ArgumentParser()
    add_request_flags(parser)
    options = request_options(parser.parse_args(arguments))
    return {name: value for name, value in options.items() if value is not None}


def test_no_flag_asks_for_nothing() -> None:
    assert options_of() == {}


def test_every_keyword_has_its_flag(tmp_path: Path) -> None:
    schema, grammar = tmp_path / "schema.json", tmp_path / "grammar.lark"
    schema.write_text(SCHEMA)
    grammar.write_text(GRAMMAR, encoding="utf-8")
    lengths = "--max-new-tokens 9 --truncate-prompt-tokens 8 -n 2 --min-new-tokens 3"
    sampling = (
        "--temperature 0.5 --top-k 4 --top-p 0.9 --min-p 0.1 --typical-p 0.2 --seed 0 "
        "--repetition-penalty 1.1 --frequency-penalty -1 --presence-penalty 1 "
        "--logit-bias 7=-100 --logit-bias 8=1.5"
    )
    ends = "--stop a --stop b --stop-token-id 1 --include-stop --ignore-eos --time-limit 2"
    told = "--logprobs 0 --prompt-logprobs 3"
    drafting = (
        "--speculation force --draft-tokens 0 --lookup-tokens 7 --draft-min-probability 0.5 "
        "--on-draft-failure fail"
    )
    names = (
        "--request-id r --session-id s --cache-salt c --priority -5 --metadata a=b=c --metadata d="
    )
    flags = " ".join((lengths, sampling, ends, told, drafting, names)).split()
    constraints = ("--json-schema", str(schema), "--grammar", str(grammar))
    options = options_of(*flags, *constraints, "--regex", "a b", "--choice", "x y", "--choice", "z")
    assert options == {
        "max_new_tokens": 9,
        "truncate_prompt_tokens": 8,
        "n": 2,
        "min_new_tokens": 3,
        "temperature": 0.5,
        "top_k": 4,
        "top_p": 0.9,
        "min_p": 0.1,
        "typical_p": 0.2,
        "seed": 0,
        "repetition_penalty": 1.1,
        "frequency_penalty": -1.0,
        "presence_penalty": 1.0,
        "logit_bias": {7: -100.0, 8: 1.5},
        "stop": ["a", "b"],
        "stop_token_ids": [1],
        "include_stop": True,
        "ignore_eos": True,
        "time_limit": 2.0,
        "json_schema": SCHEMA,
        "grammar": GRAMMAR,
        "regex": "a b",
        "choice": ["x y", "z"],
        "logprobs": 0,
        "prompt_logprobs": 3,
        "speculation": "force",
        "draft_tokens": 0,
        "lookup_tokens": 7,
        "draft_min_probability": 0.5,
        "on_draft_failure": "fail",
        "request_id": "r",
        "session_id": "s",
        "cache_salt": "c",
        "priority": -5,
        "metadata": {"a": "b=c", "d": ""},
    }
    assert options.keys() == Options.__annotations__.keys()


def test_a_schema_may_stand_on_the_command_line() -> None:
    assert options_of("--json-schema", SCHEMA) == {"json_schema": SCHEMA}


@pytest.mark.parametrize("flag", ["--json-schema", "--grammar"])
def test_a_file_that_is_missing_is_named(flag: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"nothing\.lark: cannot be read: No such file"):
        options_of(flag, "nothing.lark")


@pytest.mark.parametrize(
    ("flags", "form"), [("--logit-bias 7", "ID=BIAS"), ("--metadata team", "KEY=VALUE")]
)
def test_a_pair_without_its_form_is_told_the_form(
    flags: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        options_of(*flags.split())
    assert f"does not have the form {form}" in capsys.readouterr().err
