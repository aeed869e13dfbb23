"""A masked language model that drafts: a mask behind the context, and what may fill it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models
from transformers import (
    BertConfig,
    BertForMaskedLM,
    DistilBertConfig,
    DistilBertForMaskedLM,
    PreTrainedModel,
)

from tests.conversion.vocabularies import tokenizers_directory
from uag_common.engine.mask_vocabulary import MaskVocabulary
from uag_common.engine.masked import MOST_WINDOW, MaskedContexts, MaskedSequence
from uag_common.engine.rope import RopeRegimes
from uag_common.engine.solo import SoloMemory, SoloSequence
from uag_common.errors import StartError
from uag_common.kv.pool import BlockPool
from uag_common.model import Part, Rollback, TokenizerFile

PIECES = ["[PAD]", "[unused0]", "[CLS]", "[SEP]", "[MASK]", "[UNK]", ".", "中", "new", "s", "##s"]
PAD, UNUSED, CLS, SEP, MASK, UNKNOWN, STOP, IDEOGRAPH, NEW, S, MORE_S = range(len(PIECES))
SIZE = len(PIECES) + 2
TOLERANCE = 1e-5


def files(*, mask: str | None = "[MASK]", pieces: Sequence[str] = PIECES) -> list[TokenizerFile]:
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106
    tokenizer.add_special_tokens(["[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]"])
    roles = {"cls_token": "[CLS]", "sep_token": {"content": "[SEP]"}, "mask_token": mask}
    return [
        TokenizerFile("tokenizer.json", tokenizer.to_str().encode()),
        TokenizerFile("tokenizer_config.json", json.dumps(roles).encode()),
    ]


def distilbert(positions: int = 64) -> PreTrainedModel:
    config = DistilBertConfig(
        vocab_size=SIZE,
        max_position_embeddings=positions,
        n_layers=2,
        n_heads=4,
        dim=32,
        hidden_dim=64,
        initializer_range=0.2,
    )
    return DistilBertForMaskedLM(config)


def bert(positions: int = 64) -> PreTrainedModel:
    config = BertConfig(
        vocab_size=SIZE,
        max_position_embeddings=positions,
        num_hidden_layers=2,
        num_attention_heads=4,
        hidden_size=32,
        intermediate_size=64,
        initializer_range=0.2,
    )
    return BertForMaskedLM(config)


KINDS = (distilbert, bert)
Kind = Callable[[], PreTrainedModel]


def made(kind: Callable[..., PreTrainedModel], positions: int = 64) -> PreTrainedModel:
    torch.manual_seed(1)
    return kind(positions).eval()


def contexts_of(network: PreTrainedModel) -> MaskedContexts:
    return MaskedContexts(network, MaskVocabulary.read(files(), SIZE))


def filled(contexts: MaskedContexts, *contents: Sequence[int]) -> list[torch.Tensor]:
    """The logits at the mask behind each context, [vocabulary]."""
    parts = [Part(MaskedSequence(ids), 1, 1) for ids in contents]
    return [logits.tensor[0] for logits in contexts.run(parts)]


@torch.inference_mode()
def by_itself(network: PreTrainedModel, ids: Sequence[int]) -> torch.Tensor:
    output = network(input_ids=torch.tensor([[CLS, *ids, MASK, STOP, SEP]]))
    return torch.as_tensor(output.logits[0, 1 + len(ids)])


def same(given: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether the logits that are not banned are as expected."""
    allowed = given != -torch.inf
    return torch.allclose(given[allowed], expected[allowed], atol=TOLERANCE)


@pytest.mark.parametrize("kind", KINDS)
def test_contexts_of_all_lengths_in_one_pass_get_what_each_gets_alone(kind: Kind) -> None:
    network = made(kind)
    contents = [[NEW] * length + [S] for length in range(20)]
    for given, ids in zip(filled(contexts_of(network), *contents), contents, strict=True):
        assert same(given, by_itself(network, ids))


