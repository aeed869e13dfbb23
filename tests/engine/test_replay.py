"""Recurrent and hybrid contexts: what cannot be cut is copied and run again."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest
import torch
from transformers import PreTrainedModel
from transformers.cache_utils import DynamicLayer

from tests.engine.recurrent_networks import (
    HIDDEN,
    VOCABULARY,
    falcon_h1,
    jamba,
    last_logits,
    lfm2,
    mamba,
    mamba2,
    qwen3_next,
    rwkv,
)
from tests.engine.walk import TOLERANCE, Walk
from uag_common.engine.kv_store import LayerShape
from uag_common.engine.masked import MaskedSequence
from uag_common.engine.recurrent import (
    CacheMemory,
    Kept,
    Memory,
    MemoryShape,
    NewMemory,
    OneByOne,
    memory_shape,
    new_memory,
)
from uag_common.engine.replay import (
    MOST_SNAPSHOTS,
    ReplayContexts,
    ReplayMemory,
    ReplaySequence,
    bytes_of_states,
)
from uag_common.kv.pool import BlockPool, NoBlocksError
from uag_common.model import Part, Rollback

Kind = Callable[[], PreTrainedModel]

BLOCK_TOKENS = 4
STATE_BLOCKS = 2
ONE_BY_ONE = frozenset({mamba, jamba})
KINDS = (mamba, mamba2, falcon_h1, lfm2, rwkv)
MORE_KINDS = (*KINDS, jamba, qwen3_next)


def made(kind: Kind, seed: int = 1) -> PreTrainedModel:
    torch.manual_seed(seed)
    return kind().eval()


def replay(new: NewMemory, blocks: int = 1000) -> ReplayContexts:
    return ReplayContexts(ReplayMemory(new, BlockPool(blocks, BLOCK_TOKENS, 100), STATE_BLOCKS))


def contexts_of(network: PreTrainedModel, *, one_by_one: bool) -> ReplayContexts:
    if one_by_one:
        return replay(lambda: OneByOne(lambda: new_memory(network)))
    return replay(lambda: new_memory(network))


def walk_of(kind: Kind, seed: int) -> Walk:
    network = made(kind)
    contexts = contexts_of(network, one_by_one=kind in ONE_BY_ONE)
    return Walk(network, contexts, last_logits, seed)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KINDS)
def test_any_walk_equals_fresh_runs(kind: Kind, seed: int) -> None:
    walk = walk_of(kind, seed)
    walk.go(30)
    assert walk.compared > 12


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 8))
@pytest.mark.parametrize("kind", MORE_KINDS)
def test_many_more_walks(kind: Kind, seed: int) -> None:
    walk_of(kind, seed).go(120)


def test_a_walk_notices_several_tokens_at_once_where_they_are_wrong() -> None:
    network = made(mamba)
    walk = Walk(network, contexts_of(network, one_by_one=False), last_logits, 0)
    with pytest.raises(AssertionError):
        walk.go(40)


@pytest.mark.parametrize("kind", [mamba2, falcon_h1, lfm2])
def test_a_walk_notices_a_copy_that_later_runs_change(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uag_common.engine.recurrent._cloned", lambda value: value)
    walk = walk_of(kind, 0)
    with pytest.raises(AssertionError):
        walk.go(40)


@pytest.mark.parametrize("kind", [mamba, mamba2, falcon_h1, lfm2, rwkv])
def test_a_memory_goes_back_bit_by_bit(kind: Kind) -> None:
    """A copy and what comes after it are the same numbers, not just close ones."""
    memory = new_memory(made(kind))
    memory.run([5, 6, 7, 8], 0)
    kept = memory.keep()
    first = memory.run([9], 1)
    memory.run([10], 1)
    again = memory.back_to(kept, 4)
    assert torch.equal(again.run([9], 1), first)
    assert torch.equal(memory.back_to(kept, 4).run([9], 1), first)


@pytest.mark.parametrize("seed", range(20))
def test_tokens_one_by_one_are_those_of_the_context(seed: int) -> None:
    """At once only from the beginning, and then only where they are many."""
    dice = random.Random(seed)
    tapes: list[Tape] = []

    def new() -> Memory:
        tapes.append(Tape())
        return tapes[-1]

    memory, ids, kept = OneByOne(new), list[int](), list[tuple[int, Kept]]()
    for _ in range(40):
        if kept and dice.random() < 0.3:
            length, copy = dice.choice(kept)
            memory, ids = memory.back_to(copy, length), ids[:length]
            kept = [each for each in kept if each[0] <= length]
        new_ids = [dice.randrange(100) for _ in range(dice.choice([1, 1, 3, 20]))]
        ids = [*ids, *new_ids]
        rows = dice.randint(0, len(new_ids))
        assert memory.run(new_ids, rows).argmax(-1).tolist() == sums(ids, rows)
        kept.append((len(ids), memory.keep()))
    for tape in tapes:
        assert set(tape.ran[1:]) <= {1}


def test_many_tokens_are_not_run_one_by_one() -> None:
    network = made(mamba)
    memory, passes = OneByOne(lambda: new_memory(network)), list[int]()
    network.register_forward_pre_hook(
        lambda *given: passes.append(given[2]["input_ids"].shape[1]), with_kwargs=True
    )
    for count in (20, 20, 2, 1):
        memory.run(range(count), 1)
    assert passes == [20, 40, 1, 1, 1]


def test_a_copy_holds_no_keys_of_all_tokens() -> None:
    memory = CacheMemory(made(falcon_h1))
    memory.run(range(20), 0)
    for layer in memory.keep():
        assert isinstance(layer, DynamicLayer)
        assert layer.keys is None


def test_what_contexts_take() -> None:
    def shape(kind: Kind) -> MemoryShape:
        network = made(kind)
        return memory_shape(lambda: new_memory(network))

    # Twice as wide inside: 4 places of a convolution, and a state of 8 for each channel.
    assert shape(mamba) == MemoryShape(2 * 2 * HIDDEN * (4 + 8) * 4, ())
    assert shape(rwkv) == MemoryShape(5 * 2 * HIDDEN * 4, ())
    layer = LayerShape(2, 8, 8, torch.float32, torch.device("cpu"))
    assert shape(falcon_h1).layers == (layer, layer)
    assert shape(lfm2).layers == (layer,)
    assert bytes_of_states(shape(rwkv)) == (1 + MOST_SNAPSHOTS) * shape(rwkv).bytes


@dataclass
class Tape:
    """A memory that knows which tokens it has run, and tells them: a row's greatest logit is at the
    sum of all tokens so far. `ran` counts the tokens of all memories that came from one."""

    ran: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)

    def run(self, ids: Sequence[int], rows: int) -> torch.Tensor:
        self.ran.append(len(ids))
        self.tokens += ids
        ends = range(len(self.tokens) - rows + 1, len(self.tokens) + 1)
        sums = torch.tensor([sum(self.tokens[:end]) % VOCABULARY for end in ends], dtype=torch.long)
        return torch.nn.functional.one_hot(sums, VOCABULARY).float()

    def keep(self) -> Kept:
        return tuple(self.tokens)

    def back_to(self, kept: Kept, length: int) -> Memory:
        assert len(kept) == length
        assert tuple(self.tokens[:length]) == kept
        return Tape(self.ran, [*kept])

    def shape(self) -> MemoryShape:
        return MemoryShape(0, ())


def greatest(contexts: ReplayContexts, sequence: ReplaySequence, rows: int) -> list[int]:
    (logits,) = contexts.run((Part(sequence, sequence.pending(rows), rows),))
    return [each.id for each in logits.greatest]


def sums(ids: Sequence[int], rows: int) -> list[int]:
    return [sum(ids[:end]) % VOCABULARY for end in range(len(ids) - rows + 1, len(ids) + 1)]


@pytest.mark.parametrize("seed", range(60))
def test_the_memory_has_run_the_context_and_nothing_else(seed: int) -> None:
    dice, contexts = random.Random(seed), replay(Tape)
    sequences = [contexts.new_sequence()]
    for _ in range(80):
        sequence = dice.choice(sequences)
        sequence.extend([dice.randrange(100) for _ in range(dice.randint(1, 6))])
        if dice.random() < 0.4:
            sequence.truncate(dice.randint(1, len(sequence.ids)))
        if dice.random() < 0.2:
            sequences.append(sequence.fork(dice.randint(1, len(sequence.ids))))
        rows = dice.randint(1, min(5, len(sequence.ids)))
        pending = sequence.pending(rows)
        if dice.random() < 0.3 and pending > 1:
            contexts.run((Part(sequence, dice.randint(1, pending - 1), rows),))
        else:
            assert greatest(contexts, sequence, rows) == sums(sequence.ids, rows)
        for each in sequences:
            assert isinstance(each._memory, Tape)
            assert each._memory.tokens == each.ids[: each.cached]
            lengths = [snapshot.length for snapshot in each._snapshots]
            assert len(lengths) <= MOST_SNAPSHOTS
            assert lengths == sorted({*lengths})
        tokens = sum(-(-each.cached // BLOCK_TOKENS) for each in sequences)
        states = sum(STATE_BLOCKS for each in sequences if each.cached)
        assert contexts.blocks.used == tokens + states
    for sequence in sequences:
        sequence.drop_cache()
    assert contexts.blocks.used == 0


def test_a_draft_runs_again_only_its_last_round() -> None:
    """Rounds of 5 drafted tokens, of which some are kept and one is put in their place."""
    contexts = replay(Tape)
    sequence = contexts.new_sequence()
    sequence.extend(range(50))
    greatest(contexts, sequence, 1)
    sequence.extend([1])
    dice = random.Random(0)
    for _ in range(20):
        sequence.truncate(len(sequence.ids))
        for _ in range(5):
            greatest(contexts, sequence, 1)
            sequence.extend([dice.randrange(100)])
        kept = dice.randint(0, 5)
        sequence.truncate(len(sequence.ids) - 5 + kept)
        sequence.extend([dice.randrange(100)])
        # What was kept is run again, and the token after it for the first time.
        assert sequence.pending(1) <= kept + 2


def test_a_verification_runs_again_only_what_it_accepted_last() -> None:
    contexts = replay(Tape)
    sequence = contexts.new_sequence()
    sequence.extend(range(50))
    greatest(contexts, sequence, 1)
    sequence.extend([1])
    dice = random.Random(0)
    for _ in range(20):
        candidates = [dice.randrange(100) for _ in range(4)]
        committed = len(sequence.ids)
        sequence.extend(candidates)
        assert greatest(contexts, sequence, 5) == sums(sequence.ids, 5)
        accepted = dice.randint(0, 4)
        sequence.truncate(committed + accepted)
        sequence.extend([dice.randrange(100)])
        again = 0 if accepted == 4 else accepted + 1
        assert sequence.pending(1) == again + 1


def test_tokens_one_by_one_take_no_copies() -> None:
    contexts = replay(Tape)
    sequence = contexts.new_sequence()
    sequence.extend(range(50))
    for token_id in range(10):
        greatest(contexts, sequence, 1)
        sequence.truncate(len(sequence.ids))
        sequence.extend([token_id])
    assert [snapshot.length for snapshot in sequence._snapshots] == [49]


def test_a_session_goes_back_to_before_its_last_round_without_its_prompt() -> None:
    contexts = replay(Tape)
    sequence = contexts.new_sequence()
    sequence.extend(range(50))
    greatest(contexts, sequence, 1)
    starts = []
    for _ in range(3):
        starts.append(len(sequence.ids))
        sequence.extend([1, 2, 3, 4])
        greatest(contexts, sequence, 4)
    sequence.truncate(starts[2] - 1)
    assert sequence.cached == starts[1]
    sequence.truncate(starts[1] - 1)
    assert sequence.cached == 49


def test_a_fork_of_a_prompt_runs_none_of_it() -> None:
    contexts = replay(Tape)
    source = contexts.new_sequence()
    source.extend(range(50))
    greatest(contexts, source, 1)
    source.extend([1, 2, 3])
    greatest(contexts, source, 3)
    fork = source.fork(49)
    assert fork.cached == 49
    fork.extend([7])
    assert greatest(contexts, fork, 1) == sums(fork.ids, 1)
    assert source.fork(48).cached == 0


def test_a_fork_without_room_has_nothing_cached() -> None:
    contexts = replay(Tape, blocks=6)
    source = contexts.new_sequence()
    source.extend(range(8))
    greatest(contexts, source, 1)
    assert contexts.blocks.free == 6 - STATE_BLOCKS - 2
    assert source.fork(8).cached == 0


def test_without_blocks_nothing_runs() -> None:
    tape = Tape()
    contexts = replay(lambda: tape, blocks=4)
    sequence = contexts.new_sequence()
    sequence.extend(range(9))
    assert sequence.blocks_for(9) == STATE_BLOCKS + 3
    with pytest.raises(NoBlocksError):
        greatest(contexts, sequence, 1)
    assert not tape.ran
    sequence.truncate(8)
    assert sequence.blocks_for(8) == STATE_BLOCKS + 2
    greatest(contexts, sequence, 1)
    sequence.extend([1])
    assert sequence.blocks_for(1) == 1


def test_after_a_failure_none_has_more_cached_and_all_can_go_on() -> None:
    network = made(mamba2)
    contexts = contexts_of(network, one_by_one=False)
    good, bad = contexts.new_sequence(), contexts.new_sequence()
    good.extend([5, 6, 7])
    bad.extend([5, 10**6])
    with pytest.raises(IndexError):
        contexts.run((Part(good, 3, 1), Part(bad, 2, 1)))
    assert (good.cached, bad.cached, contexts.blocks.used) == (0, 0, 0)
    (logits,) = contexts.run((Part(good, 3, 1),))
    assert torch.allclose(logits.tensor, last_logits(network, [5, 6, 7], 1), atol=TOLERANCE)


def test_what_it_tells_of_itself() -> None:
    contexts = replay(Tape)
    assert (contexts.rollback, contexts.most_parts) == (Rollback.REPLAY, 1)
    with pytest.raises(TypeError, match="MaskedSequence is no context of this model"):
        contexts.run((Part(MaskedSequence([1]), 1, 1),))
    sequence = contexts.new_sequence()
    sequence.extend([1, 2])
    for rows in (0, 3):
        with pytest.raises(ValueError, match="rows asked"):
            sequence.pending(rows)
