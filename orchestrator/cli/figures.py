"""The figures of an answer as text. Pure: values in, lines out; knows no stream and no colour."""

from __future__ import annotations

from math import inf

from orchestrator.client import (
    Answer,
    Finished,
    FinishReason,
    SpeculationFigures,
    Started,
    TimeFigures,
)

_ENDS = {
    FinishReason.EOS: "ended by the target",
    FinishReason.MAX_TOKENS: "ended by the limit of tokens",
    FinishReason.CONTEXT_LIMIT: "ended by the target's context",
    FinishReason.STOP_SEQUENCE: "ended by a stop sequence",
    FinishReason.STOP_TOKEN: "ended by a stop token",
    FinishReason.TIME_LIMIT: "ended by the time limit",
    FinishReason.CANCELLED: "ended by the server, which had to stop",
    FinishReason.UNKNOWN: "ended for a reason that only a newer client knows",
}


def answer_lines(answer: Answer) -> list[str]:
    """The summary of each answer, what became of its draft, and how the request is found again."""
    finished = [choice.finished for choice in answer.choices]
    names = identity(answer.started)
    if len(finished) == 1:
        lines = [", ".join(part for part in (summary(finished[0]), names) if part)]
    else:
        told = (f"answer {index}: {summary(end)}" for index, end in enumerate(finished, start=1))
        lines = [*told, *([names] if names else [])]
    lost = {line: None for end in finished if (line := degradation(end))}
    return [*lines, *lost]


def identity(started: Started) -> str:
    """The names of a request in logs and traces, and the seed of its answers; "" if there are
    none."""
    known = (
        ("seed", started.parameters.get("seed")),
        ("request", started.parameters.get("request_id")),
        ("trace", started.trace_id or None),
    )
    return ", ".join(f"{name} {value}" for name, value in known if value is not None)


def summary(finished: Finished) -> str:
    """One line: tokens, rounds, proposed / accepted (and of these what was looked up), tokens per
    second, time to first token, and why it ended."""
    counts = finished.speculation
    return ", ".join(
        (
            _count(finished.usage.completion_tokens, "token"),
            _count(counts.rounds, "round"),
            _candidates(counts),
            f"{tokens_per_second(finished):.1f} tokens/s",
            f"first token after {finished.time.first_token_seconds:.2f} s",
            _end(finished),
        )
    )


def _candidates(counts: SpeculationFigures) -> str:
    told = f"proposed {counts.candidates_proposed} / accepted {counts.candidates_accepted}"
    if not counts.lookup_proposed:
        return told
    return f"{told} (looked up: {counts.lookup_proposed} / {counts.lookup_accepted})"


def acceptance(finished: Finished) -> str:
    """One line: accepted of examined candidates, tokens per round."""
    counts = finished.speculation
    if not counts.candidates_examined:
        return "nothing was proposed: every round was a plain step of the target"
    share = counts.candidates_accepted / counts.candidates_examined
    return (
        f"accepted {counts.candidates_accepted} of {counts.candidates_examined} examined "
        f"({share:.0%}), {tokens_per_round(finished):.2f} tokens per round"
    )


def time_split(time: TimeFigures) -> str:
    """One line: where the seconds of the answer went."""
    parts = (
        ("prefill", time.prefill_seconds),
        ("draft", time.draft_seconds),
        ("convert", time.convert_seconds),
        ("verify", time.verify_seconds),
        ("gRPC", time.network_seconds),
        ("queue", time.queue_seconds),
    )
    rest = max(0.0, time.total_seconds - sum(seconds for _, seconds in parts))
    total = time.total_seconds or inf
    told = ", ".join(
        f"{name} {_seconds(seconds)} ({seconds / total:.0%})"
        for name, seconds in (*parts, ("other", rest))
    )
    return f"time {_seconds(time.total_seconds)}: {told}"


def tokens_per_second(finished: Finished) -> float:
    """Over the whole request, its prefill included."""
    # A server may leave its times out.
    return finished.usage.completion_tokens / (finished.time.total_seconds or inf)


def tokens_per_round(finished: Finished) -> float:
    """What a verification commits on average; the first token comes from the prefill."""
    return (finished.usage.completion_tokens - 1) / max(1, finished.speculation.rounds)


def degradation(finished: Finished) -> str | None:
    """What became of the draft, if drafting stopped."""
    if finished.degraded is None:
        return None
    return (
        f"no drafts from round {finished.degraded.since_round} on, for "
        f"{_seconds(finished.degraded.seconds)} ({finished.degraded.reason}); the answer is whole "
        "all the same"
    )


def _end(finished: Finished) -> str:
    """Why it ended, and by what where it could be one of several."""
    if finished.stop_sequence is not None:
        return f"{_ENDS[finished.reason]} {finished.stop_sequence!r}"
    if finished.stop_token_id is not None:
        return f"{_ENDS[finished.reason]} (id {finished.stop_token_id})"
    return _ENDS[finished.reason]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s"
