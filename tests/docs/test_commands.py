"""What pages tell to run can be run: nothing is run here but the parser of the command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from orchestrator.cli.command import OneLineParser
from orchestrator.cli.main import COMMANDS
from tests.docs.pages import ROOT, Page, all_pages

PAGES = all_pages()
SHELLS = ("sh", "bash", "console")
ENDS = {"|", "||", "&&", ";", "&", "(", ")", ">", ">>", "<", "2>"}
TARGETS = frozenset(
    re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
)
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.path))


@each_page
def test_each_uag_command_is_one(page: Page) -> None:
    for words in commands(page):
        if words[0] == "uag" and words[1:]:
            assert is_understood(words[1:]), f"{page.path}: {shlex.join(words)}"


@each_page
def test_each_target_of_make_is_one(page: Page) -> None:
    for words in commands(page):
        if words[0] == "make":
            named = {word for word in words[1:] if re.fullmatch(r"[\w-]+", word)}
            assert named <= TARGETS, f"{page.path}: {shlex.join(words)}"


@each_page
def test_each_module_is_there(page: Page) -> None:
    for words in commands(page):
        if words[0].startswith("python") and words[1:2] == ["-m"]:
            assert is_runnable(words[2]), f"{page.path}: {shlex.join(words)}"
        elif words[0].startswith("python") and len(words) > 1 and words[1].endswith(".py"):
            assert (ROOT / words[1]).is_file(), f"{page.path}: {shlex.join(words)}"


def commands(page: Page) -> Iterator[list[str]]:
    """The words of each command in fenced shell code and between backticks."""
    code = [fence for language in SHELLS for fence in page.fences(language)]
    lines = [line for fence in code for line in fence.replace("\\\n", " ").splitlines()]
    for line in (*lines, *page.spans()):
        try:
            yield from simple_commands(line)
        except ValueError:
            # A quote that does not close: no code of a shell, or a text of several lines.
            continue


def simple_commands(line: str) -> Iterator[list[str]]:
    """Without comments, variables before a command, and where its output goes."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in (*lexer, ";"):
        if word in ENDS:
            yield from [words] if words else []
            words = []
        elif words or not re.fullmatch(r"\w+=.*", word):
            words.append(word.removeprefix("$") if not words else word)


def is_understood(arguments: list[str]) -> bool:
    """Whether the command line takes them; asking for help is fine."""
    parser = OneLineParser(prog="uag", allow_abbrev=False)
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_to(subparsers)
    try:
        return not parser.parse_known_args(arguments)[1]
    except SystemExit as ended:
        return ended.code in (0, None)


def is_runnable(module: str) -> bool:
    try:
        found = find_spec(module)
    except ModuleNotFoundError:
        return False
    if found is None:
        return False
    return not found.submodule_search_locations or find_spec(f"{module}.__main__") is not None
