"""One trace for a request over all three services, as it reaches a collector: three real processes,
real OTLP over gRPC."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest

from orchestrator.observation import SHOWN_ROUNDS
from tests.relayed_draft import relayed_draft
from tests.services import RunningServices, running_services
from tests.telemetry.collector import CLOCK_NS, Collector, Span, Trace, collecting
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag.orchestrator.v1 import orchestrator_pb2_grpc

ORCHESTRATOR, DRAFT, VERIFY = "uag-orchestrator", "uag-draft", "uag-verify"
GENERATE = "uag.orchestrator.v1.Orchestrator/Generate"
DRAFTED = ["convert", "draft.propose", "convert", "verify"]
SECRET = "def unmistakable(left: int, right: int)"  # noqa: S105 - a prompt


@dataclass(frozen=True, slots=True)
class Traced:
    """Services that export to a collector of the test's."""

    services: RunningServices
    collector: Collector

    def request(self, prompt: str = SECRET, **fields: Any) -> pb.GenerateRequest:
        forced = pb.SpeculationOptions(mode=pb.SPECULATION_MODE_FORCE, draft_tokens=4)
        usual: dict[str, Any] = {"max_new_tokens": 16, "speculation": forced}
        return pb.GenerateRequest(text=prompt, **(usual | fields))

    def generated(
        self, request: pb.GenerateRequest, traceparent: str = ""
    ) -> list[pb.GenerateResponse]:
        metadata = (("traceparent", traceparent),) if traceparent else ()
        with grpc.insecure_channel(self.services.orchestrator) as channel:
            stub = orchestrator_pb2_grpc.OrchestratorStub(channel)
            return list(stub.Generate(request, timeout=60, metadata=metadata))

    def trace_of(self, request: pb.GenerateRequest) -> tuple[Trace, pb.Finished]:
        events = self.generated(request)
        return self.collector.trace(events[0].started.trace_id), events[-1].finished


@pytest.fixture(scope="module")
def traced(llama: Path, gpt2: Path) -> Iterator[Traced]:
    with collecting() as (collector, address), pytest.MonkeyPatch.context() as environment:
        environment.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{address}")
        environment.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        environment.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "60")
        with running_services(llama, gpt2) as services:
            yield Traced(services, collector)


def traceparent(*, sampled: bool) -> tuple[str, str, str]:
    trace_id, span_id = secrets.token_hex(16), secrets.token_hex(8)
    return f"00-{trace_id}-{span_id}-0{int(sampled)}", trace_id, span_id


def finish_reason(finished: pb.Finished) -> str:
    name = pb.FinishReason.Name(finished.finish_reason)
    return name.removeprefix("FINISH_REASON_").lower()


def check_nesting(trace: Trace) -> None:
    """Each span lies inside its parent. The draft's prefill may outlast what began it, and a server
    learns later than its client that a command is over."""
    by_id = {span.span_id: span for span in trace.spans}
    for span in trace.spans:
        assert span.ended >= span.began
        parent = by_id.get(span.parent_id)
        if parent is None:
            continue
        assert span.began >= parent.began - CLOCK_NS, trace.outline()
        abandoned = parent.kind == "CLIENT" and parent.status != "OK"
        if (span.name, span.kind) != ("draft.open", "CLIENT") and not abandoned:
            assert span.ended <= parent.ended + CLOCK_NS, trace.outline()


def check_joined(trace: Trace, client: Span, service: str) -> Span:
    """The server's span of a command, inside the client's, under the same name."""
    assert (client.kind, client.service) == ("CLIENT", ORCHESTRATOR)
    (server,) = trace.children(client)
    assert (server.name, server.kind, server.service) == (client.name, "SERVER", service)
    for span in (client, server):
        assert span.attributes["rpc.system.name"] == "grpc"
        assert str(span.attributes["rpc.method"]).endswith("Service/Session")
    assert client.attributes["server.address"] == "127.0.0.1"
    assert client.of("server.port") > 0
    return server


def steps(trace: Trace, server: Span, name: str = "forward") -> tuple[Span, ...]:
    found = tuple(span for span in trace.children(server) if span.name == name)
    assert all(span.service == server.service and span.kind == "INTERNAL" for span in found)
    return found


