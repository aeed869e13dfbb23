"""Bad input: one clear status that names the field, at each of the three services; others go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from tests.services import RunningServices
from uag.draft.v1 import draft_pb2, draft_pb2_grpc
from uag.model.v1 import model_pb2, model_pb2_grpc
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag.orchestrator.v1 import orchestrator_pb2_grpc
from uag.verify.v1 import verify_pb2, verify_pb2_grpc
from uag_common.context import ContextVersion
from uag_common.rpc.model_messages import encode_version

INVALID = grpc.StatusCode.INVALID_ARGUMENT
OUT_OF_RANGE = grpc.StatusCode.OUT_OF_RANGE
STALE = grpc.StatusCode.FAILED_PRECONDITION


def chat(*turns: tuple[str, str]) -> pb.Chat:
    return pb.Chat(messages=[pb.ChatMessage(role=role, content=text) for role, text in turns])


@pytest.mark.parametrize(
    ("request_", "code", "words"),
    [
        (pb.GenerateRequest(), INVALID, "prompt: give one of `text`, `chat`, `token_ids`"),
        (pb.GenerateRequest(text=""), INVALID, "text: must not be empty"),
        (pb.GenerateRequest(chat=pb.Chat()), INVALID, "chat.messages: must not be empty"),
        (
            pb.GenerateRequest(chat=chat(("user", "a"), ("root", "b"))),
            INVALID,
            "chat.messages[1].role: is 'root', must be one of system, user, assistant",
        ),
        (pb.GenerateRequest(text="a", max_new_tokens=0), INVALID, "max_new_tokens: is 0"),
        (pb.GenerateRequest(text="a", max_new_tokens=-5), INVALID, "max_new_tokens: is -5"),
        (
            pb.GenerateRequest(text="a", max_new_tokens=2**31 - 1),
            INVALID,
            "the target's context holds 256",
        ),
        (
            pb.GenerateRequest(text="a", speculation=pb.SpeculationOptions(draft_tokens=-1)),
            INVALID,
            "speculation.draft_tokens: is -1",
        ),
        (
            pb.GenerateRequest(text="a", speculation=pb.SpeculationOptions(draft_tokens=65)),
            INVALID,
            "speculation.draft_tokens: is 65",
        ),
        (pb.GenerateRequest(text="word " * 300), OUT_OF_RANGE, "the target's context holds 256"),
        (
            pb.GenerateRequest(token_ids=pb.TokenIds(ids=[1, 9999])),
            INVALID,
            "token_ids.ids[1]: id 9999 is outside the target's vocabulary",
        ),
        (
            pb.GenerateRequest(text="a", stopping=pb.StoppingOptions(stop_token_ids=[9999])),
            INVALID,
            "stopping.stop_token_ids: id 9999 is outside the target's vocabulary",
        ),
        (
            pb.GenerateRequest(text="a", sampling=pb.SamplingOptions(logit_bias={9999: 1.0})),
            INVALID,
            "sampling.logit_bias: id 9999 is outside the target's vocabulary",
        ),
        (
            pb.GenerateRequest(
                text="a", max_new_tokens=4, stopping=pb.StoppingOptions(min_new_tokens=5)
            ),
            INVALID,
            "stopping.min_new_tokens: is 5, max_new_tokens is 4",
        ),
        (
            pb.GenerateRequest(text="a", constraint=model_pb2.Constraint(json_schema="{")),
            INVALID,
            "constraint.json_schema: ",
        ),
        (
            pb.GenerateRequest(text="a", constraint=model_pb2.Constraint(regex="(")),
            INVALID,
            "constraint.regex: ",
        ),
    ],
)
def test_a_bad_request_is_refused_by_name(
    services: RunningServices, request_: pb.GenerateRequest, code: grpc.StatusCode, words: str
) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        services.generate(request_)
    assert refused.value.code() is code
    assert words in (refused.value.details() or "")
    if code is INVALID:
        assert violated_field(refused.value) == words.partition(":")[0] or "context" in words


def violated_field(error: grpc.RpcError) -> str:
    """The field that the error's google.rpc.BadRequest names."""
    status = rpc_status.from_call(cast(grpc.Call, error))
    assert status is not None
    for detail in status.details:
        violations = error_details_pb2.BadRequest()
        if detail.Unpack(violations):
            return str(violations.field_violations[0].field)
    raise AssertionError("no field is named")


