"""Commands of a draft session, with what a test does not care for left out."""

from __future__ import annotations

from collections.abc import Sequence

from draft_service.commands import OpenCommand, ProposeCommand
from uag_common.context import ContextVersion
from uag_common.decoding import NoisePosition, PrefixReuse, Sampling

GREEDY = Sampling()
DRAWN = Sampling(temperature=1.0)
ALONE = PrefixReuse()


def opening(
    context_ids: Sequence[int],
    *,
    answer_start: int | None = None,
    sampling: Sampling = GREEDY,
    prefix: PrefixReuse = ALONE,
    priority: int = 0,
) -> OpenCommand:
    start = len(context_ids) if answer_start is None else answer_start
    return OpenCommand(tuple(context_ids), start, sampling, prefix, priority)


def proposal(
    keep: Sequence[int],
    append: Sequence[int] = (),
    *,
    max_tokens: int = 3,
    min_probability: float = 0.0,
    position: NoisePosition | None = None,
) -> ProposeCommand:
    version = ContextVersion.of(keep, len(keep))
    return ProposeCommand(len(keep), version, tuple(append), max_tokens, min_probability, position)
