"""The numbers of the pages: formulas against a simulation, sizes against the code that estimates
them, constants that are told in words."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from orchestrator import model_drafter
from orchestrator.conversion import window
from tests.docs import memory_tables, speed_tables
from tests.docs.memory_tables import DRAFT, TARGET, Shape
from tests.docs.pages import Page
from tests.models.tiny_weights import write_model
from uag_common.models import memory
from uag_common.rpc import calls, server
from uag_common.telemetry import export

OPERATIONS = Path("docs/operations.md")
HOW = Path("docs/how-it-works.md")
TOLD = [
    (HOW, f"goes back at least {window.NEAREST} tokens"),
    (HOW, f"from {window.RELAXED} tokens on"),
    (HOW, f"from {window.FURTHEST} tokens on"),
    (HOW, f"up to {['no', 'one', 'two', 'three'][model_drafter.MAX_REOPENS]} times"),
    (OPERATIONS, f"at most {calls.MAX_OPEN_CALLS} calls are open"),
    (OPERATIONS, f"about {memory.TOKENIZER_FACTOR} bytes for each byte"),
    (OPERATIONS, f"some {memory.RUNTIME_BYTES / 1e9:.1f} GB for Python and torch"),
]


@pytest.mark.parametrize(("path", "words"), TOLD, ids=[words for _, words in TOLD])
def test_constants_are_told_as_they_are(path: Path, words: str) -> None:
    assert words in " ".join(Page.read(path).text.split())


def test_the_grace_that_is_advised_is_enough() -> None:
    last_words = 2 * server.LAST_WORDS_SECONDS + export.LAST_EXPORT_SECONDS
    assert "`UAG_*_DRAIN_SECONDS` + 5" in Page.read(OPERATIONS).text
    assert last_words < 5


@pytest.mark.parametrize(("a", "g"), [(0.3, 1), (0.5, 5), (0.8, 14)])
def test_tokens_per_round_are_those_of_a_simulation(a: float, g: int) -> None:
    dice = random.Random(0)
    rounds = 20_000
    tokens = 0
    for _ in range(rounds):
        rejected = next((place for place in range(g) if dice.random() >= a), g)
        tokens += rejected + 1
    assert tokens / rounds == pytest.approx(speed_tables.tokens_per_round(a, g), rel=0.03)
    assert speed_tables.tokens_per_round(a, g) == pytest.approx((1 - a ** (g + 1)) / (1 - a))


def test_break_even_is_where_the_speed_is_that_of_the_target() -> None:
    a = speed_tables.least_acceptance(0.5, 3)
    assert speed_tables.tokens_per_round(a, 3) == pytest.approx(1.5)
    # One candidate pays from a = c + r on.
    assert speed_tables.least_acceptance(0.3, 1) == pytest.approx(0.3)


def test_a_small_draft_may_be_the_better_one() -> None:
    rows = speed_tables.small_drafts().splitlines()[2:]
    first, *_, last = ([float(cell) for cell in row.strip("| ").split("|")] for row in rows)
    acceptance, cost, speed = 0, 1, 3
    assert first[acceptance] * 2 == last[acceptance]
    assert first[cost] * 100 == last[cost]
    assert first[speed] > last[speed]


@pytest.mark.parametrize("model", [TARGET, DRAFT], ids=lambda model: model.name)
def test_a_kv_cache_is_as_large_as_the_code_has_it(model: Shape, tmp_path: Path) -> None:
    config: dict[str, object] = {
        "num_hidden_layers": model.layers,
        "hidden_size": model.hidden,
        "num_attention_heads": model.heads,
        "num_key_value_heads": model.kv_heads,
    }
    found = memory.estimate(write_model(tmp_path / "model", config), "bfloat16")
    assert found.kv_token_bytes == model.kv_token_bytes


def test_parameters_are_those_that_the_models_are_known_for() -> None:
    """By their cards on the hub."""
    assert f"{TARGET.parameters / 1e9:.1f}" == "70.6"
    assert f"{DRAFT.parameters / 1e9:.2f}" == "0.49"
    assert memory.DTYPE_BYTES["bfloat16"] == memory_tables.BFLOAT16_BYTES
