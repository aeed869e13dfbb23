"""The program of one rank in tests that need no service. All ranks load each network of a folder in
turn; the first lets contexts grow and go back at random, and compares with the whole network.

    python -m tests.engine.split_ranks FOLDER

in the environment of a rank. Each rank prints a `Report` for each network.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging as transformers_logging

from uag_common.engine.caches import CacheLimits, contexts_of, runner_of_follower
from uag_common.engine.contexts import Contexts
from uag_common.engine.parallel import ROOM, Channel, FollowingTeam, LeadingTeam, meet
from uag_common.engine.tensor_plan import tensor_plan
from uag_common.kv.budget import Budget
from uag_common.model import Part, TokenSequence
from uag_common.ranks.place import Place

STEPS = 12
CONTEXTS = 3
TEXTS = ("", "a", *("b" * count for count in (ROOM - 2, ROOM - 1, ROOM, 3 * ROOM)))
SAMPLE_SECONDS = 0.002


@dataclass(slots=True)
class Report:
    """`weights`: bytes of this rank's. `peak`: bytes by which its memory grew at most while it
    loaded them. The leader has compared `rows` of logits, `wrong` of them with another greatest;
    `worst` is the largest difference; `whole`: the bytes of all weights."""

    network: str
    weights: int
    peak: int
    rows: int = 0
    wrong: int = 0
    worst: float = 0.0
    whole: int = 0


class Walk:
    """Contexts that grow and go back at random and share passes."""

    def __init__(self, contexts: Contexts, whole: PreTrainedModel, report: Report) -> None:
        self.contexts = contexts
        self.whole = whole
        self.report = report
        self.dice = random.Random(0)
        self.sequences = [contexts.new_sequence() for _ in range(CONTEXTS)]

    def step(self) -> None:
        for sequence in self.sequences:
            if len(sequence.ids) > 8 and self.dice.random() < 0.3:
                sequence.truncate(len(sequence.ids) - self.dice.randint(1, 7))
            vocabulary = self.whole.config.vocab_size
            new = self.dice.randint(1, 12)
            sequence.extend([self.dice.randrange(vocabulary) for _ in range(new)])
        parts = [self._part(sequence) for sequence in self.sequences]
        for part, logits in zip(parts, self.contexts.run(parts), strict=True):
            self._compare(part, logits.tensor)

    def _part(self, sequence: TokenSequence) -> Part:
        length = len(sequence.ids)
        rows = min(length, self.dice.randint(1, 4))
        while sequence.reach(length - rows + 1) < length:
            rows -= 1
        return Part(sequence, sequence.pending(rows), rows)

    @torch.inference_mode()
    def _compare(self, part: Part, found: torch.Tensor) -> None:
        ids = torch.tensor([list(part.sequence.ids)])
        expected = self.whole(input_ids=ids, use_cache=False).logits[0, -part.rows :]
        report = self.report
        report.rows += part.rows
        report.wrong += int((found.argmax(-1) != expected.argmax(-1)).sum())
        report.worst = max(report.worst, float((found - expected).abs().max()))


class Peak:
    """The most memory of its own, files that are mapped not counted, that the process held."""

    def __init__(self) -> None:
        self.bytes = 0
        self._over = threading.Event()

    @contextmanager
    def watched(self) -> Iterator[None]:
        thread = threading.Thread(target=self._watch)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _watch(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            self.bytes = max(self.bytes, own_memory())


def own_memory() -> int:
    status = Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("RssAnon:"))
    return int(line.split()[1]) * 1024


def weights(network: PreTrainedModel) -> int:
    """Bytes of those that lie in this process."""
    parts = [p.to_local() if isinstance(p, DTensor) else p for p in network.parameters()]
    return sum(part.numel() * part.element_size() for part in parts)


def load(folder: Path, place: Place) -> tuple[PreTrainedModel, Report]:
    plan = tensor_plan(AutoConfig.from_pretrained(folder), place.size)
    before, peak = own_memory(), Peak()
    with peak.watched():
        network = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, distributed_config=plan
        )
    return network.eval(), Report(folder.name, weights(network), peak.bytes - before)


def run(folder: Path, place: Place, channel: Channel) -> Report:
    network, report = load(folder, place)
    limits = CacheLimits(Budget.parse("1GB"), CONTEXTS + 1, 256)
    if place.rank:
        team = FollowingTeam(channel)
        team.follow(runner_of_follower(network, limits, team))
        return report
    whole = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    report.whole = weights(whole)
    walk = Walk(contexts_of(network, limits, team=LeadingTeam(channel, fail)), whole, report)
    for _ in range(STEPS):
        walk.step()
    return report


def talk(place: Place, channel: Channel) -> None:
    """What is said is heard, however long it is."""
    for text in TEXTS:
        if place.rank:
            assert FollowingTeam(channel).hear() == text
        else:
            LeadingTeam(channel, fail).say(text)
    assert channel.least(place.rank + 5) == 5


def fail(error: Exception) -> None:
    raise error


def main() -> None:
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    torch.set_num_threads(1)
    place = Place.of(os.environ)
    talk(place, meet(place, torch.device("cpu")))
    for folder in sorted(Path(sys.argv[1]).iterdir()):
        group = dist.new_group(backend="gloo")
        report = run(folder, place, Channel(group))
        print(json.dumps(dataclasses.asdict(report)), flush=True)
        # So the followers learn that their leader has gone.
        dist.destroy_process_group(group)
        del group


if __name__ == "__main__":
    main()
