"""`python -m draft_service`: composes the draft service from its settings."""

from __future__ import annotations

from functools import partial

import grpc

from draft_service.servicer import DRAFT_SERVICE, DraftServicer
from draft_service.settings import DraftSettings
from uag.draft.v1 import draft_pb2_grpc
from uag_common.errors import StartError
from uag_common.model import Model
from uag_common.process import run_service
from uag_common.ranks.leader import Ranks
from uag_common.ranks.place import Place
from uag_common.rpc.loaded_model import ModelSlot
from uag_common.rpc.model_service import run_model_service

MODULE = "draft_service"


def load(settings: DraftSettings, ranks: Ranks) -> Model:
    # Importing torch takes seconds; the port answers meanwhile.
    try:
        from uag_common.engine.load import load_model
    except ModuleNotFoundError as error:
        raise StartError(f"{error.name} is missing: pip install '.[engine]'") from error

    return load_model(settings, ranks.place, ranks.failed, masked=True, compiled=settings.compile)


def follow(settings: DraftSettings, place: Place) -> None:
    """Of several processes that share the model, those that do not serve do this."""
    from uag_common.engine.load import follow_model

    follow_model(settings, place)


async def serve(settings: DraftSettings) -> None:
    def add_service(server: grpc.aio.Server, slot: ModelSlot) -> None:
        servicer = DraftServicer(slot, settings.min_probability)
        draft_pb2_grpc.add_DraftServiceServicer_to_server(servicer, server)

    with Ranks(settings, MODULE) as ranks:
        await run_model_service(
            "draft", settings, DRAFT_SERVICE, add_service, partial(load, settings, ranks), ranks
        )


if __name__ == "__main__":
    run_service(MODULE, DraftSettings, serve, follow)
