"""What the model services check of how a session chooses its tokens, before any model runs. Whether
a constraint compiles is not told here. Plain values only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from uag_common.decoding import Decoding, PrefixReuse, Sampling
from uag_common.errors import InvalidRequestError
from uag_common.limits import MAX_TOP_LOGPROBS, check_ids

MAX_TEMPERATURE = 100.0
MAX_PENALTY = 100.0
"""Of penalties and biases."""

MAX_LOGIT_BIASES = 1024
MAX_END_IDS = 128
MAX_PRIORITY = 100
"""Seconds of waiting that a priority can stand for, so that none waits for ever."""

MAX_PREFIX_KEY_BYTES = 256


def check_decoding(field: str, decoding: Decoding, vocabulary_size: int) -> None:
    """Raises InvalidRequestError; fields are named as in `open` of the verify service."""
    check_sampling(f"{field}.sampling", decoding.sampling, vocabulary_size)
    if len(decoding.end_ids) > MAX_END_IDS:
        raise InvalidRequestError(f"{field}.end_ids", f"at most {MAX_END_IDS} are allowed")
    check_ids(f"{field}.end_ids", decoding.end_ids, vocabulary_size)
    check_top(f"{field}.top_logprobs", decoding.top_logprobs)


def check_sampling(field: str, sampling: Sampling, vocabulary_size: int) -> None:
    """Raises InvalidRequestError."""
    _check_range(f"{field}.temperature", sampling.temperature, 0, MAX_TEMPERATURE)
    if sampling.top_k is not None and sampling.top_k < 1:
        raise InvalidRequestError(f"{field}.top_k", "must be at least 1")
    _check_range(f"{field}.min_p", sampling.min_p, 0, 1)
    _check_above_zero(f"{field}.top_p", sampling.top_p, 1)
    _check_above_zero(f"{field}.typical_p", sampling.typical_p, 1)
    _check_above_zero(f"{field}.repetition_penalty", sampling.repetition_penalty, MAX_PENALTY)
    for name in ("frequency_penalty", "presence_penalty"):
        _check_range(f"{field}.{name}", getattr(sampling, name), -MAX_PENALTY, MAX_PENALTY)
    _check_bias(f"{field}.logit_bias", sampling, vocabulary_size)


@contextmanager
def fields_of(message: str) -> Iterator[None]:
    """What a chooser finds wrong names a field of its decoding: as one of `message`."""
    try:
        yield
    except InvalidRequestError as error:
        raise InvalidRequestError(f"{message}.{error.field}", error.problem) from error


def _check_bias(field: str, sampling: Sampling, vocabulary_size: int) -> None:
    if len(sampling.logit_bias) > MAX_LOGIT_BIASES:
        raise InvalidRequestError(field, f"at most {MAX_LOGIT_BIASES} ids are allowed")
    check_ids(field, [token_id for token_id, _ in sampling.logit_bias], vocabulary_size)
    for token_id, bias in sampling.logit_bias:
        _check_range(f"{field}[{token_id}]", bias, -MAX_PENALTY, MAX_PENALTY)


def check_top(field: str, top: int | None) -> None:
    """Raises InvalidRequestError if the log-probabilities of too many tokens are asked for."""
    _check_range(field, top, 0, MAX_TOP_LOGPROBS)


def check_sharing(field: str, prefix: PrefixReuse, priority: int) -> None:
    """Raises InvalidRequestError if a session asks for more than its share."""
    _check_range(f"{field}.priority", priority, -MAX_PRIORITY, MAX_PRIORITY)
    if len(prefix.key) > MAX_PREFIX_KEY_BYTES:
        problem = f"at most {MAX_PREFIX_KEY_BYTES} bytes are allowed"
        raise InvalidRequestError(f"{field}.prefix.key", problem)


def check_answer_start(field: str, answer_start: int, lowest: int, context: int) -> None:
    """Raises InvalidRequestError unless the answer starts in a context of so many tokens, or at
    its end."""
    _check_range(f"{field}.answer_start", answer_start, lowest, context)


def _check_above_zero(field: str, value: float | None, high: float) -> None:
    if value is not None and not 0 < value <= high:
        raise InvalidRequestError(field, f"is {value:g}, must be above 0 and at most {high:g}")


def _check_range(field: str, value: float | None, low: float, high: float) -> None:
    # A NaN is in no range.
    if value is not None and not low <= value <= high:
        raise InvalidRequestError(field, f"is {value:g}, must be from {low:g} to {high:g}")
