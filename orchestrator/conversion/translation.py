"""Two vocabularies: the committed bytes of a session, and the draft ids that mirror them.

Knows both vocabularies and the state of one session. It must not know models, messages or rounds.
Ids that the target committed are never encoded again: the two sides are aligned by byte position.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise

from orchestrator.conversion.answer_position import AnswerPosition
from orchestrator.conversion.conversion import DraftUpdate, Proposal, ProposalStatus, Stop
from orchestrator.conversion.guess import Guess
from orchestrator.conversion.spans import spans
from orchestrator.conversion.utf8 import utf8_end
from orchestrator.conversion.vocabulary import Vocabulary
from orchestrator.conversion.window import FURTHEST_BYTES, Side, Window, window_start
from orchestrator.conversion.word_spelling import KNOWN_BYTES
from uag_common.common_prefix import common_prefix
from uag_common.decoding import NoisePosition


@dataclass(frozen=True, slots=True)
class _Break:
    """A control token of the target: where it stands, and the draft's id of its role."""

    at: int
    draft_id: int | None


class Translation:
    """The conversion of one session between two different vocabularies.

    `draft_prefix` are the ids that stand in the draft's context before the mirrored text: its own
    rendering of the chat, or its own beginning of a text. `prompt_ids` are the target's ids of a
    raw prompt; `skip_leading_space` says that the target's tokenizer put a space before its text,
    which the draft must not see.
    """

    def __init__(
        self,
        target: Vocabulary,
        draft: Vocabulary,
        *,
        draft_prefix: Sequence[int] = (),
        prompt_ids: Sequence[int] = (),
        skip_leading_space: bool = False,
    ) -> None:
        self._committed = bytearray()
        self._breaks: list[_Break] = []
        self._target = Side(target)
        self._draft = Side(draft)
        self._answer = AnswerPosition(target)
        self._take(prompt_ids)
        self._origin = 1 if skip_leading_space and self._committed.startswith(b" ") else 0
        for token_id in draft_prefix:
            self._draft.push(token_id, self._origin)
        self._draft.part(self._origin)
        self._seen = self._origin
        self._synced = 0
        self._speculated: list[int] = []
        self._capped_windows = 0
        self._lost_draft_ids = 0

    @property
    def draft_ids(self) -> Sequence[int]:
        return self._draft.ids

    @property
    def position(self) -> NoisePosition:
        return self._answer.back(len(self._committed) - self._seen)

    @property
    def may_go_on(self) -> bool:
        return not self._breaks

    @property
    def capped_windows(self) -> int:
        return self._capped_windows

    @property
    def lost_draft_ids(self) -> int:
        return self._lost_draft_ids

    @property
    def seen_bytes(self) -> int:
        """How many of the committed bytes the draft's context holds after the last `sync`."""
        return self._seen

    def commit(self, target_ids: Sequence[int]) -> None:
        self._take(target_ids)
        for token_id in target_ids:
            self._answer.commit(token_id)

    def _take(self, target_ids: Sequence[int]) -> None:
        target, committed = self._target, self._committed
        for token_id in target_ids:
            piece = target.vocabulary.piece(token_id)
            committed += piece or b""
            target.push(token_id, len(committed))
            if piece is None:
                target.part(len(committed))
                self._breaks.append(_Break(len(committed), self._counterpart(token_id)))

    def sync(self) -> DraftUpdate:
        draft = self._draft
        if len(self._target.ids) == self._synced:
            return self._forget_speculated()
        window = window_start(draft, self._committed)
        old = draft.ids[window.first :] + self._speculated
        self._seen = max(self._seen, utf8_end(self._committed, self._target.start))
        self._mirror(window)
        new = draft.ids[window.first :]
        common = common_prefix(old, new)
        self._speculated = []
        self._synced = len(self._target.ids)
        self._capped_windows += window.capped
        return DraftUpdate(
            rollback=len(old) - common,
            append=tuple(new[common:]),
            keep=window.first + common,
        )

    def propose(self, draft_ids: Sequence[int]) -> Proposal:
        self._speculated = [*draft_ids]
        before = self._committed[max(self._origin, self._seen - KNOWN_BYTES) : self._seen]
        guess = Guess.read(self._draft.vocabulary, draft_ids, bytes(before))
        held = bytes(self._committed[self._seen :])
        follows = guess.data.startswith(held) and not self._breaks
        proposal = self._convert(guess, len(held)) if follows else _nothing(guess, held)
        self._lost_draft_ids += proposal.lost_draft_ids
        return proposal

    def _counterpart(self, token_id: int) -> int | None:
        """The draft's id of the role that a control token of the target has."""
        roles, others = self._target.vocabulary.roles, self._draft.vocabulary.roles
        if token_id in roles.eos:
            return None
        if token_id == roles.turn_start:
            return others.turn_start
        return others.turn_end if token_id == roles.turn_end else None

    def _forget_speculated(self) -> DraftUpdate:
        rollback = len(self._speculated)
        self._speculated = []
        return DraftUpdate(rollback=rollback, append=(), keep=len(self._draft.ids))

    def _mirror(self, window: Window) -> None:
        """Puts the ids of all bytes that the draft may see in the place of those in the window."""
        draft, start = self._draft, window.start
        draft.drop(window.first)
        for control in self._breaks:
            self._append(start, control.at)
            start = max(start, control.at)
            if control.draft_id is not None:
                draft.push(control.draft_id, start)
            draft.part(start)
        self._breaks.clear()
        self._append(start, self._seen)
        if draft.vocabulary.lossy:
            self._bound_look_behind()

    def _bound_look_behind(self) -> None:
        """Parts the text where it ends now if the next sync would have to look too far back."""
        window = window_start(self._draft, self._committed)
        if self._seen - window.start > FURTHEST_BYTES:
            self._draft.part(self._seen)
            self._capped_windows += 1

    def _append(self, start: int, end: int) -> None:
        data = bytes(self._committed[start:end])
        self._draft.extend(spans(self._draft.vocabulary, data), start)

    def _convert(self, guess: Guess, held: int) -> Proposal:
        end = max(held, utf8_end(guess.data))
        new = guess.data[held:end]
        ids, on_boundary = self._candidates(new)
        eos = self._target.vocabulary.roles.primary_eos
        whole = guess.stop is Stop.EOS and end == len(guess.data)
        ending = [eos] if whole and eos is not None else []
        return Proposal(
            candidate_ids=(*ids, *ending),
            proposed_bytes=new,
            status=ProposalStatus.OK,
            stop=guess.stop,
            seam_is_token_boundary=on_boundary,
            held_target_bytes=held,
            held_draft_bytes=len(guess.data) - end,
            lost_draft_ids=guess.lost_after(end) - len(ending),
            not_representable_draft_ids=self._not_representable(ids, new, guess.ends, held),
            draft_ids_used=(*self._used(ids, guess.ends, held), *(guess.count for _ in ending)),
            known_draft_ids=bisect_right(guess.ends, held),
        )

    def _used(self, candidates: Sequence[int], ends: Sequence[int], held: int) -> Iterator[int]:
        """Of each candidate, how many draft ids spell the text up to its end."""
        target = self._target.vocabulary
        widths = (len(target.piece(token_id) or b"") for token_id in candidates)
        for end in islice(accumulate(widths, initial=held), 1, None):
            yield min(bisect_left(ends, end) + 1, len(ends))

    def _not_representable(
        self, candidates: list[int], new: bytes, ends: Sequence[int], held: int
    ) -> int:
        """How many draft ids have a byte of the new text that the target has no ids for."""
        target = self._target.vocabulary
        if b"".join(target.spell(candidates)) == new:
            return 0
        missing, at = set[int](), held
        spelled = spans(target, new)
        for token_id, width in zip(spelled.ids, spelled.widths, strict=True):
            if target.piece(token_id) != new[at - held : at - held + width]:
                missing.update(range(at, at + width))
            at += width
        return sum(not missing.isdisjoint(range(start, end)) for start, end in pairwise((0, *ends)))

    def _candidates(self, new: bytes) -> tuple[list[int], bool | None]:
        """The target's ids of new text, as in the whole text where its tokens part at the seam."""
        if not new:
            return [], None
        window = window_start(self._target, self._committed)
        self._capped_windows += window.capped
        known = bytes(self._committed[window.start :])
        whole = spans(self._target.vocabulary, known + new)
        for position, end in enumerate(accumulate(whole.widths, initial=0)):
            if end == len(known):
                return whole.ids[position:], True
            if end > len(known):
                break
        return spans(self._target.vocabulary, new).ids, False


def _nothing(guess: Guess, held: bytes) -> Proposal:
    """No candidates: the draft contradicts the held bytes, or ends within them."""
    agrees = held.startswith(guess.data)
    return Proposal(
        candidate_ids=(),
        proposed_bytes=b"",
        status=ProposalStatus.OK if agrees else ProposalStatus.HELD_MISMATCH,
        stop=guess.stop,
        seam_is_token_boundary=None,
        held_target_bytes=len(held),
        held_draft_bytes=0,
        lost_draft_ids=guess.count,
        not_representable_draft_ids=0,
    )
