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
from uag_common.rpc.loaded_model import ModelSlot
from uag_common.rpc.model_service import run_model_service


def load(settings: DraftSettings) -> Model:
    # Importing torch takes seconds; the port answers meanwhile.
    try:
        from uag_common.engine.load import load_model
    except ModuleNotFoundError as error:
        raise StartError(f"{error.name} is missing: pip install '.[engine]'") from error

    return load_model(settings, masked=True)


async def serve(settings: DraftSettings) -> None:
    def add_service(server: grpc.aio.Server, slot: ModelSlot) -> None:
        servicer = DraftServicer(slot, settings.min_probability)
        draft_pb2_grpc.add_DraftServiceServicer_to_server(servicer, server)

    await run_model_service("draft", settings, DRAFT_SERVICE, add_service, partial(load, settings))


if __name__ == "__main__":
    run_service("draft_service", DraftSettings, serve)
