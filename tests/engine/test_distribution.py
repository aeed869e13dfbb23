"""Answers that are written block by block, with any draft, are distributed as the target's own.

The loop is that of a verification: a block's tokens are chosen one after another until one is not
the candidate. Thousands of answers for each configuration (tens of thousands in `make test-full`),
against exact probabilities.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest
import torch

from tests.engine.statistics import goodness_of_fit
from tests.engine.table_model import EOS, PIECES, PROMPT, Answer, TableModel, exact_answers
from uag_common.decoding import Decoding, NoisePosition, Sampling

LENGTH = 3
DRAWS = 100_000
LEAST_PROBABILITY = 1e-3
LEAST_EXPECTED = 8.0
"""Rarer answers are counted together."""

Drafter = Callable[[Sequence[int], Sampling, int], list[int]]
"""From the context, the seed in `sampling` and a number, at most so many candidates."""


def table(seed: int, size: int) -> torch.Tensor:
    return torch.randn(size, size, size, generator=torch.Generator().manual_seed(seed)) * 1.5


TARGET = TableModel(PIECES, table(1, len(PIECES)))
# The same texts under other ids, one that the target has not, and opinions that differ a little.
_DRAFT_ORDER = (0, 1, 11, 5, 4, 2, 9, 10, 7, 6, 8)
_SHARED = torch.tensor(_DRAFT_ORDER)
_DRAFT_LOGITS = table(2, len(_DRAFT_ORDER) + 1)
_DRAFT_LOGITS[:-1, :-1, :-1] = (
    TARGET.logits[_SHARED][:, _SHARED][:, :, _SHARED] + 0.3 * _DRAFT_LOGITS[:-1, :-1, :-1]
)
DRAFT = TableModel([*(PIECES[at] for at in _DRAFT_ORDER), b"zz"], _DRAFT_LOGITS)


def same_noise(context: Sequence[int], sampling: Sampling, count: int) -> list[int]:
    """A draft model of another vocabulary that draws with the noise of the target."""
    try:
        ids = [_DRAFT_ORDER.index(token_id) for token_id in context]
    except ValueError:
        return []
    chooser = DRAFT.new_chooser(Decoding(sampling))
    for token_id in ids[len(PROMPT) :]:
        chooser.advance(token_id)
    drafted: list[int] = []
    while len(drafted) < count and ids[-1] != EOS:
        choice = chooser.choose(DRAFT.forward(ids, 1), 0, ids, len(ids))
        if choice.id >= len(_DRAFT_ORDER):
            break
        ids.append(choice.id)
        chooser.advance(choice.id)
        drafted.append(_DRAFT_ORDER[choice.id])
    return drafted


def own_dice(context: Sequence[int], sampling: Sampling, count: int) -> list[int]:
    """Anything."""
    dice = random.Random(f"{sampling.seed} {context}")
    return [dice.randrange(len(PIECES)) for _ in range(count)]


def hostile(context: Sequence[int], sampling: Sampling, count: int) -> list[int]:
    """Knows the target and its noise. It is right where the target is about to say an even id, and
    wrong otherwise, so that what is accepted is anything but a fair sample."""
    chooser = TARGET.new_chooser(Decoding(sampling))
    ids = [*context]
    for token_id in ids[len(PROMPT) :]:
        chooser.advance(token_id)
    drafted: list[int] = []
    while len(drafted) < count:
        choice = chooser.choose(TARGET.forward(ids, 1), 0, ids, len(ids)).id
        drafted.append(choice if choice % 2 == 0 else (choice + 2) % len(PIECES))
        if drafted[-1] != choice:
            break
        ids.append(choice)
        chooser.advance(choice)
    return drafted


def none(context: Sequence[int], sampling: Sampling, count: int) -> list[int]:  # noqa: ARG001
    return []


@dataclass(slots=True)
class Tally:
    draws: int = 0
    proposed: int = 0
    accepted: int = 0
    rejected: int = 0
    answers: Counter[Answer] = field(default_factory=Counter)


def answer(sampling: Sampling, drafter: Drafter, block: int, tally: Tally) -> Answer:
    """One answer of the target, verified block by block."""
    chooser, ids = TARGET.new_chooser(Decoding(sampling)), [*PROMPT]
    end = len(PROMPT) + LENGTH
    while len(ids) < end and ids[-1] != EOS:
        candidates = drafter(ids, sampling, block)[: end - len(ids) - 1]
        tally.proposed += len(candidates)
        logits = TARGET.forward([*ids, *candidates], len(candidates) + 1)
        for row in range(logits.rows):
            choice = chooser.choose(logits, row, ids, len(ids)).id
            chooser.advance(choice)
            ids.append(choice)
            tally.draws += 1
            if row == len(candidates) or choice == EOS:
                break
            if choice != candidates[row]:
                tally.rejected += 1
                break
            tally.accepted += 1
    written = tuple(ids[len(PROMPT) :])
    tally.answers[written] += 1
    return written


DRAFTERS = (same_noise, own_dice, hostile, none)
CONFIGURATIONS = {
    "plain": Sampling(temperature=1.0),
    "filtered and penalised": Sampling(
        temperature=0.8, top_k=8, top_p=0.9, min_p=0.03, presence_penalty=0.7, choice=1
    ),
    "cold": Sampling(temperature=0.4),
    "hot": Sampling(temperature=1.9),
    "top k": Sampling(temperature=1.0, top_k=4),
    "top p": Sampling(temperature=1.0, top_p=0.7),
    "min p": Sampling(temperature=1.3, min_p=0.2, choice=2),
    "penalised": Sampling(
        temperature=0.9, repetition_penalty=1.4, frequency_penalty=0.5, presence_penalty=-0.4
    ),
}


@pytest.mark.parametrize(
    ("name", "draws"), [("plain", DRAWS // 5), ("filtered and penalised", DRAWS // 10)]
)
def test_answers_are_distributed_as_the_targets_own(name: str, draws: int) -> None:
    check_distribution(CONFIGURATIONS[name], draws)


@pytest.mark.full
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_they_are_with_all_parameters(name: str) -> None:
    check_distribution(CONFIGURATIONS[name], DRAWS)


def check_distribution(sampling: Sampling, draws: int) -> None:
    """The drafters take turns, and so do the lengths of blocks."""
    tallies = [Tally() for _ in DRAFTERS]
    seed = 0
    while sum(tally.draws for tally in tallies) < draws:
        turn = seed % len(DRAFTERS)
        block = 1 + seed // len(DRAFTERS) % LENGTH
        answer(replace(sampling, seed=seed), DRAFTERS[turn], block, tallies[turn])
        seed += 1
    for drafter, tally in zip(DRAFTERS, tallies, strict=True):
        if drafter is not none:
            assert tally.accepted > tally.draws // 50
            assert tally.rejected > tally.draws // 50
    answers = sum((tally.answers for tally in tallies), Counter[Answer]())
    assert fit(answers, sampling) > LEAST_PROBABILITY


def fit(answers: Counter[Answer], sampling: Sampling) -> float:
    """The chance of counts as far from the exact probabilities as these, or further."""
    exact = exact_answers(TARGET, sampling, LENGTH)
    assert answers.keys() <= exact.keys()
    total = answers.total()
    frequent = [each for each, share in exact.items() if share * total >= LEAST_EXPECTED]
    assert len(frequent) > 20
    observed = [answers[each] for each in frequent]
    expected = [exact[each] * total for each in frequent]
    if len(frequent) < len(exact):
        observed.append(total - sum(observed))
        expected.append(total - sum(expected))
    return goodness_of_fit(torch.tensor(observed).double(), torch.tensor(expected).double())


def test_the_fit_notices_noise_that_is_the_same_everywhere() -> None:
    """A control: each token by itself is drawn as it should be, and answers are not."""
    answers: Counter[Answer] = Counter()
    for seed in range(3000):
        chooser = TARGET.new_chooser(Decoding(Sampling(temperature=1.0, seed=seed)))
        ids = [*PROMPT]
        while len(ids) < len(PROMPT) + LENGTH and ids[-1] != EOS:
            chooser.move(NoisePosition())
            ids.append(chooser.choose(TARGET.forward(ids, 1), 0, ids, len(ids)).id)
        answers[tuple(ids[len(PROMPT) :])] += 1
    assert fit(answers, Sampling(temperature=1.0)) < 1e-9


def test_the_fit_notices_tokens_that_share_noise() -> None:
    """A control: of two with the same bytes, the better one wins each time."""
    keys = TARGET._noise._keys
    own = int(keys[3])
    keys[3] = keys[2]
    try:
        tally = Tally()
        for seed in range(3000):
            answer(Sampling(temperature=1.0, seed=seed), none, 1, tally)
    finally:
        keys[3] = own
    assert fit(tally.answers, Sampling(temperature=1.0)) < 1e-9


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_seed_gives_the_same_answer_with_any_draft(name: str) -> None:
    for seed in range(25):
        seeded = replace(CONFIGURATIONS[name], seed=seed)
        written = {
            answer(seeded, drafter, block, Tally())
            for drafter in DRAFTERS
            for block in range(1, LENGTH + 1)
        }
        assert len(written) == 1


def test_a_draft_agrees_more_often_by_shared_noise_than_by_its_own() -> None:
    """Across vocabularies: the draft's ids are others."""
    agreed = Counter[str]()
    for seed in range(400):
        sampling = Sampling(temperature=1.0, seed=seed)
        target = answer(sampling, none, 1, Tally())
        for name, drafting in (("shared", sampling), ("own", replace(sampling, choice=1))):
            agreed[name] += same_noise(PROMPT, drafting, 1) == [target[0]]
    assert agreed["shared"] > 3 * agreed["own"] > 0
