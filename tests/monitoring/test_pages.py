"""What the metrics pages say after known requests: the figures of their answers, and nothing of
their text."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping

import pytest

from tests.monitoring.metrics_page import OPENMETRICS, MetricsPage, Scrape
from tests.monitoring.watched_services import FOX, SECRETS, Watched

ORCHESTRATOR = "uag.orchestrator.v1.Orchestrator"

FIGURES: Mapping[str, str] = {
    "uag_rounds_total": "rounds",
    "uag_round_seconds_count": "rounds",
    "uag_convert_seconds_count": "rounds",
    "uag_planned_draft_tokens_count": "rounds",
    "uag_spec_decode_num_draft_tokens_total": "candidates_proposed",
    "uag_spec_decode_num_examined_tokens_total": "candidates_examined",
    "uag_spec_decode_num_accepted_tokens_total": "candidates_accepted",
    "uag_spec_decode_num_examined_tokens_per_pos_total": "candidates_examined",
    "uag_spec_decode_num_accepted_tokens_per_pos_total": "candidates_accepted",
    "uag_spec_decode_accepted_length_sum": "candidates_accepted",
    "uag_draft_model_tokens_total": "draft_tokens_proposed",
    "uag_draft_model_tokens_unconverted_total": "draft_tokens_unconverted",
    "uag_draft_model_tokens_rolled_back_total": "draft_tokens_rolled_back",
    "uag_draft_rollbacks_total": "rollbacks",
}
"""Metrics, and the figure of an answer that each is the sum of."""

USAGE: Mapping[str, str] = {
    "uag_generation_tokens_total": "completion_tokens",
    "uag_prompt_tokens_total": "prompt_tokens",
    "uag_prompt_cached_tokens_total": "cached_tokens",
}


@pytest.mark.parametrize(("metric", "figure"), FIGURES.items())
def test_a_counter_is_the_sum_of_the_answers_own_figures(
    watched: Watched, metric: str, figure: str
) -> None:
    told = sum(getattr(choice.finished.speculation, figure) for choice in watched.choices)
    assert watched.scrape.value(metric, role="orchestrator") == told > 0


@pytest.mark.parametrize(("metric", "figure"), USAGE.items())
def test_tokens_are_those_of_the_answers_usage(watched: Watched, metric: str, figure: str) -> None:
    told = sum(getattr(choice.finished.usage, figure) for choice in watched.choices)
    assert watched.scrape.value(metric, role="orchestrator") == told > 0


@pytest.mark.parametrize("what", ["examined", "accepted"])
def test_each_position_counts_what_the_answers_tell_of_it(watched: Watched, what: str) -> None:
    told: Counter[int] = Counter()
    for choice in watched.choices:
        figures = getattr(choice.finished.speculation, f"{what}_by_position")
        told.update(dict(enumerate(figures)))
    name = f"uag_spec_decode_num_{what}_tokens_per_pos_total"
    shown = {s.labels["position"]: s.value for s in watched.scrape.samples if s.name == name}
    assert shown == {str(position): count for position, count in told.items()}
    assert len(shown) > 1


def test_rounds_with_and_without_candidates_are_told_apart(watched: Watched) -> None:
    figures = [choice.finished.speculation for choice in watched.choices]
    plain = sum(one.plain_steps for one in figures)
    drafted = sum(one.rounds for one in figures) - plain
    value = watched.scrape.value
    assert value("uag_rounds_total", drafted="false") == plain > 0
    assert value("uag_rounds_total", drafted="true") == drafted > 0
    assert value("uag_spec_decode_num_drafts_total") == drafted
    assert value("uag_spec_decode_accepted_length_count") == drafted


def test_the_requests_are_of_the_kinds_that_the_figures_tell_apart(watched: Watched) -> None:
    """Else equal sums would say little."""
    value = watched.scrape.value
    proposed = value("uag_spec_decode_num_draft_tokens_total")
    examined = value("uag_spec_decode_num_examined_tokens_total")
    accepted = value("uag_spec_decode_num_accepted_tokens_total")
    assert proposed > examined > accepted > 0


def test_the_tokens_of_rounds_are_those_of_answers_without_the_first_of_each(
    watched: Watched,
) -> None:
    """As the dashboard reckons tokens per round."""
    by_rounds = sum(choice.finished.usage.completion_tokens - 1 for choice in watched.choices)
    value = watched.scrape.value
    assert value("uag_generation_tokens_total") - value("uag_answers_total") == by_rounds


def test_each_answer_is_counted_under_its_reason(watched: Watched) -> None:
    told = Counter(choice.finished.reason.value for choice in watched.choices)
    for reason, count in told.items():
        assert watched.scrape.value("uag_answers_total", finish_reason=reason) == count
    assert watched.scrape.value("uag_answers_total") == told.total()
    assert len(told) > 1


def test_each_request_is_counted_under_its_status(watched: Watched) -> None:
    value = watched.scrape.value
    unary, stream = f"{ORCHESTRATOR}/GenerateUnary", f"{ORCHESTRATOR}/Generate"
    ok = value("uag_requests_total", method=unary, status="OK")
    assert ok + value("uag_requests_total", method=stream, status="OK") == len(watched.answers)
    assert value("uag_requests_total", status="INVALID_ARGUMENT") == watched.refused
    assert value("uag_e2e_request_latency_seconds_count") == len(watched.answers)
    assert value("uag_time_to_first_token_seconds_count") == len(watched.answers)


def test_the_models_steps_are_those_of_the_rounds(watched: Watched) -> None:
    value = watched.scrape.value
    figures = [choice.finished.speculation for choice in watched.choices]
    steps = "uag_forward_seconds_count"
    assert value(steps, role="verify", command="open") == len(watched.choices)
    assert value(steps, role="verify", command="verify") == sum(one.rounds for one in figures)
    assert value(steps, role="draft", command="propose") >= sum(
        one.draft_tokens_proposed for one in figures
    )
    for role in ("draft", "verify"):
        passes = value("uag_pass_seconds_count", role=role)
        # Each step is counted by itself; those of one pass share it.
        assert value("uag_batch_size_count", role=role) == passes <= value(steps, role=role)
        assert value("uag_batch_size_sum", role=role) == value(steps, role=role)
        assert value("uag_kv_blocks", role=role) > value("uag_kv_blocks_used", role=role)


def test_every_sample_names_its_role(scrape: Scrape) -> None:
    for role, page in scrape.pages.items():
        wrong = {sample.name for sample in page.samples if sample.labels.get("role") != role}
        assert not wrong


def test_every_metric_has_a_help_text_and_a_type(scrape: Scrape) -> None:
    for page in scrape.pages.values():
        for family in page.families:
            assert family.documentation, family.name
            assert family.type != "unknown", family.name


def test_the_pages_hold_in_openmetrics_what_they_hold_in_text(watched: Watched) -> None:
    """Prometheus asks for the first, whose readers forgive less."""
    openmetrics = Scrape.of(watched.pages, OPENMETRICS)
    assert openmetrics.names == Scrape.of(watched.pages).names


def test_nothing_of_what_was_sent_or_answered_is_shown(watched: Watched) -> None:
    secrets = {*SECRETS, *(word for choice in watched.choices for word in long_words(choice.text))}
    for page in watched.scrape.pages.values():
        assert not [secret for secret in secrets if secret in page.text]
    assert len(secrets) > len(SECRETS)


def long_words(text: str) -> list[str]:
    """Those that no help text has by chance."""
    return [word for word in text.split() if len(word) > 5]


def test_a_page_comes_within_a_second_while_a_request_runs(watched: Watched) -> None:
    stopped = threading.Event()

    def keep_asking() -> None:
        with watched.client() as client:
            while not stopped.is_set():
                client.generate(FOX, max_new_tokens=200, ignore_eos=True).answer()

    asking = threading.Thread(target=keep_asking)
    asking.start()
    try:
        pages = [page for _ in range(10) for page in one_scrape(watched)]
    finally:
        stopped.set()
        asking.join()
    assert max(page.seconds for page in pages) < 1


def one_scrape(watched: Watched) -> tuple[MetricsPage, ...]:
    """Of all services, while at least one request runs and has its sessions open."""
    for _ in range(200):
        scrape = Scrape.of(watched.pages)
        running = scrape.value("uag_requests_running", method=f"{ORCHESTRATOR}/Generate")
        if running and scrape.value("uag_sessions", role="verify"):
            return tuple(scrape.pages.values())
    raise AssertionError("no request ran while the pages were read")
