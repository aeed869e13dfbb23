"""Files of prompts in every form, and what is wrong with others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from orchestrator.bench.prompts import DEFAULT_FILE, read_prompts
from orchestrator.client import Message
from uag_common.errors import InvalidRequestError

BOTH = '{"id": "x", "kind": "code", "chat": [{"role": "user", "content": "hi"}], "raw": "ha"}'


def written(folder: Path, text: str) -> Path:
    file = folder / "prompts"
    file.write_text(text, encoding="utf-8")
    return file


def test_both_forms(tmp_path: Path) -> None:
    (prompt,) = read_prompts(written(tmp_path, BOTH)).prompts
    assert (prompt.id, prompt.kind) == ("x", "code")
    assert prompt.form(chat_template=True) == (Message("user", "hi"),)
    assert prompt.form(chat_template=False) == "ha"


def test_a_conversation_alone_is_asked_as_one(tmp_path: Path) -> None:
    line = '{"chat": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]}'
    (prompt,) = read_prompts(written(tmp_path, line)).prompts
    assert prompt.form(chat_template=False) == (Message("system", "s"), Message("user", "u"))


def test_a_prompt_is_a_question_or_a_text(tmp_path: Path) -> None:
    (prompt,) = read_prompts(written(tmp_path, '\n{"prompt": "Why?"}\n')).prompts
    assert (prompt.id, prompt.kind) == ("line-2", "prompt")
    assert prompt.form(chat_template=True) == (Message("user", "Why?"),)
    assert prompt.form(chat_template=False) == "Why?"


def test_a_plain_text_has_a_prompt_a_line(tmp_path: Path) -> None:
    found = read_prompts(written(tmp_path, "Why?\n\n[1, 2]\n"))
    assert [prompt.raw for prompt in found.prompts] == ["Why?", "[1, 2]"]
    assert len(found.sha256) == 64


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "prompts: has no prompts"),
        ('{"prompt": "a"}\nnot JSON', "prompts:2: is no JSON"),
        ('{"question": "a"}', 'prompts:1: has neither "prompt" nor "chat"'),
        ('{"chat": []}', "prompts:1: has neither"),
        ('{"chat": [{"role": "robot", "content": "a"}]}', "prompts:1: has neither"),
        (BOTH.replace('"ha"', "7"), 'prompts:1: "raw" is no text'),
        (f"{BOTH}\n{BOTH}", "has two prompts with the id 'x'"),
    ],
)
def test_what_is_no_file_of_prompts_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        read_prompts(written(tmp_path, text))
    assert told in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="nowhere: cannot be read"):
        read_prompts(tmp_path / "nowhere")


def test_a_limit_takes_of_all_kinds(tmp_path: Path) -> None:
    kinds = ("code", "code", "code", "prose", "json")
    lines = (f'{{"prompt": "{n}", "kind": "{kind}"}}' for n, kind in enumerate(kinds))
    file = written(tmp_path, "\n".join(lines))
    assert [prompt.raw for prompt in read_prompts(file, limit=3).prompts] == ["0", "3", "4"]
    assert [prompt.raw for prompt in read_prompts(file, limit=4).prompts] == ["0", "1", "3", "4"]
    assert len(read_prompts(file, limit=9).prompts) == 5


def test_the_prompts_that_come_with_it_are_broad() -> None:
    found = read_prompts(DEFAULT_FILE)
    counts = Counter(prompt.kind for prompt in found.prompts)
    assert len(counts) == 10
    assert min(counts.values()) >= 2
    assert all(prompt.raw for prompt in found.prompts)
