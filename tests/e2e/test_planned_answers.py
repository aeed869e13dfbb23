"""What a server guesses by its own plan changes no token: looked up text, and pairs that pay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from benchmarks.emulation.recordings import of_target
from benchmarks.emulation.scenario import Scenario
from benchmarks.emulation.services import EmulatedServices, emulated_request, emulated_services
from orchestrator.cli.services import DEFAULT_PAIR
from tests.services import Answer, RunningServices
from uag.orchestrator.v1 import orchestrator_pb2 as pb

FOX = "The quick brown fox jumps over the lazy dog, and the dog does not mind it at all. "
TEXTS = (FOX * 3, "It rained for 40 days; " * 4, "one two three, one two three, one two", FOX[:30])
SAMPLING = (pb.SamplingOptions(), pb.SamplingOptions(temperature=0.8, seed=5))


@dataclass(slots=True)
class Copied:
    """Of looked up tokens."""

    proposed: int = 0
    accepted: int = 0
    rejected: int = 0

    def add(self, answer: Answer) -> None:
        figures = answer.finished.speculation
        self.proposed += figures.lookup_proposed
        self.accepted += figures.lookup_accepted
        self.rejected += figures.lookup_examined - figures.lookup_accepted
        sources = [token.source for token in answer.tokens]
        assert sources.count(pb.TOKEN_SOURCE_LOOKUP) == figures.lookup_accepted


def test_looked_up_tokens_change_nothing(services: RunningServices) -> None:
    seen = Copied()
    for text in TEXTS:
        for sampling in SAMPLING:
            request = pb.GenerateRequest(
                text=text,
                max_new_tokens=60,
                sampling=sampling,
                stopping=pb.StoppingOptions(ignore_eos=True),
            )
            planned = services.generate(request)
            request.speculation.mode = pb.SPECULATION_MODE_OFF
            alone = services.generate(request)
            assert planned.ids == alone.ids
            assert planned.text == alone.text
            assert not alone.finished.speculation.candidates_proposed
            seen.add(planned)
    assert seen.proposed > seen.accepted > 0
    assert seen.rejected > 0


def test_neither_is_used_where_both_are_turned_off(services: RunningServices) -> None:
    speculation = pb.SpeculationOptions(draft_tokens=0, lookup_tokens=0)
    request = pb.GenerateRequest(text=FOX * 3, max_new_tokens=20, speculation=speculation)
    figures = services.generate(request).finished.speculation
    assert figures.rounds == figures.plain_steps > 0


@pytest.fixture(scope="module")
def emulated() -> Iterator[EmulatedServices]:
    with emulated_services() as running:
        running.wait_ready()
        yield running


@pytest.mark.real_model
@pytest.mark.parametrize("cost", [0.02, 0.3], ids=["drafted", "ahead"])
def test_a_pair_that_pays_is_used_and_changes_nothing(
    emulated: EmulatedServices, cost: float
) -> None:
    """A cheap draft is waited for, a dearer one runs ahead of the target; both are rolled back."""
    only_model = pb.SpeculationOptions(lookup_tokens=0)
    accepted = examined = rounds = tokens = 0
    for recording in of_target(DEFAULT_PAIR.target)[:3]:
        scenario = Scenario(recording.name, 0.01, cost, 0.8)
        answer = emulated.generate(emulated_request(scenario, only_model))
        assert tuple(answer.ids) == recording.ids
        figures = answer.finished.speculation
        accepted += figures.candidates_accepted
        examined += figures.candidates_examined
        rounds, tokens = rounds + figures.rounds, tokens + len(answer.ids)
    assert examined > accepted > 0
    assert tokens > 1.3 * rounds
