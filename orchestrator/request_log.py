"""The line that a request leaves in the log, where the operator asks for one. Texts of clients are
in it only if that is asked for by name."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Literal

from orchestrator.request import AnswerRequest, ChatPrompt, TextPrompt, TokenPrompt
from uag_common.logs import event_fields

log = logging.getLogger(__name__)

LogRequests = Literal["off", "summary", "text"]


@dataclass(frozen=True, slots=True)
class EndedRequest:
    """How a request ended. `request_id` is empty for one that was refused at once; `degraded` tells
    why its drafting stopped, if it did, and `error` why it failed."""

    request_id: str
    status: str
    seconds: float
    first_token_seconds: float | None
    prompt_tokens: int
    completion_tokens: int
    finish_reasons: tuple[str, ...]
    degraded: str | None
    error: str | None


class RequestLog:
    """Of one orchestrator."""

    def __init__(self, wanted: LogRequests) -> None:
        self._wanted = wanted

    @property
    def with_text(self) -> bool:
        """Whether the texts of requests and answers are told."""
        return self._wanted == "text"

    def ended(self, request: AnswerRequest, ended: EndedRequest, answer: str) -> None:
        """`answer` is the text of all answers, in the order of their parts."""
        if self._wanted == "off":
            return
        told: dict[str, str | int | float | None] = {
            "request_id": ended.request_id,
            "status": ended.status,
            "seconds": _rounded(ended.seconds),
            "first_token_seconds": _rounded(ended.first_token_seconds),
            "prompt_tokens": ended.prompt_tokens,
            "completion_tokens": ended.completion_tokens,
            "finish_reasons": ",".join(ended.finish_reasons),
            "degraded": ended.degraded,
            "error": ended.error,
        }
        if self.with_text:
            told |= {"prompt": _text(request), "answer": answer}
        log.info("request ended", extra=event_fields(**told))


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)


def _text(request: AnswerRequest) -> str:
    match request.prompt:
        case TextPrompt(text):
            return text
        case ChatPrompt(messages):
            return "\n".join(f"{message.role}: {message.content}" for message in messages)
        case TokenPrompt(ids):
            return ",".join(map(str, ids))
