"""A conversation in which stand-ins, that no template and no tokenizer knows, take the place of
what its messages say. Rendered, it shows what a template writes by itself. Pure; knows neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

from orchestrator.prompt.chat_template import ChatMessage

Places = Iterable[tuple[int, int]]
"""Parts of a text, from start to end, in order."""

# The private-use characters, those that take the least memory first.
_STAND_INS = (range(0xE000, 0xF900), range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE))


def everywhere(text: str) -> Places:
    """The whole text."""
    return ((0, len(text)),)


@dataclass(frozen=True, slots=True)
class NeutralChat:
    """The conversation with stand-ins: one for one and blanks as they are, so that lengths, trims
    and cuts come out as without them."""

    messages: tuple[ChatMessage, ...]
    _originals: Mapping[int, str]

    @classmethod
    def of(
        cls, messages: Sequence[ChatMessage], places: Callable[[str], Places] = everywhere
    ) -> NeutralChat:
        """With stand-ins at the places that are found in each message. Of more different
        characters than there are stand-ins, those with the highest code points stay."""
        contents = [message.content for message in messages]
        parts = [_parts(content, places(content)) for content in contents]
        kept = set().union(*(text for part in parts for text in part[::2]))
        replaced = set().union(*(text for part in parts for text in part[1::2]))
        free = (code for code in chain(*_STAND_INS) if chr(code) not in kept)
        visible = (character for character in sorted(replaced) if not character.isspace())
        originals = dict(zip(free, visible, strict=False))
        stand_ins = {ord(character): code for code, character in originals.items()}
        for part in parts:
            part[1::2] = [text.translate(stand_ins) for text in part[1::2]]
        turns = zip(messages, map("".join, parts), strict=True)
        return cls(tuple(replace(turn, content=text) for turn, text in turns), originals)

    def restore(self, rendered: str) -> str:
        """A text made of this conversation, as the same way would make it of the original one."""
        return rendered.translate(self._originals)

    def hides(self, rendered: str) -> bool:
        """Whether there is a stand-in in it."""
        return any(ord(character) in self._originals for character in rendered)


def _parts(text: str, places: Places) -> list[str]:
    """What lies outside and inside the places by turns, from outside to outside."""
    bounds = (0, *chain.from_iterable(places), len(text))
    return [text[start:end] for start, end in pairwise(bounds)]
