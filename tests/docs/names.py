"""What pages may name: variables, metrics, what the code has a name for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Registered:
    """A metric by the name that a scrape shows it under."""

    name: str
    kind: str
    labels: frozenset[str]
    help: str


@cache
def registered() -> tuple[Registered, ...]:
    """All metrics of the three services."""
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
    return tuple(_shown(metric) for metric in ours if isinstance(metric, MetricWrapperBase))


def metrics() -> Mapping[str, frozenset[str]]:
    """The labels of each metric by the name that a scrape shows it under."""
    return {metric.name: metric.labels for metric in registered()}


def _shown(metric: MetricWrapperBase) -> Registered:
    labels, name = frozenset(metric._labelnames) | {_ALL}, metric._name
    if isinstance(metric, Counter):
        name = f"{name}_total"
    elif isinstance(metric, Info):
        name, labels = f"{name}_info", labels | set(metric._value)
    return Registered(name, str(metric._type), labels, metric._documentation)


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
