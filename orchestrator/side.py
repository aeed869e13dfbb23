"""What the orchestrator knows of one side of a pair: description, vocabulary, prompt encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.conversion.conversion import Conversion
from orchestrator.conversion.roles import Roles
from orchestrator.conversion.same_vocabulary import SameVocabulary
from orchestrator.conversion.translation import Translation
from orchestrator.conversion.vocabulary import Vocabulary
from orchestrator.prompt.encoder import PromptEncoder
from orchestrator.request import ChatPrompt, TextPrompt
from uag_common.errors import PeerRefusedError, PromptTooLongError, UagError
from uag_common.model import ModelDescription, TokenizerFile, tokenizer_sha256


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
            return cls(description, vocabulary, PromptEncoder(files))
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

    def check_size(self, prompt: TextPrompt | ChatPrompt) -> None:
        """Raises PromptTooLongError for a prompt that cannot fit whatever its tokens are: encoding
        it would take seconds for nothing."""
        match prompt:
            case TextPrompt(text):
                size = len(text.encode())
            case ChatPrompt(messages):
                size = sum(1 + len(message.content.encode()) for message in messages)
        longest = max(1, self.vocabulary.longest_piece)
        limit = self.description.context_length
        if size > limit * longest:
            raise PromptTooLongError(
                f"the prompt has {size} bytes, at least {size // longest} tokens; the target's "
                f"context holds {limit}"
            )

    def encode(self, prompt: TextPrompt | ChatPrompt) -> tuple[int, ...]:
        """Ids of the prompt up to where the answer starts."""
        match prompt:
            case TextPrompt(text):
                return self.encoder.encode_text(text)
            case ChatPrompt(messages):
                return self.encoder.encode_chat(messages)


def open_conversion(
    target: Side,
    draft: Side,
    prompt: TextPrompt | ChatPrompt,
    prompt_ids: Sequence[int],
) -> Conversion:
    """The conversion of one answer, before its first token: the draft's context is its own
    rendering of a conversation, or mirrors a raw prompt from its first character on. The first
    sync is done already, since it may have a long prompt to encode."""
    conversion = _new_conversion(target, draft, prompt, prompt_ids)
    conversion.sync()
    return conversion


def _new_conversion(
    target: Side,
    draft: Side,
    prompt: TextPrompt | ChatPrompt,
    prompt_ids: Sequence[int],
) -> Conversion:
    one, other = target.vocabulary, draft.vocabulary
    same = one.fingerprint == other.fingerprint
    if isinstance(prompt, ChatPrompt):
        rendered = draft.encoder.encode_chat_somehow(prompt.messages)
        if same:
            return SameVocabulary(one, other, draft_prefix=rendered)
        return Translation(one, other, draft_prefix=rendered)
    if same:
        return SameVocabulary(one, other, prompt_ids=prompt_ids)
    return Translation(
        one,
        other,
        draft_prefix=draft.encoder.start_ids(),
        prompt_ids=prompt_ids,
        skip_leading_space=one.prepends_space,
    )
