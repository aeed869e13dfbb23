"""Many contexts in one pass: each gets what it gets alone, whatever is mixed, cut, rolled back."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
from transformers import PreTrainedModel

from tests.engine.networks import (
    BOUNDARY,
    KINDS,
    VOCABULARY,
    capped,
    contexts,
    experts,
    fresh_logits,
    full,
    long_rope,
    network,
    sliding,
)
from uag_common.engine import attention
from uag_common.engine.contexts import Contexts
from uag_common.engine.pack import Pack, Segment
from uag_common.engine.packed import PackedContexts, PackedSequence
from uag_common.errors import StartError
from uag_common.kv.pool import NoBlocksError
from uag_common.kv.table import Copy, Run
from uag_common.model import Part, TokenSequence

TOLERANCE = 2e-4
MOST = 8

Kind = Callable[[], PreTrainedModel]


class Walk:
    """Contexts that grow, go back, fork and end at random, and share passes as they come."""

    def __init__(self, kind: Kind, seed: int, *, deterministic: bool = False) -> None:
        self.dice = random.Random(seed)
        self.network = network(kind)
        self.contexts = contexts(self.network, deterministic=deterministic)
        # No slower way was taken without a word.
        assert isinstance(self.contexts, PackedContexts)
        self.sequences: list[TokenSequence] = []
        self.compared = 0
        self.worst = 0.0

    def ids(self, count: int) -> list[int]:
        return [self.dice.randrange(VOCABULARY) for _ in range(count)]

    def change(self) -> None:
        """One of the contexts, or one more."""
        dice = self.dice
        match dice.choice(["grow", "grow", "grow", "back", "fork", "new", "drop", "end"]):
            case "new" | "fork" if len(self.sequences) >= MOST:
                return
            case "new":
                self.sequences.append(self.contexts.new_sequence())
                self.sequences[-1].extend(self.ids(dice.randint(1, 30)))
            case _ if not self.sequences:
                return
            case "grow":
                dice.choice(self.sequences).extend(self.ids(dice.randint(1, 7)))
            case "back":
                sequence = dice.choice(self.sequences)
                sequence.truncate(dice.randint(1, len(sequence.ids)))
            case "fork":
                sequence = dice.choice(self.sequences)
                self.sequences.append(sequence.fork(dice.randint(1, len(sequence.ids))))
            case "drop":
                dice.choice(self.sequences).drop_cache()
            case "end":
                self.sequences.pop(dice.randrange(len(self.sequences))).drop_cache()

    def run(self) -> None:
        """Parts of some of them, each whole or the first tokens of it."""
        some = self.dice.sample(self.sequences, self.dice.randint(0, len(self.sequences)))
        parts = [self._part(sequence) for sequence in some]
        if not parts:
            return
        for part, logits in zip(parts, self.contexts.run(parts), strict=True):
            if logits.rows:
                expected = fresh_logits(self.network, list(part.sequence.ids), part.rows)
                self.worst = max(self.worst, float((logits.tensor - expected).abs().max()))
                assert [each.id for each in logits.greatest] == expected.argmax(-1).tolist()
                self.compared += part.rows

    def _part(self, sequence: TokenSequence) -> Part:
        length = len(sequence.ids)
        rows = self.dice.randint(1, min(length, 6))
        while sequence.reach(length - rows + 1) < length:
            rows -= 1
        pending = sequence.pending(rows)
        whole = self.dice.random() < 0.7
        return Part(sequence, pending if whole else self.dice.randint(1, pending), rows)

    def go(self, steps: int) -> None:
        for _ in range(steps):
            self.change()
            if self.dice.random() < 0.5:
                self.run()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_any_walk_of_many_contexts_equals_each_alone(kind: Kind, seed: int) -> None:
    walk = Walk(kind, seed)
    walk.go(100)
    assert walk.compared > 40
    assert walk.worst < TOLERANCE
    for sequence in walk.sequences:
        sequence.drop_cache()
    assert walk.contexts.blocks.free == walk.contexts.blocks.total


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3, 40))
@pytest.mark.parametrize("kind", KINDS)
def test_many_more_walks(kind: Kind, seed: int) -> None:
    walk = Walk(kind, seed)
    walk.go(300)
    assert walk.worst < TOLERANCE


@pytest.mark.parametrize("kind", [full, sliding, capped, long_rope])
def test_a_walk_in_passes_of_fixed_size(kind: Kind) -> None:
    walk = Walk(kind, 1, deterministic=True)
    walk.go(60)
    assert walk.compared > 20
    assert walk.worst < TOLERANCE


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", [full, sliding, capped, long_rope])
def test_in_passes_of_fixed_size_nothing_depends_on_what_shares_them(
    kind: Kind, dtype: torch.dtype
) -> None:
    """The same ids, in other company, in other pieces, after other rollbacks: the same bits."""
    dice, packed = random.Random(2), contexts(network(kind).to(dtype), deterministic=True)
    ids = [dice.randrange(VOCABULARY) for _ in range(40)]
    seen: dict[int, torch.Tensor] = {}
    for attempt in range(6):
        others = [packed.new_sequence() for _ in range(attempt)]
        sequence = packed.new_sequence()
        while len(sequence.ids) < len(ids):
            sequence.extend(ids[len(sequence.ids) :][: dice.randint(1, 9)])
            for other in others:
                other.extend([dice.randrange(VOCABULARY) for _ in range(dice.randint(1, 5))])
            parts = [Part(each, each.pending(1), 1) for each in (*others, sequence)]
            dice.shuffle(parts)
            for part, logits in zip(parts, packed.run(parts), strict=True):
                if part.sequence is sequence:
                    row = logits.tensor[0].clone()
                    assert torch.equal(seen.setdefault(len(sequence.ids), row), row)
            sequence.truncate(max(1, len(sequence.ids) - dice.randint(0, 4)))
        for each in (*others, sequence):
            each.drop_cache()
    assert len(seen) > 15


def test_a_model_with_experts_cannot_be_deterministic() -> None:
    with pytest.raises(StartError, match="DETERMINISTIC"):
        contexts(network(experts), deterministic=True)


def _wrong_windows(contexts: Contexts, change: int | None) -> None:
    assert isinstance(contexts, PackedContexts)
    runner = contexts._runner
    windows = runner._windows  # type: ignore[attr-defined]
    runner._windows = tuple(  # type: ignore[attr-defined]
        window if window is None or change is None else window + change for window in windows
    )
    if change is None:
        runner._windows = (None,) * len(windows)  # type: ignore[attr-defined]


@pytest.mark.parametrize("change", [None, 1, -1])
def test_a_walk_notices_a_wrong_window(change: int | None) -> None:
    walk = Walk(sliding, 0)
    _wrong_windows(walk.contexts, change)
    with pytest.raises(AssertionError):
        _go_and_compare(walk)


def test_a_walk_notices_a_dropped_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    def uncapped(
        rows: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        mask: torch.Tensor | None,
        scale: float,
        softcap: float,  # noqa: ARG001
    ) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(
            rows[None], keys[None], values[None], mask, scale=scale
        )[0]

    walk = Walk(capped, 0)
    monkeypatch.setattr(attention, "_capped", uncapped)
    with pytest.raises(AssertionError):
        _go_and_compare(walk)


def test_a_walk_notices_stale_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache stays as it is when the ids go back."""
    walk = Walk(full, 0)
    monkeypatch.setattr(
        PackedSequence, "truncate", lambda self, length: self._ids.__delitem__(slice(length, None))
    )
    with pytest.raises(AssertionError):
        _go_and_compare(walk)


