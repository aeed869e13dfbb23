"""`python -m benchmarks.emulation.draft`: the draft service, with an emulated draft. Its settings
are those of the real one; UAG_DRAFT_MODEL names the model whose tokenizer it has.
"""

from __future__ import annotations

from functools import partial

import grpc

from benchmarks.emulation.model import EmulatedModel
from benchmarks.emulation.player import DraftPlayer
from benchmarks.emulation.recordings import recordings
from benchmarks.emulation.tokenizers import TokenizedModel
from draft_service.servicer import DRAFT_SERVICE, DraftServicer
from draft_service.settings import DraftSettings
from uag.draft.v1 import draft_pb2_grpc
from uag_common.model import Model
from uag_common.process import run_service
from uag_common.ranks.leader import Ranks
from uag_common.rpc.loaded_model import ModelSlot
from uag_common.rpc.model_service import run_model_service

MODULE = "benchmarks.emulation.draft"


def load(settings: DraftSettings) -> Model:
    model = TokenizedModel.named(settings.model)
    return EmulatedModel(model, DraftPlayer(recordings(), model.vocabulary))


async def serve(settings: DraftSettings) -> None:
    def add_service(server: grpc.aio.Server, slot: ModelSlot) -> None:
        servicer = DraftServicer(slot, settings.min_probability)
        draft_pb2_grpc.add_DraftServiceServicer_to_server(servicer, server)

    with Ranks(settings, MODULE) as ranks:
        await run_model_service(
            "draft", settings, DRAFT_SERVICE, add_service, partial(load, settings), ranks
        )


if __name__ == "__main__":
    run_service(MODULE, DraftSettings, serve)