def test_a_request_is_one_tree_over_all_three(traced: Traced) -> None:
    trace, finished = traced.trace_of(traced.request())
    check_nesting(trace)
    root = trace.root
    assert (root.name, root.kind, root.service) == (GENERATE, "SERVER", ORCHESTRATOR)
    assert (root.status, root.error, root.parent_id) == ("OK", None, "")
    names = [span.name for span in trace.children(root)]
    rounds = finished.speculation.rounds
    assert names == ["prepare", "prefill", *["round"] * rounds], trace.outline()
    assert {span.service for span in trace.spans} == {ORCHESTRATOR, DRAFT, VERIFY}

    prefill = trace.child(root, "prefill")
    opened = check_joined(trace, trace.child(prefill, "verify.open"), VERIFY)
    assert len(steps(trace, opened)) == 1
    draft = check_joined(trace, trace.child(prefill, "draft.open"), DRAFT)
    assert len(steps(trace, draft)) == 1
    # The target's own, and the draft's: each side counts in its own tokens.
    prompt_tokens = root.of("gen_ai.usage.input_tokens")
    assert opened.of("uag.cache.length") == prompt_tokens + 1
    assert prefill.of("uag.context.length") == prompt_tokens + 1
    assert draft.of("uag.cache.length") > 0


def test_each_round_tells_what_became_of_its_draft(traced: Traced) -> None:
    trace, finished = traced.trace_of(traced.request())
    rounds = trace.named("round")
    length = trace.child(trace.root, "prefill").of("uag.context.length")
    drafted = [span for span in rounds if span.of("uag.proposed")]
    assert drafted, "nothing was drafted"
    for number, span in enumerate(rounds, start=1):
        assert span.of("uag.round") == number
        assert span.of("uag.choice") == 0
        length += span.of("uag.committed")
        assert span.of("uag.context.length") == length
        verified = check_joined(trace, trace.child(span, "verify"), VERIFY)
        (step,) = steps(trace, verified)
        assert step.of("uag.batch.size") == 1
        assert verified.of("uag.round") == number
        assert verified.of("uag.proposed") == span.of("uag.proposed")
        assert verified.of("uag.accepted") >= span.of("uag.accepted")
        assert verified.of("uag.cache.length") >= length
    for span in drafted:
        check_draft(trace, span)
    counts = finished.speculation
    for name, total in (
        ("proposed", counts.candidates_proposed),
        ("examined", counts.candidates_examined),
        ("accepted", counts.candidates_accepted),
    ):
        assert sum(span.of(f"uag.{name}") for span in rounds) == total
        assert trace.root.of(f"uag.{name}") == total


def check_draft(trace: Trace, round_: Span) -> None:
    names = [span.name for span in trace.children(round_)]
    assert names in (DRAFTED, ["draft.wait", *DRAFTED]), names
    client = trace.child(round_, "draft.propose")
    server = check_joined(trace, client, DRAFT)
    assert server.of("uag.drafted") == round_.of("uag.drafted")
    assert server.of("uag.kept") == round_.of("uag.kept")
    assert server.of("uag.rolled_back") == round_.of("uag.rolled_back")
    assert server.of("uag.round") == round_.of("uag.round")
    assert server.of("uag.planned") == round_.of("uag.planned") <= 4
    assert len(steps(trace, server)) == server.of("uag.drafted")
    rolled_back = [span for span in trace.children(server) if span.name == "rollback"]
    assert len(rolled_back) == (server.of("uag.rolled_back") > 0)
    total = server.of("uag.kept") + server.of("uag.appended") + server.of("uag.drafted")
    assert server.of("uag.cache.length") == total


def test_drafts_are_rolled_back_in_the_trace(traced: Traced) -> None:
    trace, finished = traced.trace_of(traced.request(max_new_tokens=40))
    rolled_back = [span.of("uag.rolled_back") for span in trace.named("rollback")]
    assert rolled_back
    assert sum(rolled_back) == finished.speculation.draft_tokens_rolled_back
    assert trace.root.of("uag.rolled_back") == finished.speculation.draft_tokens_rolled_back


