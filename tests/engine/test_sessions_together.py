"""Sessions that share passes, memory and prefixes, and come and go at random: each gets the ids
that it gets alone. All kinds of attention, greedy and drawn, target and draft."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
import torch
from transformers import PreTrainedModel

from draft_service.session import DraftSession
from tests.bench import Bench
from tests.draft_service import commands as draft_commands
from tests.engine.networks import KINDS, VOCABULARY, capped, contexts, full, network, sliding
from tests.engine.tables import CPU, numbered
from tests.fakes import FakeModel
from tests.verify_service.commands import a_session, opening, version
from uag_common.decoding import Decoding, NoisePosition, PrefixReuse, Sampling
from uag_common.engine.language_model import LanguageModel
from uag_common.model import TokenRoles

Kind = Callable[[], PreTrainedModel]

TOKENS = 16
NO_END = TokenRoles((0,))


def model_of(
    kind: Kind,
    tokens: int = 4096,
    *,
    dtype: torch.dtype = torch.float32,
    deterministic: bool = False,
) -> LanguageModel:
    """With room for so many tokens in its caches."""
    held = contexts(network(kind).to(dtype), tokens, deterministic=deterministic)
    description = replace(
        FakeModel().description, vocabulary_size=VOCABULARY, context_length=120, roles=NO_END
    )
    return LanguageModel(held, CPU, description, (), numbered(VOCABULARY))


@dataclass(frozen=True, slots=True)
class Asked:
    """One answer: its prompt and how it is decoded."""

    prompt: tuple[int, ...]
    sampling: Sampling
    prefix: PrefixReuse
    tokens: int

    @classmethod
    def random(cls, dice: random.Random, tokens: int) -> Asked:
        shared = [7 * n % VOCABULARY for n in range(dice.choice([0, 10, 30]))]
        own = [dice.randrange(VOCABULARY) for _ in range(dice.randint(1, 40))]
        drawn = Sampling(temperature=0.7, seed=dice.randrange(1000))
        key = dice.choice([b"", b"a"])
        return cls(
            (*shared, *own),
            dice.choice([Sampling(), drawn]),
            PrefixReuse(key, keep=bool(key) and dice.random() < 0.5),
            tokens,
        )


async def alone(model: LanguageModel, asked: Asked) -> list[int]:
    """Its answer token by token, with nobody else there."""
    used = Bench(model, 0)
    session = a_session(used)
    command = opening(asked.prompt, decoding=Decoding(asked.sampling))
    got = [(await session.open(command)).value.first.id]
    while len(got) < asked.tokens:
        done = await session.verify(version((*asked.prompt, *got)), ())
        got.append(done.value.next.id)
    session.close()
    await used.rest()
    used.worker.close()
    return got


class Crowd:
    """Sessions on one model, each with a dice of its own."""

    def __init__(self, model: LanguageModel, seed: int) -> None:
        self.dice = random.Random(seed)
        self.used = Bench(model, self.dice.choice([0, 30_000, 10**7]))
        self.examined = self.accepted = self.left = 0

    async def target(self, asked: Asked, wanted: list[int]) -> None:
        """Guesses that are right now and then; leaves in the middle now and then."""
        dice, session = random.Random(self.dice.randrange(10**9)), a_session(self.used)
        leaves_at = dice.randrange(asked.tokens) if dice.random() < 0.2 else asked.tokens
        await asyncio.sleep(dice.random() * 0.05)
        command = opening(asked.prompt, decoding=Decoding(asked.sampling), prefix=asked.prefix)
        got = [(await session.open(command)).value.first.id]
        while len(got) < leaves_at:
            rest = wanted[len(got) :][: dice.randint(0, 6)]
            guess = [n if dice.random() < 0.8 else dice.randrange(VOCABULARY) for n in rest]
            verifying = session.verify(version((*asked.prompt, *got)), guess)
            done = (await verifying).value
            self.examined += min(len(done.accepted) + 1, len(guess))
            self.accepted += len(done.accepted)
            got += [choice.id for choice in (*done.accepted, done.next)]
        if leaves_at < asked.tokens:
            self.left += 1
            await self._leave(session.verify(version((*asked.prompt, *got)), (1, 2)), dice)
        session.close()
        assert got[: asked.tokens] == wanted[: len(got)]

    @staticmethod
    async def _leave(work: object, dice: random.Random) -> None:
        """At any moment of a step."""
        running = asyncio.ensure_future(work)  # type: ignore[call-overload]
        await asyncio.sleep(dice.random() * 0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    async def draft(self, asked: Asked, wanted: list[int]) -> None:
        """The draft is the target, and follows its answer with rollbacks and detours."""
        dice = random.Random(self.dice.randrange(10**9))
        session = DraftSession(self.used.model, self.used.batcher, self.used.prefixes)
        await asyncio.sleep(dice.random() * 0.05)
        await session.open(
            draft_commands.opening(asked.prompt, sampling=asked.sampling, prefix=asked.prefix)
        )
        table, known = numbered(VOCABULARY).pieces, list(asked.prompt)
        for _ in range(6):
            at = dice.randrange(asked.tokens - 4)
            context = [*asked.prompt, *wanted[:at]]
            keep = next(
                (n for n, (a, b) in enumerate(zip(known, context, strict=False)) if a != b),
                min(len(known), len(context)),
            )
            place = NoisePosition()
            for token_id in wanted[:at]:
                place = place.after(table[token_id])
            command = draft_commands.proposal(
                context[:keep], context[keep:], max_tokens=3, position=place
            )
            drafted = [token.id for token in (await session.propose(command)).tokens]
            assert drafted == wanted[at : at + len(drafted)]
            known = [*context, *drafted]
        session.close()

    async def rest(self) -> None:
        """All is over: every block is free."""
        await self.used.rest()
        while self.used.prefixes.drop_one():
            pass
        assert self.used.model.blocks.free == self.used.model.blocks.total
        self.used.worker.close()


async def assert_equal_to_alone(
    model: LanguageModel,
    sessions: int,
    seed: int,
    oracle: LanguageModel | None = None,
    tokens: int = TOKENS,
) -> Crowd:
    dice = random.Random(seed)
    asked = [Asked.random(dice, tokens) for _ in range(sessions)]
    wanted = [await alone(oracle or model, each) for each in asked]
    crowd = Crowd(model, seed)
    pairs = list(zip(asked, wanted, strict=True))
    # Tokens after an end are not drafted.
    endless = [(each, answer) for each, answer in pairs if 0 not in answer][: sessions // 2]
    await asyncio.gather(
        *(crowd.target(each, answer) for each, answer in pairs),
        *(crowd.draft(each, answer) for each, answer in endless),
    )
    await crowd.rest()
    return crowd


@pytest.mark.parametrize("sessions", [1, 4, 16])
@pytest.mark.parametrize("kind", KINDS)
async def test_each_gets_what_it_gets_alone(kind: Kind, sessions: int) -> None:
    crowd = await assert_equal_to_alone(model_of(kind), sessions, seed=sessions)
    if sessions > 1:
        assert 0 < crowd.accepted < crowd.examined


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 130))
@pytest.mark.parametrize("kind", KINDS)
async def test_each_gets_what_it_gets_alone_whatever_the_seed(kind: Kind, seed: int) -> None:
    await assert_equal_to_alone(model_of(kind), 4 + 12 * (seed % 2), seed)


@pytest.mark.parametrize("kind", [full, sliding])
async def test_in_little_memory_too(kind: Kind) -> None:
    """Two of the longest sessions fit: the others wait, or give up their caches."""
    model = model_of(kind, tokens=128)
    crowd = await assert_equal_to_alone(model, 12, seed=3, oracle=model_of(kind), tokens=44)
    assert crowd.used.seen.evictions > 0


@pytest.mark.parametrize("kind", [full, capped])
async def test_in_bfloat16_in_passes_of_fixed_size(kind: Kind) -> None:
    """Where any other way of running flips near ties."""
    model = model_of(kind, dtype=torch.bfloat16, deterministic=True)
    await assert_equal_to_alone(model, 8, seed=4)