def version(ids: Sequence[int]) -> model_pb2.ContextVersion:
    return encode_version(ContextVersion.of(ids, len(ids)))


def tokenizer_sha256(address: str) -> str:
    with grpc.insecure_channel(address) as channel:
        stub = model_pb2_grpc.ModelServiceStub(channel)
        model = stub.DescribeModel(model_pb2.DescribeModelRequest(), timeout=5).model
    return str(model.tokenizer_sha256)


def draft_session(address: str, *requests: draft_pb2.SessionRequest) -> grpc.RpcError:
    """How a session with these commands ends; they must not all be answered."""
    with grpc.insecure_channel(address) as channel:
        stub = draft_pb2_grpc.DraftServiceStub(channel)
        with pytest.raises(grpc.RpcError) as refused:
            list(stub.Session(iter(requests), timeout=10))
    return refused.value


def verify_session(address: str, *requests: verify_pb2.SessionRequest) -> grpc.RpcError:
    """As `draft_session`."""
    with grpc.insecure_channel(address) as channel:
        stub = verify_pb2_grpc.VerifyServiceStub(channel)
        with pytest.raises(grpc.RpcError) as refused:
            list(stub.Session(iter(requests), timeout=10))
    return refused.value


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (draft_pb2.Propose(keep=2, kept=version((5, 6)), max_tokens=65), INVALID),
        (draft_pb2.Propose(keep=2, kept=version((5, 6)), max_tokens=2**31), INVALID),
        (draft_pb2.Propose(keep=2, kept=version((5, 6)), max_tokens=1, append_ids=[9**9]), INVALID),
        (draft_pb2.Propose(keep=0, kept=version(()), max_tokens=1), INVALID),
        (draft_pb2.Propose(keep=2, kept=version((5, 7)), max_tokens=1), STALE),
        (draft_pb2.Propose(keep=9, kept=version(range(9)), max_tokens=1), STALE),
        (
            draft_pb2.Propose(keep=2, kept=version((5, 6)), max_tokens=1, append_ids=[5] * 300),
            OUT_OF_RANGE,
        ),
    ],
)
def test_the_draft_service_refuses_a_bad_command(
    services: RunningServices, command: draft_pb2.Propose, code: grpc.StatusCode
) -> None:
    sha256 = tokenizer_sha256(services.draft)
    opening = draft_pb2.Open(context_ids=[5, 6], tokenizer_sha256=sha256)
    error = draft_session(
        services.draft,
        draft_pb2.SessionRequest(open=opening),
        draft_pb2.SessionRequest(propose=command),
    )
    assert error.code() is code, error.details()


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (verify_pb2.Verify(committed=version((5, 6)), candidate_ids=[1]), STALE),
        (verify_pb2.Verify(), STALE),
        (verify_pb2.Verify(candidate_ids=[1] * 65), INVALID),
        (verify_pb2.Verify(candidate_ids=[2**32 - 1]), INVALID),
    ],
)
def test_the_verify_service_refuses_a_bad_command(
    services: RunningServices, command: verify_pb2.Verify, code: grpc.StatusCode
) -> None:
    sha256 = tokenizer_sha256(services.verify)
    opening = verify_pb2.Open(prompt_ids=[5, 6], tokenizer_sha256=sha256)
    error = verify_session(
        services.verify,
        verify_pb2.SessionRequest(open=opening),
        verify_pb2.SessionRequest(verify=command),
    )
    assert error.code() is code, error.details()


