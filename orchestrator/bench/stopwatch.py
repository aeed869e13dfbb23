"""Reads an answer of ours to its end and takes its times. Knows the client, no service."""

from __future__ import annotations

import time

from orchestrator.bench.measurement import Reply
from orchestrator.client import AnswerStream


def watch(stream: AnswerStream, asked: float) -> Reply:
    """`asked`: when it was asked for, by `time.perf_counter`. Raises ClientError."""
    first_tokens, first, last = 0, 0.0, 0.0
    with stream:
        for delta in stream:
            if delta.tokens:
                last = time.perf_counter() - asked
                if not first_tokens:
                    first_tokens, first = len(delta.tokens), last
        answer = stream.answer()
    finished = answer.finished
    return Reply(
        prompt_tokens=answer.started.prompt_tokens,
        ids=tuple(token.id for token in answer.tokens),
        first_tokens=first_tokens,
        first_seconds=first,
        last_seconds=last,
        rounds=finished.speculation.rounds,
        speculation=finished.speculation,
        time=finished.time,
        degraded=None if finished.degraded is None else finished.degraded.reason,
    )
