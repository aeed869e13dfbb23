"""The keywords of a request. Plain values; `uag.orchestrator.v1.GenerateRequest` explains each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

SpeculationMode = Literal["auto", "off", "force"]
DraftFailurePolicy = Literal["degrade", "fail"]


class Options(TypedDict, total=False):
    """What `generate` and `complete` take besides the prompt. What is left out, or None, is the
    server's choice."""

    # Length of prompt and answer, in tokens of the target; number of answers.
    max_new_tokens: int | None
    truncate_prompt_tokens: int | None
    n: int | None

    # How tokens are drawn. Without a temperature the most probable one is chosen each time.
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    typical_p: float | None
    repetition_penalty: float | None
    frequency_penalty: float | None
    presence_penalty: float | None
    logit_bias: Mapping[int, float] | None
    seed: int | None

    # What an answer must look like: one of these at most. A schema as JSON text or as its object.
    json_schema: str | Mapping[str, Any] | None
    regex: str | None
    choice: Sequence[str] | None
    grammar: str | None

    # Where an answer ends; `time_limit` in seconds from the request's arrival.
    stop: str | Sequence[str] | None
    stop_token_ids: Sequence[int] | None
    include_stop: bool | None
    ignore_eos: bool | None
    min_new_tokens: int | None
    time_limit: float | None

    # Log-probabilities of the tokens, and of so many of the most probable ones at each place.
    logprobs: int | None
    prompt_logprobs: int | None

    # How to draft. Nothing here changes a token of the answer.
    speculation: SpeculationMode | None
    draft_tokens: int | None
    lookup_tokens: int | None
    draft_min_probability: float | None
    on_draft_failure: DraftFailurePolicy | None

    # The request among others.
    request_id: str | None
    session_id: str | None
    cache_salt: str | None
    priority: int | None
    metadata: Mapping[str, str] | None
