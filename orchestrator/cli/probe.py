"""A round trip: texts to the ids of each side and back to bytes. Knows two vocabularies."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.conversion.spans import spans
from orchestrator.conversion.vocabulary import Vocabulary

TEXTS = (
    "The quick brown fox doesn't jump over 1,234 lazy dogs; it's 9:30 p.m.",
    "def add(left: int, right: int) -> int:\n\treturn left + right  # sum\n",
    "   Leading spaces,\n\n\nempty lines and a trailing tab\t",
    "Größenmaß, naïve café, Ελληνικά, русский текст",
    "e\u0301 a\u0308 o\u0302: letters with combining marks",
    "漢字とかな、한국어, 简体中文。",
    "हिन्दी में नमस्ते, தமிழ் வணக்கம், สวัสดี",
    "👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🇪🇺",
    "<|im_end|> </s> <eos> typed by a user stays text",
)


@dataclass(frozen=True, slots=True)
class Probe:
    """`draft_exact` and `target_exact`: texts that came back byte for byte, of `texts`."""

    texts: int
    draft_exact: int
    target_exact: int
    draft_tokens: int
    target_tokens: int

    @property
    def draft_per_target(self) -> float:
        """Draft tokens for one target token, over all texts."""
        return self.draft_tokens / self.target_tokens


def probe(draft: Vocabulary, target: Vocabulary) -> Probe:
    """Encodes and decodes TEXTS on both sides."""
    draft_exact = target_exact = draft_tokens = target_tokens = 0
    for text in TEXTS:
        data = text.encode()
        drafted, decided = spans(draft, data).ids, spans(target, data).ids
        draft_tokens += len(drafted)
        target_tokens += len(decided)
        draft_exact += _spelled(draft, drafted) == data
        target_exact += _spelled(target, decided) == data
    return Probe(len(TEXTS), draft_exact, target_exact, draft_tokens, target_tokens)


def _spelled(vocabulary: Vocabulary, ids: list[int]) -> bytes:
    return b"".join(vocabulary.spell(ids))
