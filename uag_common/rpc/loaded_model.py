"""A model that is loaded, and the room that its sessions work in. Knows no service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass

from opentelemetry.trace import Tracer

from uag_common.admission import Admission, IdleTimer
from uag_common.batching.batcher import Batcher
from uag_common.batching.queue_bound import QueueBound
from uag_common.errors import PeerUnavailableError, StaleContextError
from uag_common.model import Model
from uag_common.model_settings import ModelServiceSettings
from uag_common.prefix_cache import PrefixCache
from uag_common.rpc.errors import BUGS_TOLD
from uag_common.telemetry.attributes import REQUEST_MODEL, RPC_METHOD, RPC_SYSTEM
from uag_common.telemetry.model_metrics import ModelMetrics
from uag_common.telemetry.spans import is_sampled, join, server_span
from uag_common.worker import Worker

MEGABYTE = 1_000_000


class SessionRoom:
    """What a session works in. `hold` is told the length of its context."""

    def __init__(
        self, idle: IdleTimer, hold: Callable[[int], None], tracer: Tracer, model_id: str
    ) -> None:
        self.hold = hold
        self._idle = idle
        self._tracer = tracer
        self._model_id = model_id
        self._joined = ""

    def command(self, name: str, method: str, traceparent: str) -> AbstractContextManager[None]:
        """Around the work at one command; it has a span if its caller has a recorded one."""
        if is_sampled(traceparent):
            return self._spanned(name, method, traceparent)
        if traceparent != self._joined:
            self._joined = traceparent
            join(traceparent)
        return self._working()

    @contextmanager
    def _spanned(self, name: str, method: str, traceparent: str) -> Iterator[None]:
        attributes = {RPC_SYSTEM: "grpc", RPC_METHOD: method, REQUEST_MODEL: self._model_id}
        with server_span(self._tracer, name, traceparent, attributes), self._working():
            yield

    @contextmanager
    def _working(self) -> Iterator[None]:
        with self._idle.working(), BUGS_TOLD:
            yield


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model, the queue of its work, and what its sessions share."""

    model: Model
    batcher: Batcher
    admission: Admission
    prefixes: PrefixCache
    metrics: ModelMetrics
    tracer: Tracer

    @classmethod
    def of(
        cls,
        model: Model,
        worker: Worker,
        settings: ModelServiceSettings,
        metrics: ModelMetrics,
        tracer: Tracer,
    ) -> LoadedModel:
        """As the settings have it; its metrics are shown from now on."""
        admission = Admission(settings.max_sessions, settings.idle_seconds, metrics.refused)
        prefixes = PrefixCache(settings.prefix_cache_mb * MEGABYTE)
        bound = QueueBound(settings.max_queue, settings.max_queue_seconds)
        batcher = Batcher(worker, model, prefixes.drop_one, metrics, bound, settings.max_batch)
        loaded = cls(model, batcher, admission, prefixes, metrics, tracer)
        loaded._show()
        return loaded

    def _show(self) -> None:
        show, admission, prefixes = self.metrics.watch, self.admission, self.prefixes
        batcher, blocks = self.batcher, self.model.blocks
        self.metrics.describe(self.model.description)
        show("uag_sessions", "Open sessions.", lambda: admission.open_sessions)
        show("uag_sessions_max", "Most sessions that may be open.", lambda: admission.max_sessions)
        show("uag_pending_steps", "Steps that wait or run.", lambda: self.batcher.pending)
        show("uag_waiting_sessions", "Sessions that wait to be opened.", lambda: batcher.waiting)
        show("uag_kv_blocks", "Blocks that caches are made of.", lambda: blocks.total)
        show("uag_kv_blocks_used", "Blocks that caches hold, kept ones too.", lambda: blocks.used)
        show("uag_kept_prefixes", "Caches kept of ended sessions.", lambda: prefixes.kept_prefixes)
        show("uag_kept_prefix_bytes", "Bytes of the kept caches.", lambda: prefixes.kept_bytes)
        show("uag_kept_prefix_bytes_max", "Most bytes of kept caches.", lambda: prefixes.max_bytes)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[SessionRoom]:
        """The room of a session, from its start to its end. Raises OverloadedError if there is
        none, DeadlineExceededError where no command comes for too long."""
        async with self.admission.session() as idle:
            with self.metrics.session() as hold:
                yield SessionRoom(idle, hold, self.tracer, self.model.description.model_id)

    def check_tokenizer(self, sha256: str) -> None:
        """Raises StaleContextError if a session's ids are of another tokenizer than the model's."""
        held = self.model.description.tokenizer_sha256
        if sha256 != held:
            raise StaleContextError(
                f"the ids are of tokenizer {sha256 or '(not told)'}, this service holds {held}; "
                "describe the model anew"
            )


class ModelSlot:
    """Empty until the model is loaded and has run a test step."""

    def __init__(self) -> None:
        self._loaded: LoadedModel | None = None

    def fill(self, loaded: LoadedModel) -> None:
        self._loaded = loaded

    @property
    def loaded(self) -> LoadedModel:
        """Raises PeerUnavailableError while the model loads."""
        if self._loaded is None:
            raise PeerUnavailableError("the model is still loading; watch health for SERVING")
        return self._loaded

    @property
    def step_seconds(self) -> float:
        """How long the running step has been running; 0 if none runs. Loading is no step."""
        return 0.0 if self._loaded is None else self._loaded.batcher.step_seconds
