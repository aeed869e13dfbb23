"""What the round loop asks of a conversion, and the plain values that cross that border.

Knows no vocabulary: two different ones stand in `translation`, one and the same in
`same_vocabulary`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from uag_common.decoding import NoisePosition


class ProposalStatus(Enum):
    """Whether the draft goes on with the committed text."""

    OK = "ok"
    HELD_MISMATCH = "held_mismatch"


class Stop(Enum):
    """Why a proposal ends before the last draft id."""

    EOS = "eos"
    CONTROL = "control"
    UNKNOWN_ID = "unknown_id"


@dataclass(frozen=True, slots=True)
class DraftUpdate:
    """What brings the draft's context in line with the committed text.

    `keep` ids stay of what the draft's context holds, after the last `rollback` ids are dropped;
    `append` follows them. `length` is that of the context afterwards. All count the draft's own
    prefix.
    """

    rollback: int
    append: tuple[int, ...]
    keep: int

    @property
    def length(self) -> int:
        """The number of ids in the draft's context after the update."""
        return self.keep + len(self.append)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a draft's ids propose to the target.

    `proposed_bytes` is the text of the candidates, without what is committed already and without
    an unfinished character at the end (`held_draft_bytes`). `held_target_bytes` counts committed
    bytes that the draft had not seen. `seam_is_token_boundary` tells whether the candidates go on
    from the committed text as its whole encoding does; None if nothing is proposed.
    `lost_draft_ids` counts the draft's ids that did not wholly reach a candidate, and
    `not_representable_draft_ids` those with bytes that the target has no ids for.
    `draft_ids_used` tells of each candidate how many of the draft's ids it takes to spell the text
    up to its end, and `known_draft_ids` how many of them spell what is committed already.
    """

    candidate_ids: tuple[int, ...]
    proposed_bytes: bytes
    status: ProposalStatus
    stop: Stop | None
    seam_is_token_boundary: bool | None
    held_target_bytes: int
    held_draft_bytes: int
    lost_draft_ids: int
    not_representable_draft_ids: int
    draft_ids_used: tuple[int, ...] = ()
    known_draft_ids: int = 0


class Conversion(Protocol):
    """Keeps a draft's context in line with the committed target ids of one session.

    The order of calls is `commit` at any time, `sync` before each draft call, `propose` with what
    the draft answered. More may be committed between `sync` and `propose`, and `propose` may follow
    again, with all that the draft has said since the last `sync`.
    """

    @property
    def draft_ids(self) -> Sequence[int]:
        """The draft's context after the last `sync`, its prefix included; not to be changed."""
        ...

    @property
    def position(self) -> NoisePosition:
        """Where in the answer the draft goes on after the last `sync`."""
        ...

    @property
    def may_go_on(self) -> bool:
        """Whether what the draft says after the last `sync` can be the text that was committed
        since: no control token was."""
        ...

    @property
    def capped_windows(self) -> int:
        """How often no exact cut was near, so that an encoding may not be the canonical one."""
        ...

    @property
    def lost_draft_ids(self) -> int:
        """How many proposed draft ids did not reach a candidate, all proposals together."""
        ...

    def commit(self, target_ids: Sequence[int]) -> None:
        """The target has chosen these ids, after all that it chose before."""
        ...

    def sync(self) -> DraftUpdate:
        """What the draft has to drop and to read before it drafts."""
        ...

    def propose(self, draft_ids: Sequence[int]) -> Proposal:
        """Candidates for the target from what the draft proposes after the last `sync`."""
        ...
