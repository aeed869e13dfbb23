"""What is refused, in which words, and how soon."""

from __future__ import annotations

import itertools
import threading
import time

import psutil
import pytest

from tests.constraint.masks import choice, grammar, regex, schema
from uag_common.constraint import trial
from uag_common.constraint.grammar import (
    MAX_CHOICE_BYTES,
    MAX_CHOICES,
    MAX_GRAMMAR_BYTES,
    MAX_REGEX_BYTES,
    MAX_SCHEMA_BYTES,
    MAX_SCHEMA_DEPTH,
    check_constraint,
)
from uag_common.decoding import Constraint, ConstraintKind
from uag_common.errors import InvalidRequestError, OverloadedError
from uag_common.line_process import MAX_IDLE, LineProcesses

# The limit is on the time of the processor; a busy machine takes longer.
GENEROUS_SECONDS = 15 * trial.CPU_SECONDS


def text_schema(text: str) -> Constraint:
    return Constraint(ConstraintKind.JSON_SCHEMA, (text,))


def nested(depth: int) -> Constraint:
    return text_schema('{"items":' * (depth - 1) + "{}" + "}" * (depth - 1))


def chain(link: str, last: str, length: int) -> Constraint:
    """A grammar whose first rule leads over all others to the last."""
    names = [f"{last[0]}{at}" for at in range(length + 1)]
    rules = [f"{here}: {link.format(there)}" for here, there in itertools.pairwise(names)]
    return grammar("\n".join([f"start: {names[0]}", *rules, f'{names[-1]}: "a"']))


