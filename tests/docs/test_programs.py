"""The program of the page on pairs runs, and its figures are those that the page explains."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import Page
from tests.scripted_orchestrator import FINISHED, STARTED, ScriptedOrchestrator
from uag.orchestrator.v1 import orchestrator_pb2 as pb


def test_the_program_that_measures_a_pair(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = Page.read(Path("docs/choosing-a-pair.md")).fences("python")
    choice = pb.Choice(finished=FINISHED.finished)
    answer = pb.GenerateUnaryResponse(started=STARTED.started, choices=[choice])
    with ScriptedOrchestrator(unary=answer) as scripted:
        here = program.replace("localhost:50050", scripted.address)
        exec(compile(here, "choosing-a-pair.md", "exec"), {})  # noqa: S102 - our own page
        asked = [request.speculation.mode for request in scripted.requests]
    # The script: 2 rounds of 0.25 s, 2 of 4 examined accepted, 1 s for 9 candidates, 0.2 s beside.
    said = capsys.readouterr().out
    assert said == "a = 0.50, c = 0.44, r = 0.40, v = 1.00\n4.5 candidates a round\n"
    assert asked == [pb.SPECULATION_MODE_OFF, pb.SPECULATION_MODE_FORCE]