def test_the_root_tells_the_request_and_its_totals(traced: Traced) -> None:
    sampling = pb.SamplingOptions(temperature=0.5, top_k=40, top_p=0.9, seed=7)
    request = traced.request(
        sampling=sampling, request_id="r-7", metadata={"team": "blue"}, priority=2
    )
    trace, finished = traced.trace_of(request)
    told = trace.root.attributes
    expected = {
        "rpc.system.name": "grpc",
        "rpc.method": GENERATE,
        "gen_ai.operation.name": "text_completion",
        "gen_ai.provider.name": "uag",
        "gen_ai.request.max_tokens": 16,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.top_k": 40,
        "gen_ai.request.top_p": 0.9,
        "gen_ai.request.seed": 7,
        "gen_ai.request.choice.count": 1,
        "gen_ai.response.id": "r-7",
        "uag.speculation.mode": "force",
        "gen_ai.response.finish_reasons": (finish_reason(finished),),
        "gen_ai.usage.output_tokens": finished.usage.completion_tokens,
        "uag.request.id": "r-7",
        "uag.metadata.team": "blue",
        "uag.priority": 2,
        "uag.rounds": finished.speculation.rounds,
        "uag.rounds.not_shown": 0,
        "uag.verify.seconds": pytest.approx(finished.time.verify_seconds),
        "uag.draft.seconds": pytest.approx(finished.time.draft_seconds),
        "gen_ai.response.time_to_first_chunk": pytest.approx(
            finished.time.first_token_seconds, abs=0.05
        ),
    }
    assert {name: told.get(name) for name in expected} == expected
    assert str(told["gen_ai.response.model"]).endswith("llama")
    assert str(told["uag.draft.model"]).endswith("gpt2")


def test_the_caller_s_trace_goes_on(traced: Traced) -> None:
    header, trace_id, span_id = traceparent(sampled=True)
    (started, *_) = traced.generated(traced.request(), header)
    assert started.started.trace_id == trace_id
    assert traced.collector.trace(trace_id).root.parent_id == span_id


def test_what_the_caller_does_not_sample_is_recorded_nowhere(traced: Traced) -> None:
    header, trace_id, _ = traceparent(sampled=False)
    (started, *_) = traced.generated(traced.request(), header)
    assert started.started.trace_id == trace_id
    # What is recorded later has come by then.
    traced.trace_of(traced.request())
    assert not [span for span in traced.collector.spans() if span.trace_id == trace_id]


def test_without_drafting_there_are_plain_steps_alone(traced: Traced) -> None:
    off = pb.SpeculationOptions(mode=pb.SPECULATION_MODE_OFF)
    trace, _ = traced.trace_of(traced.request(speculation=off))
    assert DRAFT not in {span.service for span in trace.spans}
    for span in trace.named("round"):
        assert [child.name for child in trace.children(span)] == ["verify"]


def test_the_answers_of_one_request_stand_side_by_side(traced: Traced) -> None:
    sampled = pb.SamplingOptions(temperature=1.0, seed=1)
    stopping = pb.StoppingOptions(ignore_eos=True)
    trace, _ = traced.trace_of(traced.request(n=3, sampling=sampled, stopping=stopping))
    check_nesting(trace)
    assert {span.of("uag.choice") for span in trace.named("round")} == {0, 1, 2}
    assert [span.of("uag.choice") for span in trace.named("prefill")] == [0, 1, 2]
    assert trace.root.attributes["gen_ai.response.finish_reasons"] == ("max_tokens",) * 3
    committed = sum(span.of("uag.committed") for span in trace.named("round"))
    assert trace.root.of("gen_ai.usage.output_tokens") == committed + 3


def test_waiting_for_a_model_is_apart_from_its_work(traced: Traced) -> None:
    with ThreadPoolExecutor(6) as clients:
        traces = [t for t, _ in clients.map(traced.trace_of, [traced.request()] * 6)]
    waits = [(trace, span) for trace in traces for span in trace.named("queue")]
    assert waits
    for trace, wait in waits:
        (server,) = (span for span in trace.spans if span.span_id == wait.parent_id)
        begun = [step for step in steps(trace, server) if step.began >= wait.ended - CLOCK_NS]
        assert begun, "the step that it waited for comes after it"
    waited = sum(wait.ended - wait.began for trace, wait in waits if trace is traces[0])
    told = traces[0].root.attributes["uag.queue.seconds"]
    assert isinstance(told, float)
    # Short waits have no span.
    assert waited / 1e9 <= told + 0.01


