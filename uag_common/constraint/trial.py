"""A first compilation of a grammar, in a process that may die of it.

The library works in native code that nothing can stop from within, and there are grammars of a few
kilobytes that let it compute for minutes, take gigabytes or overflow the stack. Knows limits and
processes. It must not know what a grammar says.
"""

from __future__ import annotations

import signal
import threading
from functools import lru_cache
from pathlib import Path

from uag_common.constraint import compilation
from uag_common.constraint.compilation import UncompilableError
from uag_common.errors import InternalError, OverloadedError
from uag_common.line_process import LineProcess, NoReplyError, ProcessEndedError

CPU_SECONDS = 0.5
"""What a compilation may compute. With the vocabulary of a model it takes twice as long at most."""

MEMORY_BYTES = 256 * 1024 * 1024
"""What its process may map, Python with it."""

STACK_BYTES = 1024 * 1024
"""An eighth of what a thread of a service has."""

PATIENCE_SECONDS = 10.0
"""For a process that gets no time to compute in."""

MAX_PROCESSES = 4
"""So many grammars are tried at once, others wait."""

_REMEMBERED = 64
_NO_TIME = "there is no time to compile the constraint now"
_TOO_COMPLEX = f"it is too complex to be compiled in {CPU_SECONDS:g} s and {MEMORY_BYTES >> 20} MiB"
_PROGRAM = Path(compilation.__file__)


@lru_cache(_REMEMBERED)
def try_grammar(source: str, branches: int) -> None:
    """Raises UncompilableError if the grammar does not compile within the limits above, and
    OverloadedError if that cannot be found out now. The last ones that passed are remembered."""
    problem = _trials.problem(source, branches)
    if problem:
        raise UncompilableError(problem)


class _Trials:
    """The processes, started as they are needed, and kept."""

    def __init__(self) -> None:
        self._idle: list[LineProcess] = []
        self._places = threading.BoundedSemaphore(MAX_PROCESSES)

    def problem(self, source: str, branches: int) -> str:
        """What is wrong with a grammar, or nothing."""
        if not self._places.acquire(timeout=PATIENCE_SECONDS):
            raise OverloadedError(_NO_TIME)
        try:
            return self._try(source, branches)
        except NoReplyError as error:
            raise OverloadedError(_NO_TIME) from error
        except ProcessEndedError as error:
            if error.status > 0:
                raise InternalError(f"the process that tries constraints {error}") from error
            raise UncompilableError(_TOO_COMPLEX) from error
        finally:
            self._places.release()

    def _try(self, source: str, branches: int) -> str:
        try:
            return self._ask(self._idle.pop(), source, branches)
        except IndexError:
            return self._ask(_new_process(), source, branches)
        except ProcessEndedError as error:
            if error.status == -signal.SIGPROF:
                raise
            # It may have died of what it was asked before, or of nothing that it was asked.
            return self._ask(_new_process(), source, branches)

    def _ask(self, process: LineProcess, source: str, branches: int) -> str:
        reply: str = process.ask({"source": source, "branches": branches})
        self._idle.append(process)
        return reply


def _new_process() -> LineProcess:
    limits = {
        "cpu_seconds": CPU_SECONDS,
        "memory_bytes": MEMORY_BYTES,
        "stack_bytes": STACK_BYTES,
    }
    return LineProcess(_PROGRAM, limits, PATIENCE_SECONDS)


_trials = _Trials()
