"""What is known of one tokenizer, built once: its bytes, its control ids, its core, its cuts.

Knows one tokenizer. It must not know a second one, a session, or where the files come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from tokenizers import Tokenizer

from orchestrator.conversion.core import core, core_json, has_pre_tokens
from orchestrator.conversion.cuts import Cuts, cuts
from orchestrator.conversion.roles import Roles
from uag_common.tokenizer.byte_table import WORDPIECE_CONTINUATION, byte_ids, pieces
from uag_common.tokenizer.tokenizer_spec import Family, TokenizerSpec

REPLACEMENT = "\ufffd"


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """One tokenizer as the conversion needs it.

    Two with equal `fingerprint` have the same ids for the same bytes and for the same control
    tokens. `byte_ids[x]` is the id of byte x, None where there is none; `replacement_ids` spell
    U+FFFD and stand in for such a byte. `longest_piece` is in bytes. A `lossy` vocabulary forgets
    parts of the text, and one that `forgets_case` the capitals too: its pieces are guesses, and
    `continuations` are its ids that go on with a word.
    """

    roles: Roles
    core: Tokenizer
    fingerprint: str
    cuts: Cuts
    pieces: tuple[bytes | None, ...]
    control_ids: frozenset[int]
    byte_ids: tuple[int | None, ...]
    replacement_ids: tuple[int, ...]
    lossy: bool
    longest_piece: int
    continuations: frozenset[int]
    forgets_case: bool
    prepends_space: bool
    strips_leading_space: bool
    # What was looked up already, by character.
    _spelled: dict[str, bool] = field(default_factory=dict)

    @classmethod
    def build(cls, tokenizer_json: str, roles: Roles) -> Vocabulary:
        """Builds from the text of `tokenizer.json`; TokenizerError if it cannot be used."""
        spec = TokenizerSpec.parse(tokenizer_json, roles.ids())
        table = pieces(spec)
        core_file = core_json(spec)
        tokenizer = core(core_file)
        control = {token.id: token.content for token in spec.added if token.control}
        lossy = spec.family is Family.WORDPIECE
        return cls(
            roles=roles,
            core=tokenizer,
            fingerprint=_fingerprint(core_file, control),
            cuts=_cuts(spec, table),
            pieces=tuple(table),
            control_ids=frozenset(control),
            byte_ids=tuple(byte_ids(spec, table)),
            replacement_ids=_replacement_ids(tokenizer, frozenset(control)),
            longest_piece=max(map(len, filter(None, table)), default=0),
            lossy=lossy,
            continuations=_continuations(spec),
            forgets_case=lossy and _lowers(spec),
            prepends_space=_prepends_space(spec),
            strips_leading_space=_strips_leading_space(spec),
        )

    def piece(self, token_id: int) -> bytes | None:
        """What the id spells; None for a control token and for an id that has no token."""
        return self.pieces[token_id] if 0 <= token_id < len(self.pieces) else None

    def is_control(self, token_id: int) -> bool:
        """Whether the id is a token that never spells text."""
        return token_id in self.control_ids

    def encode(self, text: str) -> list[int]:
        """The ids of a text by the core alone; they need not spell it (see `spans`)."""
        ids: list[int] = self.core.encode(text, add_special_tokens=False).ids
        return ids

    def spells(self, character: str) -> bool:
        """Whether the core has ids that spell exactly this character."""
        known = self._spelled.get(character)
        if known is None:
            known = b"".join(self.spell(self.encode(character))) == character.encode()
            self._spelled[character] = known
        return known

    def spell(self, ids: list[int]) -> list[bytes]:
        """What each of the ids spells, nothing for a control token."""
        table = self.pieces
        return [table[token_id] or b"" for token_id in ids]


def _fingerprint(core_file: str, control: Mapping[int, str]) -> str:
    return sha256(f"{core_file}{sorted(control.items())}".encode()).hexdigest()


def _cuts(spec: TokenizerSpec, table: list[bytes | None]) -> Cuts:
    matched = [table[token.id] for token in spec.added if not token.control]
    return cuts(
        [piece for piece in table if piece],
        [piece for piece in matched if piece],
        merges="merges" in spec.model,
        pre_tokens=has_pre_tokens(spec),
    )


def _replacement_ids(tokenizer: Tokenizer, control: frozenset[int]) -> tuple[int, ...]:
    ids = tokenizer.encode(REPLACEMENT, add_special_tokens=False).ids
    return () if control.intersection(ids) else tuple(ids)


def _continuations(spec: TokenizerSpec) -> frozenset[int]:
    if spec.family is not Family.WORDPIECE:
        return frozenset()
    return frozenset(
        token_id
        for text, token_id in spec.vocabulary.items()
        if text.startswith(WORDPIECE_CONTINUATION)
    )


def _lowers(spec: TokenizerSpec) -> bool:
    stages = spec.components("normalizer")
    return any(stage["type"] == "Lowercase" or bool(stage.get("lowercase")) for stage in stages)


def _prepends_space(spec: TokenizerSpec) -> bool:
    """Whether the whole tokenizer puts a space before a text."""
    stages = [*spec.components("normalizer"), *spec.components("pre_tokenizer")]
    return any(
        stage["type"] == "Prepend"
        or bool(stage.get("add_prefix_space"))
        or stage.get("prepend_scheme", "never") != "never"
        for stage in stages
    )


def _strips_leading_space(spec: TokenizerSpec) -> bool:
    """Whether the whole tokenizer takes one space off the start of a decoded text."""
    for stage in spec.components("decoder"):
        if stage["type"] == "WordPiece":
            return True
        if stage["type"] == "Strip" and stage["content"] == " " and stage["start"] > 0:
            return True
        if stage["type"] == "Metaspace" and stage.get("prepend_scheme", "always") != "never":
            return True
    return False
