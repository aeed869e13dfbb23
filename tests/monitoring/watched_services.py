"""The real services with tiny models, the requests they were sent, and what their pages say then.

Among the requests: some that draft in each round, with tokens accepted, rejected and rolled back;
one that never drafts; one whose answer ends inside a block; one that is refused.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.client import Answer, Client, InvalidRequestError
from orchestrator.client.answer import Choice
from tests.monitoring.metrics_page import Scrape
from tests.services import RunningServices, free_address, running_services

FOX = "The quick brown fox jumps"
RAIN = "It rained for 40 days; on day 41 the sun"
CODE = "def add(left: int, right"
WORDS = "Wörter mit Umlauten, des mots accentués, и немного"
SESSION = "session-of-a-test"
REQUEST = "request-of-a-test"
SECRETS = (FOX, RAIN, CODE, WORDS, "quick", "rained", SESSION, REQUEST, "metadata-of-a-test")
"""Of what was sent. What came back is looked for besides."""


@dataclass(frozen=True, slots=True)
class Watched:
    """`answers` are all that the services had given when `scrape` was read; `refused` more requests
    were refused by then."""

    services: RunningServices
    pages: Mapping[str, str]
    """Addresses of the metrics pages by role."""
    answers: tuple[Answer, ...]
    refused: int
    scrape: Scrape

    @property
    def choices(self) -> tuple[Choice, ...]:
        return tuple(choice for answer in self.answers for choice in answer.choices)

    def client(self) -> Client:
        return Client(self.services.orchestrator, timeout=60)


@contextmanager
def watched_services(target: Path, draft: Path) -> Iterator[Watched]:
    """Runs them, sends the requests, and reads the pages when all sessions are over."""
    pages = {role: free_address() for role in ("orchestrator", "draft", "verify")}
    settings = {role: {"metrics_listen": address} for role, address in pages.items()}
    with running_services(
        target,
        draft,
        verify_settings=settings["verify"],
        draft_settings=settings["draft"],
        orchestrator_settings=settings["orchestrator"],
    ) as services:
        with Client(services.orchestrator, timeout=60) as client:
            answers = send_all(client)
            with pytest.raises(InvalidRequestError):
                client.complete(FOX, top_k=3)
        yield Watched(services, pages, answers, 1, when_idle(pages))


def send_all(client: Client) -> tuple[Answer, ...]:
    """Each kind of request once; none fails."""
    return (
        *(
            client.complete(text, max_new_tokens=30, speculation="force", draft_tokens=4)
            for text in (FOX, RAIN, CODE, WORDS)
        ),
        client.generate(
            RAIN[:20], max_new_tokens=60, ignore_eos=True, speculation="force", draft_tokens=6
        ).answer(),
        client.generate(RAIN, max_new_tokens=20, speculation="off").answer(),
        # Ends in the middle of a block, so the last candidates are not examined.
        client.complete(FOX, stop="lazy", speculation="force", draft_tokens=8),
        client.complete(FOX, max_new_tokens=1),
        client.complete(
            RAIN[:9], n=2, temperature=1.5, seed=5, max_new_tokens=30, speculation="force",
            request_id=REQUEST, metadata={"key": "metadata-of-a-test"},
        ),
        *(client.complete(RAIN, session_id=SESSION, max_new_tokens=5) for _ in range(2)),
    )  # fmt: skip


def when_idle(pages: Mapping[str, str], seconds: float = 10) -> Scrape:
    """The pages once no session is open: a session ends a moment after its answer."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        scrape = Scrape.of(pages)
        if not scrape.value("uag_sessions") and not scrape.value("uag_requests_running"):
            return scrape
        time.sleep(0.05)
    raise TimeoutError(f"sessions are still open after {seconds} s")