def test_commands_out_of_order_are_refused(services: RunningServices) -> None:
    draft, verify = services.draft, services.verify
    empty = draft_pb2.SessionRequest()
    assert draft_session(draft, empty).code() is INVALID
    propose = draft_pb2.SessionRequest(propose=draft_pb2.Propose(max_tokens=1))
    assert draft_session(draft, propose).code() is INVALID
    opening = draft_pb2.Open(context_ids=[5], tokenizer_sha256=tokenizer_sha256(draft))
    twice = draft_pb2.SessionRequest(open=opening)
    assert draft_session(draft, twice, twice).code() is INVALID
    plain = verify_pb2.SessionRequest(verify=verify_pb2.Verify())
    assert verify_session(verify, plain).code() is INVALID


def test_ids_of_another_tokenizer_are_refused(services: RunningServices) -> None:
    """An orchestrator that has not noticed a change of model must not get nonsense."""
    foreign = tokenizer_sha256(services.verify)
    opening = draft_pb2.Open(context_ids=[5], tokenizer_sha256=foreign)
    error = draft_session(services.draft, draft_pb2.SessionRequest(open=opening))
    assert error.code() is STALE
    assert "describe the model anew" in (error.details() or "")


@pytest.mark.parametrize(
    ("which", "method"),
    [
        ("orchestrator", "/uag.orchestrator.v1.Orchestrator/Generate"),
        ("draft", "/uag.draft.v1.DraftService/Session"),
        ("verify", "/uag.verify.v1.VerifyService/Session"),
        ("verify", "/uag.model.v1.ModelService/DescribeModel"),
    ],
)
def test_bytes_that_are_no_message_are_refused(
    services: RunningServices, which: str, method: str
) -> None:
    with grpc.insecure_channel(getattr(services, which)) as channel:
        send = channel.stream_stream(method, bytes, bytes)
        call = send(iter([b"\xff\xff\xff\x01"]), timeout=10)
        with pytest.raises(grpc.RpcError) as refused:
            list(call)
    assert refused.value.code() is INVALID
    assert "no valid protobuf message" in (refused.value.details() or "")


@pytest.mark.parametrize("messages", [1, 4_000])
def test_a_prompt_that_can_never_fit_costs_nothing(
    services: RunningServices, messages: int
) -> None:
    turn = pb.ChatMessage(role="user", content="a" * (3_000_000 // messages))
    request = pb.GenerateRequest(chat=pb.Chat(messages=[turn] * messages))
    with pytest.raises(grpc.RpcError) as refused:
        services.generate(request)
    assert refused.value.code() is OUT_OF_RANGE
    assert "bytes, at least" in (refused.value.details() or "")


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (
            pb.GenerateRequest(chat=pb.Chat(messages=[pb.ChatMessage(role="user")] * 4097)),
            "chat.messages",
        ),
        (
            pb.GenerateRequest(
                token_ids=pb.TokenIds(ids=[1] * ((1 << 20) + 1)), truncate_prompt_tokens=5
            ),
            "token_ids.ids",
        ),
        (
            pb.GenerateRequest(
                text="a", stopping=pb.StoppingOptions(stop_token_ids=[1] * 3_000_000)
            ),
            "stopping.stop_token_ids",
        ),
    ],
)
def test_too_many_values_are_refused_before_they_are_read(
    services: RunningServices, request_: pb.GenerateRequest, field: str
) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        services.generate(request_)
    assert refused.value.code() is INVALID
    assert violated_field(refused.value) == field


def test_ids_that_no_answer_has_room_for_are_not_spelled(services: RunningServices) -> None:
    with grpc.insecure_channel(services.orchestrator) as channel:
        stub = orchestrator_pb2_grpc.OrchestratorStub(channel)
        with pytest.raises(grpc.RpcError, match="context holds 256") as refused:
            stub.Detokenize(pb.DetokenizeRequest(ids=[1] * 3_000_000), timeout=20)
    assert refused.value.code() is INVALID
