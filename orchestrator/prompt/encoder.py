"""Encodes prompts as the model's own library would, but text never becomes a control token.

Only the `tokenizers` library. What a user typed is text; control tokens come from the chat template
and from the tokenizer's own post-processor (a BOS, say) and from nowhere else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from threading import Lock
from typing import Any

from tokenizers import Tokenizer

from orchestrator.prompt.chat_template import ChatMessage, PlainChat, read_chat_template
from uag_common.errors import InvalidRequestError
from uag_common.model import TokenizerFile


class PromptEncoder:
    """One side's tokenizer and chat template, as files of the model hand them out.

    May be called from several threads.
    """

    def __init__(self, files: Sequence[TokenizerFile]) -> None:
        texts = {file.name: file.content.decode() for file in files}
        spec = json.loads(texts["tokenizer.json"])
        self._control = {
            token["content"]: token for token in spec["added_tokens"] if is_control(token)
        }
        self._control_text = _any_of(self._control)
        self._lock = Lock()
        spec = _all_control_special(spec)
        self._library = Tokenizer.from_str(json.dumps(spec))
        self._inner = _inner_tokenizer(spec)
        config = json.loads(texts.get("tokenizer_config.json", "{}"))
        self._chat = read_chat_template(config, texts.get("chat_template.jinja"))

    def encode_text(self, text: str) -> tuple[int, ...]:
        """Ids of a raw prompt, with what the tokenizer itself puts before it."""
        return tuple(self._encode(text, parse_control=False, add_special_tokens=True))

    def start_ids(self) -> tuple[int, ...]:
        """What the tokenizer itself puts before any text: a BOS, or nothing."""
        return self.encode_text("")

    def _encode(self, text: str, *, parse_control: bool, add_special_tokens: bool) -> list[int]:
        # One tokenizer for both ways: a large one takes hundreds of megabytes.
        with self._lock:
            self._library.encode_special_tokens = not parse_control
            return _ids(self._library, text, add_special_tokens)

    def encode_chat(self, messages: Sequence[ChatMessage]) -> tuple[int, ...]:
        """Ids of a conversation up to where the answer starts. Raises InvalidRequestError if the
        template refuses it."""
        if isinstance(self._chat, PlainChat):
            return self.encode_text(self._chat.render(messages))
        if not any(self._control_text.search(message.content) for message in messages):
            rendered = self._chat.render(messages)
            return tuple(self._encode(rendered, parse_control=True, add_special_tokens=False))
        return tuple(self._encode_guarded(messages))

    def encode_chat_somehow(self, messages: Sequence[ChatMessage]) -> tuple[int, ...]:
        """As `encode_chat`, but a conversation that the template refuses is read as a text: a
        draft's template must not decide whether a request is right."""
        try:
            return self.encode_chat(messages)
        except InvalidRequestError:
            return self.encode_text(PlainChat().render(messages))

    def _encode_guarded(self, messages: Sequence[ChatMessage]) -> Iterator[int]:
        """For messages that hold the text of control tokens: those stay text."""
        opening = _unused(message.content for message in messages)
        marks = {text: f"{opening}{number}\ue001" for number, text in enumerate(self._control)}
        guarded = [
            ChatMessage(m.role, self._control_text.sub(lambda found: marks[found[0]], m.content))
            for m in messages
        ]
        back = _any_of({mark: text for text, mark in marks.items()})
        texts = {mark: text for text, mark in marks.items()}
        first, strip = True, False
        for piece in _split(self._control_text, self._chat.render(guarded)):
            token = self._control.get(piece)
            if token is not None:
                yield token["id"]
                strip = token["rstrip"]
            elif piece:
                text = back.sub(lambda found: texts[found[0]], piece.lstrip() if strip else piece)
                yield from self._encode_piece(text, first=first)
            first = False

    def _encode_piece(self, text: str, *, first: bool) -> list[int]:
        """A piece of text between control tokens."""
        if first or self._inner is None:
            return self._encode(text, parse_control=False, add_special_tokens=False)
        return _ids(self._inner, text, False)


def _ids(tokenizer: Tokenizer, text: str, add_special_tokens: bool) -> list[int]:
    # Of the library's ways to encode, this is the one that lets other threads run meanwhile.
    (encoding,) = tokenizer.encode_batch([text], add_special_tokens=add_special_tokens)
    ids: list[int] = encoding.ids
    return ids


def is_control(token: Any) -> bool:
    """Whether an entry of `added_tokens` is a control token: it is special, or eats spaces."""
    return bool(token["special"] or token["lstrip"] or token["rstrip"])


def _unused(texts: Iterable[str]) -> str:
    """A row of private-use characters that no text has: it opens a mark that stands for a control
    token's text while the template is rendered."""
    whole, row = "\n".join(texts), "\ue000"
    while row in whole:
        row += "\ue000"
    return row


def _all_control_special(spec: Any) -> Any:
    """Marks what is control as special, so that the library can be told to take it for text. A
    file may also ask to cut or fill every text, which nobody who sends a prompt wants."""
    marked = [{**token, "special": is_control(token)} for token in spec["added_tokens"]]
    return {**spec, "added_tokens": marked, "truncation": None, "padding": None}


def _inner_tokenizer(spec: Any) -> Tokenizer | None:
    """For a family that puts a space before the first piece of a text only: a tokenizer for the
    other pieces, which knows no control tokens. None for other families."""
    pre = spec.get("pre_tokenizer")
    if not isinstance(pre, dict) or pre.get("prepend_scheme") != "first":
        return None
    inner = Tokenizer.from_str(
        json.dumps({**spec, "pre_tokenizer": {**pre, "prepend_scheme": "never"}})
    )
    inner.encode_special_tokens = True
    return inner


def _any_of(texts: Any) -> re.Pattern[str]:
    longest_first = sorted(texts, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


def _split(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    """Matches and what lies between them, in order."""
    end = 0
    for found in pattern.finditer(text):
        yield text[end : found.start()]
        yield found[0]
        end = found.end()
    yield text[end:]
