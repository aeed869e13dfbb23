"""Answers whose tokens spell what a test says, without a tokenizer's file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from orchestrator.conversion.roles import Roles
from orchestrator.conversion.vocabulary import Vocabulary
from orchestrator.stopping import AnswerText, Stopping
from orchestrator.text_stream import TextStream
from tests.conversion import small_tokenizers as small

NOTHING = Stopping(
    eos_ids=frozenset(),
    stop_token_ids=frozenset(),
    sequences=(),
    include_stop=False,
    min_new_tokens=0,
)
BYTES = Vocabulary.build(small.byte_level([]), Roles())


def spelled_answer(stopping: Stopping, pieces: Sequence[bytes | None]) -> AnswerText:
    """Its ids 0, 1, ... spell these pieces; None is a control token."""
    vocabulary = replace(BYTES, pieces=tuple(pieces))
    return AnswerText(TextStream(vocabulary, at_text_start=True), stopping)