def test_a_long_answer_keeps_its_totals(traced: Traced) -> None:
    off = pb.SpeculationOptions(mode=pb.SPECULATION_MODE_OFF)
    tokens = SHOWN_ROUNDS + 40
    stopping = pb.StoppingOptions(ignore_eos=True)
    request = traced.request("x", max_new_tokens=tokens, speculation=off, stopping=stopping)
    trace, finished = traced.trace_of(request)
    assert len(trace.named("round")) == SHOWN_ROUNDS
    assert len(trace.named("verify")) == 2 * SHOWN_ROUNDS
    assert trace.root.of("uag.rounds") == finished.speculation.rounds == tokens - 1
    assert trace.root.of("uag.rounds.not_shown") == tokens - 1 - SHOWN_ROUNDS
    assert trace.root.of("gen_ai.usage.output_tokens") == tokens


def test_a_cancelled_request_ends_all_its_spans(traced: Traced) -> None:
    with grpc.insecure_channel(traced.services.orchestrator) as channel:
        stub = orchestrator_pb2_grpc.OrchestratorStub(channel)
        call = stub.Generate(traced.request(max_new_tokens=200), timeout=60)
        trace_id = next(call).started.trace_id
        for _ in range(3):
            next(call)
        call.cancel()
    trace = traced.collector.trace(trace_id)
    check_nesting(trace)
    assert (trace.root.status, trace.root.error) == ("CANCELLED", None)
    assert trace.root.attributes["error.type"] == "CANCELLED"
    assert 0 < trace.root.of("gen_ai.usage.output_tokens") < 200
    for span in trace.spans:
        if span.kind == "SERVER":
            assert span.status in ("OK", "CANCELLED")
            assert span.error is None


def test_a_deadline_that_is_over_is_told_as_one(traced: Traced) -> None:
    header, trace_id, _ = traceparent(sampled=True)
    stopping = pb.StoppingOptions(ignore_eos=True)
    # Long enough to be begun before it is over, and not to be done by then.
    sampling = pb.SamplingOptions(temperature=1.0, seed=1)
    request = traced.request(max_new_tokens=200, n=8, sampling=sampling, stopping=stopping)
    with grpc.insecure_channel(traced.services.orchestrator) as channel:
        stub = orchestrator_pb2_grpc.OrchestratorStub(channel)
        with pytest.raises(grpc.RpcError):
            list(stub.Generate(request, timeout=0.6, metadata=(("traceparent", header),)))
    # A command that was on its way at that moment may not have come to its service.
    root = traced.collector.trace(trace_id, some_lost=True).root
    assert (root.status, root.error) == ("DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED")


def test_a_client_s_mistake_is_no_error_of_ours(traced: Traced) -> None:
    header, trace_id, _ = traceparent(sampled=True)
    with pytest.raises(grpc.RpcError):
        traced.generated(traced.request(max_new_tokens=10**6), header)
    trace = traced.collector.trace(trace_id)
    assert (trace.root.status, trace.root.error) == ("INVALID_ARGUMENT", None)
    assert trace.root.attributes["error.type"] == "INVALID_ARGUMENT"
    assert [span.name for span in trace.spans] == [GENERATE, "prepare"]


def test_other_calls_have_spans_too(traced: Traced) -> None:
    header, trace_id, _ = traceparent(sampled=True)
    with grpc.insecure_channel(traced.services.orchestrator) as channel:
        stub = orchestrator_pb2_grpc.OrchestratorStub(channel)
        metadata = (("traceparent", header),)
        stub.GenerateUnary(traced.request(), timeout=60, metadata=metadata)
        stub.Tokenize(pb.TokenizeRequest(text="x"), timeout=60, metadata=metadata)
    deadline = time.monotonic() + 10
    while True:
        names = {
            s.name.partition("/")[2] for s in traced.collector.spans() if s.trace_id == trace_id
        }
        if {"GenerateUnary", "Tokenize"} <= names:
            return
        assert time.monotonic() < deadline, names
        time.sleep(0.05)


