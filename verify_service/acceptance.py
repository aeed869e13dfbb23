"""Which candidates stand. Pure: plain values only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from uag_common.decoding import Choice
from uag_common.errors import UagError


def choose_block(
    candidates: Sequence[int], choose: Callable[[int], Choice]
) -> tuple[tuple[Choice, ...], Choice]:
    """The accepted candidates as the target chose them, and its own token after the last of them.

    `choose(n)` chooses the token after the first n candidates. It is asked in order, and only as
    long as all candidates before were chosen: so each choice may depend on all that comes before.
    Raises what `choose` raises at the first place. At a later one nobody has asked for a token yet,
    and the answer may end before: then the block ends there.
    (Leviathan et al., arXiv 2211.17192, for a target whose choice is fixed by its context.)
    """
    accepted: list[Choice] = []
    choice = choose(0)
    for candidate in candidates:
        if choice.id != candidate:
            break
        try:
            following = choose(len(accepted) + 1)
        except UagError:
            break
        accepted.append(choice)
        choice = following
    return tuple(accepted), choice
