"""One verify session: what of its commands may run, and where. No grpc, no torch."""

from __future__ import annotations

from collections.abc import Sequence

from uag_common.batching.batcher import Batcher, BatchSession
from uag_common.batching.job import Opening
from uag_common.batching.timing import Timed
from uag_common.context import ContextVersion
from uag_common.errors import InvalidRequestError
from uag_common.model import Model, TokenChooser
from uag_common.prefix_cache import PrefixCache
from uag_common.work_pool import WorkPool
from verify_service.open_command import OpenCommand
from verify_service.verifier import Opened, Verification, Verifier


class VerifySession:
    """Lives as long as its stream; to be closed in any case. `compilations` is where constraints
    are compiled: it takes long, and no model."""

    def __init__(
        self, model: Model, batcher: Batcher, prefixes: PrefixCache, compilations: WorkPool
    ) -> None:
        self._model = model
        self._compilations = compilations
        self._batcher = batcher
        self._prefixes = prefixes
        self._verifier: Verifier | None = None
        self._work: BatchSession | None = None

    @property
    def context_length(self) -> int:
        """Tokens that it holds."""
        return 0 if self._verifier is None else self._verifier.context_length

    async def open(self, command: OpenCommand) -> Timed[Opened]:
        """Raises InvalidRequestError, PromptTooLongError or OverloadedError, all before any model
        runs."""
        if self._verifier is not None:
            raise InvalidRequestError("open", "the session is open already")
        command.check(self._model.description)
        chooser = await self._new_chooser(command)
        self._verifier = Verifier(self._model, self._prefixes, command, chooser)
        self._work = self._batcher.session(command.priority)
        first = Opening(len(command.prompt_ids), self._verifier.is_ready)
        return await self._work.run(self._verifier.open, "open", first)

    async def _new_chooser(self, command: OpenCommand) -> TokenChooser:
        if command.decoding.constraint is None:
            return command.new_chooser(self._model)
        return await self._compilations.run(command.new_chooser, self._model)

    async def verify(
        self, committed: ContextVersion, candidates: Sequence[int]
    ) -> Timed[Verification]:
        """Raises InvalidRequestError, PromptTooLongError or StaleContextError before any model
        runs."""
        verifier, work = self._verifier, self._work
        if verifier is None or work is None:
            raise InvalidRequestError("verify", "the session must be opened first")
        verifier.check_verify(committed, candidates)
        return await work.run(lambda: verifier.verify(candidates), "verify")

    def close(self) -> None:
        """Ends the session on the model's thread, after the step that runs there; does not wait."""
        if self._verifier is not None and self._work is not None:
            self._work.end(self._verifier.end)
