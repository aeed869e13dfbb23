"""What pages may name: variables, metrics, what the code has a name for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from prometheus_client import (
    GC_COLLECTOR,
    PLATFORM_COLLECTOR,
    PROCESS_COLLECTOR,
    Counter,
    Info,
)
from prometheus_client.metrics import MetricWrapperBase

from orchestrator.answer_metrics import AnswerMetrics
from tests.docs.pages import ROOT
from tests.docs.settings_tables import variables
from tests.fakes import FakeModel
from uag_common.model_settings import ModelServiceSettings
from uag_common.rpc.loaded_model import LoadedModel
from uag_common.rpc.observation import CallObserver
from uag_common.telemetry.model_metrics import ModelMetrics
from uag_common.telemetry.telemetry import Telemetry
from uag_common.worker import Worker

FOLDERS = ("protos", "uag_common", "orchestrator", "draft_service", "verify_service", "benchmarks")
SOURCES = (".py", ".proto")

OTHER_VARIABLES = frozenset(
    {"UAG_API_KEY", "UAG_CACHE", "UAG_JAEGER_URL", "UAG_OFFLINE", "UAG_SHARED"}
)
"""Read outside the settings classes: by the command line, the model store, the tests."""

_ALL = "role"


@cache
def metrics() -> Mapping[str, frozenset[str]]:
    """The labels of each metric by the name that a scrape shows it under."""
    telemetry = Telemetry.unseen("test")
    registry = telemetry.registry
    before = set(registry._collector_to_names)
    CallObserver(telemetry)
    AnswerMetrics(registry)
    settings = ModelServiceSettings(listen="", model="")
    worker = Worker("unused")
    LoadedModel.of(FakeModel(), worker, settings, ModelMetrics(registry), telemetry.tracer)
    worker.close()
    ours = (collector for collector in registry._collector_to_names if collector not in before)
    return dict(_shown(collector) for collector in ours if isinstance(collector, MetricWrapperBase))


def _shown(metric: MetricWrapperBase) -> tuple[str, frozenset[str]]:
    labels = frozenset(metric._labelnames) | {_ALL}
    if isinstance(metric, Counter):
        return f"{metric._name}_total", labels
    if isinstance(metric, Info):
        return f"{metric._name}_info", labels | set(metric._value)
    return metric._name, labels


def process_metrics() -> frozenset[str]:
    """Those that the library brings."""
    collectors = (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR)
    samples = (
        sample.name
        for collector in collectors
        for metric in collector.collect()
        for sample in metric.samples
    )
    return frozenset(samples)


def all_variables() -> frozenset[str]:
    """All of our own."""
    return variables() | OTHER_VARIABLES


@cache
def identifiers() -> frozenset[str]:
    """All names in the code of the services, the client and the contract."""
    sources = [
        path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SOURCES
    ]
    found: set[str] = set()
    for path in sources:
        found.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    return frozenset(found)
