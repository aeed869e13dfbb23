"""The log-probabilities of an answer as lines. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.cli.table import columns
from orchestrator.client import Answer, Choice, PromptToken, TopToken


def logprob_lines(answer: Answer) -> list[str]:
    """A line for each token that has one: the token, its log-probability, the most probable tokens
    at its place. The prompt's come first."""
    prompt = [_prompt_row(token) for token in answer.started.prompt]
    rows = [prompt, *(_rows(choice) for choice in answer.choices)]
    return [line for table in rows if table for line in columns(table)]


def _prompt_row(token: PromptToken) -> tuple[str, str, str]:
    return f"prompt id {token.id}", f"{token.logprob:.4f}", _alternatives(token.top)


def _rows(choice: Choice) -> list[tuple[str, str, str]]:
    return [
        (repr(token.text), f"{token.logprob:.4f}", _alternatives(token.top))
        for token in choice.tokens
        if token.logprob is not None
    ]


def _alternatives(top: Iterable[TopToken]) -> str:
    return "  ".join(f"{token.text!r} {token.logprob:.4f}" for token in top)
