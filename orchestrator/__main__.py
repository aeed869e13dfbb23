"""`python -m orchestrator`: composes the orchestrator from its settings."""

from __future__ import annotations

import asyncio
import logging

from orchestrator.answer_metrics import AnswerMetrics
from orchestrator.answering import Answering
from orchestrator.draft_client import DRAFT_SERVICE
from orchestrator.pair import Pair
from orchestrator.peer import ModelPeer
from orchestrator.preparation import Preparation
from orchestrator.request_log import RequestLog
from orchestrator.resolving import Defaults
from orchestrator.servicer import ORCHESTRATOR, OrchestratorServicer
from orchestrator.settings import OrchestratorSettings
from orchestrator.verify_client import VERIFY_SERVICE
from uag.orchestrator.v1 import orchestrator_pb2_grpc
from uag_common.addresses import split_setting
from uag_common.freed_memory import give_back
from uag_common.process import run_service
from uag_common.rpc.server import RpcServer, StopSignal
from uag_common.settings import variable_name
from uag_common.telemetry.telemetry import Telemetry, shown

log = logging.getLogger("orchestrator")


async def serve(settings: OrchestratorSettings) -> None:
    """Ready while the target is; a draft may come and go, and health tells of it by its name."""
    split_setting(settings.draft, variable_name(type(settings), "draft"))
    split_setting(settings.verify, variable_name(type(settings), "verify"))
    with shown("orchestrator", settings) as telemetry:
        await _serve(settings, telemetry)


async def _serve(settings: OrchestratorSettings, telemetry: Telemetry) -> None:
    server, metrics = RpcServer((ORCHESTRATOR,), telemetry), AnswerMetrics(telemetry.registry)

    async def show_peers() -> None:
        await server.set_serving(verify.side is not None)
        await server.set_health(DRAFT_SERVICE, draft.side is not None)
        for name, peer in (("draft", draft), ("verify", verify)):
            metrics.peer_serving(name, peer.side is not None)

    draft = ModelPeer("draft service", DRAFT_SERVICE, settings.draft, show_peers)
    verify = ModelPeer("verify service", VERIFY_SERVICE, settings.verify, show_peers)
    await show_peers()
    pair, preparation = Pair(settings, draft, verify), Preparation()
    defaults = Defaults(
        max_new_tokens=settings.max_new_tokens,
        draft_tokens=settings.draft_tokens,
        forced_draft_tokens=settings.forced_draft_tokens,
        lookup_tokens=settings.lookup_tokens,
        share_prefixes=settings.share_prefixes,
    )
    request_log = RequestLog(settings.log_requests)
    answering = Answering(pair, preparation, defaults, metrics, request_log)
    servicer = OrchestratorServicer(answering, pair, preparation)
    orchestrator_pb2_grpc.add_OrchestratorServicer_to_server(servicer, server.grpc)
    port = await server.start(settings.listen, variable_name(type(settings), "listen"))
    stop = StopSignal(follow_stdin=settings.stop_with_parent)
    log.info("listening on port %d", port)
    watching = asyncio.gather(draft.watch(), verify.watch())
    last_words = asyncio.create_task(_cancel_when_ending(server, answering))
    giving_back = asyncio.create_task(give_back())
    try:
        if await stop.before(watching):
            # Watching never ends but by a bug: let it be seen.
            watching.result()
    finally:
        await server.stop(settings.drain_seconds)
        watching.cancel()
        last_words.cancel()
        giving_back.cancel()
        await asyncio.gather(watching, last_words, giving_back, return_exceptions=True)
        preparation.close()
        await draft.close()
        await verify.close()


async def _cancel_when_ending(server: RpcServer, answering: Answering) -> None:
    await server.ending.wait()
    answering.cancel_all()


if __name__ == "__main__":
    run_service("orchestrator", OrchestratorSettings, serve)
