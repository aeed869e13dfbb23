"""The prompts of a benchmark: a file's lines, each with its kind. Knows files, no model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from orchestrator.client import Message, Prompt
from uag_common.errors import InvalidRequestError

DEFAULT_FILE = Path(__file__).parent / "prompts.jsonl"
NO_KIND = "prompt"
"""Of prompts whose file tells none."""


@dataclass(frozen=True, slots=True)
class BenchPrompt:
    """A task as a conversation, and as a text to continue where there is one."""

    id: str
    kind: str
    chat: tuple[Message, ...]
    raw: str | None

    def form(self, *, chat_template: bool) -> Prompt:
        """The conversation for a target that has a template of its own, else the text."""
        return self.chat if chat_template or self.raw is None else self.raw


@dataclass(frozen=True, slots=True)
class PromptSet:
    """All of a file that are asked; `sha256` is that of the whole file."""

    file: str
    sha256: str
    prompts: tuple[BenchPrompt, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """In the order of the file."""
        return tuple(dict.fromkeys(prompt.kind for prompt in self.prompts))


WARM_UP = BenchPrompt(
    "warm-up",
    "warm-up",
    (Message("user", "Repeat three times: The train to the coast leaves at noon."),),
    "The train to the coast leaves at noon. The train to the coast leaves at noon. The train",
)


def read_prompts(path: Path, limit: int | None = None) -> PromptSet:
    """The file's prompts; with a limit so many, spread over its kinds.

    JSON lines with `chat` or `raw` or both, or with `prompt`, each with `id` and `kind` if it
    likes; or a plain text, one prompt a line. Raises InvalidRequestError that names file and line.
    """
    try:
        content = path.read_bytes()
        lines = content.decode().splitlines()
    except OSError as error:
        raise InvalidRequestError(str(path), f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidRequestError(str(path), "is not UTF-8") from error
    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not numbered:
        raise InvalidRequestError(str(path), "has no prompts")
    # A first line that is an object makes the file one of JSON lines: a typo must not become a
    # prompt.
    read = _object if numbered[0][1].lstrip().startswith("{") else _text
    prompts = [read(f"{path}:{number}", number, line) for number, line in numbered]
    _check_ids(path, prompts)
    return PromptSet(str(path), sha256(content).hexdigest(), _spread(prompts, limit))


def _text(_where: str, number: int, line: str) -> BenchPrompt:
    return BenchPrompt(f"line-{number}", NO_KIND, (Message("user", line),), line)


def _object(where: str, number: int, line: str) -> BenchPrompt:
    try:
        item = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidRequestError(where, f"is no JSON: {error}") from error
    match item:
        case {"chat": [_, *_] as turns} if all(map(_is_turn, turns)):
            chat = tuple(Message(turn["role"], turn["content"]) for turn in turns)
            raw = item.get("raw")
        case {"prompt": str(text)} | {"raw": str(text)} if text:
            chat, raw = (Message("user", text),), text
        case _:
            raise InvalidRequestError(
                where, 'has neither "prompt" nor "chat": [{"role", "content"}, ...] nor "raw"'
            )
    if not isinstance(raw, str | None):
        raise InvalidRequestError(where, '"raw" is no text')
    name, kind = item.get("id", f"line-{number}"), item.get("kind", NO_KIND)
    return BenchPrompt(str(name), str(kind), chat, raw or None)


def _is_turn(turn: object) -> bool:
    match turn:
        case {"role": "system" | "user" | "assistant", "content": str()}:
            return True
    return False


def _check_ids(path: Path, prompts: Sequence[BenchPrompt]) -> None:
    seen: set[str] = set()
    for prompt in prompts:
        if prompt.id in seen:
            raise InvalidRequestError(str(path), f"has two prompts with the id {prompt.id!r}")
        seen.add(prompt.id)


def _spread(prompts: Sequence[BenchPrompt], limit: int | None) -> tuple[BenchPrompt, ...]:
    """The first of each kind, then the second of each, up to the limit; in the file's order."""
    if limit is None:
        return tuple(prompts)
    ranks: dict[str, int] = {}
    ranked = []
    for place, prompt in enumerate(prompts):
        ranks[prompt.kind] = ranks.get(prompt.kind, 0) + 1
        ranked.append((ranks[prompt.kind], place))
    return tuple(prompts[place] for place in sorted(place for _, place in sorted(ranked)[:limit]))
