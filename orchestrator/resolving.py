"""What a request comes to with a given target: defaults filled in, ids and limits checked. Pure but
for the dice that draw a seed and an id."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256

from orchestrator.request import AnswerRequest, SpeculationMode
from uag_common.decoding import Decoding, PrefixReuse, Sampling
from uag_common.errors import InvalidRequestError, PromptTooLongError
from uag_common.model import ModelDescription

SEED_BITS = 63
PREFIX_KEY_BYTES = 16


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the server takes where a request does not say."""

    max_new_tokens: int
    draft_tokens: int
    forced_draft_tokens: int
    lookup_tokens: int
    share_prefixes: bool


@dataclass(frozen=True, slots=True)
class Resolved:
    """A request in which nothing is left to the server. `request` has each of these values too;
    here they are no longer optional."""

    request: AnswerRequest
    max_new_tokens: int
    draft_tokens: int
    lookup_tokens: int
    n: int
    prefix: PrefixReuse
    end_ids: tuple[int, ...]
    eos_ids: frozenset[int]

    def decoding(self, choice: int) -> Decoding:
        """How the target chooses the tokens of one of the answers."""
        return Decoding(
            sampling=self.request.sampling.sampling(choice),
            min_new_tokens=self.request.stopping.min_new_tokens or 0,
            end_ids=self.end_ids,
            constraint=self.request.constraint,
            top_logprobs=self.request.logprobs.top,
        )

    def draft_sampling(self, choice: int) -> Sampling:
        """How the draft chooses: as the target, but for the bias, whose ids are the target's."""
        return replace(self.request.sampling.sampling(choice), logit_bias=())


def identified(request: AnswerRequest) -> AnswerRequest:
    """The request with an id of its own if it came without one."""
    return replace(request, request_id=request.request_id or secrets.token_hex(8))


def resolve(request: AnswerRequest, defaults: Defaults, target: ModelDescription) -> Resolved:
    """Raises InvalidRequestError for an id or a number that does not fit this target."""
    given = request.max_new_tokens
    max_new_tokens = defaults.max_new_tokens if given is None else given
    n = 1 if request.n is None else request.n
    _check_limits(request, max_new_tokens, target)
    _check_ids(request, target)
    eos_ids = frozenset() if request.stopping.ignore_eos else frozenset(target.roles.eos_ids)
    draft_tokens = _draft_tokens(request, defaults)
    lookup_tokens = _lookup_tokens(request, defaults)
    whole = replace(
        request,
        max_new_tokens=max_new_tokens,
        n=n,
        sampling=replace(
            request.sampling,
            temperature=request.sampling.temperature or 0.0,
            seed=_seed(request),
        ),
        speculation=replace(
            request.speculation, draft_tokens=draft_tokens, lookup_tokens=lookup_tokens
        ),
    )
    return Resolved(
        request=whole,
        max_new_tokens=max_new_tokens,
        draft_tokens=draft_tokens,
        lookup_tokens=lookup_tokens,
        n=n,
        prefix=_prefix_reuse(request, n, share=defaults.share_prefixes),
        end_ids=tuple(dict.fromkeys((*sorted(eos_ids), *request.stopping.stop_token_ids))),
        eos_ids=eos_ids,
    )


def check_answers(n: int, most: int) -> None:
    """Raises InvalidRequestError for more answers than the target can ever write at once."""
    if n > most:
        raise InvalidRequestError(
            "n", f"is {n}, the verify service may have {most} sessions open, one for each answer"
        )


def check_prompt_length(prompt_tokens: int, target: ModelDescription) -> None:
    """Raises InvalidRequestError or PromptTooLongError."""
    if not prompt_tokens:
        raise InvalidRequestError("prompt", "has no tokens in the target's vocabulary")
    if prompt_tokens >= target.context_length:
        raise PromptTooLongError(
            f"the prompt has {prompt_tokens} tokens; the target's context holds "
            f"{target.context_length}, and one must be left for the answer"
        )


def _check_limits(request: AnswerRequest, max_new_tokens: int, target: ModelDescription) -> None:
    if request.max_new_tokens is not None and max_new_tokens > target.context_length:
        raise InvalidRequestError(
            "max_new_tokens",
            f"is {max_new_tokens}, the target's context holds {target.context_length}",
        )
    least = request.stopping.min_new_tokens
    if least is not None and least > max_new_tokens:
        raise InvalidRequestError(
            "stopping.min_new_tokens", f"is {least}, max_new_tokens is {max_new_tokens}"
        )


def _check_ids(request: AnswerRequest, target: ModelDescription) -> None:
    biased = (token_id for token_id, _ in request.sampling.logit_bias)
    _check_vocabulary("sampling.logit_bias", biased, target)
    _check_vocabulary("stopping.stop_token_ids", request.stopping.stop_token_ids, target)


def _check_vocabulary(field: str, ids: Iterable[int], target: ModelDescription) -> None:
    largest = max(ids, default=0)
    if largest >= target.vocabulary_size:
        raise InvalidRequestError(
            field,
            f"id {largest} is outside the target's vocabulary of {target.vocabulary_size} ids",
        )


def _draft_tokens(request: AnswerRequest, defaults: Defaults) -> int:
    speculation = request.speculation
    if speculation.mode is SpeculationMode.OFF:
        return 0
    if speculation.draft_tokens is not None:
        return speculation.draft_tokens
    if speculation.mode is SpeculationMode.FORCE:
        return defaults.forced_draft_tokens
    return defaults.draft_tokens


def _lookup_tokens(request: AnswerRequest, defaults: Defaults) -> int:
    given = request.speculation.lookup_tokens
    if given is not None:
        return given
    return defaults.lookup_tokens if request.speculation.mode is SpeculationMode.AUTO else 0


def _seed(request: AnswerRequest) -> int | None:
    if request.greedy or request.sampling.seed is not None:
        return request.sampling.seed
    return secrets.randbits(SEED_BITS)


def _prefix_reuse(request: AnswerRequest, n: int, *, share: bool) -> PrefixReuse:
    """Who may share this request's caches: all of the same salt, or else its conversation, or its
    own answers alone."""
    if share:
        return PrefixReuse(_key(request.cache_salt), keep=True)
    if request.session_id:
        return PrefixReuse(_key(request.cache_salt, request.session_id), keep=True)
    if n > 1:
        return PrefixReuse(secrets.token_bytes(PREFIX_KEY_BYTES))
    return PrefixReuse()


def _key(*names: str) -> bytes:
    digest = sha256()
    for name in names:
        # With its length before it: no two rows of names are told by the same bytes.
        data = name.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.digest()[:PREFIX_KEY_BYTES]
