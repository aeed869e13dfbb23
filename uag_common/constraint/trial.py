"""A first compilation of a grammar, in a process that may die of it.

The library works in native code that nothing can stop from within, and there are grammars of a few
kilobytes that let it compute for minutes, take gigabytes or overflow the stack. Knows limits and
processes. It must not know what a grammar says.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from uag_common.constraint import compilation
from uag_common.constraint.compilation import UncompilableError
from uag_common.errors import InternalError
from uag_common.line_process import LineProcess, LineProcesses, ProcessEndedError

CPU_SECONDS = 0.5
"""What a compilation may compute. With the vocabulary of a model it takes twice as long at most."""

MEMORY_BYTES = 256 * 1024 * 1024
"""What its process may map, Python with it."""

STACK_BYTES = 1024 * 1024
"""An eighth of what a thread of a service has."""

PATIENCE_SECONDS = 10.0
"""For a process that gets no time to compute in."""

_REMEMBERED = 64
_TOO_COMPLEX = f"it is too complex to be compiled in {CPU_SECONDS:g} s and {MEMORY_BYTES >> 20} MiB"
_PROGRAM = Path(compilation.__file__)


@lru_cache(_REMEMBERED)
def try_grammar(source: str, branches: int) -> None:
    """Raises UncompilableError if the grammar does not compile within the limits above, and
    OverloadedError if that cannot be found out now. The last ones that passed are remembered."""
    try:
        problem = _trials.ask({"source": source, "branches": branches})
    except ProcessEndedError as error:
        if error.status > 0:
            raise InternalError(f"the process that tries constraints {error}") from error
        raise UncompilableError(_TOO_COMPLEX) from error
    if problem:
        raise UncompilableError(problem)


def _new_process() -> LineProcess:
    limits = {
        "cpu_seconds": CPU_SECONDS,
        "memory_bytes": MEMORY_BYTES,
        "stack_bytes": STACK_BYTES,
    }
    return LineProcess(_PROGRAM, limits, PATIENCE_SECONDS)


_trials = LineProcesses(_new_process)
