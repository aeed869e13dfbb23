"""`tokenizer.json` read and checked: which family, which tokens, which of them are control.

Knows the format of the file. It must not know what a conversion is. The file comes from a peer,
so whatever is wrong with it is a TokenizerError.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from uag_common.tokenizer.errors import TokenizerError

# A component of a tokenizer in its JSON form; its shape depends on its "type".
Component = Mapping[str, Any]

_PARTS = ("normalizers", "pretokenizers", "processors", "decoders")


class Family(Enum):
    """How the tokens of a vocabulary spell bytes."""

    BYTE_LEVEL = "byte-level"
    SENTENCEPIECE = "sentencepiece"
    WORDPIECE = "wordpiece"


@dataclass(frozen=True, slots=True)
class AddedToken:
    """A token that is matched in the text before the model sees it."""

    id: int
    content: str
    control: bool


@dataclass(frozen=True, slots=True)
class TokenizerSpec:
    """What `tokenizer.json` says; `raw` is the whole of it."""

    raw: Component
    family: Family
    vocabulary: Mapping[str, int]
    added: tuple[AddedToken, ...]

    @classmethod
    def parse(cls, tokenizer_json: str, control_by_role: frozenset[int]) -> TokenizerSpec:
        """Reads the file; added tokens among `control_by_role` are control whatever it says."""
        try:
            raw: Component = json.loads(tokenizer_json)
            vocabulary = _vocabulary(raw["model"])
            added = tuple(_added(token, control_by_role) for token in raw["added_tokens"])
            family = _family(raw)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise TokenizerError(f"tokenizer.json is not what it should be: {error!r}") from error
        return cls(raw=raw, family=family, vocabulary=vocabulary, added=added)

    @property
    def model(self) -> Component:
        """The model, the part that merges or matches pieces."""
        model: Component = self.raw["model"]
        return model

    @property
    def unknown_word(self) -> str | None:
        """Of WordPiece: the token that stands for a word without pieces."""
        return _unknown_word(self.model) if self.family is Family.WORDPIECE else None

    def components(self, name: str) -> Iterator[Component]:
        """The components of a stage ("normalizer", "pre_tokenizer", "decoder"), sequences flat."""
        yield from flat(self.raw.get(name))


def flat(component: Component | None) -> Iterator[Component]:
    """The components of a sequence, of sequences in it too; of a single one, itself."""
    if component is None:
        return
    parts = [part for key in _PARTS for part in component.get(key, ())]
    if not parts:
        yield component
    for part in parts:
        yield from flat(part)


def _vocabulary(model: Component) -> Mapping[str, int]:
    pieces = model["vocab"]
    if isinstance(pieces, list):
        pieces = {piece: position for position, (piece, _) in enumerate(pieces)}
    if not pieces or min(pieces.values()) < 0:
        raise ValueError("the vocabulary is empty or has negative ids")
    vocabulary: Mapping[str, int] = pieces
    return vocabulary


def _added(token: Component, control_by_role: frozenset[int]) -> AddedToken:
    strips = token["lstrip"] or token["rstrip"]
    control = bool(token["special"] or strips or token["id"] in control_by_role)
    return AddedToken(id=token["id"], content=token["content"], control=control)


def _family(raw: Component) -> Family:
    model = raw["model"]
    # Files of old versions name no type; only BPE has merges.
    kind = model.get("type", "BPE" if "merges" in model else "WordPiece")
    if kind == "WordPiece":
        _check_words(model)
        return Family.WORDPIECE
    if kind not in ("BPE", "Unigram") or model.get("end_of_word_suffix"):
        raise ValueError(f"a {kind} model of this kind has no exact bytes")
    stages = [*flat(raw.get("pre_tokenizer")), *flat(raw.get("decoder"))]
    if any(stage["type"] == "ByteLevel" for stage in stages):
        return Family.BYTE_LEVEL
    return Family.SENTENCEPIECE


def _check_words(model: Component) -> None:
    if _unknown_word(model) not in model["vocab"]:
        raise ValueError("a WordPiece model without a token for unknown words cannot read all text")


def _unknown_word(model: Component) -> str:
    text: str = model.get("unk_token", "[UNK]")
    return text
