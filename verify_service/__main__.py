"""`python -m verify_service`: composes the verify service from its settings."""

from __future__ import annotations

from functools import partial

import grpc

from uag.verify.v1 import verify_pb2_grpc
from uag_common.errors import StartError
from uag_common.model import Model
from uag_common.process import run_service
from uag_common.ranks.leader import Ranks
from uag_common.ranks.place import Place
from uag_common.rpc.loaded_model import ModelSlot
from uag_common.rpc.model_service import run_model_service
from verify_service.servicer import VERIFY_SERVICE, VerifyServicer
from verify_service.settings import VerifySettings

MODULE = "verify_service"


def load(settings: VerifySettings, ranks: Ranks) -> Model:
    # Importing torch takes seconds; the port answers meanwhile.
    try:
        from uag_common.engine.load import load_model
    except ModuleNotFoundError as error:
        raise StartError(f"{error.name} is missing: pip install '.[engine]'") from error

    return load_model(settings, ranks.place, ranks.failed)


def follow(settings: VerifySettings, place: Place) -> None:
    """Of several processes that share the model, those that do not serve do this."""
    from uag_common.engine.load import follow_model

    follow_model(settings, place)


async def serve(settings: VerifySettings) -> None:
    def add_service(server: grpc.aio.Server, slot: ModelSlot) -> None:
        verify_pb2_grpc.add_VerifyServiceServicer_to_server(VerifyServicer(slot), server)

    with Ranks(settings, MODULE) as ranks:
        await run_model_service(
            "verify", settings, VERIFY_SERVICE, add_service, partial(load, settings, ranks), ranks
        )


if __name__ == "__main__":
    run_service(MODULE, VerifySettings, serve, follow)
