"""Contexts one after another, with a cache of transformers each."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from transformers import PreTrainedModel

from tests.engine.networks import BOUNDARY, fresh_logits, long_rope, sliding
from tests.engine.recurrent_networks import falcon, last_logits, stablelm
from tests.engine.walk import TOLERANCE, Walk
from uag_common.engine.kv_store import LayerShape
from uag_common.engine.masked import MaskedSequence
from uag_common.engine.rope import rope_regimes
from uag_common.engine.solo import SoloContexts, SoloMemory, SoloSequence, layers_of_cache
from uag_common.kv.pool import BlockPool, NoBlocksError
from uag_common.model import Part, Rollback, TokenSequence

Kind = Callable[[], PreTrainedModel]

BLOCK_TOKENS = 4
KINDS = (stablelm, falcon, sliding, long_rope)


def made(kind: Kind, seed: int = 1) -> PreTrainedModel:
    torch.manual_seed(seed)
    return kind().eval()


def solo(network: PreTrainedModel, blocks: int = 1000) -> SoloContexts:
    pool = BlockPool(blocks, BLOCK_TOKENS, 100)
    return SoloContexts(network, SoloMemory(pool, rope_regimes(network.config)))


def run(contexts: SoloContexts, sequence: TokenSequence, rows: int) -> torch.Tensor:
    (logits,) = contexts.run((Part(sequence, sequence.pending(rows), rows),))
    return logits.tensor


def begun(contexts: SoloContexts, *ids: int) -> SoloSequence:
    sequence = contexts.new_sequence()
    sequence.extend(ids)
    return sequence


def walk_of(kind: Kind, seed: int) -> Walk:
    network = made(kind)
    # A row in the midst of a long context has other numbers than at the end of a short one.
    return Walk(network, solo(network), fresh_logits if kind is long_rope else last_logits, seed)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KINDS)
def test_any_walk_equals_fresh_runs(kind: Kind, seed: int) -> None:
    walk = walk_of(kind, seed)
    walk.go(60)
    assert walk.compared > 25


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 12))
@pytest.mark.parametrize("kind", KINDS)
def test_many_more_walks(kind: Kind, seed: int) -> None:
    walk_of(kind, seed).go(150)


def test_a_walk_notices_a_cache_that_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(sequence: SoloSequence, length: int) -> None:
        sequence._table.truncate(length)

    monkeypatch.setattr(SoloSequence, "_uncache", forget)
    walk = walk_of(stablelm, 0)
    with pytest.raises(AssertionError):
        walk.go(60)


def test_a_walk_notices_a_chunk_of_the_wrong_regime(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the model's own rule were asked: it knows a chunk's positions alone."""
    network = made(long_rope)
    contexts = solo(network)
    sequence = begun(contexts, *range(BOUNDARY + 10))
    monkeypatch.setattr(SoloSequence, "long", property(lambda _: False))
    contexts.run((Part(sequence, BOUNDARY - 4, 1),))
    expected = fresh_logits(network, list(sequence.ids), 1)
    assert not torch.allclose(run(contexts, sequence, 1), expected, atol=TOLERANCE)


@pytest.mark.parametrize("chunk", [1, 5, BOUNDARY, BOUNDARY + 1])
def test_a_long_prompt_in_chunks_is_of_the_long_regime(chunk: int) -> None:
    network = made(long_rope)
    contexts = solo(network)
    sequence = begun(contexts, *range(BOUNDARY + 10))
    while (pending := sequence.pending(1)) > chunk:
        (logits,) = contexts.run((Part(sequence, chunk, 1),))
        assert logits.rows == 0
        assert sequence.pending(1) == pending - chunk
        assert sequence._cache.get_seq_length() == sequence.cached
    expected = fresh_logits(network, list(sequence.ids), 1)
    assert torch.allclose(run(contexts, sequence, 1), expected, atol=TOLERANCE)


def test_a_context_that_changes_its_regime_runs_anew() -> None:
    network = made(long_rope)
    contexts = solo(network)
    sequence = begun(contexts, *range(BOUNDARY))
    run(contexts, sequence, 1)
    sequence.extend([5])
    assert sequence.pending(1) == BOUNDARY + 1
    with pytest.raises(ValueError, match="not of one regime"):
        sequence.pending(2)
    expected = fresh_logits(network, list(sequence.ids), 1)
    assert torch.allclose(run(contexts, sequence, 1), expected, atol=TOLERANCE)


