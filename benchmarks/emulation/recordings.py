"""What the real targets once said, as it stands in `recorded.json`, and what a draft may say in
place of each token. `record.py` makes the file. Knows no model and no tokenizer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("recorded.json")


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """One greedy answer of a real target, without an EOS.

    `spelled` has the bytes of each of the `ids`. `wrong` has as many other bytes for each: text
    that the target's tokenizer parts from the text before it just where it parts the right one.
    None where there is no such text: what stands there is never taken for wrong.
    """

    name: str
    target: str
    prompt: str
    ids: tuple[int, ...]
    spelled: tuple[bytes, ...]
    wrong: tuple[bytes | None, ...]

    @property
    def text(self) -> bytes:
        return b"".join(self.spelled)

    @property
    def ends(self) -> tuple[int, ...]:
        """Where in the text each token ends."""
        return tuple(accumulate(map(len, self.spelled)))


def encoded(recording: Recording) -> dict[str, Any]:
    """For the file. Bytes are written as Latin-1: a token may end inside a character."""
    return {
        "name": recording.name,
        "target": recording.target,
        "prompt": recording.prompt,
        "ids": recording.ids,
        "spelled": [piece.decode("latin-1") for piece in recording.spelled],
        "wrong": [None if wrong is None else wrong.decode("latin-1") for wrong in recording.wrong],
    }


def _decoded(item: Mapping[str, Any]) -> Recording:
    return Recording(
        name=item["name"],
        target=item["target"],
        prompt=item["prompt"],
        ids=tuple(item["ids"]),
        spelled=tuple(piece.encode("latin-1") for piece in item["spelled"]),
        wrong=tuple(None if w is None else w.encode("latin-1") for w in item["wrong"]),
    )


@cache
def recordings(path: Path = FILE) -> Mapping[str, Recording]:
    """All of them, by name."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return {item["name"]: _decoded(item) for item in content["recordings"]}


def of_target(target: str) -> Sequence[Recording]:
    """Those of one target, in the order of the file."""
    return [each for each in recordings().values() if each.target == target]
