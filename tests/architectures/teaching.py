"""Random weights of an architecture that know a few texts by heart: two such models agree where the
texts go on and differ elsewhere.

A network with nothing but the vocabulary rows that the texts need is taught, in a second; its rows
are then put into one of the real size. What the other rows, random and near zero, will weigh in a
softmax is counted in from the start.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import islice

import torch
from tokenizers import Tokenizer
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel

from tests.architectures.architecture import Architecture
from tests.architectures.lessons import Lessons

MAX_STEPS = 200
KNOWN = 0.2
"""Nats a token: then a text is known by heart."""
RATE = 2e-2
MASKED_RATE = 1e-2
INITIAL_RANGE = 0.02
MAX_MASKS = 5
CUTS = 4
NO_LABEL = -100
MASK, END, STOP = "[MASK]", "[SEP]", "."

Batch = tuple[torch.Tensor, torch.Tensor]
"""Ids and labels, [texts, tokens]; NO_LABEL where there is nothing to learn."""


def taught(architecture: Architecture, tokenizer: Tokenizer, seed: int) -> PreTrainedModel:
    """A network in float32 that has learnt the texts."""
    torch.manual_seed(seed)
    lessons = _lessons(architecture, tokenizer)
    small = _network(architecture, len(lessons.rows))
    others = architecture.vocabulary_size - len(lessons.rows)
    if architecture.masked:
        _learn(small, _masked_batches(lessons, tokenizer, seed), others, MASKED_RATE)
    else:
        _learn(small, _causal_batches(lessons, architecture), others, RATE)
    return _widened(small, _network(architecture, architecture.vocabulary_size), lessons.rows)


def _lessons(architecture: Architecture, tokenizer: Tokenizer) -> Lessons:
    if not architecture.masked:
        return Lessons.of(tokenizer, end=architecture.roles.eos_ids[:1])
    # Its tokenizer ends each text by itself.
    return Lessons.of(tokenizer, also=[_id(tokenizer, token) for token in (MASK, END, STOP)])


def _network(architecture: Architecture, vocabulary: int) -> PreTrainedModel:
    config = architecture.config(vocabulary)
    config.initializer_range = INITIAL_RANGE
    return architecture.network(config).eval()


def _learn(network: PreTrainedModel, batches: Iterator[Batch], others: int, rate: float) -> None:
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=0.0, fused=True)
    for ids, labels in islice(batches, MAX_STEPS):
        logits = network(input_ids=ids).logits
        rest = torch.full((*ids.shape, 1), math.log(others))
        told = torch.cat((logits, rest), -1).flatten(0, 1)
        loss = cross_entropy(told, labels.flatten(), ignore_index=NO_LABEL)
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        if loss < KNOWN:
            break


def _causal_batches(lessons: Lessons, architecture: Architecture) -> Iterator[Batch]:
    """All texts at once; for a model that computes otherwise from some length on, in turn with
    their beginnings."""
    boundary = architecture.boundary
    lengths = (None,) if boundary is None else (None, boundary.tokens + 1)
    while True:
        for length in lengths:
            texts = [text[:length] for text in lessons.texts]
            yield _padded([text[:-1] for text in texts], [text[1:] for text in texts])


def _masked_batches(lessons: Lessons, tokenizer: Tokenizer, seed: int) -> Iterator[Batch]:
    """Each text up to some random places, some masks, a full stop and the end."""
    dice = random.Random(seed)
    mask, end, stop = (lessons.place(_id(tokenizer, token)) for token in (MASK, END, STOP))
    while True:
        ids, labels = [], []
        for text in lessons.texts * CUTS:
            cut = dice.randint(1, len(text) - 1)
            hidden = text[cut : cut + dice.randint(1, MAX_MASKS)]
            ids.append((*text[:cut], *(mask for _ in hidden), stop, end))
            labels.append((*(NO_LABEL for _ in text[:cut]), *hidden, NO_LABEL, NO_LABEL))
        yield _padded(ids, labels)


def _id(tokenizer: Tokenizer, token: str) -> int:
    found = tokenizer.token_to_id(token)
    assert found is not None, token
    return found


def _padded(ids: list[tuple[int, ...]], labels: list[tuple[int, ...]]) -> Batch:
    longest = max(map(len, ids))
    return (
        torch.tensor([[*row, *[0] * (longest - len(row))] for row in ids]),
        torch.tensor([[*row, *[NO_LABEL] * (longest - len(row))] for row in labels]),
    )


@torch.no_grad()
def _widened(
    small: PreTrainedModel, large: PreTrainedModel, rows: tuple[int, ...]
) -> PreTrainedModel:
    """`large` with the weights of `small`, whose vocabulary are those rows."""
    learnt = small.state_dict()
    for name, weight in large.state_dict().items():
        if weight.shape == learnt[name].shape:
            weight.copy_(learnt[name])
        else:
            weight[list(rows)] = learnt[name]
    return large
