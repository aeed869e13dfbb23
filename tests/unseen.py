"""What is seen by nobody: for tests that are about something else."""

from __future__ import annotations

import time

from opentelemetry.trace import NoOpTracer
from prometheus_client import CollectorRegistry

from orchestrator.answer_metrics import AnswerMetrics
from orchestrator.observation import Observation
from uag_common.admission import Admission
from uag_common.batching.batcher import Batcher
from uag_common.model import Model
from uag_common.prefix_cache import PrefixCache
from uag_common.rpc.loaded_model import LoadedModel
from uag_common.telemetry.model_metrics import ModelMetrics
from uag_common.worker import Worker


def unseen_observation() -> Observation:
    return Observation(0, time.perf_counter(), AnswerMetrics(CollectorRegistry()))


def unseen_model(
    model: Model, worker: Worker, admission: Admission, prefixes: PrefixCache
) -> LoadedModel:
    metrics = ModelMetrics(CollectorRegistry())
    batcher = Batcher(worker, model, prefixes.drop_one, metrics)
    return LoadedModel(model, batcher, admission, prefixes, metrics, NoOpTracer())
