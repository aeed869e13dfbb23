"""The gRPC edge of the verify service: decode, one call, encode."""

from __future__ import annotations

from collections.abc import AsyncIterator

from uag.verify.v1 import verify_pb2 as pb
from uag.verify.v1 import verify_pb2_grpc
from uag_common.errors import InvalidRequestError
from uag_common.rpc.errors import Context
from uag_common.rpc.model_messages import decode_version, encode_time
from uag_common.rpc.model_service import ModelSlot
from uag_common.worker import Worker
from verify_service.session import ChosenToken, VerifySession

VERIFY_SERVICE = pb.DESCRIPTOR.services_by_name["VerifyService"].full_name


class VerifyServicer(verify_pb2_grpc.VerifyServiceServicer):
    """Serves `uag.verify.v1.VerifyService`."""

    def __init__(self, slot: ModelSlot) -> None:
        self._slot = slot

    async def Session(  # noqa: N802 - named by the contract
        self,
        request_iterator: AsyncIterator[pb.SessionRequest],
        context: Context,  # noqa: ARG002
    ) -> AsyncIterator[pb.SessionResponse]:
        loaded = self._slot.loaded
        session = VerifySession(loaded.model)
        async for request in request_iterator:
            match request.WhichOneof("command"):
                case "open":
                    loaded.check_tokenizer(request.open.tokenizer_sha256)
                    yield await _open(session, loaded.worker, request.open)
                case "verify":
                    yield await _verify(session, loaded.worker, request.verify)
                case _:
                    raise InvalidRequestError("command", "must be `open` or `verify`")


async def _open(session: VerifySession, worker: Worker, message: pb.Open) -> pb.SessionResponse:
    session.check_open(message.prompt_ids)
    first = await worker.run(lambda: session.open(message.prompt_ids))
    opened = pb.Opened(first=_encode(first.value), time=encode_time(first.time))
    return pb.SessionResponse(opened=opened)


async def _verify(session: VerifySession, worker: Worker, message: pb.Verify) -> pb.SessionResponse:
    session.check_verify(decode_version(message.committed), message.candidate_ids)
    done = await worker.run(lambda: session.verify(message.candidate_ids))
    verified = pb.Verified(
        round=message.round,
        accepted=done.value.accepted,
        next=_encode(done.value.next),
        time=encode_time(done.time),
    )
    return pb.SessionResponse(verified=verified)


def _encode(token: ChosenToken) -> pb.ChosenToken:
    return pb.ChosenToken(id=token.id, logprob=token.logprob)
