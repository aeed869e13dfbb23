"""Runs a file of conversion cases: `python -m tests.conformance FILE`.

Knows the form of the cases and the conversion's public calls. It must not know single cases: what
it does depends on a case's direction alone. One line for each failure; the last line counts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.conversion.spans import spans
from orchestrator.conversion.translation import Translation
from orchestrator.conversion.vocabulary import Vocabulary
from orchestrator.text_stream import TextStream
from tests.conversion.vocabularies import TokenizersMissingError, vocabulary
from uag_common.errors import UagError

# A case shows this many bytes of a draft's context, the last ones.
_SHOWN_BYTES = 80
_NOTHING = "nothing of that name"

# What a case gives and what it expects: values by name, as the file has them.
Values = Mapping[str, Any]


class MalformedCaseError(Exception):
    """A line of the file is no case."""


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the file."""

    id: str
    direction: str
    target: str
    draft: str
    given: Values
    expected: Values

    @classmethod
    def parse(cls, line: str) -> Case:
        """Reads a line; MalformedCaseError if it is not a case."""
        try:
            value = json.loads(line)
            case = cls(
                id=str(value["id"]),
                direction=str(value["direction"]),
                target=str(value["target"]),
                draft=str(value["draft"]),
                given=value["input"],
                expected=value["expected"],
            )
        except ValueError as error:
            raise MalformedCaseError(f"no JSON: {error}") from error
        except (KeyError, TypeError) as error:
            raise MalformedCaseError(f"no case: {error!r}") from error
        if case.direction not in _DIRECTIONS:
            raise MalformedCaseError(f"{case.id}: unknown direction {case.direction!r}")
        if not isinstance(case.given, dict) or not isinstance(case.expected, dict):
            raise MalformedCaseError(f"{case.id}: input and expected must be objects")
        if not case.expected:
            raise MalformedCaseError(f"{case.id}: nothing is expected")
        return case


def problems(line: str) -> list[str]:
    """What is wrong with a case or comes out otherwise than expected, a text for each thing."""
    try:
        case = Case.parse(line)
        answer = _DIRECTIONS[case.direction](case)
    except MalformedCaseError as error:
        return [str(error)]
    except (LookupError, TypeError, ValueError, ArithmeticError, UagError) as error:
        return [f"{case.id}: the input cannot be used: {error!r}"]
    return [
        f"{case.id}: {name}: expected {expected!r}, came {answer.get(name, _NOTHING)!r}"
        for name, expected in case.expected.items()
        if name not in answer or answer[name] != expected
    ]


def main(arguments: Sequence[str]) -> int:
    """Prints what failed and the count; 0 if all passed, 1 if not, 2 for a wrong call."""
    if len(arguments) != 1:
        print("usage: python -m tests.conformance FILE", file=sys.stderr)
        return 2
    passed = failed = 0
    try:
        for line in _lines(Path(arguments[0])):
            found = problems(line)
            passed, failed = passed + (not found), failed + bool(found)
            if found:
                print("; ".join(found))
    except (TokenizersMissingError, OSError, UnicodeDecodeError) as error:
        print(f"{arguments[0]}: {error}")
        failed += 1
    if passed + failed == 0:
        print(f"{arguments[0]}: the file holds no case")
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


def _lines(path: Path) -> list[str]:
    # Not splitlines: a text in a case may hold line separators that are none of the file's.
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def _encode(case: Case) -> Values:
    target = vocabulary(case.target)
    result = spans(target, bytes.fromhex(case.given["text_hex"]))
    return {
        "ids": result.ids,
        "bytes_hex": _bytes(target, result.ids).hex(),
        "widths": result.widths,
    }


def _stream_text(case: Case) -> Values:
    stream = TextStream(vocabulary(case.target), at_text_start=case.given["at_text_start"])
    ids, at, deltas = case.given["target_ids"], 0, []
    for size in case.given["chunk_sizes"]:
        deltas.append(stream.push(ids[at : at + size]))
        at += size
    rest = stream.flush()
    return {"deltas": deltas, "flush": rest, "text": "".join([*deltas, rest])}


def _draft_to_target(case: Case) -> Values:
    translation = _at_context(case)
    proposal = translation.propose(case.given["draft_new_ids"])
    return {
        "candidate_ids": [*proposal.candidate_ids],
        "proposed_hex": proposal.proposed_bytes.hex(),
        "proposed": proposal.proposed_bytes.decode("utf-8", "backslashreplace"),
        "status": proposal.status.value,
        "stop": proposal.stop.value if proposal.stop else None,
        "seam_is_token_boundary": proposal.seam_is_token_boundary,
        "held_target_bytes": proposal.held_target_bytes,
        "held_draft_bytes": proposal.held_draft_bytes,
    }


def _target_to_draft(case: Case) -> Values:
    target, new_ids = vocabulary(case.target), case.given["target_new_ids"]
    translation = _at_context(case)
    translation.propose(case.given["draft_new_ids"])
    translation.commit(new_ids)
    update = translation.sync()
    committed = _bytes(target, [*case.given["target_ids"], *new_ids])
    seen, tail = translation.seen_bytes, len(case.expected.get("draft_tail_after", ()))
    return {
        "rollback": update.rollback,
        "append_ids": [*update.append],
        "draft_len_after": update.length,
        "draft_tail_after": [*translation.draft_ids[update.length - tail :]],
        "draft_bytes_hex": committed[:seen][-_SHOWN_BYTES:].hex(),
        "held_target_bytes": len(committed) - seen,
        "segment_break": any(target.piece(token_id) is None for token_id in new_ids),
    }


def _at_context(case: Case) -> Translation:
    """A session whose draft has read all that the target has committed."""
    translation = Translation(vocabulary(case.target), vocabulary(case.draft))
    translation.commit(case.given["target_ids"])
    translation.sync()
    return translation


def _bytes(vocabulary: Vocabulary, ids: Sequence[int]) -> bytes:
    return b"".join(vocabulary.piece(token_id) or b"" for token_id in ids)


_DIRECTIONS: Mapping[str, Callable[[Case], Values]] = {
    "draft_to_target": _draft_to_target,
    "target_to_draft": _target_to_draft,
    "encode": _encode,
    "stream_text": _stream_text,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
