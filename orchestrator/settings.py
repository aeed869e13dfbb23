"""The settings of the orchestrator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from uag_common.limits import MAX_CANDIDATES, MAX_DRAFT_TOKENS
from uag_common.service_settings import ServiceSettings
from uag_common.settings import setting


@dataclass(frozen=True, kw_only=True)
class OrchestratorSettings(ServiceSettings):
    """Read from UAG_ORCHESTRATOR_*."""

    PREFIX: ClassVar[str] = "UAG_ORCHESTRATOR_"

    listen: str = setting(
        "host:port to listen on; port 0 takes a free one", default="127.0.0.1:50050"
    )
    draft: str = setting("host:port of the draft service", default="127.0.0.1:50051")
    verify: str = setting("host:port of the verify service", default="127.0.0.1:50052")
    draft_tokens: int = setting(
        "most tokens that the draft model is asked for in a round, where a request does not say "
        "otherwise; 0: it is never asked",
        default=24,
        minimum=0,
        maximum=MAX_DRAFT_TOKENS,
    )
    forced_draft_tokens: int = setting(
        "tokens that the draft model is asked for in each round of a request that forces drafting "
        "and does not say how much",
        default=5,
        minimum=1,
        maximum=MAX_DRAFT_TOKENS,
    )
    lookup_tokens: int = setting(
        "most tokens that a round takes from earlier text, where a request does not say otherwise; "
        "0: never",
        default=24,
        minimum=0,
        maximum=MAX_CANDIDATES,
    )
    lookup_memory_tokens: int = setting(
        "tokens of earlier answers that are kept to be looked up by later requests with the same "
        "cache_salt (about 500 bytes each); whoever times answers can tell what others were "
        "answered; 0: none",
        default=0,
        minimum=0,
    )
    draft_ahead: bool = setting(
        "true: the draft model may go on drafting while the target verifies, where that pays; "
        "false: it never does",
        default=True,
    )
    max_new_tokens: int = setting(
        "most tokens of an answer, where a request does not say otherwise",
        default=256,
        minimum=1,
        maximum=(1 << 31) - 1,
    )
    share_prefixes: bool = setting(
        "true: requests of one cache_salt share what they computed of equal beginnings, such as a "
        "system prompt, and whoever times them can tell that; false: only those of one session_id",
        default=True,
    )
    draft_timeout_seconds: float = setting(
        "a draft that has not answered a command by then is given up for the request; "
        "the request goes on without it",
        default=10.0,
        minimum=0.001,
    )
    log_requests: Literal["off", "summary", "text"] = setting(
        "summary: one line in the log for each request; text: prompt and answer in it as well",
        default="off",
    )
    verify_timeout_seconds: float = setting(
        "a target that has not answered a command by then fails the request",
        default=120.0,
        minimum=0.001,
    )