def test_nothing_of_a_prompt_or_an_answer_is_in_any_span(traced: Traced) -> None:
    chat = pb.Chat(messages=[pb.ChatMessage(role="user", content=SECRET)])
    stopping = pb.StoppingOptions(stop_sequences=["unmistakable stop"], ignore_eos=True)
    request = pb.GenerateRequest(
        chat=chat,
        max_new_tokens=20,
        stopping=stopping,
        session_id="unmistakable session",
        cache_salt="unmistakable salt",
    )
    events = traced.generated(request)
    trace = traced.collector.trace(events[0].started.trace_id)
    answer = "".join(token.text for event in events for token in event.delta.tokens)
    assert len(answer) > 5
    raw = b"".join(traced.collector.raw)
    assert len(trace.spans) > 10
    for text in ("unmistakable", answer):
        assert text.encode() not in raw


@pytest.mark.parametrize("fault", ["slow", "away"])
def test_a_collector_that_fails_costs_no_request_and_no_trace(traced: Traced, fault: str) -> None:
    usual = traced.generated(traced.request(max_new_tokens=8))
    if fault == "slow":
        traced.collector.delay_seconds = 1.5
    else:
        traced.collector.status = grpc.StatusCode.UNAVAILABLE
    try:
        answers = [traced.generated(traced.request(max_new_tokens=8)) for _ in range(20)]
    finally:
        traced.collector.delay_seconds, traced.collector.status = 0.0, None
    assert {spelled(answer) for answer in answers} == {spelled(usual)}
    # Kept until the collector takes it.
    for answer in answers:
        traced.collector.trace(answer[0].started.trace_id, seconds=30)


def spelled(events: list[pb.GenerateResponse]) -> tuple[int, ...]:
    return tuple(token.id for event in events for token in event.delta.tokens)


def test_a_draft_that_lost_its_context_is_seen_in_the_trace(
    gpt2: Path, llama: Path, traced: Traced
) -> None:
    with (
        relayed_draft(gpt2, 600, traced.services.draft) as relay,
        running_services(llama, None, draft_address=relay.address) as services,
    ):
        forgetful = Traced(services, traced.collector)
        relay.servicer.forgets_in = 2
        events = forgetful.generated(forgetful.request(max_new_tokens=40))
        trace = forgetful.collector.trace(events[0].started.trace_id, some_lost=True)
    check_nesting(trace)
    assert trace.root.of("uag.draft.reopens") == 1
    refused = [span for span in trace.named("draft.propose") if span.error is not None]
    assert [(span.kind, span.status) for span in refused] == [("CLIENT", "FAILED_PRECONDITION")]
    opened = [span for span in trace.named("draft.open") if span.kind == "CLIENT"]
    assert len(opened) == 2, trace.outline()
    again = opened[1]
    assert again.began >= refused[0].ended - CLOCK_NS
    (round_,) = (span for span in trace.spans if span.span_id == again.parent_id)
    assert (round_.name, round_.of("uag.round")) == ("round", 2)
    told = trace.root.attributes["uag.draft.wait.seconds"]
    waited = sum(span.ended - span.began for span in trace.named("draft.wait"))
    assert told == pytest.approx(waited / 1e9, abs=0.005)


def test_a_draft_that_dies_is_seen_in_the_trace(traced: Traced) -> None:
    """The last test of this file: it takes the shared draft away."""
    with grpc.insecure_channel(traced.services.orchestrator) as channel:
        stub = orchestrator_pb2_grpc.OrchestratorStub(channel)
        call = stub.Generate(traced.request(max_new_tokens=200), timeout=60)
        events = [next(call) for _ in range(6)]
        traced.services.children["draft"].kill()
        events += list(call)
    trace = traced.collector.trace(events[0].started.trace_id, some_lost=True)
    degraded = events[-1].finished.degraded
    root = trace.root
    assert (root.status, root.error) == ("OK", None)
    assert root.attributes["uag.degraded.reason"] == degraded.reason
    assert root.of("uag.degraded.since_round") == degraded.since_round
    assert degraded.since_round > 0
    failed = [span for span in trace.named("draft.propose") if span.status != "OK"]
    assert [(span.kind, span.status, span.error) for span in failed] == [
        ("CLIENT", "UNAVAILABLE", "UNAVAILABLE")
    ]
    for span in trace.named("round"):
        drafting = "draft.propose" in [child.name for child in trace.children(span)]
        assert drafting is (span.of("uag.round") <= degraded.since_round)
