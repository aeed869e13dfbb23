"""Sessions of a real model, small as it is: blocks, shared caches and re-opened answers change
nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from draft_service.session import DraftSession
from tests.bench import Bench
from tests.draft_service import commands as draft_commands
from tests.verify_service.commands import ALONE, a_session, opening, version
from uag_common.decoding import (
    Choice,
    Constraint,
    ConstraintKind,
    Decoding,
    NoisePosition,
    PrefixReuse,
    Sampling,
)
from uag_common.engine.language_model import LanguageModel
from uag_common.engine.load import load_folder
from uag_common.tokenizer.token_table import TokenTable
from verify_service.session import VerifySession
from verify_service.settings import VerifySettings

TOKENS = 24
TOLERANCE = 1e-4
DRAWN = Sampling(temperature=1.2, seed=5, choice=1)
SHARED = PrefixReuse(b"key")

DECODINGS = {
    "greedy": Decoding(top_logprobs=2),
    "penalties": Decoding(
        Sampling(repetition_penalty=1.3, frequency_penalty=2.0, presence_penalty=3.0),
        top_logprobs=0,
    ),
    "drawn": Decoding(DRAWN, top_logprobs=2),
    # Ends within the answer: what follows is chosen freely, and must not fail.
    "constrained": Decoding(
        DRAWN, constraint=Constraint(ConstraintKind.REGEX, ("[a-z ]{12,20}",)), top_logprobs=1
    ),
    "all": Decoding(
        Sampling(
            temperature=1.5,
            top_k=60,
            top_p=0.95,
            min_p=0.001,
            repetition_penalty=1.1,
            frequency_penalty=1.0,
            logit_bias=((300, 4.0),),
            seed=2**64 - 1,
        ),
        min_new_tokens=20,
        end_ids=tuple(range(128)),
        top_logprobs=1,
    ),
}


@pytest.fixture(scope="module", params=["llama", "gpt2"])
def model(request: pytest.FixtureRequest) -> LanguageModel:
    folder: Path = request.getfixturevalue(request.param)
    return load_folder(folder, VerifySettings(model=str(folder)), torch.device("cpu"))


@pytest.fixture(params=DECODINGS)
def decoding(request: pytest.FixtureRequest) -> Decoding:
    return DECODINGS[request.param]


PROMPT = tuple(range(260, 280))


async def answer(
    session: VerifySession,
    decoding: Decoding,
    guesses: Sequence[Sequence[int]],
    said: Sequence[int] = (),
    prefix: PrefixReuse = ALONE,
) -> list[Choice]:
    """What is chosen after PROMPT and `said`, by one verification for each of the guesses."""
    command = opening((*PROMPT, *said), answer_start=len(PROMPT), decoding=decoding, prefix=prefix)
    got = [(await session.open(command)).value.first]
    for guess in guesses:
        committed = (*PROMPT, *said, *(choice.id for choice in got))
        done = (await session.verify(version(committed), guess)).value
        got += [*done.accepted, done.next]
    session.close()
    return got


def assert_equal(got: Sequence[Choice], wanted: Sequence[Choice]) -> None:
    assert [choice.id for choice in got] == [choice.id for choice in wanted]
    for left, right in zip(got, wanted, strict=True):
        assert left.logprob == pytest.approx(right.logprob, abs=TOLERANCE)
        assert [top.id for top in left.top] == [top.id for top in right.top]


async def test_blocks_and_openings_anew_change_nothing(
    model: LanguageModel, decoding: Decoding
) -> None:
    used, dice = Bench(model, 10**8), random.Random(1)
    plain = await answer(a_session(used), decoding, [()] * TOKENS)
    ids = [choice.id for choice in plain]
    examined = accepted = 0
    for cut in range(0, TOKENS - 4, 3):
        session = a_session(used)
        prefix = PrefixReuse(b"key", keep=bool(cut % 2))
        # Right but for some, as a draft's are.
        guess = [
            token_id if dice.random() < 0.8 else dice.randrange(300)
            for token_id in ids[cut + 1 : cut + 5]
        ]
        got = await answer(session, decoding, [guess], ids[:cut], prefix)
        assert_equal(got, plain[cut : cut + len(got)])
        examined, accepted = examined + len(guess), accepted + len(got) - 2
    assert 0 < accepted < examined
    assert used.prefixes.kept_prefixes
    used.worker.close()


async def test_answers_of_one_prompt_share_its_cache(model: LanguageModel) -> None:
    used = Bench(model, 0)
    sessions = [a_session(used) for _ in range(3)]
    samplings = [Sampling(temperature=1.2, seed=5, choice=choice) for choice in range(3)]
    opened = []
    for session, sampling in zip(sessions, samplings, strict=True):
        command = opening(PROMPT, decoding=Decoding(sampling, top_logprobs=0), prefix=SHARED)
        opened.append((await session.open(command)).value)
    assert [start.cached_tokens for start in opened] == [0, 19, 19]
    for start, sampling in zip(opened, samplings, strict=True):
        alone = a_session(Bench(model, 0))
        wanted = (await answer(alone, Decoding(sampling, top_logprobs=0), []))[0]
        assert_equal([start.first], [wanted])
    used.worker.close()


async def test_log_probabilities_of_a_prompt_are_those_of_plain_forwards(
    model: LanguageModel,
) -> None:
    used = Bench(model, 0)
    prompt = PROMPT * 4
    session = a_session(used)
    start = (await session.open(opening(prompt, prompt_top_logprobs=3))).value
    assert [choice.id for choice in start.prompt] == list(prompt[1:])
    for length in (1, 2, 63, 64, 65, 79):
        plain = a_session(used)
        command = opening(prompt[:length], decoding=Decoding(top_logprobs=3))
        first = (await plain.open(command)).value.first
        told = start.prompt[length - 1]
        assert [top.id for top in told.top] == [top.id for top in first.top]
        assert told.top[0].logprob == pytest.approx(first.logprob, abs=TOLERANCE)
    used.worker.close()


async def test_a_draft_with_the_targets_model_and_noise_drafts_what_the_target_draws(
    model: LanguageModel,
) -> None:
    used = Bench(model, 10**8)
    target = a_session(used)
    ids = [choice.id for choice in await answer(target, Decoding(DRAWN), [()] * TOKENS)]
    roles, files = model.description.roles, model.tokenizer_files
    size = model.description.vocabulary_size
    table = TokenTable.build(files[0].content.decode(), roles.eos_ids, size)
    session = DraftSession(model, used.batcher, used.prefixes)
    await session.open(draft_commands.opening(PROMPT, sampling=DRAWN))
    place = NoisePosition()
    context = list(PROMPT)
    for start in range(0, TOKENS, 4):
        command = draft_commands.proposal(
            context[: len(PROMPT)], context[len(PROMPT) :], max_tokens=4, position=place
        )
        drafted = [token.id for token in (await session.propose(command)).tokens]
        assert drafted == ids[start : start + len(drafted)]
        for token_id in ids[start : start + 4]:
            place = place.after(table.pieces[token_id])
            context.append(token_id)
    used.worker.close()
