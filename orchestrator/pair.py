"""The pair of models that is there, and how a session of each is opened."""

from __future__ import annotations

from orchestrator.draft_client import DraftClient, DraftOptions
from orchestrator.growing_lookup import Memory
from orchestrator.peer import ModelPeer
from orchestrator.settings import OrchestratorSettings
from orchestrator.side import Side
from orchestrator.speculation.earlier_answers import EarlierAnswers
from orchestrator.speculation.figures import PairFigures
from orchestrator.speculation.known_figures import KnownFigures
from orchestrator.verify_client import VerifyClient, VerifyOptions
from uag_common.errors import PeerUnavailableError
from uag_common.model import ModelDescription


class Pair:
    """One draft service and one verify service; either may come and go."""

    def __init__(self, settings: OrchestratorSettings, draft: ModelPeer, verify: ModelPeer) -> None:
        self._settings = settings
        self._draft = draft
        self._verify = verify
        self._figures = KnownFigures()
        self._remembered: tuple[ModelDescription, EarlierAnswers] | None = None

    @property
    def target(self) -> Side:
        """Raises PeerUnavailableError while there is none."""
        if self._verify.side is None:
            raise PeerUnavailableError(self._verify.reason)
        return self._verify.side

    @property
    def max_answers(self) -> int:
        """Most answers of one request: each has a session of the target's."""
        return self._verify.max_sessions

    @property
    def draft(self) -> Side | None:
        """None while there is none; `draft_reason` tells why."""
        return self._draft.side

    @property
    def draft_reason(self) -> str:
        return self._draft.reason

    @property
    def may_run_ahead(self) -> bool:
        """Whether the draft model may run beside the target."""
        return self._settings.draft_ahead

    def figures(self, target: Side, draft: Side | None) -> PairFigures:
        """What is known of how these two work together."""
        return self._figures.of(target.description, None if draft is None else draft.description)

    def memory(self, target: Side, key: bytes) -> Memory | None:
        """Earlier answers of the target that a request with this key may look up."""
        if not key or not self._settings.lookup_memory_tokens:
            return None
        if self._remembered is None or self._remembered[0] != target.description:
            answers = EarlierAnswers(self._settings.lookup_memory_tokens)
            self._remembered = (target.description, answers)
        return Memory(self._remembered[1], key)

    def verify_session(self, target: Side, options: VerifyOptions) -> VerifyClient:
        return VerifyClient(
            self._verify.address,
            self._verify.channel,
            target.description,
            self._settings.verify_timeout_seconds,
            options,
        )

    def draft_session(self, draft: Side, options: DraftOptions) -> DraftClient:
        return DraftClient(
            self._draft.address,
            self._draft.channel,
            draft.description,
            self._settings.draft_timeout_seconds,
            options,
        )
