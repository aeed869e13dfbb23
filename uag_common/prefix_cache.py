"""Contexts that new sessions may begin with, so that what was computed once is not computed again.

Knows sequences by their protocol alone: no torch, no grpc. It is used on the model's worker thread
only, but for the two figures that it tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uag_common.common_prefix import common_prefix
from uag_common.decoding import PrefixReuse
from uag_common.model import TokenSequence

WORTH_WAITING = 32
"""Tokens that another session is computing at this moment are waited for if they are so many."""


@dataclass(frozen=True, slots=True, eq=False)
class _Prefix:
    """The first `length` tokens of `sequence` stay what they are. `computing`: at this moment."""

    key: bytes
    sequence: TokenSequence
    length: int
    computing: bool = False
    bytes: int = 0

    def common(self, ids: Sequence[int]) -> int:
        """How many tokens it has in common with `ids`, from the first on."""
        return common_prefix(self.sequence.ids[: self.length], ids)


class PrefixCache:
    """Sequences of running sessions, and kept ones of sessions that are over: of these `max_bytes`
    at most, the least recently used goes first. Sessions share within a key alone."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._running: list[_Prefix] = []
        self._kept: list[_Prefix] = []
        """The least recently used first."""
        self._kept_bytes = 0

    @property
    def kept_prefixes(self) -> int:
        return len(self._kept)

    @property
    def kept_bytes(self) -> int:
        return self._kept_bytes

    def coming(self, ids: Sequence[int], reuse: PrefixReuse) -> bool:
        """Whether a running session is computing what a new one with these tokens could share, so
        that it had better wait."""
        if not reuse.key:
            return False
        wanted = list(ids[:-1])
        coming = cached = 0
        for prefix in self._running:
            if prefix.key == reuse.key:
                common = prefix.common(wanted)
                cached = max(cached, min(common, prefix.sequence.cached))
                coming = max(coming, common if prefix.computing else 0)
        return coming >= cached + WORTH_WAITING

    def fork(self, ids: Sequence[int], reuse: PrefixReuse) -> TokenSequence | None:
        """A sequence with the most tokens of `ids`, from the first on, that are cached under the
        key; never all of them, so that one is there to run. None if there is nothing to share."""
        if not reuse.key:
            return None
        wanted = list(ids[:-1])
        lengths = {
            # The cache of a running session may have been given up.
            prefix: min(prefix.common(wanted), prefix.sequence.cached)
            for prefix in (*self._running, *self._kept)
            if prefix.key == reuse.key
        }
        best = max(lengths, key=lengths.__getitem__, default=None)
        if best is None or not lengths[best]:
            return None
        if best in self._kept:
            self._use(best)
        return best.sequence.fork(lengths[best])

    def share(
        self, sequence: TokenSequence, length: int, reuse: PrefixReuse, *, computing: bool = False
    ) -> None:
        """Others may begin with the first `length` tokens of a running session, as far as they are
        cached by then: they stay what they are until it shares anew or ends. `computing`: they will
        be cached in a moment."""
        self._withdraw(sequence)
        if reuse.key:
            self._running.append(_Prefix(reuse.key, sequence, length, computing))

    def end(self, sequence: TokenSequence, length: int, reuse: PrefixReuse) -> None:
        """The session is over; the first `length` tokens of its sequence are cached. They are kept,
        or their memory is free."""
        self._withdraw(sequence)
        length = min(length, sequence.cached)
        if reuse.key and reuse.keep and length:
            sequence.truncate(length)
            self._keep(_Prefix(reuse.key, sequence, length, bytes=sequence.cache_bytes))
        else:
            sequence.drop_cache()

    def drop_one(self) -> bool:
        """Frees the kept one that was not used for longest, if there is one."""
        if self._kept:
            self._drop(self._kept[0])
            return True
        return False

    def _withdraw(self, sequence: TokenSequence) -> None:
        self._running = [prefix for prefix in self._running if prefix.sequence is not sequence]

    def _keep(self, new: _Prefix) -> None:
        if new.bytes > self.max_bytes or self._is_kept(new):
            new.sequence.drop_cache()
            return
        while self._kept_bytes + new.bytes > self.max_bytes:
            self._drop(self._kept[0])
        self._kept.append(new)
        self._kept_bytes += new.bytes

    def _is_kept(self, new: _Prefix) -> bool:
        """Whether it is a part of a kept one, which is then used; drops what is a part of it."""
        for old in [prefix for prefix in self._kept if prefix.key == new.key]:
            common = old.common(new.sequence.ids)
            if common == new.length:
                self._use(old)
                return True
            if common == old.length:
                self._drop(old)
        return False

    def _use(self, kept: _Prefix) -> None:
        self._kept.remove(kept)
        self._kept.append(kept)

    def _drop(self, kept: _Prefix) -> None:
        self._kept.remove(kept)
        self._kept_bytes -= kept.bytes
        kept.sequence.drop_cache()
