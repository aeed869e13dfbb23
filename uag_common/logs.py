"""The log of a process: each event is one line on standard error, whoever tells it.

Knows logging and OpenTelemetry's current span; it must not know settings, services or gRPC. What is
told is the affair of those who tell it: nothing of a prompt or an answer unless asked for.
"""

from __future__ import annotations

import json
import logging
import math
import re
import sys
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Literal, TextIO, TypeAlias

from opentelemetry import trace

OWN_LOGGERS = ("uag_common", "draft_service", "verify_service", "orchestrator")

MOST_MESSAGE = 2_000
MOST_TRACEBACK = 8_000
"""Characters of a line that others write: who collects logs cuts long lines, which then are no
JSON any more. Of a traceback the end says more than the beginning."""

REPEAT_SECONDS = 60.0
MOST_REPEATED = 256
"""Different messages of libraries that are remembered."""

FieldValue: TypeAlias = str | int | float | None
LogFormat: TypeAlias = Literal["json", "text"]

log = logging.getLogger(__name__)


def set_up_log(service: str, level: str, form: LogFormat, stream: TextIO | None = None) -> None:
    """Our own words from `level` on; of libraries, and of `warnings`, warnings. What nobody catches
    is an event as well."""
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonFormatter(service) if form == "json" else TextFormatter())
    handler.addFilter(RepeatFilter())
    logging.basicConfig(handlers=[handler], force=True)
    logging.getLogger().setLevel(logging.WARNING)
    for name in OWN_LOGGERS:
        logging.getLogger(name).setLevel(level.upper())
    logging.captureWarnings(True)
    sys.excepthook = _uncaught
    threading.excepthook = _uncaught_in_thread
    sys.unraisablehook = _unraisable


def event_fields(**fields: FieldValue) -> dict[str, Mapping[str, FieldValue]]:
    """What an event tells beside its message: `log.info("...", extra=event_fields(port=port))`."""
    return {_FIELDS: fields}


class JsonFormatter(logging.Formatter):
    """An event as one object on one line of ASCII. `service` is told with each."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, object] = {
            "time": _time(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": _text(_message(record))[:MOST_MESSAGE],
            "service": self._service,
        }
        span = trace.get_current_span().get_span_context()
        if span.is_valid:
            told["trace_id"] = trace.format_trace_id(span.trace_id)
            told["span_id"] = trace.format_span_id(span.span_id)
        if record.exc_info and record.exc_info[1] is not None:
            told["error"] = _error(record.exc_info[1])
        for name, value in _fields(record).items():
            told.setdefault(name, _value(value))
        return json.dumps(told)


class TextFormatter(logging.Formatter):
    """An event for people: one line, and the traceback below it where there is one."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - named by logging
        line = super().formatMessage(record)
        for name, value in _fields(record).items():
            line += f" {name}={_one_line(value)}"
        span = trace.get_current_span().get_span_context()
        return f"{line} trace_id={trace.format_trace_id(span.trace_id)}" if span.is_valid else line


def _one_line(value: FieldValue) -> str:
    """As JSON, in the letters that people read; all that could end a line is escaped."""
    told = json.dumps(_value(value), ensure_ascii=False)
    return told if len(told.splitlines()) <= 1 else json.dumps(_value(value))


class RepeatFilter(logging.Filter):
    """Of what a library says again and again, one event a minute, and then how many were left out.
    An exporter whose collector is away complains for ever, with another number each time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._passed: OrderedDict[tuple[str, int, str], _Passed] = OrderedDict()
        # Python may clean up anywhere, and what it cleans up may warn: by the same thread.
        self._lock = threading.RLock()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] in OWN_LOGGERS:
            return True
        words = _NUMBERS.sub("#", _message(record)[:MOST_MESSAGE])
        with self._lock:
            left_out = self._left_out((record.name, record.levelno, words))
        if left_out:
            vars(record)[_FIELDS] = {**_fields(record), "left_out": left_out}
        return left_out is not None

    def _left_out(self, key: tuple[str, int, str]) -> int | None:
        """How many like this one were left out before it; None if it is left out itself."""
        now, last = self._clock(), self._passed.pop(key, None)
        if last is not None and now - last.when < REPEAT_SECONDS:
            last.left_out += 1
            self._passed[key] = last
            return None
        self._passed[key] = _Passed(now)
        if len(self._passed) > MOST_REPEATED:
            self._passed.popitem(last=False)
        return 0 if last is None else last.left_out


class _Passed:
    """A message that was passed on, and how many like it were not since."""

    def __init__(self, when: float) -> None:
        self.when = when
        self.left_out = 0


_FIELDS = "event_fields"
_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\d+")


def _time(created: float) -> str:
    """By RFC 3339, in UTC."""
    return datetime.fromtimestamp(created, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage().rstrip()
    except Exception:
        # A mistake of whoever tells it must not hide what it tells.
        return f"{record.msg!r}, with arguments that do not fit"


def _fields(record: logging.LogRecord) -> Mapping[str, FieldValue]:
    fields = vars(record).get(_FIELDS, {})
    return fields if isinstance(fields, Mapping) else {}


def _error(error: BaseException) -> dict[str, str]:
    kind = type(error)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    whole = _text("".join(traceback.format_exception(error)).rstrip())
    return {"type": module + kind.__qualname__, "traceback": whole[-MOST_TRACEBACK:]}


def _value(value: FieldValue) -> FieldValue:
    if isinstance(value, str):
        return _text(value)
    # JSON has no word for these.
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _text(text: str) -> str:
    """Half of a surrogate pair is no character, and some readers of JSON refuse it."""
    return text.encode(errors="backslashreplace").decode()


def _uncaught(
    kind: type[BaseException],  # noqa: ARG001 - called by Python
    error: BaseException,
    frames: TracebackType | None,  # noqa: ARG001
) -> None:
    log.critical("ended by what nobody caught", exc_info=error)


def _uncaught_in_thread(told: threading.ExceptHookArgs) -> None:
    if told.exc_value is None or isinstance(told.exc_value, SystemExit):
        return
    log.error("a thread ended by what nobody caught", exc_info=told.exc_value)


def _unraisable(told: sys.UnraisableHookArgs) -> None:
    log.error("%s", told.err_msg or "an error that could not be raised", exc_info=told.exc_value)
