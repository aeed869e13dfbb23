"""One verify session: what of its commands may run, and where. No grpc, no torch."""

from __future__ import annotations

from collections.abc import Sequence

from uag_common.context import ContextVersion
from uag_common.errors import InvalidRequestError
from uag_common.model import Model, TokenChooser
from uag_common.prefix_cache import PrefixCache
from uag_common.work_pool import WorkPool
from uag_common.worker import Timed, Worker
from verify_service.open_command import OpenCommand
from verify_service.verifier import Opening, Verification, Verifier


class VerifySession:
    """Lives as long as its stream; to be closed in any case. `compilations` is where constraints
    are compiled: it takes long, and no model."""

    def __init__(
        self, model: Model, worker: Worker, prefixes: PrefixCache, compilations: WorkPool
    ) -> None:
        self._model = model
        self._compilations = compilations
        self._worker = worker
        self._prefixes = prefixes
        self._verifier: Verifier | None = None
        self._priority = 0

    @property
    def context_length(self) -> int:
        """Tokens that it holds."""
        return 0 if self._verifier is None else self._verifier.context_length

    async def open(self, command: OpenCommand) -> Timed[Opening]:
        """Raises InvalidRequestError, PromptTooLongError or OverloadedError, all before any model
        runs."""
        if self._verifier is not None:
            raise InvalidRequestError("open", "the session is open already")
        command.check(self._model.description)
        chooser = await self._new_chooser(command)
        self._priority = command.priority
        self._verifier = Verifier(self._model, self._prefixes, command, chooser)
        return await self._worker.run(self._verifier.open, self._priority, "open")

    async def _new_chooser(self, command: OpenCommand) -> TokenChooser:
        if command.decoding.constraint is None:
            return command.new_chooser(self._model)
        return await self._compilations.run(command.new_chooser, self._model)

    async def verify(
        self, committed: ContextVersion, candidates: Sequence[int]
    ) -> Timed[Verification]:
        """Raises InvalidRequestError, PromptTooLongError or StaleContextError before any model
        runs."""
        verifier = self._verifier
        if verifier is None:
            raise InvalidRequestError("verify", "the session must be opened first")
        verifier.check_verify(committed, candidates)
        return await self._worker.run(lambda: verifier.verify(candidates), self._priority, "verify")

    def close(self) -> None:
        """Ends the session on the model's thread, after the step that runs there; does not wait."""
        if self._verifier is not None:
            self._worker.post(self._verifier.end)
