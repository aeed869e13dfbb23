"""The text that a draft takes for the target's answer, in the draft's own tokens.

It is as long as the right text, and other where the draft is wrong: so the draft finds its place by
the bytes that its context has of the answer, whether they are right, its own or corrected. Knows
one recording and the draft's vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise

from benchmarks.emulation.coins import Coins
from benchmarks.emulation.recordings import Recording
from orchestrator.conversion.spans import spans
from orchestrator.conversion.utf8 import utf8_end
from orchestrator.conversion.vocabulary import Vocabulary

READ_BYTES = 256
"""Of text that are encoded at once."""
UNSURE_BYTES = 64
"""At their end: what follows may join them in other tokens."""


@dataclass(frozen=True, slots=True)
class Said:
    """A draft token, and how likely its whole text is right."""

    id: int
    width: int
    probability: float


class Belief:
    """After the end of its text it begins again, as the recording does."""

    def __init__(self, recording: Recording, coins: Coins, vocabulary: Vocabulary) -> None:
        believed = [
            right if is_right or wrong is None else wrong
            for right, wrong, is_right in zip(
                recording.spelled, recording.wrong, coins.right, strict=True
            )
        ]
        self._text = b"".join(believed)
        self._vocabulary = vocabulary
        self._probabilities = dict(zip((0, *recording.ends), coins.probabilities, strict=False))
        """Of each token of the target, by where it begins."""
        self._said: dict[int, Said] = {}

    def after(self, answer_bytes: int) -> Said:
        """What the draft says after so many bytes of the answer."""
        at = answer_bytes % len(self._text)
        if at not in self._said:
            self._read(at)
        return self._said[at]

    def _read(self, start: int) -> None:
        rest = self._text[start : start + READ_BYTES]
        read = rest + self._text[: READ_BYTES - len(rest)]
        read = read[: utf8_end(read)]
        found = spans(self._vocabulary, read)
        places = accumulate(found.widths, initial=0)
        for token_id, (begin, end) in zip(found.ids, pairwise(places), strict=True):
            if begin and end > len(read) - UNSURE_BYTES:
                break
            place = (start + begin) % len(self._text)
            self._said[place] = Said(token_id, end - begin, self._probability(place, end - begin))

    def _probability(self, begin: int, width: int) -> float:
        """That the target's tokens which begin within are all right. A token that only goes on with
        one of the target's is as sure as can be: its beginning has told."""
        probability = 1.0
        for place in range(begin, begin + width):
            probability *= self._probabilities.get(place % len(self._text), 1.0)
        return probability
