"""The pair of models that is there, and how a session of each is opened."""

from __future__ import annotations

from orchestrator.draft_client import DraftClient, DraftOptions
from orchestrator.peer import ModelPeer
from orchestrator.settings import OrchestratorSettings
from orchestrator.side import Side
from orchestrator.verify_client import VerifyClient, VerifyOptions
from uag_common.errors import PeerUnavailableError


class Pair:
    """One draft service and one verify service; either may come and go."""

    def __init__(self, settings: OrchestratorSettings, draft: ModelPeer, verify: ModelPeer) -> None:
        self._settings = settings
        self._draft = draft
        self._verify = verify

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
