"""What a service shows at GET /metrics, as plain values. Knows Prometheus's formats, no service."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import Metric
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.samples import Sample

TEXT = "text/plain"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


@dataclass(frozen=True, slots=True)
class MetricsPage:
    """One page, and the seconds that it took."""

    text: str
    families: tuple[Metric, ...]
    seconds: float

    @classmethod
    def read(cls, address: str, accept: str = TEXT) -> MetricsPage:
        """`accept`: the format that the reader asks for."""
        request = urllib.request.Request(f"http://{address}/metrics", headers={"Accept": accept})
        began = time.perf_counter()
        with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310 - our own
            text = response.read().decode()
        seconds = time.perf_counter() - began
        parse = parse_openmetrics if accept == OPENMETRICS else parse_text
        return cls(text, tuple(parse(text)), seconds)

    @property
    def samples(self) -> Iterator[Sample]:
        return (sample for family in self.families for sample in family.samples)


@dataclass(frozen=True, slots=True)
class Scrape:
    """The pages of all services at one time, by role."""

    pages: Mapping[str, MetricsPage]

    @classmethod
    def of(cls, addresses: Mapping[str, str], accept: str = TEXT) -> Scrape:
        return cls({role: MetricsPage.read(at, accept) for role, at in addresses.items()})

    @property
    def samples(self) -> Iterator[Sample]:
        return (sample for page in self.pages.values() for sample in page.samples)

    @property
    def names(self) -> set[str]:
        return {sample.name for sample in self.samples}

    @property
    def kinds(self) -> dict[str, str]:
        """Of each name of a sample whether it is of a counter, a gauge, a histogram, ..."""
        families = (family for page in self.pages.values() for family in page.families)
        return {sample.name: family.type for family in families for sample in family.samples}

    def labels(self, name: str) -> set[str]:
        """The labels that samples of that name have."""
        return {label for sample in self.samples if sample.name == name for label in sample.labels}

    def values(self, label: str) -> set[str]:
        """The values that a label has anywhere."""
        return {sample.labels[label] for sample in self.samples if label in sample.labels}

    def value(self, name: str, **labels: str) -> float:
        """The sum of the samples of that name that have these labels."""
        return sum(
            sample.value
            for sample in self.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )
