"""The answers of a request as a whole, gathered from its events. Pure."""

from __future__ import annotations

from collections.abc import AsyncIterable
from dataclasses import dataclass

from orchestrator.events import CommittedToken, Delta, Event, Finished, Started


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """One of the answers."""

    tokens: tuple[CommittedToken, ...]
    finished: Finished

    @property
    def text(self) -> str:
        return "".join(token.text for token in self.tokens)


@dataclass(frozen=True, slots=True)
class WholeAnswers:
    """All of them, in the order of their indices."""

    started: Started
    choices: tuple[WholeAnswer, ...]


async def gather(events: AsyncIterable[Event]) -> WholeAnswers:
    """Of the events of one request, from `Started` on."""
    started: Started | None = None
    tokens: dict[int, list[CommittedToken]] = {}
    finished: dict[int, Finished] = {}
    async for event in events:
        match event:
            case Started():
                started = event
            case Delta():
                tokens.setdefault(event.choice, []).extend(event.tokens)
            case Finished():
                finished[event.choice] = event
    if started is None:
        raise ValueError("the events do not begin with `Started`")
    choices = (WholeAnswer(tuple(tokens.get(key, ())), finished[key]) for key in sorted(finished))
    return WholeAnswers(started, tuple(choices))
