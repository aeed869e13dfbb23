"""What the orchestrator knows of one side of a pair: description, vocabulary, prompt encoder."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

from orchestrator.conversion.conversion import Conversion
from orchestrator.conversion.roles import Roles
from orchestrator.conversion.same_vocabulary import SameVocabulary
from orchestrator.conversion.translation import Translation
from orchestrator.conversion.vocabulary import Vocabulary
from orchestrator.prompt.chat_template import ChatMessage
from orchestrator.prompt.encoder import PromptEncoder
from orchestrator.prompt.truncation import truncate
from orchestrator.request import ChatPrompt, Prompt, TextPrompt, TokenPrompt
from orchestrator.text_stream import TextStream
from uag_common.errors import (
    InvalidRequestError,
    PeerRefusedError,
    PromptTooLongError,
    UagError,
)
from uag_common.model import ModelDescription, TokenizerFile, tokenizer_sha256

MAX_TRUNCATED_BYTES = 4 * 1024 * 1024
"""All of a prompt is encoded before it is cut, at about a second for each of these megabytes."""


@dataclass(frozen=True, slots=True)
class EncodedPrompt:
    """A prompt as it stands before its answer, in ids of the target.

    `conversation` is what a draft renders with its own template; None: it mirrors the ids, as it
    does for a text, for ids, and for what is left of a truncated conversation.
    """

    ids: tuple[int, ...]
    conversation: tuple[ChatMessage, ...] | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """Built once from what a service hands out."""

    description: ModelDescription
    vocabulary: Vocabulary
    encoder: PromptEncoder

    @classmethod
    def build(cls, description: ModelDescription, files: Sequence[TokenizerFile]) -> Side:
        """Takes seconds for a large vocabulary. Raises PeerRefusedError or TokenizerError if the
        files are not those that were described, or cannot be used."""
        if tokenizer_sha256(files) != description.tokenizer_sha256:
            raise PeerRefusedError(f"{description.model_id}: the tokenizer changed on the way")
        roles = Roles.ending(description.roles.eos_ids)
        try:
            texts = {file.name: file.content.decode() for file in files}
            vocabulary = Vocabulary.build(texts["tokenizer.json"], roles)
            return cls(description, vocabulary, PromptEncoder(files, roles.ids()))
        except UagError:
            raise
        except BaseException as error:
            # The files come from a peer and go through a library that may even panic, which is no
            # Exception: whatever they do, it is that peer which cannot be used.
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            raise PeerRefusedError(
                f"{description.model_id}: its tokenizer files cannot be used: {error!r}"
            ) from error

    @property
    def has_chat_template(self) -> bool:
        """Whether the model has one of its own."""
        return self.encoder.has_chat_template

    def _check_size(self, prompt: Prompt) -> None:
        """Raises PromptTooLongError for a prompt that cannot fit whatever its tokens are: encoding
        it would take seconds for nothing."""
        if isinstance(prompt, TokenPrompt):
            self._check_tokens(f"{len(prompt.ids)} tokens", len(prompt.ids))
            return
        size, longest = _bytes(prompt), max(1, self.vocabulary.longest_piece)
        self._check_tokens(f"{size} bytes, at least {size // longest} tokens", size / longest)

    def encode(self, prompt: Prompt, truncate_to: int | None = None) -> EncodedPrompt:
        """The prompt up to where the answer starts, or the last `truncate_to` ids of it and what
        the tokenizer puts before a text. Raises PromptTooLongError for one that cannot fit, or is
        too long to be truncated, and InvalidRequestError for ids outside the vocabulary and for a
        conversation that the template refuses."""
        if truncate_to is None:
            self._check_size(prompt)
        elif not isinstance(prompt, TokenPrompt) and (size := _bytes(prompt)) > MAX_TRUNCATED_BYTES:
            raise PromptTooLongError(
                f"the prompt has {size} bytes, one that is to be truncated may have "
                f"{MAX_TRUNCATED_BYTES}"
            )
        ids = self._encode(prompt)
        kept = ids if truncate_to is None else truncate(ids, truncate_to, self.encoder.start_ids())
        if isinstance(prompt, ChatPrompt) and kept == ids:
            return EncodedPrompt(kept, prompt.messages)
        return EncodedPrompt(kept)

    def spell(self, token_id: int) -> str:
        """The text of an id by itself: none for a control token and for an id without a token,
        U+FFFD for bytes that are no whole character."""
        return (self.vocabulary.piece(token_id) or b"").decode("utf-8", "replace")

    def text(self, ids: Sequence[int]) -> str:
        """The text of ids, as the whole answer to a conversation is shown."""
        stream = TextStream(self.vocabulary, at_text_start=True)
        return stream.push(ids) + stream.flush()

    def _check_tokens(self, what: str, least: float) -> None:
        limit = self.description.context_length
        if least > limit:
            raise PromptTooLongError(f"the prompt has {what}; the target's context holds {limit}")

    def _encode(self, prompt: Prompt) -> tuple[int, ...]:
        match prompt:
            case TextPrompt(text):
                return self.encoder.encode_text(text)
            case ChatPrompt(messages):
                return self.encoder.encode_chat(messages)
            case TokenPrompt(ids):
                self._check_ids(ids)
                return ids

    def _check_ids(self, ids: Sequence[int]) -> None:
        size = self.description.vocabulary_size
        for position, token_id in enumerate(ids):
            if not 0 <= token_id < size:
                raise InvalidRequestError(
                    f"token_ids.ids[{position}]",
                    f"id {token_id} is outside the target's vocabulary of {size} ids",
                )


def _bytes(prompt: TextPrompt | ChatPrompt) -> int:
    """Of its text, each message with a byte more: no template writes less than that for it."""
    match prompt:
        case TextPrompt(text):
            return len(text.encode())
        case ChatPrompt(messages):
            return sum(1 + len(message.content.encode()) for message in messages)


def open_conversion(target: Side, draft: Side, prompt: EncodedPrompt) -> Conversion:
    """The conversion of one answer, before its first token. The first sync is done already, since
    it may have a long prompt to encode."""
    conversion = _new_conversion(target, draft, prompt)
    conversion.sync()
    return conversion


def open_conversions(
    target: Side, draft: Side, prompt: EncodedPrompt, n: int
) -> tuple[Conversion, ...]:
    """One for each of n answers; the prompt is encoded once."""
    first = open_conversion(target, draft, prompt)
    return (first, *(_copy(first, target, draft) for _ in range(n - 1)))


def _copy(conversion: Conversion, target: Side, draft: Side) -> Conversion:
    # Vocabularies are large and never change.
    shared = {id(side.vocabulary): side.vocabulary for side in (target, draft)}
    return deepcopy(conversion, shared)


def _new_conversion(target: Side, draft: Side, prompt: EncodedPrompt) -> Conversion:
    one, other = target.vocabulary, draft.vocabulary
    same = one.fingerprint == other.fingerprint
    if prompt.conversation is not None:
        rendered = draft.encoder.encode_chat_somehow(prompt.conversation)
        if same:
            return SameVocabulary(one, other, draft_prefix=rendered)
        return Translation(one, other, draft_prefix=rendered)
    if same:
        return SameVocabulary(one, other, prompt_ids=prompt.ids)
    return Translation(
        one,
        other,
        draft_prefix=draft.encoder.start_ids(),
        prompt_ids=prompt.ids,
        skip_leading_space=one.prepends_space,
    )
