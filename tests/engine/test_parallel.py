"""One model over several processes: each holds its part, and together they give what one gives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from transformers import GPT2Config, LlamaConfig, Phi3Config, PretrainedConfig, PreTrainedModel

from tests.engine.split_networks import KINDS, large, save
from tests.engine.split_ranks import CONTEXTS, STEPS, Report
from uag_common.engine.kv_store import KvStore
from uag_common.engine.pack import Pack, Segment
from uag_common.engine.pack_runner import PackRunner
from uag_common.engine.parallel import Channel, ParallelRunner, device_of
from uag_common.engine.tensor_plan import tensor_plan
from uag_common.errors import StartError
from uag_common.kv.table import Run
from uag_common.ranks.errors import RankLostError
from uag_common.ranks.place import Place

SECONDS = 300.0
TOLERANCE = 5e-5
OTHER_BYTES = 20_000_000
"""That a process may take beside the weights while it loads them; all weights are 240 MB."""
CPU = torch.device("cpu")
PACK = Pack((Segment((1, 2), 0, (Run(0, 2),)),), (1,))


def reports(folder: Path, size: int, store: Path) -> list[list[Report]]:
    """Of each rank, by network. All must end well."""
    places = [Place(rank, size, rank, store) for rank in range(size)]
    with _ended(
        [
            subprocess.Popen(
                [sys.executable, "-m", "tests.engine.split_ranks", str(folder)],
                env={**os.environ, **place.environment(), "CUDA_VISIBLE_DEVICES": ""},
                stdout=subprocess.PIPE,
                text=True,
            )
            for place in places
        ]
    ) as ranks:
        told = [rank.communicate(timeout=SECONDS)[0] for rank in ranks]
        assert [rank.returncode for rank in ranks] == [0] * size
    return [[Report(**json.loads(line)) for line in words.splitlines()] for words in told]


@contextmanager
def _ended(
    processes: list[subprocess.Popen[str]],
) -> Iterator[list[subprocess.Popen[str]]]:
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def _check(
    kinds: tuple[Callable[[], PreTrainedModel], ...], size: int, folder: Path
) -> list[list[Report]]:
    for kind in kinds:
        save(kind, folder / "networks")
    leader, *followers = reports(folder / "networks", size, folder / "store")
    assert {report.network for report in leader} == {kind.__name__ for kind in kinds}
    for index, report in enumerate(leader):
        assert report.rows > STEPS * CONTEXTS
        assert report.wrong == 0, report
        assert report.worst < TOLERANCE, report
        # Norms are small, and whole everywhere.
        most = 1.05 * report.whole / size
        assert all(each[index].weights < most for each in (leader, *followers)), report
    return [leader, *followers]


def test_two_processes_give_what_one_gives(tmp_path: Path) -> None:
    _check(KINDS, 2, tmp_path)


@pytest.mark.full
def test_four_processes_give_what_one_gives_and_none_ever_holds_all_of_it(tmp_path: Path) -> None:
    ranks = _check((*KINDS, large), 4, tmp_path)
    for report in (report for rank in ranks for report in rank if report.network == "large"):
        assert report.peak < 1.2 * report.weights + OTHER_BYTES, report


@pytest.mark.parametrize(
    ("config", "size", "problem"),
    [
        (GPT2Config(), 2, "no plan to split a gpt2 over processes"),
        (
            LlamaConfig(hidden_size=576, num_attention_heads=9, num_key_value_heads=3),
            2,
            "its 3 heads of keys and values do not divide by TENSOR_PARALLEL=2; right are 1, 3",
        ),
        (
            LlamaConfig(hidden_size=96, num_attention_heads=6),
            4,
            "6 heads .* right are 1, 2, 3, 6",
        ),
    ],
)
def test_what_cannot_be_split_is_refused(config: PretrainedConfig, size: int, problem: str) -> None:
    with pytest.raises(StartError, match=problem):
        tensor_plan(config, size)


def test_heads_that_are_not_split_need_not_divide() -> None:
    assert tensor_plan(Phi3Config(num_attention_heads=40, num_key_value_heads=10), 4)


def test_one_process_needs_no_plan() -> None:
    assert tensor_plan(GPT2Config(), 1) is None


@pytest.mark.skipif(torch.accelerator.is_available(), reason="there are accelerators")
def test_devices_that_are_not_there_are_refused() -> None:
    place = Place(1, 4, 1, Path("store"))
    assert device_of(place, CPU) == CPU
    with pytest.raises(StartError, match="4 processes need one each, and there are 0"):
        device_of(place, torch.device("cuda"))
    with pytest.raises(StartError, match="set it to cuda"):
        device_of(place, torch.device("cuda:1"))


class Sent(Channel):
    """To nobody; notes what is sent."""

    def __init__(self) -> None:
        self.passes = 0

    def send(self, ints: object) -> None:  # noqa: ARG002
        self.passes += 1


class Failing(PackRunner):
    def __init__(self) -> None:
        super().__init__(None, KvStore((), 0), ())

    def run(self, pack: Pack) -> torch.Tensor:  # noqa: ARG002
        raise ValueError("in a layer")


def test_nothing_is_run_after_a_pass_that_failed() -> None:
    """The others may still be in it: another pass would meet the rest of the first."""
    failures: list[Exception] = []
    channel = Sent()
    runner = ParallelRunner(channel, Failing(), failures.append)
    for _ in range(2):
        with pytest.raises(RankLostError):
            runner.run(PACK)
    assert channel.passes == 1
    assert [str(failure) for failure in failures] == ["in a layer"]
