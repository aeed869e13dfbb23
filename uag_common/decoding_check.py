"""What is checked of how tokens are chosen, before any model runs. Whether a constraint compiles is
not told here. Plain values only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from uag_common.decoding import Decoding, PrefixReuse, Sampling
from uag_common.errors import InvalidRequestError
from uag_common.limits import (
    MAX_TOP_LOGPROBS,
    check_above_zero,
    check_count,
    check_ids,
    check_range,
)

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
    check_sampling(f"{field}.sampling", decoding.sampling)
    check_bias_ids(f"{field}.sampling", decoding.sampling, vocabulary_size)
    check_count(f"{field}.end_ids", len(decoding.end_ids), MAX_END_IDS, "ids")
    check_ids(f"{field}.end_ids", decoding.end_ids, vocabulary_size)
    check_top(f"{field}.top_logprobs", decoding.top_logprobs)


def check_sampling(field: str, sampling: Sampling) -> None:
    """Raises InvalidRequestError. Knows no vocabulary: see `check_bias_ids`."""
    check_range(f"{field}.temperature", sampling.temperature, 0, MAX_TEMPERATURE)
    check_range(f"{field}.top_k", sampling.top_k, 1)
    check_above_zero(f"{field}.top_p", sampling.top_p, 1)
    check_range(f"{field}.min_p", sampling.min_p, 0, 1)
    check_above_zero(f"{field}.typical_p", sampling.typical_p, 1)
    check_above_zero(f"{field}.repetition_penalty", sampling.repetition_penalty, MAX_PENALTY)
    for name in ("frequency_penalty", "presence_penalty"):
        check_range(f"{field}.{name}", getattr(sampling, name), -MAX_PENALTY, MAX_PENALTY)
    check_count(f"{field}.logit_bias", len(sampling.logit_bias), MAX_LOGIT_BIASES, "ids")
    for token_id, bias in sampling.logit_bias:
        check_range(f"{field}.logit_bias[{token_id}]", bias, -MAX_PENALTY, MAX_PENALTY)


def check_bias_ids(field: str, sampling: Sampling, vocabulary_size: int) -> None:
    """Raises InvalidRequestError for a bias on what is no token."""
    biased = [token_id for token_id, _ in sampling.logit_bias]
    check_ids(f"{field}.logit_bias", biased, vocabulary_size)


@contextmanager
def fields_of(message: str) -> Iterator[None]:
    """What a chooser finds wrong names a field of its decoding: as one of `message`."""
    try:
        yield
    except InvalidRequestError as error:
        raise InvalidRequestError(f"{message}.{error.field}", error.problem) from error


def check_top(field: str, top: int | None) -> None:
    """Raises InvalidRequestError if the log-probabilities of too many tokens are asked for."""
    check_range(field, top, 0, MAX_TOP_LOGPROBS)


def check_sharing(field: str, prefix: PrefixReuse, priority: int) -> None:
    """Raises InvalidRequestError if a session asks for more than its share."""
    check_range(f"{field}.priority", priority, -MAX_PRIORITY, MAX_PRIORITY)
    check_count(f"{field}.prefix.key", len(prefix.key), MAX_PREFIX_KEY_BYTES, "bytes")


def check_answer_start(field: str, answer_start: int, lowest: int, context: int) -> None:
    """Raises InvalidRequestError unless the answer starts in a context of so many tokens, or at
    its end."""
    check_range(f"{field}.answer_start", answer_start, lowest, context)
