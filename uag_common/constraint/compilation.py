"""A grammar compiled against a vocabulary, within limits.

Knows llguidance and its way to tell of errors, which is to tell them when asked. Imports nothing of
the project: `trial` runs this file as a program, which is to start quickly.
"""

from __future__ import annotations

import json
import re
import resource
import signal
import sys
from typing import BinaryIO

from llguidance import LLMatcher, LLParserLimits, LLTokenizer

MAX_LEXER_STATES = 100_000
"""For one answer, at about half a kilobyte each. A text of bounded length takes a few for each of
its characters."""

LONGEST_PROBLEM = 300
"""Characters that are told of what is wrong with a grammar."""

FAILED = "the compiler of constraints fails at it"

_FOLLOWED_BYTES = 64

# Lines of the grammar, and what the library says of its own state.
_DETAILS = re.compile(r"\n *\d+ \| .*|<(?:backtrace|non-verbose/)>.*", re.DOTALL)


class UncompilableError(Exception):
    """A constraint that cannot be compiled. What it says is told to the client."""


def compiled(tokenizer: LLTokenizer, source: str, branches: int) -> LLMatcher:
    """A matcher at the start of an answer that can begin. UncompilableError for a grammar that the
    library refuses, would follow in part only, or that no text of the vocabulary matches."""
    limits = LLParserLimits(
        max_items_in_row=branches, max_lexer_states=MAX_LEXER_STATES, verbose_errors=False
    )
    matcher = LLMatcher(tokenizer, source, log_level=0, limits=limits)
    if matcher.is_error():
        raise UncompilableError(problem(matcher))
    if warnings := matcher.get_grammar_warnings():
        raise UncompilableError("; ".join(warnings)[:LONGEST_PROBLEM])
    matcher.compute_bitmask()
    if matcher.is_error():
        raise UncompilableError(problem(matcher))
    return matcher


def problem(matcher: LLMatcher) -> str:
    """In one line why a matcher is in error."""
    text = _DETAILS.sub("", matcher.get_error())
    if text.startswith("NoExtension"):
        return "no text of the tokens matches it"
    if text.startswith("panic: "):
        return FAILED
    if "regex parse error" in text:
        text = text.rpartition("error: ")[2]
    return " ".join(text.split())[:LONGEST_PROBLEM]


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Compiles grammars for a vocabulary of the bytes alone until there are no more of them; each
    reply is what is wrong with one, or nothing. One that breaks a limit ends the process."""
    limits = json.loads(requests.readline())
    _limit_memory(limits["memory_bytes"], limits["stack_bytes"])
    tokenizer = LLTokenizer("byte")
    for line in requests:
        signal.setitimer(signal.ITIMER_PROF, limits["cpu_seconds"])
        reply = _try(tokenizer, **json.loads(line))
        signal.setitimer(signal.ITIMER_PROF, 0)
        replies.write(json.dumps(reply).encode() + b"\n")
        replies.flush()


def _try(tokenizer: LLTokenizer, source: str, branches: int) -> str:
    try:
        _follow(compiled(tokenizer, source, branches))
    except UncompilableError as error:
        return str(error)
    except MemoryError:
        return "it takes too much memory to compile"
    except BaseException:
        # A panic in native code is no Exception, whatever it says.
        return FAILED
    return ""


def _limit_memory(memory_bytes: int, stack_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        # Elsewhere the system does not keep to them.
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        resource.setrlimit(resource.RLIMIT_STACK, (stack_bytes, stack_bytes))


def _follow(matcher: LLMatcher) -> None:
    """Goes on while the next byte is certain: a text often branches most behind what it must begin
    with, such as an object behind its brace."""
    for _ in range(_FOLLOWED_BYTES):
        mask = int.from_bytes(matcher.compute_bitmask(), "little")
        if matcher.is_error():
            raise UncompilableError(problem(matcher))
        if mask.bit_count() != 1 or matcher.is_accepting():
            return
        matcher.try_consume_tokens([mask.bit_length() - 1])


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
