"""One vocabulary on both sides: ids pass as they are, and the draft's context mirrors the target's.

Knows the state of one session. It must not know bytes beyond reporting them.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.conversion.answer_position import AnswerPosition
from orchestrator.conversion.conversion import DraftUpdate, Proposal, ProposalStatus, Stop
from orchestrator.conversion.vocabulary import Vocabulary
from uag_common.common_prefix import common_prefix
from uag_common.decoding import NoisePosition


class SameVocabulary:
    """The conversion of one session where both models have the identical tokenizer.

    The two sides may still differ in roles: an EOS of the draft that is none for the target is
    proposed as the target's own. `draft_prefix` are the ids that stand in the draft's context
    before the mirrored ids.
    """

    capped_windows = 0

    def __init__(
        self,
        target: Vocabulary,
        draft: Vocabulary,
        *,
        draft_prefix: Sequence[int] = (),
        prompt_ids: Sequence[int] = (),
    ) -> None:
        self._target = target
        self._draft = draft
        self._mirror = [*draft_prefix]
        self._unseen = self._readable(prompt_ids)
        self._speculated: list[int] = []
        self._lost_draft_ids = 0
        self._answer = AnswerPosition(target)

    @property
    def position(self) -> NoisePosition:
        return self._answer.back(0)

    @property
    def draft_ids(self) -> Sequence[int]:
        return self._mirror

    @property
    def may_go_on(self) -> bool:
        return True

    @property
    def lost_draft_ids(self) -> int:
        return self._lost_draft_ids

    def commit(self, target_ids: Sequence[int]) -> None:
        self._unseen.extend(self._readable(target_ids))
        for token_id in target_ids:
            self._answer.commit(token_id)

    def sync(self) -> DraftUpdate:
        common = common_prefix(self._speculated, self._unseen)
        update = DraftUpdate(
            rollback=len(self._speculated) - common,
            append=tuple(self._unseen[common:]),
            keep=len(self._mirror) + common,
        )
        self._mirror.extend(self._unseen)
        self._unseen, self._speculated = [], []
        return update

    def propose(self, draft_ids: Sequence[int]) -> Proposal:
        self._speculated = [*draft_ids]
        held = len(self._unseen)
        follows = self._speculated[:held] == self._unseen[: len(draft_ids)]
        candidates, stop = self._read(self._speculated[held:]) if follows else ([], None)
        known = held if follows else 0
        lost = max(0, len(draft_ids) - known - len(candidates))
        self._lost_draft_ids += lost
        return Proposal(
            candidate_ids=tuple(candidates),
            proposed_bytes=self._bytes(candidates),
            status=ProposalStatus.OK if follows else ProposalStatus.HELD_MISMATCH,
            stop=stop,
            seam_is_token_boundary=True if candidates else None,
            held_target_bytes=len(self._bytes(self._unseen)),
            held_draft_bytes=0,
            lost_draft_ids=lost,
            not_representable_draft_ids=0,
            draft_ids_used=tuple(range(held + 1, held + 1 + len(candidates))),
            known_draft_ids=min(known, len(draft_ids)),
        )

    def _readable(self, target_ids: Sequence[int]) -> list[int]:
        """Without ids that have no token: the embedding of the draft may have no row for them."""
        return [token_id for token_id in target_ids if _is_token(self._target, token_id)]

    def _read(self, draft_ids: Sequence[int]) -> tuple[list[int], Stop | None]:
        candidates: list[int] = []
        for token_id in draft_ids:
            if token_id in self._draft.roles.eos:
                return [*candidates, *self._eos(token_id)], Stop.EOS
            if not _is_token(self._draft, token_id):
                return candidates, Stop.UNKNOWN_ID
            candidates.append(token_id)
        return candidates, None

    def _eos(self, token_id: int) -> Sequence[int]:
        primary = self._target.roles.primary_eos
        if token_id in self._target.roles.eos:
            return [token_id]
        return [] if primary is None else [primary]

    def _bytes(self, ids: Sequence[int]) -> bytes:
        return b"".join(self._target.piece(token_id) or b"" for token_id in ids)


def _is_token(vocabulary: Vocabulary, token_id: int) -> bool:
    return vocabulary.piece(token_id) is not None or vocabulary.is_control(token_id)
