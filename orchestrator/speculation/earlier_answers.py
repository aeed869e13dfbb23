"""What was answered before, to be looked up by later requests of the same salt. Pure.

Bounded: what is oldest is forgotten first, half of a store at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.speculation.lookup import Lookup, Match

BETWEEN = -1
"""No token: what followed one text never goes on with the next one."""


class _Store:
    """Of one salt: a half that is being filled, and the full one before it."""

    def __init__(self) -> None:
        self.filling, self.full = Lookup(), Lookup()

    def __len__(self) -> int:
        return len(self.filling) + len(self.full)

    def add(self, ids: Sequence[int], most: int) -> None:
        if len(self.filling) + len(ids) > most // 2:
            self.full, self.filling = self.filling, Lookup()
        self.filling.extend(ids[: most // 2])
        self.filling.extend((BETWEEN,))

    def match(self, text: Sequence[int], most: int) -> Match | None:
        """The longer one of both halves, of equal ones the newer."""
        new, old = (half.match(text, most) for half in (self.filling, self.full))
        if new is None or (old is not None and old.length > new.length):
            return old
        return new


class EarlierAnswers:
    """Of one target. `most_tokens`: of all stores together; 0: nothing is kept."""

    def __init__(self, most_tokens: int) -> None:
        self._most_tokens = most_tokens
        self._stores: dict[bytes, _Store] = {}

    def add(self, key: bytes, ids: Sequence[int]) -> None:
        """An answer of a request with that key, which is not empty."""
        if not self._most_tokens or not ids:
            return
        store = self._stores.pop(key, None) or _Store()
        self._stores[key] = store
        store.add(ids, self._most_tokens)
        while sum(map(len, self._stores.values())) > self._most_tokens and len(self._stores) > 1:
            del self._stores[next(iter(self._stores))]

    def match(self, key: bytes, text: Sequence[int], most: int) -> Match | None:
        """What followed the end of the text in earlier answers of that key."""
        store = self._stores.get(key)
        if store is None:
            return None
        found = store.match(text, most)
        if found is None:
            return None
        return _cut(found)


def _cut(match: Match) -> Match | None:
    """Up to where the earlier text ends."""
    if BETWEEN not in match.ids:
        return match
    ids = match.ids[: match.ids.index(BETWEEN)]
    return Match(match.length, ids) if ids else None
