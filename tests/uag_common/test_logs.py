"""The log of a process: one line an event, whatever it says and whoever says it."""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from uag_common.logs import (
    MOST_MESSAGE,
    MOST_REPEATED,
    MOST_TRACEBACK,
    REPEAT_SECONDS,
    FieldValue,
    JsonFormatter,
    RepeatFilter,
    TextFormatter,
    event_fields,
)

LIBRARY = "opentelemetry.exporter.otlp.proto.grpc.exporter"


def event(
    message: str,
    *args: object,
    name: str = "uag_common.test",
    level: int = logging.INFO,
    error: BaseException | None = None,
    **fields: FieldValue,
) -> logging.LogRecord:
    """A record as `log.info(...)` makes it."""
    info = None if error is None else (type(error), error, error.__traceback__)
    logger = logging.getLogger(name)
    return logger.makeRecord(name, level, "", 0, message, args, info, extra=event_fields(**fields))


def line(record: logging.LogRecord) -> str:
    return JsonFormatter("uag-draft").format(record)


def told(record: logging.LogRecord) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(line(record))
    return whole


def raised(error: BaseException) -> BaseException:
    """The error as it is when it was raised."""
    try:
        raise error
    except BaseException as caught:
        return caught


def test_an_event_tells_who_says_what_and_when() -> None:
    record = event("on port %d", 7, level=logging.WARNING)
    record.created = datetime(2025, 1, 2, 3, 4, 5, 6_789, tzinfo=UTC).timestamp()
    assert told(record) == {
        "time": "2025-01-02T03:04:05.006Z",
        "level": "WARNING",
        "logger": "uag_common.test",
        "message": "on port 7",
        "service": "uag-draft",
    }


def test_a_whole_second_has_milliseconds_too() -> None:
    record = event("x")
    record.created = 0.0
    assert told(record)["time"] == "1970-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    "text",
    [
        "two\nlines\r\nand more",
        "".join(map(chr, range(0x20))) + "\x7f\x85",
        "\u2028 and \u2029",
        '"quotes" \\ and {braces}',
        "Grüße, 世界 😀",
        "\ud800 alone, \udfff alone",
        "%s %d %",
    ],
)
def test_whatever_it_says_is_one_line(text: str) -> None:
    written = line(event("%s", text, field=text, error=raised(ValueError(text))))
    assert len(written.splitlines()) == 1
    assert written.isascii()
    read = json.loads(written)
    expected = text.encode(errors="backslashreplace").decode()
    assert read["message"] == expected.rstrip()
    assert read["field"] == expected
    assert expected.rstrip() in read["error"]["traceback"]


def test_what_does_not_fit_its_arguments_is_told_all_the_same() -> None:
    assert "'%d of %d'" in told(event("%d of %d", "x"))["message"]
    assert RepeatFilter().filter(event("%d of %d", "x", name="library"))


def test_an_event_in_a_span_names_it() -> None:
    with TracerProvider().get_tracer("test").start_as_current_span("here") as span:
        context = span.get_span_context()
        read = told(event("x"))
    assert read["trace_id"] == trace.format_trace_id(context.trace_id)
    assert read["span_id"] == trace.format_span_id(context.span_id)


def test_an_error_is_told_with_its_kind_and_its_traceback() -> None:
    error = told(event("x", error=raised(KeyError("k"))))["error"]
    assert error["type"] == "KeyError"
    assert error["traceback"].startswith("Traceback (most recent call last):\n")
    assert error["traceback"].endswith("\nKeyError: 'k'")
    assert told(event("x", error=json.JSONDecodeError("no", "", 0)))["error"]["type"] == (
        "json.decoder.JSONDecodeError"
    )


def test_exc_info_without_an_error_is_none() -> None:
    record = event("x")
    record.exc_info = (None, None, None)
    assert "error" not in told(record)


def test_a_line_has_an_end() -> None:
    read = told(event("m" * 10**6, error=raised(ValueError("begin" + "e" * 10**6 + "end"))))
    assert len(read["message"]) == MOST_MESSAGE
    assert len(read["error"]["traceback"]) == MOST_TRACEBACK
    assert read["error"]["traceback"].endswith("end")


def test_fields_are_told_as_they_are_and_hide_nothing() -> None:
    record = event(
        "x", n=1, share=0.5, yes=True, none=None, endless=float("inf"), time="mine", service="mine"
    )
    read = told(record)
    assert (read["n"], read["share"], read["yes"], read["none"]) == (1, 0.5, True, None)
    assert read["endless"] == "inf"
    assert read["service"] == "uag-draft"
    assert read["time"] != "mine"


def test_text_is_for_people() -> None:
    error = raised(KeyError("k"))
    record = event("said %s", "a", n=3, text="ü\nb", error=error)
    first, *rest = TextFormatter().format(record).splitlines()
    told = r'said a n=3 text="ü\\nb"'
    assert re.fullmatch(rf"\d{{4}}-\d\d-\d\d \S+ INFO uag_common\.test: {told}", first)
    assert rest[0] == "Traceback (most recent call last):"
    assert rest[-1] == "KeyError: 'k'"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_library_s_complaint_is_told_once_a_minute_with_the_number_left_out() -> None:
    clock = Clock()
    repeats = RepeatFilter(clock)

    def complaint(seconds: float) -> logging.LogRecord:
        return event("no collector, retrying in %.2fs", seconds, name=LIBRARY)

    assert repeats.filter(complaint(0.97))
    clock.now = REPEAT_SECONDS - 1
    assert [repeats.filter(complaint(seconds)) for seconds in (1.9, 4.2)] == [False, False]
    # Another one is not held back by it, nor the same of another level.
    assert repeats.filter(event("failed to export", name=LIBRARY))
    assert repeats.filter(
        event("no collector, retrying in 1.0s", name=LIBRARY, level=logging.ERROR)
    )
    clock.now = REPEAT_SECONDS
    again = complaint(1.1)
    assert repeats.filter(again)
    assert told(again)["left_out"] == 2
    assert TextFormatter().format(again).endswith("retrying in 1.10s left_out=2")
    clock.now = 3 * REPEAT_SECONDS
    later = complaint(1.1)
    assert repeats.filter(later)
    assert "left_out" not in told(later)


def test_our_own_words_are_never_left_out() -> None:
    repeats = RepeatFilter()
    for name in ("uag_common", "uag_common.rpc.errors", "orchestrator", "draft_service.x"):
        assert all(repeats.filter(event("again", name=name)) for _ in range(3))


def test_what_is_remembered_of_libraries_has_an_end() -> None:
    repeats = RepeatFilter()
    word = "".join
    for count in range(3 * MOST_REPEATED):
        text = word(chr(ord("a") + int(digit)) for digit in str(count))
        assert repeats.filter(event(text, name=LIBRARY))
    assert len(repeats._passed) == MOST_REPEATED
    size = sum(sys.getsizeof(words) for _, _, words in repeats._passed)
    assert repeats.filter(event("x" * 10**6, name=LIBRARY))
    assert sum(sys.getsizeof(words) for _, _, words in repeats._passed) < size + 2 * MOST_MESSAGE