@pytest.mark.parametrize("kind", KINDS)
def test_a_pass_that_sees_its_padding_is_noticed(kind: Kind) -> None:
    network = made(kind)
    expected = by_itself(network, [NEW])

    def see_all(module: torch.nn.Module, given: Any, named: dict[str, Any]) -> Any:  # noqa: ARG001
        return given, named | {"attention_mask": None}

    network.register_forward_pre_hook(see_all, with_kwargs=True)
    short, _ = filled(contexts_of(network), [NEW], [NEW] * 9)
    assert not same(short, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_context_is_seen_from_its_last_tokens_on(kind: Kind) -> None:
    network = made(kind, positions=24)
    contexts = contexts_of(network)
    assert contexts.window == 24 - 4
    ids = [S] * 30 + [NEW, S] * 10
    (given,) = filled(contexts, ids)
    assert same(given, by_itself(network, ids[-20:]))
    assert not same(given, by_itself(network, ids[-19:]))


def test_no_context_is_seen_further_than_pays() -> None:
    assert contexts_of(made(distilbert, positions=512)).window == MOST_WINDOW


def test_a_model_that_sees_too_little_is_refused() -> None:
    with pytest.raises(StartError, match="sees too few tokens"):
        contexts_of(made(distilbert, positions=4))


def allowed(contexts: MaskedContexts, *ids: int) -> set[int]:
    (logits,) = filled(contexts, ids)
    return {*(logits != -torch.inf).nonzero()[:, 0].tolist()}


def test_what_fills_a_mask() -> None:
    """Never control tokens, places kept free and rows without a token; the rest of a word only
    after what leaves one open."""
    contexts = contexts_of(made(distilbert))
    always = {STOP, IDEOGRAPH, NEW, S}
    for open_word in (NEW, S, MORE_S):
        assert allowed(contexts, open_word) == {*always, MORE_S}
    for closed in (STOP, IDEOGRAPH, UNKNOWN, UNUSED, SIZE - 1):
        assert allowed(contexts, NEW, closed) == always


def test_the_head_sees_the_masks_alone() -> None:
    network = made(bert)
    seen: list[tuple[int, ...]] = []
    head = network.get_output_embeddings()
    assert head is not None
    head.register_forward_hook(lambda *given: seen.append(tuple(given[1][0].shape)))
    filled(contexts_of(network), [NEW] * 9, [S])
    assert seen == [(2, 1, 32)]


def test_the_model_is_left_as_it_was() -> None:
    network = made(bert)
    before = by_itself(network, [NEW, S])
    contexts = contexts_of(network)
    filled(contexts, [NEW, S])
    with pytest.raises(IndexError):
        filled(contexts, [10**6])
    assert torch.equal(by_itself(network, [NEW, S]), before)


def test_a_context_has_no_cache_and_lacks_none() -> None:
    contexts = contexts_of(made(distilbert))
    sequence = contexts.new_sequence()
    sequence.extend([NEW, S, NEW])
    assert (sequence.pending(1), sequence.cached, sequence.cache_bytes) == (1, 3, 0)
    assert sequence.blocks_for(3) == 0
    assert sequence.reach(3) == 3
    for rows in (0, 2):
        with pytest.raises(ValueError, match="rows asked of a mask"):
            sequence.pending(rows)
    fork = sequence.fork(2)
    sequence.truncate(1)
    sequence.drop_cache()
    fork.extend([S])
    assert (sequence.ids, fork.ids) == ([NEW], [NEW, S, S])
    sequence.truncate(0)
    with pytest.raises(ValueError, match="after 0 tokens"):
        sequence.pending(1)


def test_what_it_tells_of_itself() -> None:
    contexts = contexts_of(made(distilbert))
    assert contexts.rollback is Rollback.TRUNCATE
    assert contexts.most_parts > 1
    assert contexts.blocks.free == contexts.blocks.total > 0
    memory = SoloMemory(BlockPool(1, 1), RopeRegimes())
    with pytest.raises(TypeError, match="SoloSequence is no context of this model"):
        contexts.run((Part(SoloSequence(memory), 1, 1),))


def test_a_tokenizer_without_a_mask_is_refused() -> None:
    with pytest.raises(StartError, match="names no mask_token"):
        MaskVocabulary.read(files(mask=None), SIZE)
    with pytest.raises(StartError, match="names no mask_token"):
        MaskVocabulary.read(files(mask="[OTHER]"), SIZE)


def test_a_vocabulary_without_a_full_stop_does_without() -> None:
    pieces = [piece.replace(".", "!") for piece in PIECES]
    vocabulary = MaskVocabulary.read(files(pieces=pieces), SIZE)
    assert vocabulary.around([NEW]) == [CLS, NEW, MASK, SEP]
    assert vocabulary.mask_at([NEW]) == 2


def test_the_vocabulary_of_the_real_model() -> None:
    folder = tokenizers_directory() / "distilbert"
    paths = [folder / name for name in ("tokenizer.json", "tokenizer_config.json")]
    real = [TokenizerFile(path.name, path.read_bytes()) for path in paths]
    vocabulary = MaskVocabulary.read(real, 30522)
    assert vocabulary.around([2023]) == [101, 2023, 103, 1012, 102]
    assert len(vocabulary.never) == 994 + 5
    assert len(vocabulary.continuations) == 5828
    tokenizer = Tokenizer.from_str(real[0].content.decode())
    for text, open_word in (
        ("new", True),
        ("newt", True),
        ("a.", False),
        ("中", False),
        ("5", True),
    ):
        last = tokenizer.encode(text, add_special_tokens=False).ids[-1]
        assert vocabulary.goes_on(last) is open_word
    ends = tokenizer.encode("it's (so) # 100% of €5 — 中文!").ids
    # A piece that goes on with a word never stands behind one that leaves none open.
    for piece, following in pairwise(ends):
        assert vocabulary.goes_on(piece) or following not in vocabulary.continuations
