"""What tracing costs: `python -m benchmarks.tracing_cost [--requests N] [--target M --draft M]`.

The same request is answered by two sets of services, one without and one with an exporter, in four
ways that take turns: off (no OTEL_* variable), not sampled, a tenth sampled, and all sampled. Told
is the time of a round as the orchestrator counts it, and each way's difference from off with its
standard error, over paired requests. Without models of your own, two tiny ones with random weights
are used: what a round costs beside them is then nearly all overhead.
"""

from __future__ import annotations

import argparse
import os
import secrets
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
from rich.progress import track

from tests.miniatures import miniature
from tests.services import RunningServices, running_services
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag.orchestrator.v1 import orchestrator_pb2_grpc

PROMPT = "def add(left: int, right: int) -> int:\n"
DRAFT_TOKENS = 5
WARM_UP = 5
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


@dataclass(frozen=True, slots=True)
class Way:
    """`every`: one of so many requests is sampled; None: the services have no exporter."""

    name: str
    every: int | None


OFF = Way("off", None)
WAYS = (OFF, Way("not sampled", 0), Way("10% sampled", 10), Way("all sampled", 1))


class _Swallow(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    """A collector that reads nothing, so that its own work counts as little as can be."""

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:  # type: ignore[type-arg]
        if details.method != EXPORT:
            return None
        return grpc.unary_unary_rpc_method_handler(lambda _request, _context: b"")


@contextmanager
def _collector() -> Iterator[str]:
    server = grpc.server(ThreadPoolExecutor(3), handlers=[_Swallow()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop(None)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """For the processes that are started inside."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _round_seconds(address: str, tokens: int, *, sampled: bool) -> float:
    """Of one answer: its time after the first token by its rounds."""
    traceparent = f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-0{int(sampled)}"
    request = pb.GenerateRequest(
        text=PROMPT,
        max_new_tokens=tokens,
        stopping=pb.StoppingOptions(ignore_eos=True),
        speculation=pb.SpeculationOptions(
            mode=pb.SPECULATION_MODE_FORCE, draft_tokens=DRAFT_TOKENS
        ),
    )
    with grpc.insecure_channel(address) as channel:
        stub = orchestrator_pb2_grpc.OrchestratorStub(channel)
        *_, last = stub.Generate(request, metadata=(("traceparent", traceparent),))
    finished: pb.Finished = last.finished
    seconds = finished.time.total_seconds - finished.time.first_token_seconds
    return seconds / max(1, finished.speculation.rounds)


def measure(
    off: RunningServices, traced: RunningServices, requests: int, tokens: int
) -> Mapping[Way, Sequence[float]]:
    """Seconds of a round, for each way and request. The ways take turns at being first."""
    found: dict[Way, list[float]] = {way: [] for way in WAYS}
    for number in track(range(-WARM_UP, requests), "requests"):
        shift = number % len(WAYS)
        for way in (*WAYS[shift:], *WAYS[:shift]):
            address = (off if way.every is None else traced).orchestrator
            sampled = bool(way.every) and number % (way.every or 1) == 0
            seconds = _round_seconds(address, tokens, sampled=sampled)
            if number >= 0:
                found[way].append(seconds)
    return found


def table(found: Mapping[Way, Sequence[float]]) -> Iterator[str]:
    """In Markdown; times in milliseconds."""
    yield "| tracing | median | quartiles | mean | difference from off | ratio of means |"
    yield "|---|---|---|---|---|---|"
    off = found[OFF]
    for way, seconds in found.items():
        first, middle, third = (1000 * part for part in statistics.quantiles(seconds, n=4))
        differences = [1000 * (one - other) for one, other in zip(seconds, off, strict=True)]
        error = statistics.stdev(differences) / len(differences) ** 0.5
        mean = statistics.fmean(seconds)
        yield (
            f"| {way.name} | {middle:.2f} | {first:.2f} to {third:.2f} | {1000 * mean:.2f} | "
            f"{statistics.fmean(differences):+.2f} ± {error:.2f} | "
            f"{mean / statistics.fmean(off):.3f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=100, help="of each way")
    parser.add_argument("--tokens", type=int, default=64, help="of each answer")
    parser.add_argument("--target", help="a model; default: a tiny one")
    parser.add_argument("--draft", help="a model; default: a tiny one")
    flags = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        target = flags.target or miniature(folder / "target", "llama")
        draft = flags.draft or miniature(folder / "draft", "gpt2")
        endpoint = stack.enter_context(_collector())
        off = stack.enter_context(running_services(target, draft))
        with _environment({"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}):
            traced = stack.enter_context(running_services(target, draft))
        found = measure(off, traced, flags.requests, flags.tokens)
    sys.stdout.write(
        f"A round of {DRAFT_TOKENS} draft tokens in milliseconds, {flags.requests} requests of "
        f"{flags.tokens} tokens each way, {os.cpu_count()} cores:\n\n"
    )
    sys.stdout.write("\n".join(table(found)) + "\n")


if __name__ == "__main__":
    main()
