"""The emulated pair behind the real servers, started once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import grpc
import pytest

from benchmarks.emulation.grid import OFF, Cell, Figures, Plan, Way, forced, measure
from benchmarks.emulation.recordings import of_target
from benchmarks.emulation.scenario import Scenario, Telling
from benchmarks.emulation.services import EmulatedServices, emulated_request, emulated_services
from orchestrator.cli.services import DEFAULT_PAIR
from tests.services import Answer

pytestmark = pytest.mark.real_model
RECORDINGS = of_target(DEFAULT_PAIR.target)[1:3]
STEP = 0.002
COST = 0.1


@pytest.fixture(scope="module")
def services() -> Iterator[EmulatedServices]:
    with emulated_services() as running:
        yield running


def answers(
    services: EmulatedServices,
    way: Way,
    acceptance: float = 0.8,
    telling: Telling = Telling.CONSTANT,
    min_probability: float | None = None,
) -> list[Answer]:
    options = way.options()
    if min_probability is not None:
        options.min_probability = min_probability
    return [
        services.generate(
            emulated_request(Scenario(each.name, STEP, COST, acceptance, telling), options)
        )
        for each in RECORDINGS
    ]


def figures(found: Sequence[Answer]) -> Figures:
    return sum(map(Figures.of, found), Figures())


@pytest.mark.parametrize("way", [OFF, forced(1), forced(6)], ids=lambda way: way.name)
def test_the_answer_is_what_was_recorded(services: EmulatedServices, way: Way) -> None:
    found = answers(services, way)
    assert [tuple(answer.ids) for answer in found] == [each.ids for each in RECORDINGS]
    assert [answer.text.encode() for answer in found] == [each.text for each in RECORDINGS]


def test_a_recording_begins_again_after_its_end(services: EmulatedServices) -> None:
    recording = RECORDINGS[0]
    scenario = Scenario(recording.name, STEP, COST, 0.9)
    found = services.generate(emulated_request(scenario, forced(6).options(), 200))
    assert tuple(found.ids) == (recording.ids * 2)[:200]


@pytest.mark.parametrize("acceptance", [0.5, 0.8])
def test_so_many_candidates_are_accepted(services: EmulatedServices, acceptance: float) -> None:
    counted = figures(answers(services, forced(6), acceptance))
    assert counted.acceptance == pytest.approx(acceptance, abs=0.06)


def test_a_draft_that_is_always_right_is_hardly_ever_rejected(services: EmulatedServices) -> None:
    counted = figures(answers(services, forced(6), 1.0))
    assert counted.accepted > 0.97 * counted.examined


def test_a_draft_that_knows_its_doubts_can_be_told_to_keep_them(
    services: EmulatedServices,
) -> None:
    blind = figures(answers(services, forced(6), 0.7, Telling.INFORMED))
    doubting = figures(answers(services, forced(6), 0.7, Telling.INFORMED, 0.6))
    assert doubting.acceptance is not None
    assert blind.acceptance is not None
    assert doubting.acceptance > blind.acceptance + 0.08
    assert doubting.draft_tokens < blind.draft_tokens


def test_steps_take_as_long_as_they_should(services: EmulatedServices) -> None:
    scenario = Scenario(RECORDINGS[0].name, 0.01, 0.1, 0.8)
    counted = Figures.of(services.generate(emulated_request(scenario, forced(4).options(), 80)))
    assert 0.01 <= counted.verify_seconds / counted.rounds < 0.013
    # Asked for is the time of a token of the target; a draft token has about the text of one.
    assert 0.0009 < counted.draft_seconds / counted.draft_tokens < 0.0016


def test_it_is_measured_in_cells(services: EmulatedServices) -> None:
    plan = Plan(
        RECORDINGS[:1], 20, (2,), Telling.CONSTANT, seed=0, warm_up=0, fresh=False, auto=False
    )
    (measured,) = measure(services, [Cell(3.0, 0.8, 0.1)], plan)
    assert [way.name for way in measured.figures] == ["off", "forced 2"]
    assert [each.tokens for each in measured.figures.values()] == [19, 19]


def test_what_is_not_recorded_is_refused(services: EmulatedServices) -> None:
    request = emulated_request(Scenario(RECORDINGS[0].name, STEP, COST, 0.8), OFF.options())
    request.chat.messages[0].content = "Why is the sky blue?"
    with pytest.raises(grpc.RpcError, match="names no recording"):
        services.generate(request)