def test_a_fork_runs_only_what_is_not_cached() -> None:
    network = made(falcon)
    contexts = solo(network)
    source = begun(contexts, 5, 6, 7, 8)
    run(contexts, source, 1)
    source.extend([9])
    for length, cached in ((5, 4), (4, 4), (2, 2), (0, 0)):
        fork = source.fork(length)
        assert fork.ids == [5, 6, 7, 8, 9][:length]
        assert fork.cached == cached
        fork.extend([3])
        expected = last_logits(network, [*fork.ids], 1)
        assert torch.allclose(run(contexts, fork, 1), expected, atol=TOLERANCE)
    assert source.ids == [5, 6, 7, 8, 9]


def test_a_fork_holds_memory_of_its_own() -> None:
    contexts = solo(made(stablelm))
    source = begun(contexts, *range(40))
    run(contexts, source, 1)
    fork = source.fork(8)
    for layer in fork._cache.layers:
        assert layer.keys.untyped_storage().nbytes() == layer.keys.nbytes
    assert contexts.blocks.used == (40 + 8) // BLOCK_TOKENS
    assert fork.cache_bytes == 2 * 100


def test_a_fork_takes_what_there_is_room_for() -> None:
    network = made(stablelm)
    contexts = solo(network, blocks=5)
    source = begun(contexts, *range(12))
    run(contexts, source, 1)
    fork = source.fork(12)
    assert fork.cached == 2 * BLOCK_TOKENS
    assert contexts.blocks.free == 0
    source.drop_cache()
    expected = last_logits(network, list(range(12)), 1)
    assert torch.allclose(run(contexts, fork, 1), expected, atol=TOLERANCE)


def test_without_blocks_nothing_runs() -> None:
    network = made(stablelm)
    contexts = solo(network, blocks=2)
    sequence = begun(contexts, *range(8))
    assert sequence.blocks_for(8) == 2
    run(contexts, sequence, 1)
    sequence.extend([3])
    assert sequence.blocks_for(1) == 1
    with pytest.raises(NoBlocksError):
        run(contexts, sequence, 1)
    assert sequence.cached == 8
    sequence.truncate(7)
    sequence.extend([3])
    expected = last_logits(network, [*range(7), 3], 1)
    assert torch.allclose(run(contexts, sequence, 1), expected, atol=TOLERANCE)


def test_after_a_failure_none_has_more_cached_and_all_can_go_on() -> None:
    network = made(stablelm)
    contexts = solo(network)
    good, bad = begun(contexts, 5, 6, 7), begun(contexts, 5, 6)
    run(contexts, bad, 1)
    bad.extend([10**6])
    with pytest.raises(IndexError):
        contexts.run((Part(good, 3, 1), Part(bad, 1, 1)))
    assert good.cached == 0
    assert bad.cached <= 2
    bad.truncate(2)
    for sequence, ids in ((good, [5, 6, 7]), (bad, [5, 6])):
        expected = last_logits(network, ids, 1)
        assert torch.allclose(run(contexts, sequence, 1), expected, atol=TOLERANCE)


def test_the_head_sees_only_what_is_asked() -> None:
    network = made(stablelm)
    contexts, seen = solo(network), list[int]()
    head = network.get_output_embeddings()
    assert head is not None
    head.register_forward_hook(lambda *given: seen.append(given[1][0].shape[1]))
    sequence = begun(contexts, *range(20))
    contexts.run((Part(sequence, 15, 3),))
    run(contexts, sequence, 3)
    assert seen == [1, 3]


@pytest.mark.parametrize("rows", [0, 4])
def test_rows_must_be_there(rows: int) -> None:
    sequence = begun(solo(made(stablelm)), 5, 6, 7)
    with pytest.raises(ValueError, match="rows asked"):
        sequence.pending(rows)


def test_what_it_tells_of_itself() -> None:
    network = made(stablelm)
    contexts = solo(network)
    assert (contexts.rollback, contexts.most_parts) == (Rollback.TRUNCATE, 1)
    shape = LayerShape(2, 8, 8, torch.float32, torch.device("cpu"))
    assert layers_of_cache(network) == (shape, shape)


def test_a_context_of_another_kind_is_refused() -> None:
    with pytest.raises(TypeError, match="MaskedSequence is no context of this model"):
        solo(made(stablelm)).run((Part(MaskedSequence([1]), 1, 1),))
