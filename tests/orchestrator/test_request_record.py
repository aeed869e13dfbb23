"""What of a request is told in the log, and nothing more than may be."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from orchestrator.answer_metrics import AnswerMetrics
from orchestrator.request import AnswerRequest, TextPrompt
from orchestrator.request_log import LogRequests, RequestLog
from orchestrator.request_record import RequestRecord
from uag_common.errors import InvalidRequestError, OverloadedError, UagError

SECRET = "the secret prompt"  # noqa: S105 - a prompt


def a_record(wanted: LogRequests) -> RequestRecord:
    request = AnswerRequest(TextPrompt(SECRET), request_id="r-1")
    metrics = AnswerMetrics(CollectorRegistry())
    return RequestRecord(request, metrics, RequestLog(wanted), time.perf_counter())


def fields(caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    (event,) = caplog.records
    told: dict[str, Any] = vars(event)["event_fields"]
    return told


@pytest.fixture(autouse=True)
def _all_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def test_a_summary_tells_no_text(caplog: pytest.LogCaptureFixture) -> None:
    record = a_record("summary")
    with record.kept():
        record.checked()
        record.said(SECRET)
    told = fields(caplog)
    assert (told["request_id"], told["status"], told["error"]) == ("r-1", "OK", None)
    assert SECRET not in str(told)


def test_texts_are_told_where_they_are_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    record = a_record("text")
    with record.kept():
        record.said("an ")
        record.said("answer")
    assert (fields(caplog)["prompt"], fields(caplog)["answer"]) == (SECRET, "an answer")


def test_nothing_is_told_by_default(caplog: pytest.LogCaptureFixture) -> None:
    with a_record("off").kept():
        pass
    assert not caplog.records


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (OverloadedError("4 sessions are open"), "RESOURCE_EXHAUSTED", "4 sessions are open"),
        (InvalidRequestError("n", SECRET), "INVALID_ARGUMENT", "n"),
        (InvalidRequestError(f"metadata[{SECRET!r}]", "is wrong"), "INVALID_ARGUMENT", "metadata"),
        (ValueError(SECRET), "INTERNAL", None),
    ],
)
def test_a_failure_tells_why_and_no_text_of_the_client(
    caplog: pytest.LogCaptureFixture, error: Exception, status: str, told: str | None
) -> None:
    with pytest.raises(type(error)), a_record("summary").kept():
        raise error
    found = fields(caplog)
    assert (found["status"], found["error"]) == (status, told)
    assert SECRET not in str(found)
    # It was not checked: whatever it calls itself is not told.
    assert found["request_id"] == ""
    assert isinstance(error, UagError) or found["error"] is None
