"""A model's tokenizer, with one promise more than the library's: what is text stays text.

Only the `tokenizers` library. It can be told not to look for control tokens in a text, but some
models make them of it all the same: Unigram, and BPE that looks up whole words.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from copy import copy
from functools import cached_property
from itertools import pairwise, takewhile
from threading import Lock
from typing import Any

from tokenizers import Encoding, Tokenizer

from uag_common.tokenizer.tokenizer_spec import Component, flat


class TextTokenizer:
    """May be called from several threads."""

    def __init__(self, spec: Component, control_ids: Collection[int]) -> None:
        """Of a decoded tokenizer.json, and the ids of it that no text may become."""
        self._control_ids = frozenset(control_ids)
        self._library = Tokenizer.from_str(json.dumps(_plain(spec, self._control_ids)))
        self._lock = Lock()
        self._unknown = _unknown(spec["model"])
        self._unknown_id = self._library.token_to_id(self._unknown) if self._unknown else None
        stages = flat(spec.get("pre_tokenizer"))
        self._space_at_start_only = any(part.get("prepend_scheme") == "first" for part in stages)
        self.start_ids, self._end_ids = self._around()
        """What the tokenizer itself puts before any text: a BOS, or nothing."""

    def twin(self) -> TextTokenizer:
        """Another one of the same, with a lock of its own. Takes a second or two, and hundreds of
        megabytes, for a large vocabulary."""
        twin = copy(self)
        twin._library = Tokenizer.from_str(self._library.to_str())
        twin._lock = Lock()
        twin.__dict__.pop("_going_on", None)
        return twin

    def encode(self, text: str) -> list[int]:
        """Ids of a text, with what the tokenizer itself puts around it."""
        return [*self.encode_open(text), *self._end_ids]

    def encode_open(self, text: str) -> list[int]:
        """Ids of a text that goes on, with what the tokenizer itself puts before it."""
        return [*self.start_ids, *self.encode_piece(text, at_start=True)]

    def encode_piece(self, text: str, *, at_start: bool) -> list[int]:
        """Ids of a text that stands before all control tokens (`at_start`) or after one."""
        goes_on = self._space_at_start_only and not at_start
        return self._as_text(self._going_on if goes_on else self._library, text)

    def encode_with_control(self, text: str) -> list[int]:
        """Ids of a text with control tokens in it, as the library finds them."""
        ids: list[int] = self._encode(self._library, text, find_control=True).ids
        return ids

    def control_in(self, ids: Sequence[int]) -> list[int]:
        """The control tokens among ids, but for the one that stands for unknown characters."""
        if self._control_ids.isdisjoint(ids):
            return []
        return [i for i in ids if i in self._control_ids and i != self._unknown_id]

    def _as_text(self, library: Tokenizer, text: str) -> list[int]:
        """Cuts the text inside what would be a control token."""
        encoding = self._encode(library, text, find_control=False)
        cuts = self._cuts(encoding, text)
        if not cuts:
            # What is left of them spells a single character, for which there is no other token.
            left = set(self.control_in(encoding.ids))
            return [i for i in encoding.ids if i not in left] if left else encoding.ids
        first, *others = (text[start:end] for start, end in pairwise((0, *cuts, len(text))))
        ids = self._as_text(library, first)
        for part in others:
            ids += self._as_text(self._going_on, part)
        return ids

    def _cuts(self, encoding: Encoding, text: str) -> list[int]:
        if self._control_ids.isdisjoint(encoding.ids):
            return []
        places = zip(encoding.ids, encoding.offsets, strict=True)
        return [
            start + 1
            for token_id, (start, end) in places
            if end - start > 1
            and token_id in self._control_ids
            and (token_id != self._unknown_id or text[start:end] == self._unknown)
        ]

    def _encode(self, library: Tokenizer, text: str, *, find_control: bool) -> Encoding:
        # One tokenizer for both ways: a large one takes hundreds of megabytes.
        with self._lock:
            library.encode_special_tokens = not find_control
            # Of the ways to encode, this is the one that lets other threads run meanwhile.
            (encoding,) = library.encode_batch([text], add_special_tokens=False)
        return encoding

    def _around(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        (encoding,) = self._library.encode_batch(["a"])
        added = encoding.special_tokens_mask
        before = len([*takewhile(bool, added)])
        after = len([*takewhile(bool, reversed(added[before:]))])
        return tuple(encoding.ids[:before]), tuple(encoding.ids[len(added) - after :])

    @cached_property
    def _going_on(self) -> Tokenizer:
        """The tokenizer without what it puts before a text: for a text that goes on with one."""
        spec = json.loads(self._library.to_str())
        stages = {name: _without_prefix(spec[name]) for name in ("normalizer", "pre_tokenizer")}
        return Tokenizer.from_str(json.dumps({**spec, **stages}))


def _plain(spec: Component, control_ids: frozenset[int]) -> Component:
    """Marks what is control as special, so that the library can be told not to look for it. A file
    may also ask to cut or fill every text, or to encode it at random: nobody who sends a prompt
    wants that."""
    added = [
        {**token, "special": token["id"] in control_ids} for token in spec.get("added_tokens", ())
    ]
    model = {**spec["model"], "dropout": None} if "dropout" in spec["model"] else spec["model"]
    return {**spec, "added_tokens": added, "model": model, "truncation": None, "padding": None}


def _unknown(model: Component) -> str | None:
    """The token that stands for what the vocabulary cannot spell."""
    position = model.get("unk_id")
    text: str | None = model.get("unk_token") if position is None else model["vocab"][position][0]
    return text


def _without_prefix(stage: Any) -> Any:
    """A normalizer or pre-tokenizer that puts nothing before a text; None if nothing is left."""
    if stage is None or stage["type"] == "Prepend":
        return None
    changed = dict(stage)
    for parts in ("normalizers", "pretokenizers"):
        if parts in stage:
            changed[parts] = [bare for part in stage[parts] if (bare := _without_prefix(part))]
    if "prepend_scheme" in stage:
        changed["prepend_scheme"] = "never"
    if "add_prefix_space" in stage:
        changed["add_prefix_space"] = False
    return changed
