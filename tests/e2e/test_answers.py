"""What a caller of Generate gets, over the real services with miniatures: what the matrix of
features with the real models leaves out."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest

from tests.reference import Reference
from tests.services import Answer, RunningServices, running_services
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag.orchestrator.v1 import orchestrator_pb2_grpc

FORCE = pb.SpeculationOptions(mode=pb.SPECULATION_MODE_FORCE)
FOX = "The quick brown fox jumps"
SAMPLED = pb.SamplingOptions(temperature=1.2, seed=9)


@pytest.fixture(scope="module")
def fox_text(services: RunningServices) -> str:
    return services.generate(pb.GenerateRequest(text=FOX, max_new_tokens=30)).text


@pytest.mark.parametrize("draft_tokens", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("start", range(1, 14))
def test_a_stop_sequence_at_each_place_of_a_block(
    services: RunningServices, fox_text: str, start: int, draft_tokens: int
) -> None:
    """Each begins and ends elsewhere among the tokens of a block."""
    sequence = fox_text[start : start + 3]
    answer = services.generate(
        pb.GenerateRequest(
            text=FOX,
            max_new_tokens=30,
            stopping=pb.StoppingOptions(stop_sequences=[sequence]),
            speculation=pb.SpeculationOptions(
                mode=pb.SPECULATION_MODE_FORCE, draft_tokens=draft_tokens
            ),
        )
    )
    assert answer.text == fox_text[: fox_text.index(sequence)]
    assert answer.finished.finish_reason == pb.FINISH_REASON_STOP_SEQUENCE
    assert answer.finished.stop_sequence == sequence
    assert answer.text == "".join(token.text for token in answer.tokens)


@pytest.mark.parametrize("draft_tokens", [1, 2, 3, 4, 5, 8])
def test_the_eos_at_each_place_of_a_block(services: RunningServices, draft_tokens: int) -> None:
    speculation = pb.SpeculationOptions(mode=pb.SPECULATION_MODE_FORCE, draft_tokens=draft_tokens)
    places = set()
    for length in range(len(FOX) - 12, len(FOX)):
        request = pb.GenerateRequest(text=FOX[:length], max_new_tokens=60, speculation=speculation)
        answer = services.generate(request)
        plain = pb.GenerateRequest(text=FOX[:length], max_new_tokens=60)
        plain.speculation.mode = pb.SPECULATION_MODE_OFF
        assert answer.ids == services.generate(plain).ids
        if answer.finished.finish_reason == pb.FINISH_REASON_EOS:
            places.add(answer.tokens[-1].position)
            assert answer.finished.stop_token_id == answer.ids[-1]
    assert places


@pytest.mark.parametrize("tokens", range(1, 13))
def test_short_prompts(services: RunningServices, llama_reference: Reference, tokens: int) -> None:
    ids = llama_reference.text_prompt("It rained for 40 days; on day 41 the sun came out")[:tokens]
    request = pb.GenerateRequest(token_ids=pb.TokenIds(ids=ids), max_new_tokens=12)
    request.speculation.CopyFrom(FORCE)
    answer = services.generate(request)
    assert answer.ids == llama_reference.answer(ids, 12)
    assert answer.started.prompt_tokens == tokens


@pytest.fixture(scope="module")
def llama_reference(llama: Path) -> Reference:
    return Reference(llama)


def test_several_answers_share_the_prefill(services: RunningServices) -> None:
    request = pb.GenerateRequest(text=FOX * 3, max_new_tokens=4, n=4, sampling=SAMPLED)
    request.cache_salt = "several"
    first, *others = services.answers(request).finished
    assert first.usage.cached_tokens == 0
    for finished in others:
        # One token always runs: the first of the answer is chosen after it.
        assert finished.usage.cached_tokens == finished.usage.prompt_tokens - 1


def test_the_unary_twin_says_the_same(services: RunningServices) -> None:
    request = pb.GenerateRequest(
        text=FOX, max_new_tokens=20, n=3, sampling=SAMPLED, logprobs=pb.LogprobOptions(top=2)
    )
    streamed = services.answers(request)
    with grpc.insecure_channel(services.orchestrator) as channel:
        whole = orchestrator_pb2_grpc.OrchestratorStub(channel).GenerateUnary(request, timeout=60)
    assert tuple(choice.text for choice in whole.choices) == streamed.texts
    assert [[token.id for token in choice.tokens] for choice in whole.choices] == [
        list(ids) for ids in streamed.ids
    ]
    assert [choice.finished.finish_reason for choice in whole.choices] == [
        finished.finish_reason for finished in streamed.finished
    ]
    assert len({choice.text for choice in whole.choices}) > 1


def test_the_answer_is_told_again_by_its_parameters(services: RunningServices) -> None:
    drawn = pb.GenerateRequest(
        text=FOX, max_new_tokens=20, sampling=pb.SamplingOptions(temperature=1.5)
    )
    first = services.answers(drawn)
    again = pb.GenerateRequest()
    again.CopyFrom(first.started.parameters)
    again.text = FOX
    assert services.answers(again).ids == first.ids
    seeds = {services.answers(drawn).started.parameters.sampling.seed for _ in range(3)}
    assert len(seeds) == 3


def test_the_same_seed_whatever_drafts_and_after_a_restart(
    services: RunningServices, llama: Path
) -> None:
    request = pb.GenerateRequest(text=FOX, max_new_tokens=40, sampling=SAMPLED, n=2)
    expected = services.answers(request).ids
    for draft_tokens in (0, 1, 3, 16):
        request.speculation.draft_tokens = draft_tokens
        assert services.answers(request).ids == expected
    request.ClearField("speculation")
    # Another draft model: the target itself, which is right most of the time.
    with running_services(llama, llama) as others:
        answers = others.answers(request)
        assert answers.ids == expected
        assert answers.finished[0].speculation.candidates_accepted > 0


def test_more_answers_than_the_target_has_sessions_are_refused(llama: Path) -> None:
    """With a retryable status a client would try for ever."""
    with running_services(llama, None, model_settings={"max_sessions": "2"}) as services:
        request = pb.GenerateRequest(text=FOX, max_new_tokens=3, sampling=SAMPLED, n=2)
        assert len(services.answers(request).finished) == 2
        request.n = 3
        with pytest.raises(
            grpc.RpcError, match="n: is 3, the verify service may have 2"
        ) as refused:
            services.answers(request)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def turn(services: RunningServices, text: str, session: str = "", salt: str = "") -> Answer:
    request = pb.GenerateRequest(text=text, max_new_tokens=8, session_id=session, cache_salt=salt)
    return services.generate(request)


def test_what_begins_alike_is_computed_once_for_all_of_one_salt(services: RunningServices) -> None:
    system = "It rained for 40 days; on day 41 the sun came out. "
    alone = turn(services, system + "Ask", salt="alone")
    assert alone.finished.usage.cached_tokens == 0
    first = turn(services, system + "And", salt="a")
    assert first.finished.usage.cached_tokens == 0
    found = turn(services, system + "Ask", salt="a")
    assert found.ids == alone.ids
    assert found.started.cached_tokens == found.finished.usage.cached_tokens > 5
    again = turn(services, system + first.text + " And then", "two", salt="a")
    assert again.finished.usage.cached_tokens > 5
    for salt in ("b", "c"):
        assert turn(services, system + "Ask", salt=salt).finished.usage.cached_tokens == 0


def test_where_requests_share_nothing_a_conversation_is_found_again(llama: Path) -> None:
    settings = {"share_prefixes": "false"}
    with running_services(llama, None, orchestrator_settings=settings) as services:
        first = turn(services, FOX, "one")
        assert first.finished.usage.cached_tokens == 0
        longer = FOX + first.text + " And then"
        for session, salt in (("two", ""), ("one", "pepper"), ("", ""), ("", "")):
            assert turn(services, longer, session, salt).finished.usage.cached_tokens == 0
        found = turn(services, longer, "one")
        assert found.finished.usage.cached_tokens >= first.finished.usage.prompt_tokens
        assert found.ids == turn(services, longer).ids


def test_a_time_limit_ends_an_answer_with_what_is_there(services: RunningServices) -> None:
    stopping = pb.StoppingOptions(time_limit_seconds=0.15, ignore_eos=True)
    request = pb.GenerateRequest(text="x", max_new_tokens=250, stopping=stopping)
    request.speculation.mode = pb.SPECULATION_MODE_OFF
    answer = services.generate(request)
    assert answer.finished.finish_reason == pb.FINISH_REASON_TIME_LIMIT
    assert len(answer.ids) == answer.finished.usage.completion_tokens < 250


def test_the_trace_of_the_caller_goes_on(services: RunningServices) -> None:
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    with grpc.insecure_channel(services.orchestrator) as channel:
        stub = orchestrator_pb2_grpc.OrchestratorStub(channel)
        call = stub.Generate(
            pb.GenerateRequest(text="x", max_new_tokens=1),
            metadata=(("traceparent", f"00-{trace_id}-b7ad6b7169203331-01"),),
            timeout=30,
        )
        assert next(iter(call)).started.trace_id == trace_id
    own = services.generate(pb.GenerateRequest(text="x", max_new_tokens=1)).started.trace_id
    assert len(own) == 32
    assert int(own, 16)


def test_models_and_tokens_are_told(services: RunningServices) -> None:
    with grpc.insecure_channel(services.orchestrator) as channel:
        stub = orchestrator_pb2_grpc.OrchestratorStub(channel)
        models = stub.DescribeModel(pb.DescribeModelRequest(), timeout=10)
        assert models.target.architecture == "LlamaForCausalLM"
        assert models.draft.architecture == "GPT2LMHeadModel"
        assert models.chat_template
        told = stub.Tokenize(pb.TokenizeRequest(text="日本 <eos> fox"), timeout=10)
        assert "".join(told.texts).replace("\ufffd", "") in "日本 <eos> fox"
        assert stub.Detokenize(pb.DetokenizeRequest(ids=told.ids), timeout=10).text == (
            "日本 <eos> fox"
        )
        answer = services.generate(pb.GenerateRequest(text=FOX, max_new_tokens=9))
        assert stub.Detokenize(pb.DetokenizeRequest(ids=answer.ids)).text == answer.text
        with pytest.raises(grpc.RpcError, match="outside the vocabulary"):
            stub.Detokenize(pb.DetokenizeRequest(ids=[99999]), timeout=10)
        with pytest.raises(grpc.RpcError, match="must not be empty"):
            stub.Tokenize(pb.TokenizeRequest(text=""), timeout=10)