def test_a_walk_notices_copies_that_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    walk = Walk(full, 0)
    monkeypatch.setattr("uag_common.engine.kv_store.KvStore.copy", lambda *_: None)
    with pytest.raises(AssertionError):
        _go_and_compare(walk)


def _go_and_compare(walk: Walk) -> None:
    walk.go(300)
    assert walk.worst < TOLERANCE


def test_a_context_that_crosses_into_the_long_regime_is_run_anew() -> None:
    alone, packed = network(long_rope), contexts(network(long_rope))
    sequence = packed.new_sequence()
    sequence.extend(range(BOUNDARY - 1))
    packed.run([Part(sequence, BOUNDARY - 1, 1)])
    assert sequence.reach(len(sequence.ids)) == BOUNDARY
    sequence.extend([5, 6, 7])
    with pytest.raises(ValueError, match="not of one regime"):
        sequence.pending(3)
    assert sequence.pending(1) == BOUNDARY + 2
    # The first chunk alone would lie within the short regime.
    packed.run([Part(sequence, 10, 1)])
    (logits,) = packed.run([Part(sequence, BOUNDARY - 8, 1)])
    expected = fresh_logits(alone, list(sequence.ids), 1)
    assert torch.allclose(logits.tensor, expected, atol=TOLERANCE)


def test_what_fails_leaves_every_context_as_it_was() -> None:
    alone, packed = network(full), contexts(network(full))
    good, bad = packed.new_sequence(), packed.new_sequence()
    for sequence in (good, bad):
        sequence.extend([5, 6, 7])
        packed.run([Part(sequence, 3, 1)])
    good.extend([8])
    bad.extend([10**6])
    with pytest.raises(IndexError):
        packed.run([Part(good, 1, 1), Part(bad, 1, 1)])
    assert (good.cached, bad.cached) == (3, 3)
    (logits,) = packed.run([Part(good, 1, 1)])
    assert torch.allclose(logits.tensor, fresh_logits(alone, [5, 6, 7, 8], 1), atol=TOLERANCE)


def test_without_memory_nothing_has_changed() -> None:
    packed = contexts(network(full), tokens=48)
    first, second = packed.new_sequence(), packed.new_sequence()
    first.extend([1] * 40)
    packed.run([Part(first, 40, 1)])
    second.extend([2] * 30)
    assert second.blocks_for(30) > packed.blocks.free
    with pytest.raises(NoBlocksError):
        packed.run([Part(second, 30, 1)])
    assert (second.cached, first.cached) == (0, 40)
    second.drop_cache()
    assert packed.blocks.used == 3


def test_a_pack_is_the_same_after_its_way_through_numbers() -> None:
    pack = Pack(
        (
            Segment((5, 6, 7), 4, (Run(32, 4), Run(96, 3))),
            Segment((8,), 0, (Run(0, 1),)),
        ),
        rows=(1, 2, 3),
        copies=(Copy(1, 2, 3),),
        padding=2,
        padding_position=9,
    )
    assert Pack.from_ints(pack.to_ints()) == pack
    assert pack.ids() == [5, 6, 7, 8, 0, 0]
    assert pack.positions() == [4, 5, 6, 0, 9, 9]
    assert pack.slots() == [96, 97, 98, 0]


@pytest.mark.parametrize("rows", [0, 4])
def test_rows_must_be_there(rows: int) -> None:
    sequence = contexts(network(full)).new_sequence()
    sequence.extend([5, 6, 7])
    with pytest.raises(ValueError, match="rows asked"):
        sequence.pending(rows)