GOOD = {
    "empty schema": schema({}),
    "any JSON": schema(True),
    "object": schema({"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}}),
    "tree": schema({"type": "object", "properties": {"c": {"items": {"$ref": "#"}}}}),
    "100 properties": schema({"properties": {f"p{n}": {"type": "string"} for n in range(100)}}),
    "enum": schema({"enum": [f"value {n}" for n in range(2000)]}),
    "annotations": schema({"title": "x", "description": "y", "examples": [1], "default": 2}),
    "long const": schema({"const": "a" * 60_000}),
    "deepest": nested(MAX_SCHEMA_DEPTH),
    "as large as may be": text_schema('{"const":"' + "a" * (MAX_SCHEMA_BYTES - 12) + '"}'),
    "regex": regex(r"\d{4}-\d\d|[\p{Lu}é/\\\"]+"),
    "anchors": regex("^abc$"),
    "may be empty": regex("a*"),
    "many repeats": regex("(a{1000}){1000}"),
    "choice of many": choice(*(f"{n:062}" for n in range(MAX_CHOICES))),
    "control characters": choice('\x00\x1f\x7f\u2028"\\/<>%'),
    "grammar": grammar('start: e\ne: e "+" t | t // <x> [stop="y"]:\nt: /[0-9]+/ | "(" e ")"'),
    "json in a grammar": grammar('start: "<%llguidance" %json {"const": "<|stop=\\"|>"} /<[^>]+>/'),
    "names": grammar('start: stop lazy\nstop: /s[t]:/\nlazy: "a[b]:" [stop] /.*!/ # a[lazy]:'),
}

BAD = {
    "no schema": (text_schema(""), "empty"),
    "white space": (text_schema(" "), "not JSON"),
    "no JSON": (text_schema('{"a":'), "not JSON"),
    "more than one": (text_schema("{} {}"), "not JSON"),
    "a rule behind": (text_schema('{}\nother: "x"'), "not JSON"),
    "NaN": (text_schema('{"minimum": NaN}'), "cannot write"),
    "infinite": (text_schema('{"minimum": 1e999}'), "cannot write"),
    "digits": (text_schema('{"minimum": ' + "9" * 5000 + "}"), "not JSON"),
    "half a character": (text_schema('{"const": "\\ud800"}'), "hex escape"),
    "text": (text_schema('"abc"'), "neither an object nor true"),
    "list": (text_schema("[]"), "neither an object nor true"),
    "number": (text_schema("1"), "neither an object nor true"),
    "nothing": (schema(False), "Unsatisfiable"),
    "type": (schema({"type": "str"}), "Invalid type"),
    "too deep": (nested(MAX_SCHEMA_DEPTH + 1), "nested more than 32"),
    "far too deep": (text_schema("[" * 60_000), "nested more than 32"),
    "too large": (text_schema(" " * MAX_SCHEMA_BYTES + "{}"), "65538 bytes"),
    "only itself": (schema({"$ref": "#"}), "no text"),
    "itself and more": (schema({"allOf": [{"$ref": "#"}, {"type": "object"}]}), "circular"),
    "elsewhere": (schema({"$ref": "https://example.com/schema"}), "example.com"),
    "not": (schema({"not": {"type": "string"}}), '"not"'),
    "unique": (schema({"type": "array", "uniqueItems": True}), "uniqueItems"),
    "lenient": (schema({"x-guidance": {"lenient": True}, "uniqueItems": True}), "x-guidance"),
    "oneOf": (schema({"oneOf": [{"type": "string"}, {"minLength": 1}]}), "oneOf"),
    "format": (schema({"type": "string", "format": "nope"}), "nope"),
    "look-ahead in a pattern": (schema({"type": "string", "pattern": "(?=a)"}), "look-around"),
    "bounds": (schema({"type": "integer", "minimum": 5, "maximum": 2}), "minimum"),
    "branches": (
        schema({"type": "object", "properties": {f"p{n}": {} for n in range(900)}}),
        "items",
    ),
    "multiples": (schema({"type": "integer", "multipleOf": 999_983}), "too complex"),
    "primes": (
        schema({"allOf": [{"type": "integer", "multipleOf": n} for n in (7, 11, 13, 17, 19, 23)]}),
        "too complex",
    ),
    "patterns": (
        schema({"patternProperties": {f"^a{n}$": {"type": "string"} for n in range(1500)}}),
        "too complex",
    ),
    "intersection": (
        schema({"allOf": [{"type": "string", "pattern": f"a{n}.*b{n}"} for n in range(200)]}),
        "too complex",
    ),
    "no regex": (regex(""), "empty"),
    "open group": (regex("(a"), "unclosed group"),
    "look-ahead": (regex("(?=a)b"), "look-around"),
    "reference": (regex(r"(a)\1"), "backreferences"),
    "escape": (regex("a\\"), "lexer error"),
    "nested groups": (regex("(" * 300 + "a" + ")" * 300), "250"),
    "nothing matches": (regex(r"[^\s\S]"), "no text"),
    "long regex": (regex("a" * (MAX_REGEX_BYTES + 1)), "4097 bytes"),
    "long regex of characters": (regex("é" * (MAX_REGEX_BYTES // 2 + 1)), "4098 bytes"),
    "no choice": (choice(), "no texts"),
    "empty text": (choice("a", ""), "empty"),
    "many texts": (choice(*map(str, range(MAX_CHOICES + 1))), "1025 texts"),
    "long texts": (choice("a" * 40_000, "b" * 40_000), "80000 bytes"),
    "no grammar": (grammar(""), "empty"),
    "comment": (grammar("// nothing"), "no start rule"),
    "no rule": (grammar("start ((("), "Expected"),
    "no start": (grammar('other: "a"'), "no start rule"),
    "unknown rule": (grammar('start: "a"\n  other'), "2|other"),
    "endless": (grammar("start: start"), "no text"),
    "another form": (grammar('{"grammars": [{"json_schema": {}}]}'), "xpect"),
    "the other part": (grammar("start: @lark_grammar"), "unknown grammar"),
    "options": (grammar('%llguidance {"no_forcing": false}\nstart: "a"'), "%llguidance"),
    "options inside": (grammar('start: %lark { %llguidance {}\nstart: "a" }'), "%llguidance"),
    "a token": (grammar("start: <|im_end|>"), "<...>"),
    "token ids": (grammar('start: "a" | <[3-7]>'), "<...>"),
    "quote in a token": (grammar('start: <a"b>\n%llguidance {}\nother: "<"'), "<...>"),
    "stop": (grammar('start: a\na[stop="x"]: /.*/'), "attributes"),
    "max_tokens": (grammar("start: a\na[lazy, max_tokens = 3]: /.*/"), "attributes"),
    "temperature": (grammar("start: a\n?a [temperature=0.3] : /.*/"), "attributes"),
    "suffix": (grammar('start: %lark { start: a\n a[suffix=";"]: /.*/ }'), "attributes"),
    "options of a schema": (grammar('start: %json {"x-guidance": {}}'), "x-guidance"),
    "escaped options": (grammar(r'start: %json {"\u0078-guidanc\u0065": {}}'), "x-guidance"),
    "brackets": (grammar("start: " + "a[" * 30000), "nested"),
    "long grammar": (grammar('start: "a"' + " " * MAX_GRAMMAR_BYTES), "65546 bytes"),
    "nested rules": (grammar("start: " + "(" * 500 + '"a"' + ")" * 500), "nested"),
    "chain of rules": (chain("{0} {0}", "r", 2500), "too complex"),
    "chain of terminals": (chain("({0} | /x/) {0}", "T", 2000), "too complex"),
    "terminals that double": (chain("{0} {0}", "T", 2000), "too complex"),
    "product": (
        grammar(
            "start: T\nT: "
            + " & ".join(f"/(a{{{n}}})*/" for n in (7, 11, 13, 17, 19, 23))
            + " & /a+/"
        ),
        "fuel",
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_compiles_is_let_pass(name: str) -> None:
    check_constraint(GOOD[name])


@pytest.mark.parametrize("name", BAD)
def test_the_rest_is_refused_with_its_reason(name: str) -> None:
    constraint, reason = BAD[name]
    start = time.monotonic()
    with pytest.raises(InvalidRequestError, match=reason) as refusal:
        check_constraint(constraint)
    assert time.monotonic() - start < GENEROUS_SECONDS
    assert refusal.value.field == f"constraint.{constraint.kind.value}"
    assert "\n" not in refusal.value.problem
    assert len(refusal.value.problem) < 400


def test_texts_of_a_choice_count_together() -> None:
    check_constraint(choice("a" * (MAX_CHOICE_BYTES - 1), "b"))
    with pytest.raises(InvalidRequestError):
        check_constraint(choice("a" * MAX_CHOICE_BYTES, "b"))


def test_what_one_grammar_breaks_does_not_harm_the_next() -> None:
    for name in ("chain of terminals", "multiples", "primes"):
        with pytest.raises(InvalidRequestError):
            check_constraint(BAD[name][0])
        check_constraint(schema({"const": f"after {name}"}))


def test_a_process_that_was_killed_is_replaced() -> None:
    check_constraint(regex("before"))
    for process in trials():
        process.kill()
    check_constraint(regex("after"))


def test_many_threads_leave_few_processes() -> None:
    problems: list[Exception] = []

    def check(number: int) -> None:
        try:
            check_constraint(schema({"const": f"thread {number}"}))
        except InvalidRequestError as error:
            problems.append(error)

    threads = [threading.Thread(target=check, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert 1 <= len(trials()) <= MAX_IDLE


def test_a_process_that_gets_no_time_is_not_the_clients_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trial, "PATIENCE_SECONDS", 0.001)
    monkeypatch.setattr(trial, "_trials", LineProcesses(trial._new_process))
    with pytest.raises(OverloadedError):
        check_constraint(regex("in a hurry"))


def trials() -> list[psutil.Process]:
    """The processes that try grammars."""
    children = psutil.Process().children()
    return [child for child in children if child.cmdline()[-1:] == [str(trial._PROGRAM)]]
