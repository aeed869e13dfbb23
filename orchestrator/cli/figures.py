"""The figures of an answer as text. Pure: events in, lines out; knows no stream and no colour."""

from __future__ import annotations

from orchestrator.events import Finished, FinishReason, TimeFigures

_ENDS = {
    FinishReason.EOS: "ended by the target",
    FinishReason.MAX_TOKENS: "ended by the limit of tokens",
    FinishReason.CONTEXT_LIMIT: "ended by the target's context",
}


def summary(finished: Finished) -> str:
    """One line: tokens, rounds, proposed / accepted, tokens per second, time to first token, and
    why it ended."""
    counts = finished.speculation
    return ", ".join(
        (
            _count(finished.completion_tokens, "token"),
            _count(counts.rounds, "round"),
            f"proposed {counts.candidates_proposed} / accepted {counts.candidates_accepted}",
            f"{tokens_per_second(finished):.1f} tokens/s",
            f"first token after {finished.time.first_token_seconds:.2f} s",
            _ENDS[finished.reason],
        )
    )


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
    told = ", ".join(
        f"{name} {_seconds(seconds)} ({seconds / time.total_seconds:.0%})"
        for name, seconds in (*parts, ("other", rest))
    )
    return f"time {_seconds(time.total_seconds)}: {told}"


def tokens_per_second(finished: Finished) -> float:
    """Over the whole request, its prefill included."""
    return finished.completion_tokens / finished.time.total_seconds


def tokens_per_round(finished: Finished) -> float:
    """What a verification commits on average; the first token comes from the prefill."""
    return (finished.completion_tokens - 1) / max(1, finished.speculation.rounds)


def degradation(finished: Finished) -> str | None:
    """What became of the draft, if drafting stopped."""
    if finished.degraded is None:
        return None
    return (
        f"no drafts from round {finished.degraded.since_round} on ({finished.degraded.reason}); "
        "the answer is whole all the same"
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s"
