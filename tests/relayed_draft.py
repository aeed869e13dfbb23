"""A draft service that passes everything on to a real one, until a test lets it die."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import grpc

from orchestrator.draft_client import DRAFT_SERVICE
from tests.threaded_server import TokenizerOnly, threaded_server
from uag.draft.v1 import draft_pb2 as pb
from uag.draft.v1 import draft_pb2_grpc
from uag_common.errors import PeerUnavailableError, StaleContextError
from uag_common.rpc.metadata import Context


@dataclass
class RelayServicer(draft_pb2_grpc.DraftServiceServicer):
    """Passes sessions on to `address`; fails each command of round `dies_in` and later; the
    context is lost once, in round `forgets_in`."""

    address: str
    dies_in: int | None = None
    forgets_in: int | None = None

    async def Session(  # noqa: N802 - named by the contract
        self,
        request_iterator: AsyncIterator[pb.SessionRequest],
        context: Context,  # noqa: ARG002
    ) -> AsyncIterator[pb.SessionResponse]:
        async with grpc.aio.insecure_channel(self.address) as channel:
            call = draft_pb2_grpc.DraftServiceStub(channel).Session()
            async for request in request_iterator:
                if self.dies_in is not None and request.propose.round >= self.dies_in:
                    raise PeerUnavailableError("the draft died")
                if self.forgets_in is not None and request.propose.round >= self.forgets_in:
                    self.forgets_in = None
                    raise StaleContextError("the context is another")
                await call.write(request)
                yield await call.read()


@dataclass(frozen=True, slots=True)
class RelayedDraft:
    """A running relay; change `servicer.dies_in` between requests."""

    servicer: RelayServicer
    address: str


@contextmanager
def relayed_draft(folder: Path, vocabulary_size: int, real_address: str) -> Iterator[RelayedDraft]:
    """Stands before the draft service at `real_address`, which holds the model of `folder`."""
    model = TokenizerOnly.read(folder, vocabulary_size)
    servicer = RelayServicer(real_address)
    add = partial(draft_pb2_grpc.add_DraftServiceServicer_to_server, servicer)
    with threaded_server(DRAFT_SERVICE, model, add) as address:
        yield RelayedDraft(servicer, address)
