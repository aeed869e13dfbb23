"""Which of several processes one is, as its environment tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ranks.program import ProgramSettings
from uag_common.errors import StartError
from uag_common.ranks.leader import Ranks
from uag_common.ranks.place import Place

TORCHRUN = {"RANK": "2", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}


def test_alone_unless_told_otherwise() -> None:
    assert Place.of({}) == Place.of({"WORLD_SIZE": "1", "RANK": "0"}) == Place()


def test_as_torchrun_tells_it() -> None:
    assert Place.of(TORCHRUN) == Place(2, 4, 1, None)


def test_as_a_leader_tells_it() -> None:
    for place in (leader := Place(0, 3, 0, Path("/x/store"))).others():
        assert place.rank == place.local_rank > 0
        assert Place.of(place.environment()) == place
    assert [place.rank for place in leader.others()] == [1, 2]


@pytest.mark.parametrize("wrong", [{"RANK": ""}, {"RANK": "-1"}, {"WORLD_SIZE": "many"}])
def test_what_is_no_number_is_told_by_its_name(wrong: dict[str, str]) -> None:
    (name,) = wrong
    with pytest.raises(StartError, match=f"{name}="):
        Place.of(TORCHRUN | wrong)


@pytest.mark.parametrize("wanted", [1, 4])
async def test_torchrun_has_the_say(wanted: int) -> None:
    settings = ProgramSettings(tensor_parallel=wanted)
    with Ranks(settings, "none", TORCHRUN | {"RANK": "0"}) as ranks:
        assert ranks.place == Place(0, 4, 1, None)


async def test_another_number_than_torchrun_s_is_refused() -> None:
    with pytest.raises(StartError, match="UAG_TEST_TENSOR_PARALLEL=2: torchrun has started 4"):
        Ranks(ProgramSettings(tensor_parallel=2), "none", TORCHRUN | {"RANK": "0"})


async def test_one_process_is_always_intact() -> None:
    with Ranks(ProgramSettings(), "none", {}) as ranks:
        assert ranks.place == Place()
        ranks.hangs(1000.0)
        await ranks.intact(0.01)
