"""A verify session and its commands, with what a test does not care for left out."""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench import Bench
from uag_common.context import ContextVersion
from uag_common.decoding import Decoding, PrefixReuse
from uag_common.work_pool import WorkPool
from verify_service.open_command import OpenCommand
from verify_service.session import VerifySession

GREEDY = Decoding()
ALONE = PrefixReuse()

COMPILATIONS = WorkPool("constraints", threads=1, most_waiting=100)


def a_session(bench: Bench) -> VerifySession:
    return VerifySession(bench.model, bench.batcher, bench.prefixes, COMPILATIONS)


def opening(
    prompt_ids: Sequence[int],
    *,
    answer_start: int | None = None,
    decoding: Decoding = GREEDY,
    prompt_top_logprobs: int | None = None,
    prefix: PrefixReuse = ALONE,
    priority: int = 0,
) -> OpenCommand:
    start = len(prompt_ids) if answer_start is None else answer_start
    return OpenCommand(tuple(prompt_ids), start, decoding, prompt_top_logprobs, prefix, priority)


def version(ids: Sequence[int]) -> ContextVersion:
    return ContextVersion.of(ids, len(ids))
