"""Texts in the Lark form of llguidance: what a client's grammar may not use, how a text is quoted.

Knows the lexical form. It must not know what a grammar means.
"""

from __future__ import annotations

import json
import re

from uag_common.constraint.compilation import UncompilableError

# What hides its characters from the grammar: strings, regular expressions, comments. One without
# an end goes to the end of the text, which cannot be compiled anyway.
_HIDDEN = re.compile(r'"(?:\\.|[^"\\])*"?|/(?:\\.|[^/\\])+/?|(?:#|//)[^\n]*', re.DOTALL)

_REFUSED = (
    (re.compile(r"%llguidance"), "options of the library (%llguidance) are not the client's"),
    (re.compile(r"<"), "a token is no text (<...>): a constraint is on what the answer spells"),
    # They take bytes back, count tokens, set temperatures.
    (
        re.compile(r"\w[ \t]*\[[^\[\]\n]*\][ \t]*:"),
        "attributes of a rule (name[...]:) tell the library how to read, and are not supported",
    ),
)
OPTIONS_PROBLEM = "options of the library (x-guidance) are not the client's"

_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
_SPECIAL = re.compile(r"\\.|/", re.DOTALL)


def check(grammar: str) -> None:
    """Raises UncompilableError if a grammar uses what does more than allow texts."""
    seen = _HIDDEN.sub(" ", grammar)
    for pattern, problem in _REFUSED:
        if pattern.search(seen):
            raise UncompilableError(problem)
    # A schema inside may write any character by its number.
    if "%json" in seen and "x-guidance" in _ESCAPE.sub(lambda part: chr(int(part[1], 16)), grammar):
        raise UncompilableError(OPTIONS_PROBLEM)


def pattern(regex: str) -> str:
    """The regular expression as one of a grammar, which ends at a bare slash, and where no line
    may end behind a backslash."""
    return f"/{_SPECIAL.sub(_quoted, regex)}/"


def literal(text: str) -> str:
    """The text as a string of a grammar, which has JSON's form without control characters."""
    return json.dumps(text, ensure_ascii=True)


def _quoted(part: re.Match[str]) -> str:
    return {"/": r"\/", "\\\n": r"\n"}.get(part[0], part[0])
