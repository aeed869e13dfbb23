"""Property 9: the work of a call is bounded, whatever the length of the context."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

import pytest

from orchestrator.conversion.spans import spans
from orchestrator.conversion.translation import Translation
from orchestrator.conversion.window import FURTHEST
from tests.conversion.pairs import sides
from tests.conversion.texts import PHRASES

pytestmark = pytest.mark.usefixtures("real_tokenizers")


class CountingCore:
    """A core that counts the characters it encodes."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self.characters = 0

    def encode(self, text: str, **options: Any) -> Any:
        self.characters += len(text)
        return self._core.encode(text, **options)


def work_at_the_end(pair: str, text: str) -> int:
    """The most characters that one call encodes in the last rounds of a long context."""
    target, draft = sides(pair)
    cores = CountingCore(target.core), CountingCore(draft.core)
    counted = (
        dataclasses.replace(side, core=cast(Any, core))
        for side, core in zip((target, draft), cores, strict=True)
    )
    translation, ids, most = Translation(*counted), spans(target, text.encode()).ids, 0
    translation.commit(ids[:-40])
    translation.sync()
    for token_id in ids[-40:]:
        for core in cores:
            core.characters = 0
        translation.propose(spans(draft, text[:20].encode()).ids)
        translation.commit([token_id])
        translation.sync()
        most = max(most, *(core.characters for core in cores))
    return most


@pytest.mark.parametrize("pair", ["mixtral+qwen2", "gemma2+smollm2", "llama31+qwen2"])
@pytest.mark.parametrize("unit", [PHRASES[0], PHRASES[9], "=-", "7", "🦜", "\n"])
def test_9_work_does_not_grow_with_the_context(pair: str, unit: str) -> None:
    longest = max(len(piece) for side in sides(pair) for piece in side.pieces if piece)
    long = work_at_the_end(pair, unit * (30_000 // len(unit)))
    assert long <= (FURTHEST + 10) * longest
    assert long <= 2 * max(work_at_the_end(pair, unit * (8_000 // len(unit))), longest)
