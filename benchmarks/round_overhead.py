"""What a round costs outside the two models: `python -m benchmarks.round_overhead`.

Two tiny models behind the real services, so that nearly all of a round is what this is about:
messages, threads, conversion, planning, bookkeeping. At each length of the context three ways take
turns: plain steps, rounds that look up earlier text, and rounds that force five draft tokens. Told
is what is left of the time after the first token when the forward passes of both models are taken
off, by round: the median over answers, and the lowest and the highest.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import grpc
from rich.progress import track

from tests.miniatures import TEXT, miniature
from tests.services import Answer, RunningServices, running_services
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag.orchestrator.v1 import orchestrator_pb2_grpc

CONTEXTS = (100, 1_000, 8_000, 32_000)
LONGEST = 40_000
DRAFT_TOKENS = 5
WAYS: Mapping[str, pb.SpeculationOptions] = {
    "plain": pb.SpeculationOptions(mode=pb.SPECULATION_MODE_OFF),
    "copied": pb.SpeculationOptions(draft_tokens=0),
    "drafted": pb.SpeculationOptions(mode=pb.SPECULATION_MODE_FORCE, draft_tokens=DRAFT_TOKENS),
}
Found = Mapping[tuple[str, int], Sequence[float]]


def overhead(answer: Answer) -> float:
    """Milliseconds a round."""
    time, rounds = answer.finished.time, answer.finished.speculation.rounds
    spent = time.total_seconds - time.first_token_seconds
    return 1000 * (spent - time.verify_seconds - time.draft_seconds) / rounds


def request(ids: Sequence[int], tokens: int, way: str) -> pb.GenerateRequest:
    return pb.GenerateRequest(
        token_ids=pb.TokenIds(ids=ids),
        max_new_tokens=tokens,
        stopping=pb.StoppingOptions(ignore_eos=True),
        speculation=WAYS[way],
    )


def tokenized(address: str, text: str) -> Sequence[int]:
    with grpc.insecure_channel(address) as channel:
        stub = orchestrator_pb2_grpc.OrchestratorStub(channel)
        return list(stub.Tokenize(pb.TokenizeRequest(text=text)).ids)


def measure(
    services: RunningServices, text: Sequence[int], contexts: Sequence[int], tokens: int, runs: int
) -> Found:
    """The first run of each context computes the prompt and does not count."""
    found: dict[tuple[str, int], list[float]] = {}
    plan = [(length, run) for length in contexts for run in range(-1, runs)]
    for length, run in track(plan, "contexts and runs"):
        ids = [*text] * (length // len(text) + 1)
        ids = ids[:length]
        for way in tuple(WAYS) if run % 2 else tuple(WAYS)[::-1]:
            answer = services.generate(request(ids, tokens, way), timeout=600)
            if run >= 0:
                found.setdefault((way, length), []).append(overhead(answer))
    return found


def table(found: Found, contexts: Sequence[int]) -> Iterator[str]:
    """In Markdown."""
    yield f"| ms a round | {' | '.join(f'{length:,} tokens' for length in contexts)} |"
    yield f"|---|{'---|' * len(contexts)}"
    for way in WAYS:
        cells = (found[way, length] for length in contexts)
        told = (f"{statistics.median(c):.2f} ({min(c):.2f} to {max(c):.2f})" for c in cells)
        yield f"| {way} | {' | '.join(told)} |"


def long_context(folder: Path) -> Path:
    """The model's positions turn and have no end but the one in its configuration."""
    config = folder / "config.json"
    told = json.loads(config.read_text(encoding="utf-8"))
    told["max_position_embeddings"] = LONGEST
    config.write_text(json.dumps(told), encoding="utf-8")
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--contexts", type=int, nargs="+", default=CONTEXTS)
    parser.add_argument("--tokens", type=int, default=48, help="of each answer")
    parser.add_argument("--runs", type=int, default=9, help="of each way and context")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        target = long_context(miniature(Path(root) / "target", "llama"))
        draft = miniature(Path(root) / "draft", "gpt2", seed=1)
        with running_services(target, draft) as services:
            text = tokenized(services.orchestrator, " ".join(TEXT))
            found = measure(services, text, flags.contexts, flags.tokens, flags.runs)
    sys.stdout.write(
        f"{os.cpu_count()} cores, {flags.tokens} tokens an answer, {flags.runs} runs, "
        f"{DRAFT_TOKENS} draft tokens:\n\n"
    )
    sys.stdout.write("\n".join(table(found, flags.contexts)) + "\n")


if __name__ == "__main__":
    main()
