"""A server whose grace is over ends its answers where they stand, and its clients are told so."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import grpc
import pytest

from tests.scripted_draft import scripted_draft
from tests.services import Answers, running_services
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag.orchestrator.v1 import orchestrator_pb2_grpc

STEP_SECONDS = 0.2


@pytest.mark.parametrize("n", [1, 2])
def test_an_answer_that_outlives_the_grace_is_cancelled(llama: Path, gpt2: Path, n: int) -> None:
    request = pb.GenerateRequest(
        text="x",
        max_new_tokens=200,
        n=n,
        sampling=pb.SamplingOptions(temperature=1.0),
        stopping=pb.StoppingOptions(ignore_eos=True),
        speculation=pb.SpeculationOptions(mode=pb.SPECULATION_MODE_FORCE),
    )
    with (
        scripted_draft(gpt2, vocabulary_size=600) as draft,
        running_services(
            llama,
            None,
            orchestrator_settings={"drain_seconds": "1"},
            draft_address=draft.address,
        ) as services,
        grpc.insecure_channel(services.orchestrator) as channel,
    ):
        draft.servicer.delay_seconds = STEP_SECONDS
        draft.servicer.script = lambda _: (300,)
        call = orchestrator_pb2_grpc.OrchestratorStub(channel).Generate(request, timeout=60)
        events = [next(call)]
        process = services.children["orchestrator"].process
        ending = threading.Timer(0.1, process.send_signal, (signal.SIGTERM,))
        ending.start()
        events.extend(call)
        assert process.wait(timeout=20) == 0
    answers = Answers.of(events)
    assert len(answers.finished) == n
    for ids, finished in zip(answers.ids, answers.finished, strict=True):
        assert finished.finish_reason == pb.FINISH_REASON_CANCELLED
        assert 0 < len(ids) == finished.usage.completion_tokens < 200
