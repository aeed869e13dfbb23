"""The command line as a whole: help, exit codes, nothing heavy loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.processes import ROOT, environment, uag

HELPS = (
    ["demo"],
    ["up"],
    ["generate"],
    ["models"],
    ["models", "list"],
    ["models", "fetch"],
    ["models", "where"],
    ["models", "check"],
)


@pytest.mark.parametrize("command", HELPS, ids=" ".join)
def test_every_help_has_examples(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    from orchestrator.cli.main import main

    with pytest.raises(SystemExit) as ended:
        main([*command, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "examples:\n  " in text
    assert "uag " + " ".join(command) in text.partition("examples:")[2]


def test_help_lists_the_exit_codes() -> None:
    done = uag("--help")
    assert done.returncode == 0
    assert done.stderr == ""
    listed = done.stdout.partition("exit codes:\n")[2].splitlines()
    assert [line.split()[0] for line in listed] == ["0", "1", "2", "65", "69", "75", "130"]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["generate"],
        ["generate", "text", "--file", "x"],
        ["generate", "--target", "nowhere", "text"],
        ["generate", "--timeout", "-1", "text"],
        ["generate", "--max-new-tokens", "many", "text"],
        ["generate", "--speculation", "maybe", "text"],
        ["generate", "--logit-bias", "7", "text"],
        ["generate", "--token-ids", "--chat", "1"],
        ["generate", "--token-ids", "--system", "be brief", "1"],
        ["generate", "--tls-key", "nowhere.key", "text"],
        ["up", "--port", "70000"],
        ["up", "--dtype", "int3"],
        ["models"],
        ["models", "check", "one"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_exit_code_2(arguments: list[str]) -> None:
    done = uag(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "uag" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["models", "list"], ["generate", "x"]])
def test_no_torch_in_the_process(arguments: list[str]) -> None:
    code = f"""
import sys
from orchestrator.cli.main import main
try:
    main({arguments!r})
except SystemExit:
    pass
sys.exit(any(name in sys.modules for name in ("torch", "transformers")))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, cwd=ROOT, env=environment(), check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_setting_that_is_no_address_names_itself() -> None:
    done = uag("up", changes={"UAG_DRAFT_LISTEN": "nonsense"})
    assert done.returncode == 65
    assert done.stderr == (
        "uag up: UAG_DRAFT_LISTEN: 'nonsense' is no HOST:PORT, such as 127.0.0.1:50050\n"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("generate", "Why", "is", "it"), "unrecognized arguments: is it; a text of several words"),
        (("generate", "--max_new_tokens", "3", "hi"), "unrecognized arguments: --max_new_tokens"),
        (("generate", "--temperature", "abc", "hi"), "--temperature: invalid float value: 'abc'"),
        (("generate", "--target", "foo", "hi"), "--target: 'foo' is no HOST:PORT"),
    ],
)
def test_what_is_wrong_with_a_command_line_is_one_line(
    arguments: tuple[str, ...], words: str
) -> None:
    done = uag(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("uag generate: ")
    assert words in line
    assert line.endswith("(see `uag generate --help`)")
