"""Settings from the environment, checked at birth. Knows no service: each brings its dataclass.

A settings class is a frozen dataclass whose fields are made by `setting`. Each field is one
variable: the class's prefix and the field's name in capitals. There is no other source.
"""

from __future__ import annotations

import dataclasses
import difflib
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from uag_common.errors import StartError


@dataclass(frozen=True, slots=True)
class SettingRule:
    """What a setting means and which values it takes."""

    help: str
    minimum: float | None = None
    maximum: float | None = None


def setting(
    help: str,  # noqa: A002 - the word that readers of a settings class expect
    *,
    default: Any = dataclasses.MISSING,
    minimum: float | None = None,
    maximum: float | None = None,
) -> Any:
    """A dataclass field that is read from the environment."""
    rule = SettingRule(help, minimum, maximum)
    if default is dataclasses.MISSING:
        return field(metadata={"rule": rule})
    return field(default=default, metadata={"rule": rule})


@dataclass(frozen=True)
class Settings:
    """Base of the settings classes: names the prefix of their variables."""

    PREFIX: ClassVar[str]


S = TypeVar("S", bound=Settings)


def variable_name(settings_class: type[Settings], field_name: str) -> str:
    return settings_class.PREFIX + field_name.upper()


def load(settings_class: type[S], environ: Mapping[str, str]) -> S:
    """Reads the class from `environ`. Raises StartError that names the variable and the remedy."""
    fields = dataclasses.fields(settings_class)
    known = {variable_name(settings_class, item.name): item for item in fields}
    given = {name: text for name, text in environ.items() if name.startswith(settings_class.PREFIX)}
    for name in given:
        if name not in known:
            raise StartError(f"{name}: no such setting{_suggestion(name, settings_class)}")
    types_by_name = get_type_hints(settings_class)
    values: dict[str, Any] = {}
    for name, item in known.items():
        if name in given:
            values[item.name] = _parse(name, given[name], types_by_name[item.name], _rule(item))
        elif item.default is dataclasses.MISSING:
            raise StartError(f"{name} is not set: {_rule(item).help}")
    return settings_class(**values)


def describe(settings_class: type[Settings]) -> str:
    """One paragraph a variable, for `--help`."""
    lines = []
    for item in dataclasses.fields(settings_class):
        lines.append(f"  {variable_name(settings_class, item.name)} ({_default(item)})")
        lines.append(f"      {_rule(item).help}")
    return "\n".join(lines)


def _default(item: dataclasses.Field[Any]) -> str:
    if item.default is dataclasses.MISSING:
        return "required"
    if item.default is None:
        return "not set"
    # As it would be written in the environment.
    written = str(item.default).lower() if isinstance(item.default, bool) else item.default
    return f"default: {written}"


def _rule(item: dataclasses.Field[Any]) -> SettingRule:
    rule = item.metadata["rule"]
    if not isinstance(rule, SettingRule):
        raise TypeError(f"{item.name} is not made by setting()")
    return rule


def _suggestion(name: str, settings_class: type[Settings]) -> str:
    known = [item.name for item in dataclasses.fields(settings_class)]
    wrong = name.removeprefix(settings_class.PREFIX).lower()
    close = difflib.get_close_matches(wrong, known, n=1)
    if close:
        return f"; did you mean {variable_name(settings_class, close[0])}?"
    return f"; known are {', '.join(variable_name(settings_class, item) for item in known)}"


def _parse(name: str, text: str, kind: Any, rule: SettingRule) -> Any:
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(option for option in get_args(kind) if option is not types.NoneType)
    if get_origin(kind) is Literal:
        return _one_of(name, text, get_args(kind))
    if kind is bool:
        return _one_of(name, text.lower(), ("true", "false")) == "true"
    if kind in (int, float):
        return _number(name, text, kind, rule)
    if not text:
        raise StartError(f"{name} is empty: {rule.help}")
    return text


def _one_of(name: str, text: str, options: tuple[str, ...]) -> str:
    if text not in options:
        raise StartError(f"{name}={text}: must be one of {', '.join(options)}")
    return text


def _number(name: str, text: str, kind: type[int] | type[float], rule: SettingRule) -> float:
    try:
        value = kind(text)
    except ValueError:
        word = "a whole number" if kind is int else "a number"
        raise StartError(f"{name}={text}: must be {word}") from None
    low, high = rule.minimum, rule.maximum
    if not (low is None or value >= low) or not (high is None or value <= high):
        raise StartError(f"{name}={text}: must be {_range(low, high)}")
    return value


def _range(low: float | None, high: float | None) -> str:
    if low is None:
        return f"at most {high}"
    return f"at least {low}" if high is None else f"from {low} to {high}"
