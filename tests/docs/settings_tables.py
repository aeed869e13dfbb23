"""The tables of settings, from the settings classes. Knows no page."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from draft_service.settings import DraftSettings
from orchestrator.settings import OrchestratorSettings
from tests.docs.pages import table
from uag_common.model_settings import ModelServiceSettings
from uag_common.service_settings import ServiceSettings
from uag_common.settings import SettingRule, Settings, variable_name
from verify_service.settings import VerifySettings

SERVICES: Mapping[str, type[ServiceSettings]] = {
    "orchestrator": OrchestratorSettings,
    "draft": DraftSettings,
    "verify": VerifySettings,
}
HEADER = ("variable", "type", "default", "range", "meaning")

Field = dataclasses.Field[Any]


def variables() -> frozenset[str]:
    """All that a service reads under its prefix."""
    return frozenset(
        variable_name(service, item.name)
        for service in SERVICES.values()
        for item in dataclasses.fields(service)
    )


def of_all() -> str:
    """The settings that all three services have."""
    return _shared(ServiceSettings, tuple(SERVICES))


def of_models() -> str:
    """Those that the two model services have beside these."""
    return _shared(ModelServiceSettings, ("draft", "verify"))


def of_each() -> str:
    """Each service's own."""
    return "\n".join(
        f"### {name.capitalize()}\n\n{_own(service)}" for name, service in SERVICES.items()
    )


def _own(service: type[ServiceSettings]) -> str:
    rows = [
        _row(variable_name(service, item.name), service, item, _default(item))
        for item in _owned(service)
    ]
    return table(HEADER, rows) if rows else "No settings of its own.\n"


def _shared(base: type[ServiceSettings], names: tuple[str, ...]) -> str:
    rows = []
    for item in _owned(base):
        defaults = {name: _default(_field(SERVICES[name], item.name)) for name in names}
        rows.append(_row(f"UAG_*_{item.name.upper()}", base, item, _told(defaults)))
    return table(HEADER, rows)


def _owned(settings: type[Settings]) -> Iterator[Field]:
    """The fields that come with this class: a class below may only change their default."""
    inherited = {
        item.name
        for base in settings.__mro__[1:]
        if dataclasses.is_dataclass(base)
        for item in dataclasses.fields(base)
    }
    return (item for item in dataclasses.fields(settings) if item.name not in inherited)


def _field(settings: type[Settings], name: str) -> Field:
    return next(item for item in dataclasses.fields(settings) if item.name == name)


def _row(variable: str, settings: type[Settings], item: Field, default: str) -> tuple[str, ...]:
    rule: SettingRule = item.metadata["rule"]
    kind = get_type_hints(settings)[item.name]
    return (f"`{variable}`", _kind(kind), default, _range(kind, rule), rule.help)


def _kind(hint: Any) -> str:
    hint = _given(hint)
    if get_origin(hint) is Literal:
        return "choice"
    return {bool: "true or false", int: "whole number", float: "number", str: "text"}[hint]


def _range(hint: Any, rule: SettingRule) -> str:
    hint = _given(hint)
    if get_origin(hint) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(hint))
    low, high = rule.minimum, rule.maximum
    if low is None:
        return "" if high is None else f"at most {_number(high)}"
    return f"at least {_number(low)}" if high is None else f"{_number(low)} to {_number(high)}"


def _given(hint: Any) -> Any:
    """The type of a value that is set."""
    if get_origin(hint) in (Union, types.UnionType):
        return next(option for option in get_args(hint) if option is not types.NoneType)
    return hint


def _default(item: Field) -> str:
    if item.default is dataclasses.MISSING:
        return "required"
    if item.default is None:
        return "not set"
    if isinstance(item.default, bool):
        return f"`{str(item.default).lower()}`"
    number = isinstance(item.default, int | float)
    return f"`{_number(item.default) if number else item.default}`"


def _told(defaults: Mapping[str, str]) -> str:
    if len(set(defaults.values())) == 1:
        return next(iter(defaults.values()))
    return ", ".join(f"{default} ({name})" for name, default in defaults.items())


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)
