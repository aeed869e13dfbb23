"""Encodes prompts as the model's own library would, but text never becomes a control token.

What a user typed is text; control tokens come from the chat template, and from the tokenizer's own
post-processor (a BOS, say), and from nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property

from orchestrator.prompt.chat_template import ChatMessage, PlainChat, read_chat_template
from orchestrator.prompt.control_tokens import ControlToken, ControlTokens
from orchestrator.prompt.neutral import NeutralChat
from orchestrator.prompt.text_tokenizer import TextTokenizer
from uag_common.errors import InvalidRequestError
from uag_common.model import TokenizerFile
from uag_common.tokenizer.tokenizer_spec import TokenizerSpec

LARGE_TEXT = 64 * 1024
"""Characters. To encode such a text takes from a tenth of a second to seconds."""


class PromptEncoder:
    """One side's tokenizer and chat template, as files of the model hand them out.

    May be called from several threads.
    """

    def __init__(
        self, files: Sequence[TokenizerFile], control_by_role: frozenset[int] = frozenset()
    ) -> None:
        """`control_by_role`: added tokens that are control whatever the files say of them. Raises
        TokenizerError for files that cannot be used."""
        texts = {file.name: file.content.decode() for file in files}
        spec = TokenizerSpec.parse(texts["tokenizer.json"], control_by_role)
        control_ids = [token.id for token in spec.added if token.control]
        self._tokenizer = TextTokenizer(spec.raw, control_ids)
        self._control = ControlTokens(spec.raw, control_ids)
        config = json.loads(texts.get("tokenizer_config.json", "{}"))
        self._chat = read_chat_template(config, texts.get("chat_template.jinja"))

    @cached_property
    def _large_tokenizer(self) -> TextTokenizer:
        return self._tokenizer.twin()

    def _tokenizer_for(self, text: str) -> TextTokenizer:
        """One text is encoded at a time: a usual one is not to wait for a large one."""
        return self._large_tokenizer if len(text) > LARGE_TEXT else self._tokenizer

    @property
    def has_chat_template(self) -> bool:
        """Whether the model has one of its own."""
        return not isinstance(self._chat, PlainChat)

    def start_ids(self) -> tuple[int, ...]:
        """What the tokenizer itself puts before any text: a BOS, or nothing."""
        return self._tokenizer.start_ids

    def encode_text(self, text: str) -> tuple[int, ...]:
        """Ids of a raw prompt, with what the tokenizer itself puts around it."""
        return tuple(self._tokenizer_for(text).encode(text))

    def encode_chat(self, messages: Sequence[ChatMessage]) -> tuple[int, ...]:
        """Ids of a conversation up to where the answer starts. Raises InvalidRequestError if the
        template refuses it."""
        if isinstance(self._chat, PlainChat):
            return self.encode_text(self._chat.render(messages))
        neutral = NeutralChat.of(messages)
        rendered, unread = self._chat.render(messages, neutral.messages)
        own, text = self._own(neutral, unread), neutral.restore(unread)
        if text != rendered:
            # The template looks at what the messages say: let it see all but control tokens.
            neutral = NeutralChat.of(messages, self._control.places)
            (read,) = self._chat.render(neutral.messages)
            found = self._own(neutral, read)
            if [token.id for token in found] == [token.id for token in own]:
                own, text = found, neutral.restore(read)
        return self._encode_rendered(text, own)

    def encode_chat_somehow(self, messages: Sequence[ChatMessage]) -> tuple[int, ...]:
        """As `encode_chat`, but for a draft. A conversation that its template refuses is read as a
        text, for no draft decides whether a request is right; and what its tokenizer puts after a
        text is left out, for this one goes on."""
        if not isinstance(self._chat, PlainChat):
            try:
                return self.encode_chat(messages)
            except InvalidRequestError:
                pass
        text = PlainChat().render(messages)
        return tuple(self._tokenizer_for(text).encode_open(text))

    def _own(self, neutral: NeutralChat, rendered: str) -> list[ControlToken]:
        """The control tokens that the template itself writes. A normalizer may take stand-ins away,
        and find a token that spans them."""
        return [
            token
            for token in self._control.find(rendered)
            if not neutral.hides(rendered[token.start : token.end])
        ]

    def _encode_rendered(self, text: str, own: Sequence[ControlToken]) -> tuple[int, ...]:
        """Ids of a rendered conversation whose control tokens are `own`, and no others."""
        tokenizer = self._tokenizer_for(text)
        if self._control.find(text) == own:
            ids = tokenizer.encode_with_control(text)
            expected = tokenizer.control_in([token.id for token in own])
            if tokenizer.control_in(ids) == expected:
                return tuple(ids)
        return tuple(_encode_between(tokenizer, own, text))


def _encode_between(
    tokenizer: TextTokenizer, control: Sequence[ControlToken], text: str
) -> Iterator[int]:
    end = 0
    for token in control:
        yield from _encode_piece(tokenizer, text, end, token.start)
        yield token.id
        end = token.end
    yield from _encode_piece(tokenizer, text, end, len(text))


def _encode_piece(tokenizer: TextTokenizer, text: str, start: int, end: int) -> Sequence[int]:
    if start == end:
        return ()
    return tokenizer.encode_piece(text[start:end], at_start=start == 0)
