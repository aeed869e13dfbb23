"""A template is rendered as transformers does, or is stopped: it is code from a model's folder."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from orchestrator.prompt.chat_template import ChatMessage, ChatTemplate
from orchestrator.prompt.renderer import CPU_SECONDS, MEMORY_BYTES
from tests.orchestrator.chat_templates import CHATML, a_template
from uag_common.errors import InternalError, InvalidRequestError, OverloadedError
from uag_common.tokenizer.errors import TokenizerError

ROOT = Path(__file__).parents[2]
TURNS = (ChatMessage("user", "Hi, who are you?"), ChatMessage("assistant", "A model."))
LOOPS = {
    "nested loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}"
    "{% endfor %}",
    "loops that write": "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}"
    "{% endfor %}",
    "recursion in two": "{% macro f(n) %}{{ f(n - 1) ~ f(n - 1) if n else 'x' }}{% endmacro %}"
    "{{ f(60) }}",
    "one operation": "{{ (messages | length) ** (10 ** 9) }}",
    "a filter": "{{ messages | slice(10 ** 10) | list | length }}",
}
MEMORY = {
    "doubling": "{% set ns = namespace(x='xx') %}{% for i in range(40) %}"
    "{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "doubling a list": "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}"
    "{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "a product": "{{ messages[0].role * 10 ** 10 }}",
    "a format": "{{ '%9999999999d' % messages | length }}",
    "a method's format": "{{ '{:9999999999}'.format(messages | length) }}",
    "join": "{{ range(99999) | join(messages[0].role * 99999) }}",
    "replace": "{{ (messages[0].role * 99999) | replace('u', 'y' * 99999) }}",
    "center": "{{ messages[0].role | center(10 ** 10) }}",
    "indent": "{{ 'a\\nb' | indent(10 ** 10) }}{{ messages[0] | tojson(indent=10 ** 10) }}",
    "batch": "{{ messages | batch(10 ** 10, 1) | list }}",
}
UNSAFE = (
    "{{ messages.__class__.__mro__ }}",
    "{{ cycler.__init__.__globals__ }}",
    "{{ raise_exception.__globals__['json'] }}",
    "{{ messages.append(1) }}",
    "{{ messages[0].update(role='x') }}",
)
# An unsafe attribute by itself is no attribute.
EMPTY = (
    "{{ ''.__class__ }}",
    "{{ messages | attr('__class__') }}",
    "{{ '{0.__class__}'.format(messages) }}",
    "{{ ('{0.__class__}' | attr('format'))(messages) }}",
)


def _problem(template: ChatTemplate, turns: Sequence[ChatMessage] = TURNS) -> str:
    with pytest.raises(InvalidRequestError) as refused:
        template.render(turns)
    assert refused.value.field == "chat"
    return refused.value.problem


def test_a_conversation_is_rendered_up_to_the_answer() -> None:
    turns, one = TURNS, TURNS[:1]
    first = "<|im_start|>user\nHi, who are you?<|im_end|>\n"
    end = "<|im_start|>assistant\n"
    assert a_template(CHATML).render(turns, one) == [
        f"{first}<|im_start|>assistant\nA model.<|im_end|>\n{end}",
        f"{first}{end}",
    ]


def test_a_template_that_refuses_is_told_with_its_reason() -> None:
    template = a_template("{{ raise_exception('roles must alternate') }}")
    assert _problem(template) == "the model's chat template refuses it: roles must alternate"


def test_a_long_reason_is_cut_and_an_empty_one_named() -> None:
    assert len(_problem(a_template("{{ raise_exception('x' * 10 ** 7) }}"))) < 1000
    assert "TemplateError" in _problem(a_template("{{ raise_exception('') }}"))


@pytest.mark.parametrize(
    "source", ["{{ messages[9].role.x }}", "{{ 1 + messages }}", "{{ 1 // 0 }}", "{{ '\\ud800' }}"]
)
def test_a_template_that_fails_is_told(source: str) -> None:
    assert "refuses it" in _problem(a_template(source))


def test_a_template_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(
        TokenizerError, match="chat template cannot be read: Expected an expression"
    ):
        a_template("{% for %}")


@pytest.mark.parametrize("source", UNSAFE)
def test_a_template_that_reaches_for_python_is_refused(source: str) -> None:
    assert "unsafe" in _problem(a_template(source))


@pytest.mark.parametrize("source", EMPTY)
def test_a_template_finds_nothing_of_python(source: str) -> None:
    assert a_template(source).render(TURNS) == [""]


def test_the_tags_filters_and_names_of_transformers_are_known() -> None:
    source = (
        "{% generation %}{{ messages | tojson }}{% endgeneration %}"
        "{% for m in messages %}{% break %}{% endfor %}{{ strftime_now('%Y') | length }}"
        "{{ messages[0] | tojson(ensure_ascii=True, indent=1, separators=(',', ':')) }}"
        "{{ tools is none and documents is none and add_generation_prompt }}{{ bos_token }}"
    )
    (text,) = a_template(source, bos_token="<s>").render([ChatMessage("user", "é<")])  # noqa: S106
    assert text == (
        '[{"role": "user", "content": "é<"}]4{\n "role":"user",\n "content":"\\u00e9<"\n}True<s>'
    )


@pytest.mark.parametrize("kind", LOOPS)
def test_a_template_without_an_end_is_stopped(kind: str) -> None:
    template = a_template(LOOPS[kind])
    assert _problem(template) == "the model's chat template computes for more than 1 s"
    # And again: the process that was stopped is replaced.
    assert "computes for more" in _problem(template)


@pytest.mark.parametrize("kind", MEMORY)
def test_a_template_that_fills_the_memory_is_stopped(kind: str) -> None:
    problem = _problem(a_template(MEMORY[kind]))
    assert "needs too much memory" in problem or "computes for more" in problem


@pytest.mark.parametrize("source", ["{{ 10 ** (10 ** 9) }}", "{{ 'x' * 10 ** 11 }}"])
def test_what_is_constant_in_a_template_is_no_way_around(source: str) -> None:
    with pytest.raises((TokenizerError, InvalidRequestError), match=r"computes for more|memory"):
        a_template(source).render(TURNS)


def test_endless_recursion_is_told() -> None:
    assert "recursion" in _problem(a_template("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"))


def test_a_template_writes_a_few_times_the_conversation_and_not_more() -> None:
    template = a_template("{{ messages[0].content * 3 }}{{ 'x' * 1000000 }}")
    turns = [ChatMessage("user", "y" * 3_000_000)]
    (text,) = template.render(turns)
    assert len(text) == 10_000_000
    template = a_template("{{ messages[0].content * 9 }}")
    assert "writes more than 13048576 characters" in _problem(template, turns)


def test_one_conversation_that_is_refused_leaves_the_template_usable() -> None:
    template = a_template(
        "{% if messages[0].content == 'loop' %}{% for a in range(99999) %}"
        "{% for b in range(99999) %}{% endfor %}{% endfor %}{% endif %}{{ messages[0].content }}"
    )
    for _ in range(2):
        assert template.render([ChatMessage("user", "good")]) == ["good"]
        assert "computes" in _problem(template, [ChatMessage("user", "loop")])


def test_threads_get_their_own_answers() -> None:
    template = a_template("{{ messages[0].content }}")
    texts = [f"{number} " * number for number in range(1, 200)]
    with ThreadPoolExecutor(8) as threads:
        answers = threads.map(lambda text: template.render([ChatMessage("user", text)]), texts)
        assert [answer for (answer,) in answers] == texts


def process_of(template: ChatTemplate) -> subprocess.Popen[bytes]:
    """The one that waits for the next conversation."""
    return template._renderer._processes._idle[0]._process


def test_a_process_that_was_killed_is_replaced() -> None:
    template = a_template("{{ messages[0].content }}")
    before = process_of(template).pid
    os.kill(before, signal.SIGKILL)
    assert template.render([ChatMessage("user", "again")]) == ["again"]
    assert process_of(template).pid != before


def test_a_process_that_gets_no_time_is_not_the_clients_fault() -> None:
    template = a_template("{{ messages[0].content }}")
    process_of(template).send_signal(signal.SIGSTOP)
    template._renderer._processes._idle[0]._socket.settimeout(0.05)
    with pytest.raises(OverloadedError, match="no time"):
        template.render([ChatMessage("user", "x")])
    assert template.render([ChatMessage("user", "again")]) == ["again"]


def test_the_process_ends_with_its_template() -> None:
    template = a_template("x")
    process = process_of(template)
    assert process.poll() is None
    del template
    gc.collect()
    assert process.returncode == -signal.SIGKILL


def test_the_process_ends_with_the_one_that_started_it() -> None:
    """Even if that is killed."""
    program = (
        "import os, signal\n"
        "from tests.orchestrator.chat_templates import a_template\n"
        "from tests.orchestrator.test_chat_template import process_of\n"
        "template = a_template('x')\n"
        "print(process_of(template).pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    process = int(done.stdout)
    deadline = time.monotonic() + 10
    while psutil.pid_exists(process) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(process) or psutil.Process(process).status() == "zombie"


def test_without_a_process_there_is_a_typed_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(InternalError, match="renderer_process cannot be started"):
        a_template("x")


def test_the_process_is_bounded_and_knows_nothing_of_the_project() -> None:
    if not Path("/proc/self/limits").exists():
        pytest.skip("no /proc here")
    template = a_template("x")
    folder = Path(f"/proc/{process_of(template).pid}")
    (limit,) = (
        line.split()[3:5]
        for line in (folder / "limits").read_text().splitlines()
        if line.startswith("Max address space")
    )
    assert limit == [str(MEMORY_BYTES)] * 2
    assert "tokenizers" not in (folder / "maps").read_text()
    assert CPU_SECONDS <= 1
    # An interrupt from a terminal goes to a group.
    assert os.getpgid(process_of(template).pid) != os.getpgid(0)
