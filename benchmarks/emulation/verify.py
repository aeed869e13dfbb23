"""`python -m benchmarks.emulation.verify`: the verify service, with an emulated target. Its
settings are those of the real one; UAG_VERIFY_MODEL names the model whose tokenizer it has.
"""

from __future__ import annotations

from functools import partial

import grpc

from benchmarks.emulation.model import EmulatedModel
from benchmarks.emulation.player import TargetPlayer
from benchmarks.emulation.recordings import recordings
from benchmarks.emulation.tokenizers import TokenizedModel
from uag.verify.v1 import verify_pb2_grpc
from uag_common.model import Model
from uag_common.process import run_service
from uag_common.ranks.leader import Ranks
from uag_common.rpc.loaded_model import ModelSlot
from uag_common.rpc.model_service import run_model_service
from verify_service.servicer import VERIFY_SERVICE, VerifyServicer
from verify_service.settings import VerifySettings

MODULE = "benchmarks.emulation.verify"


def load(settings: VerifySettings) -> Model:
    played = {n: each for n, each in recordings().items() if each.target == settings.model}
    return EmulatedModel(TokenizedModel.named(settings.model), TargetPlayer(played))


async def serve(settings: VerifySettings) -> None:
    def add_service(server: grpc.aio.Server, slot: ModelSlot) -> None:
        verify_pb2_grpc.add_VerifyServiceServicer_to_server(VerifyServicer(slot), server)

    with Ranks(settings, MODULE) as ranks:
        await run_model_service(
            "verify", settings, VERIFY_SERVICE, add_service, partial(load, settings), ranks
        )


if __name__ == "__main__":
    run_service(MODULE, VerifySettings, serve)
