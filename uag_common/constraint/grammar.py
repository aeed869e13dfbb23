"""From a constraint to a grammar of llguidance; what is too large, or means nothing, is refused.

Knows the forms of the four kinds and their limits. It must not know a vocabulary.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from uag_common.constraint import lark
from uag_common.constraint.compilation import UncompilableError
from uag_common.constraint.trial import try_grammar
from uag_common.decoding import Constraint, ConstraintKind
from uag_common.errors import InvalidRequestError

MAX_SCHEMA_BYTES = 64 * 1024
MAX_SCHEMA_DEPTH = 32
"""Objects and lists inside one another."""

MAX_REGEX_BYTES = 4 * 1024
MAX_CHOICES = 1024
MAX_CHOICE_BYTES = 64 * 1024
"""Of all texts of a choice together."""

MAX_GRAMMAR_BYTES = 64 * 1024

MAX_BRANCHES = 2000
"""Ways to read a text that are followed at once. An object takes four for each property that may
be left out."""

MAX_GRAMMAR_BRANCHES = 500
"""For a grammar of the client's own, which may be ambiguous: then the time of a token grows with
the square of the ways, to seconds with the other limit and to a tenth of one with this."""

# Forced bytes would be given to the model in one spelling, and it may prefer another: a token is
# the target's to choose. One part of a grammar turns this off for all of it.
_NO_FORCING = {"lark_grammar": '%llguidance {"no_forcing": true}\nstart: "-"'}


@dataclass(frozen=True, slots=True)
class Grammar:
    """A grammar as llguidance reads it, and the most branches that it may have."""

    source: str
    branches: int


def check_constraint(constraint: Constraint) -> None:
    """Raises InvalidRequestError for whatever cannot be compiled: no such language, larger than the
    limits above, a keyword that would be ignored, a compilation that takes more than
    `trial.CPU_SECONDS`. Needs no vocabulary, and may start a process and wait for it: not for an
    event loop. OverloadedError if that process gets no time to compute in."""
    checked_grammar(constraint)


def checked_grammar(constraint: Constraint) -> Grammar:
    """The grammar of a constraint that `check_constraint` lets pass; raises as that does."""
    try:
        grammar = _grammar(constraint)
        if constraint.kind is not ConstraintKind.CHOICE:
            # A few texts always compile.
            try_grammar(grammar.source, grammar.branches)
    except UncompilableError as error:
        raise refused(constraint, str(error)) from error
    return grammar


def refused(constraint: Constraint, problem: str) -> InvalidRequestError:
    """The error that tells a client what is wrong with its constraint."""
    return InvalidRequestError(f"constraint.{constraint.kind.value}", problem)


def _grammar(constraint: Constraint) -> Grammar:
    own = constraint.kind is ConstraintKind.GRAMMAR
    parts = [_PARTS[constraint.kind](constraint.texts), _NO_FORCING]
    try:
        source = json.dumps({"grammars": parts}, allow_nan=False)
    except ValueError as error:
        raise UncompilableError("it has a number that JSON cannot write") from error
    return Grammar(source, MAX_GRAMMAR_BRANCHES if own else MAX_BRANCHES)


def _schema_part(texts: tuple[str, ...]) -> Mapping[str, Any]:
    """JSON Schema, draft 2020-12 as far as llguidance has it; the properties of an object come in
    the order of the schema. White space stands where JSON allows it inside the value, in any
    amount, and neither before nor after it."""
    (text,) = texts
    _check_size(text, MAX_SCHEMA_BYTES)
    too_deep = UncompilableError(f"it is nested more than {MAX_SCHEMA_DEPTH} deep")
    try:
        schema = json.loads(text)
    except RecursionError:
        raise too_deep from None
    except ValueError as error:
        raise UncompilableError(f"it is not JSON: {error}") from error
    if not isinstance(schema, dict | bool):
        raise UncompilableError("it is neither an object nor true")
    if _depth(schema) > MAX_SCHEMA_DEPTH:
        raise too_deep
    if isinstance(schema, dict) and "x-guidance" in schema:
        raise UncompilableError(lark.OPTIONS_PROBLEM)
    return {"json_schema": schema}


def _regex_part(texts: tuple[str, ...]) -> Mapping[str, Any]:
    """In the syntax of Rust's regex crate, without look-around; the whole answer matches."""
    (text,) = texts
    _check_size(text, MAX_REGEX_BYTES)
    return {"lark_grammar": f"start: {lark.pattern(text)}"}


def _choice_part(texts: tuple[str, ...]) -> Mapping[str, Any]:
    if not texts:
        raise UncompilableError("it has no texts to choose from")
    if len(texts) > MAX_CHOICES:
        raise UncompilableError(f"it has {len(texts)} texts, the most are {MAX_CHOICES}")
    if "" in texts:
        raise UncompilableError("one of its texts is empty")
    _check_size("".join(texts), MAX_CHOICE_BYTES)
    # One terminal, so that texts that begin alike are told apart as late as need be.
    alternatives = " | ".join(lark.literal(text) for text in texts)
    return {"lark_grammar": f"start: CHOICE\nCHOICE: {alternatives}"}


def _grammar_part(texts: tuple[str, ...]) -> Mapping[str, Any]:
    (text,) = texts
    _check_size(text, MAX_GRAMMAR_BYTES)
    lark.check(text)
    return {"lark_grammar": text}


_PARTS: Mapping[ConstraintKind, Callable[[tuple[str, ...]], Mapping[str, Any]]] = {
    ConstraintKind.JSON_SCHEMA: _schema_part,
    ConstraintKind.REGEX: _regex_part,
    ConstraintKind.CHOICE: _choice_part,
    ConstraintKind.GRAMMAR: _grammar_part,
}


def _check_size(text: str, most: int) -> None:
    size = len(text.encode())
    if not size:
        raise UncompilableError("it is empty")
    if size > most:
        raise UncompilableError(f"it has {size} bytes, the most are {most}")


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level := [part for whole in level for part in _parts(whole)]:
        depth += 1
    return depth


def _parts(value: Any) -> list[Any]:
    """The values in a list or an object; one None for an empty one, so that it counts too."""
    if isinstance(value, dict):
        return list(value.values()) or [None]
    if isinstance(value, list):
        return value or [None]
    return []
