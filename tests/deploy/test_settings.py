"""The variables in the manifests are settings that exist, and say what the rest of them says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from draft_service.settings import DraftSettings
from orchestrator.settings import OrchestratorSettings
from tests.deploy.rendering import EVERYWHERE, Rendered, Workload, bytes_of
from uag_common.addresses import split
from uag_common.models import catalogue
from uag_common.models.settings import StoreSettings
from uag_common.models.source import HUB_ID
from uag_common.service_settings import ServiceSettings
from uag_common.settings import load
from verify_service.settings import VerifySettings

SETTINGS: dict[str, type[ServiceSettings]] = {
    "orchestrator": OrchestratorSettings,
    "draft": DraftSettings,
    "verify": VerifySettings,
}
LOOPBACK = "127.0.0.1"
COMMIT = re.compile(r"[0-9a-f]{40}")


def _settings(rendered: Rendered, workload: Workload) -> ServiceSettings:
    return load(SETTINGS[workload.component], rendered.environment(workload.main))


def _own(rendered: Rendered, workload: Workload) -> dict[str, str]:
    variables = rendered.environment(workload.main)
    return {name: value for name, value in variables.items() if name.startswith("UAG_")}


def test_every_variable_is_a_setting_of_its_service(rendered: Rendered) -> None:
    for workload in rendered.services:
        _settings(rendered, workload)
        for name in _own(rendered, workload):
            assert name.startswith(SETTINGS[workload.component].PREFIX) or name == "UAG_CACHE"


def test_models_lie_on_the_volume(rendered: Rendered) -> None:
    for component in ("draft", "verify"):
        workload = rendered.workload(component)
        for container in (workload.main, *workload.initial):
            variables = rendered.environment(container)
            (volume,) = (
                Path(mount["mountPath"])
                for mount in container["volumeMounts"]
                if mount["name"] == "models"
            )
            store = StoreSettings.from_environment(variables)
            assert store.root.is_relative_to(volume)
            assert Path(variables["HF_HOME"]).is_relative_to(volume)


@pytest.mark.parametrize("component", ["draft", "verify"])
def test_the_model_that_is_fetched_is_the_one_that_is_loaded(
    rendered: Rendered, component: str
) -> None:
    workload = rendered.workload(component)
    (fetch,) = workload.initial
    name = f"UAG_{component.upper()}_MODEL"
    assert fetch["command"] == ["uag", "models", "fetch", f"$({name})"]
    assert rendered.environment(fetch)[name] == rendered.environment(workload.main)[name]


def test_models_are_named_with_what_pins_them(rendered: Rendered) -> None:
    for component in ("draft", "verify"):
        workload = rendered.workload(component)
        model = rendered.environment(workload.main)[f"UAG_{component.upper()}_MODEL"]
        if model not in catalogue.names():
            match = HUB_ID.fullmatch(model)
            assert match
            assert COMMIT.fullmatch(match["revision"]), model


def test_a_service_listens_where_its_ports_say(rendered: Rendered) -> None:
    for workload in rendered.services:
        settings = _settings(rendered, workload)
        assert settings.metrics_listen
        declared = {port["name"]: port["containerPort"] for port in workload.main["ports"]}
        assert split(settings.metrics_listen) == (EVERYWHERE, declared["metrics"])
        host, port = split(settings.listen)
        if host == LOOPBACK:
            # Something in the pod stands in front of it.
            assert "grpc" not in declared
            assert len(workload.running) == 2
        else:
            assert (host, port) == (EVERYWHERE, declared["grpc"])


def test_ports_are_those_of_the_defaults(rendered: Rendered) -> None:
    """One port for one service, on a laptop as in a cluster."""
    for workload in rendered.services:
        default = load(
            SETTINGS[workload.component], {"UAG_DRAFT_MODEL": "x", "UAG_VERIFY_MODEL": "x"}
        )
        assert split(_settings(rendered, workload).listen)[1] == split(default.listen)[1]


def test_addresses_lead_to_pods_that_listen(rendered: Rendered) -> None:
    variables = rendered.environment(rendered.workload("orchestrator").main)
    for component in ("draft", "verify"):
        address = variables[f"UAG_ORCHESTRATOR_{component.upper()}"]
        _check_address(rendered, address, rendered.workload(component))
    collector = variables.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    if collector:
        _check_address(rendered, collector.removeprefix("http://"), rendered.workload("traces"))


def _check_address(rendered: Rendered, address: str, workload: Workload) -> None:
    host, number = split(address)
    service = rendered.find("Service", host)
    assert service["spec"]["selector"].items() <= workload.labels.items()
    (port,) = (item for item in service["spec"]["ports"] if item["port"] == number)
    assert port["targetPort"] in workload.ports


def test_all_three_send_traces_or_none(rendered: Rendered) -> None:
    endpoints = [
        rendered.environment(workload.main).get("OTEL_EXPORTER_OTLP_ENDPOINT")
        for workload in rendered.services
    ]
    assert len(set(endpoints)) == 1


def test_the_demo_has_the_memory_that_its_models_take(renderings: dict[str, Rendered]) -> None:
    rendered = renderings["cpu-demo"]
    for component in ("draft", "verify"):
        workload = rendered.workload(component)
        variables = rendered.environment(workload.main)
        model = catalogue.find(variables[f"UAG_{component.upper()}_MODEL"])
        (fetch,) = workload.initial
        assert _memory(workload.main) > 1.5 * model.resident_bytes("float32")
        assert _memory(fetch) > 1.2 * model.conversion_memory_bytes
        (volume,) = (v for v in workload.pod["volumes"] if v["name"] == "models")
        needed = model.download_bytes + model.gguf_bytes + model.converted_bytes
        assert bytes_of(volume["emptyDir"]["sizeLimit"]) > 1.2 * needed


def test_on_a_cpu_a_pass_takes_the_cores_that_are_asked_for(rendered: Rendered) -> None:
    for component in ("draft", "verify"):
        workload = rendered.workload(component)
        variables = rendered.environment(workload.main)
        if variables[f"UAG_{component.upper()}_DEVICE"] == "cpu":
            threads = variables[f"UAG_{component.upper()}_THREADS"]
            assert threads == workload.main["resources"]["requests"]["cpu"]


def _memory(container: dict[str, dict[str, dict[str, str]]]) -> float:
    return bytes_of(container["resources"]["limits"]["memory"])
