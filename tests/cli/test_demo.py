"""`uag demo` from end to end: once with a tiny model, and with the default pair."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.processes import running_uag, uag
from uag_common.models import catalogue
from uag_common.models.store import ModelStore

FREE_PORTS = ("--port", "0", "--draft-port", "0", "--verify-port", "0")
STEPS = (
    "1. What it needs",
    "2. The models",
    "3. The pair",
    "4. The services, each a process of its own",
    "5. The answer",
    "6. Figures",
    "7. The target alone, on the same prompt and the same services",
    "8. As the server plans it",
    "9. What to try next",
)


def assert_in_order(text: str, parts: Sequence[str]) -> None:
    start = 0
    for part in parts:
        assert part in text[start:], text
        start = text.index(part, start)


def test_every_step_with_a_tiny_model(tiny_model: Path, tmp_path: Path) -> None:
    models = ("--target", str(tiny_model), "--draft", str(tiny_model))
    with running_uag(
        "demo", "It rained", *models, *FREE_PORTS, "--max-new-tokens", "24", "--draft-tokens", "3",
        output=tmp_path / "demo.txt",
    ) as running:  # fmt: skip
        running.wait_for_words("4. The services")
        running.children()
        assert running.end() == 0, running.said()
        assert running.left_behind() == []
    said = running.said()
    assert_in_order(said, STEPS)
    assert "same vocabulary: ids pass as they are" in said
    assert "ids: identical, all " in said
    assert "\x1b" not in said


def test_the_answer_and_its_figures_are_the_data(tiny_model: Path) -> None:
    models = ("--target", str(tiny_model), "--draft", str(tiny_model))
    done = uag("demo", *models, *FREE_PORTS, "--max-new-tokens", "8")
    assert done.returncode == 0, done.stderr
    assert_in_order(done.stdout, [" tokens/s, first token after ", "ids: identical", "speed: "])
    assert "1. What it needs" not in done.stdout


def test_ctrl_c_in_the_middle_of_the_answer_leaves_nothing(
    tiny_model: Path, tmp_path: Path
) -> None:
    models = ("--target", str(tiny_model), "--draft", str(tiny_model))
    arguments = ("demo", *models, *FREE_PORTS, "--max-new-tokens", "400")
    with running_uag(*arguments, output=tmp_path / "demo.txt") as running:
        running.wait_for_words("3. The pair")
        assert len(running.children()) == 3
        running.wait_for_words("5. The answer")
        running.process.send_signal(signal.SIGINT)
        assert running.end() == 130
        assert running.said().endswith("uag demo: interrupted\n")
        assert running.left_behind() == []


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        ([""], 65, "uag demo: the prompt: is empty"),
        (["--max-new-tokens", "0"], 65, "uag demo: max_new_tokens: is 0"),
        (["--draft-tokens", "-1"], 65, "uag demo: speculation.draft_tokens: is -1"),
        (["--target", "nowhere", *FREE_PORTS], 1, "uag demo: no model 'nowhere'"),
    ],
)
def test_what_cannot_work_is_refused_at_once(flags: list[str], code: int, message: str) -> None:
    done = uag("demo", *flags)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr


@pytest.fixture(scope="module")
def default_pair() -> None:
    """Both default models are in the user's cache, fetched if need be."""
    store = ModelStore.from_environment()
    for name in (catalogue.DEFAULT_TARGET, catalogue.DEFAULT_DRAFT):
        store.fetch(name)


@pytest.mark.real_model
@pytest.mark.usefixtures("default_pair")
def test_the_default_pair_offline(tmp_path: Path) -> None:
    arguments = ("demo", *FREE_PORTS, "--max-new-tokens", "12")
    offline = {"UAG_OFFLINE": "1", "HF_HUB_OFFLINE": "1"}
    with running_uag(*arguments, output=tmp_path / "demo.txt", changes=offline) as running:
        running.wait_for_words("3. The pair")
        assert len(running.children()) == 3
        assert running.end(300) == 0, running.said()
        assert running.left_behind() == []
    said = running.said()
    assert_in_order(said, STEPS)
    assert "nothing, all is here" in said
    assert "different vocabularies: drafts are translated byte by byte" in said
    assert "ids: identical, all 12\n" in said
    assert "\x1b" not in said
