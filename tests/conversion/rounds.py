"""Sessions that can be played: what a target commits block by block, and what a drafter answers.

Knows the public calls of a conversion, and a slow reference for the draft's context: the whole
text encoded anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

from hypothesis import strategies as st

from orchestrator.conversion.conversion import Conversion, DraftUpdate
from orchestrator.conversion.spans import spans
from orchestrator.conversion.utf8 import utf8_end
from orchestrator.conversion.vocabulary import Vocabulary
from tests.conversion.texts import bytes_of, lengths, raw_bytes, spelled


@dataclass(frozen=True, slots=True)
class Turn:
    """One round: how many ids the target commits, and how the drafter behaves in it.

    `truth` is the number of right draft ids that it proposes, `noise` are wrong ones after them;
    `late` ids are committed between the draft call and its answer.
    """

    block: int
    truth: int
    noise: tuple[int, ...]
    late: int


@dataclass(frozen=True, slots=True)
class Script:
    """What the target is going to say: bytes, how they are cut, and where control ids stand."""

    data: bytes
    pieces: tuple[int, ...]
    controls: tuple[tuple[int, int], ...]
    turns: tuple[Turn, ...]

    def ids(self, target: Vocabulary) -> list[int]:
        """The target's ids of the script."""
        ids = spelled(target, self.data, self.pieces)
        known = sorted(target.control_ids)
        for position, choice in self.controls:
            ids.insert(position % (len(ids) + 1), known[choice % len(known)])
        return ids


turns = st.builds(
    Turn,
    block=st.integers(1, 6),
    truth=st.integers(0, 6),
    noise=st.lists(st.integers(0, 300_000), max_size=3).map(tuple),
    late=st.sampled_from((0, 0, 0, 1, 3)),
)


def scripts(*, controls: bool = True, odd: bool = True) -> st.SearchStrategy[Script]:
    """Scripts; `controls`: with control ids in the middle, `odd`: spelled as no tokenizer would."""
    places = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 999)), max_size=3)
    return st.builds(
        Script,
        data=raw_bytes,
        pieces=lengths.map(tuple) if odd else st.just(()),
        controls=places.map(tuple) if controls else st.just(()),
        turns=st.lists(turns, min_size=1, max_size=12).map(tuple),
    )


def blocks(ids: Sequence[int], turns: Sequence[Turn]) -> list[tuple[list[int], Turn]]:
    """The ids in blocks, one for each turn, the turns over and over until all are used up."""
    result, at, again = [], 0, cycle(turns)
    while at < len(ids):
        turn = next(again)
        result.append(([*ids[at : at + turn.block]], turn))
        at += turn.block
    return result


def answer(draft: Vocabulary, turn: Turn, rest: bytes) -> list[int]:
    """What the drafter of a turn proposes where `rest` is what the target is going to say."""
    beyond = len(draft.pieces) + 5
    return spans(draft, rest).ids[: turn.truth] + [noise % beyond for noise in turn.noise]


def mirrored(target: Vocabulary, draft: Vocabulary, ids: Sequence[int]) -> tuple[list[int], int]:
    """The draft ids of all that was committed, from the whole text, and the bytes held back."""
    mirror: list[int] = []
    segment = b""
    for token_id in ids:
        piece = target.piece(token_id)
        if piece is None:
            mirror += spans(draft, segment).ids + _counterpart(target, draft, token_id)
            segment = b""
        else:
            segment += piece
    end = utf8_end(segment)
    return mirror + spans(draft, segment[:end]).ids, len(segment) - end


def seen_by_draft(target: Vocabulary, ids: Sequence[int], held: int) -> bytes:
    """The committed bytes without those held back."""
    data = bytes_of(target, ids)
    return data[: len(data) - held]


class DraftCache:
    """The draft's cache as its service keeps it: told of by updates and by what it drafted."""

    def __init__(self, prefix: Sequence[int] = ()) -> None:
        self.ids = [*prefix]

    def apply(self, update: DraftUpdate) -> None:
        """Rolls back and appends."""
        assert update.keep == len(self.ids) - update.rollback
        self.ids = [*self.ids[: update.keep], *update.append]
        assert len(self.ids) == update.length

    def extend(self, drafted: Sequence[int]) -> None:
        """Keeps what was drafted."""
        self.ids.extend(drafted)


def accepted(candidates: Sequence[int], truth: Sequence[int]) -> int:
    """How many candidates the target accepts that is going to say `truth`."""
    count = 0
    for candidate, chosen in zip(candidates, truth, strict=False):
        if candidate != chosen:
            break
        count += 1
    return count


def play(
    conversion: Conversion, script: Script, target: Vocabulary, draft: Vocabulary
) -> list[int]:
    """The ids that a target commits which follows the script and checks the drafter's proposals."""
    truth, output, cache = script.ids(target), list[int](), DraftCache(conversion.draft_ids)
    for turn in cycle(script.turns):
        if len(output) == len(truth):
            return output
        update = conversion.sync()
        cache.apply(update)
        assert cache.ids == [*conversion.draft_ids]
        drafted = answer(draft, turn, bytes_of(target, truth[len(output) :]))
        late = truth[len(output) : len(output) + turn.late]
        conversion.commit(late)
        output += late
        candidates = conversion.propose(drafted).candidate_ids
        cache.extend(drafted)
        count = accepted(candidates, truth[len(output) :])
        block = [*candidates[:count], *truth[len(output) + count :][:1]]
        conversion.commit(block)
        output += block
    return output


def _counterpart(target: Vocabulary, draft: Vocabulary, token_id: int) -> list[int]:
    pairs = (
        (target.roles.turn_start, draft.roles.turn_start),
        (target.roles.turn_end, draft.roles.turn_end),
    )
    for own, other in pairs:
        if token_id == own and token_id not in target.roles.eos and other is not None:
            return [other]
    return []
