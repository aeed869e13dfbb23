"""The gRPC edge of the orchestrator: decode, one call, encode."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

from orchestrator.answering import Answering
from orchestrator.messages import (
    decode_prompt,
    decode_request,
    encode_event,
    encode_finished,
    encode_started,
    encode_token,
)
from orchestrator.pair import Pair
from orchestrator.preparation import Preparation
from orchestrator.request_check import check_prompt
from orchestrator.whole_answer import WholeAnswer, WholeAnswers, gather
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag.orchestrator.v1 import orchestrator_pb2_grpc
from uag_common.errors import InvalidRequestError
from uag_common.limits import check_ids
from uag_common.rpc.channel import MAX_MESSAGE_BYTES
from uag_common.rpc.metadata import Context
from uag_common.rpc.model_messages import encode_description

ORCHESTRATOR = pb.DESCRIPTOR.services_by_name["Orchestrator"].full_name


class OrchestratorServicer(orchestrator_pb2_grpc.OrchestratorServicer):
    """Serves `uag.orchestrator.v1.Orchestrator`."""

    def __init__(self, answering: Answering, pair: Pair, preparation: Preparation) -> None:
        self._answering = answering
        self._pair = pair
        self._preparation = preparation

    async def Generate(  # noqa: N802 - named by the contract
        self,
        request: pb.GenerateRequest,
        context: Context,  # noqa: ARG002
    ) -> AsyncIterator[pb.GenerateResponse]:
        answer = self._answering.answer(decode_request(request))
        async with aclosing(answer) as events:
            async for event in events:
                yield encode_event(event)

    async def GenerateUnary(  # noqa: N802
        self,
        request: pb.GenerateRequest,
        context: Context,  # noqa: ARG002
    ) -> pb.GenerateUnaryResponse:
        answer = self._answering.answer(decode_request(request))
        async with aclosing(answer) as events:
            whole = _encode_whole(await gather(events))
        if whole.ByteSize() > MAX_MESSAGE_BYTES:
            raise InvalidRequestError(
                "logprobs.top", "makes the answers too large for one message; use `Generate`"
            )
        return whole

    async def DescribeModel(  # noqa: N802
        self,
        request: pb.DescribeModelRequest,  # noqa: ARG002
        context: Context,  # noqa: ARG002
    ) -> pb.DescribeModelResponse:
        target, draft = self._pair.target, self._pair.draft
        return pb.DescribeModelResponse(
            target=encode_description(target.description),
            draft=None if draft is None else encode_description(draft.description),
            chat_template=target.has_chat_template,
        )

    async def Tokenize(  # noqa: N802
        self,
        request: pb.TokenizeRequest,
        context: Context,  # noqa: ARG002
    ) -> pb.TokenizeResponse:
        prompt = decode_prompt(request)
        check_prompt(prompt)
        target = self._pair.target
        ids = (await self._preparation.encode(target, prompt)).ids
        return pb.TokenizeResponse(ids=ids, texts=map(target.spell, ids))

    async def Detokenize(  # noqa: N802
        self,
        request: pb.DetokenizeRequest,
        context: Context,  # noqa: ARG002
    ) -> pb.DetokenizeResponse:
        target = self._pair.target
        if len(request.ids) > target.description.context_length:
            raise InvalidRequestError(
                "ids",
                f"are {len(request.ids)}, the target's context holds "
                f"{target.description.context_length}",
            )
        check_ids("ids", request.ids, target.description.vocabulary_size)
        return pb.DetokenizeResponse(text=target.text(request.ids))


def _encode_whole(answers: WholeAnswers) -> pb.GenerateUnaryResponse:
    return pb.GenerateUnaryResponse(
        started=encode_started(answers.started), choices=map(_encode_choice, answers.choices)
    )


def _encode_choice(answer: WholeAnswer) -> pb.Choice:
    return pb.Choice(
        text=answer.text,
        tokens=map(encode_token, answer.tokens),
        finished=encode_finished(answer.finished),
    )
