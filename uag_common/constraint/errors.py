"""What goes wrong with a constraint that is not the client's doing. Knows no constraint."""

from __future__ import annotations

from uag_common.errors import InternalError


class IllegalTokenError(InternalError):
    """A token was chosen that the constraint does not allow there: the choice was not masked."""
