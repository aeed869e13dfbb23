"""Variables, metrics, files and words that pages name are there."""

from __future__ import annotations

import re

import pytest
from opentelemetry.sdk import environment_variables

from tests.docs.names import all_variables, identifiers, metrics, process_metrics
from tests.docs.pages import ROOT, Page, all_pages

PAGES = all_pages()
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.path))

OURS = re.compile(r"\bUAG_[A-Z_*…<>]+")
METRIC = re.compile(r"\buag_[a-z0-9_]+(?:\{[^}\n]*\})?")
LABEL = re.compile(r"([a-z_]+)(?:=~?|!=|!~)?\"?")
SUFFIXES = ("", "_bucket", "_sum", "_count")
PACKAGES = ("uag_common",)
FILE = re.compile(r"(?:[\w.-]+/)+[\w.-]*")
NAME = re.compile(r"[a-z]+(?:_[a-z]+)+")


@each_page
def test_each_variable_of_ours_is_read(page: Page) -> None:
    known = all_variables()
    for name in set(OURS.findall(page.text)):
        # A star, or a word in its place, stands for what differs.
        pattern = re.compile(re.sub(r"[*…]|<\w+>", "[A-Z_]+", name.rstrip("<>")))
        assert any(map(pattern.fullmatch, known)), f"{page.path}: {name}"


@each_page
def test_each_variable_of_opentelemetry_is_known(page: Page) -> None:
    for name in set(re.findall(r"\bOTEL_[A-Z_]+[A-Z]\b", page.text)):
        known = hasattr(environment_variables, name) or name in (
            "OTEL_SERVICE_NAME",
            "OTEL_TRACES_EXPORTER",
        )
        assert known, f"{page.path}: {name}"


@each_page
def test_each_metric_is_shown(page: Page) -> None:
    known = {name + suffix: labels for name, labels in metrics().items() for suffix in SUFFIXES}
    for written in set(METRIC.findall(page.text)):
        name, _, labels = written.partition("{")
        if name in PACKAGES:
            continue
        assert name in known, f"{page.path}: {name}"
        given = {label.split("=")[0] for label in labels.rstrip("}").split(",") if label}
        assert given <= known[name] | {"le"}, f"{page.path}: {written}"


@each_page
def test_each_metric_of_a_process_is_shown(page: Page) -> None:
    named = set(re.findall(r"`((?:process|python)_[a-z_]+)", page.text))
    assert named <= process_metrics(), page.path


@each_page
def test_each_file_is_there(page: Page) -> None:
    tops = {path.name for path in ROOT.iterdir()}
    for span in page.spans():
        if FILE.fullmatch(span) and span.split("/")[0] in tops:
            assert (ROOT / span).exists(), f"{page.path}: {span}"


@each_page
def test_each_name_is_one_of_the_code(page: Page) -> None:
    known = identifiers() | metrics().keys() | process_metrics()
    for span in page.spans():
        last = span.rpartition(".")[2]
        if NAME.fullmatch(last):
            assert last in known, f"{page.path}: {span}"
