"""What measurements say together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.bench.findings import WayFindings, find
from orchestrator.bench.measurement import Measurement
from orchestrator.bench.way import Way
from tests.orchestrator.bench.recorded import NO_TIME, PLAIN, measured, reply


def of_way(way: Way, measurements: list[Measurement], baseline: Way = Way.OFF) -> WayFindings:
    found = find(measurements, baseline).way(way)
    assert found is not None
    return found


def drafted(prompt: str, examined: int, accepted: int, *, looked_up: int = 0) -> Measurement:
    figures = replace(
        PLAIN,
        candidates_examined=examined + looked_up,
        candidates_accepted=accepted + looked_up,
        lookup_examined=looked_up,
        lookup_accepted=looked_up,
    )
    return measured(Way.AUTO, prompt, reply(0.1, speculation=figures))


def test_acceptance_is_pooled_and_a_mean_over_requests() -> None:
    found = of_way(Way.AUTO, [drafted("a", 30, 15), drafted("b", 10, 10), drafted("c", 0, 0)])
    assert found.model_acceptance is not None
    assert found.model_acceptance.pooled == pytest.approx(25 / 40)
    assert found.model_acceptance.mean == pytest.approx(0.75)
    assert found.lookup_acceptance is None


def test_what_was_looked_up_is_not_the_models() -> None:
    found = of_way(Way.AUTO, [drafted("a", 4, 1, looked_up=6)])
    assert found.model_acceptance is not None
    assert found.lookup_acceptance is not None
    assert (found.model_acceptance.examined, found.model_acceptance.accepted) == (4, 1)
    assert (found.lookup_acceptance.examined, found.lookup_acceptance.accepted) == (6, 6)


def test_shares_of_time_are_of_all_requests_and_add_up() -> None:
    long = replace(NO_TIME, total_seconds=3.0, verify_seconds=2.0, draft_seconds=0.5)
    found = of_way(
        Way.OFF, [measured(Way.OFF, "a", reply(1)), measured(Way.OFF, "b", reply(1, time=long))]
    )
    shares = {each.part: each.share for each in found.shares}
    assert shares["verify"] == pytest.approx(2.4 / 4)
    assert shares["draft"] == pytest.approx(0.5 / 4)
    assert sum(shares.values()) == pytest.approx(1)
    assert "total" not in shares


def test_metrics_have_their_units() -> None:
    found = of_way(Way.OFF, [measured(Way.OFF, "a", reply(0.1, first=0.25))])
    averages = {each.name: each.summary.avg for each in found.metrics}
    units = {each.name: each.summary.unit for each in found.metrics}
    assert averages["time_per_output_token"] == pytest.approx(100)
    assert averages["output_tokens_per_second"] == pytest.approx(10)
    assert averages["time_to_first_token"] == pytest.approx(250)
    assert averages["request_latency"] == pytest.approx(650)
    assert averages["tokens_per_round"] == pytest.approx(1)
    assert set(units.values()) == {"ms", "tokens/s", "tokens"}
    assert units["request_latency"] == "ms"


def test_an_answer_of_one_token_has_no_time_per_token() -> None:
    found = of_way(Way.OFF, [measured(Way.OFF, "a", reply(0.1, ids=(1,)))])
    assert found.metric("time_per_output_token") is None
    assert found.metric("time_to_first_token") is not None


def test_speeds_are_against_the_baseline_and_against_off() -> None:
    both = [
        measured(Way.TRANSFORMERS, "a", reply(0.1)),
        measured(Way.OFF, "a", reply(0.2)),
        measured(Way.AUTO, "a", reply(0.05)),
    ]
    found = of_way(Way.AUTO, both, Way.TRANSFORMERS)
    assert found.speed is not None
    assert found.over_off is not None
    assert found.speed.overall.median == pytest.approx(2)
    assert found.over_off.overall.median == pytest.approx(4)


def test_drawn_ids_are_compared_among_ours_alone() -> None:
    drawn = [
        measured(way, "a", reply(0.1), temperature=0.7)
        for way in (Way.TRANSFORMERS, Way.OFF, Way.AUTO)
    ]
    assert of_way(Way.TRANSFORMERS, drawn).ids is None
    assert of_way(Way.AUTO, drawn).ids is not None
    greedy = [replace(each, temperature=0.0) for each in drawn]
    assert of_way(Way.TRANSFORMERS, greedy).ids is not None


def test_degraded_requests_are_counted() -> None:
    lost = measured(Way.AUTO, "a", replace(reply(0.1), degraded="gone"))
    assert of_way(Way.AUTO, [lost, measured(Way.AUTO, "b", reply(0.1))]).degraded == 1


def test_limits_come_from_the_forced_way_and_are_held_against_the_models() -> None:
    figures = replace(
        PLAIN, rounds=4, plain_steps=0, candidates_proposed=10, candidates_examined=10,
        candidates_accepted=8,
    )  # fmt: skip
    time = replace(NO_TIME, draft_seconds=0.1)
    found = find(
        [
            measured(Way.OFF, "a", reply(0.1)),
            measured(Way.FORCED, "a", reply(0.08, speculation=figures, time=time)),
            measured(Way.MODEL, "a", reply(0.05)),
        ],
        Way.OFF,
    )
    assert found.costs is not None
    assert found.costs.a == pytest.approx(0.8)
    assert found.costs.c == pytest.approx(0.1)
    (sequential, unlimited) = found.bounds
    assert sequential.way is Way.MODEL
    assert sequential.measured == pytest.approx(2)
    assert sequential.limit == pytest.approx(2.47, abs=0.005)
    assert unlimited.limit == pytest.approx(1 / 0.28)
