"""What can go wrong with a tokenizer. Knows no tokenizer."""

from __future__ import annotations

from typing import ClassVar

from uag_common.errors import Status, UagError


class TokenizerError(UagError):
    """The tokenizer of a model cannot be read, or is of a kind that has no exact bytes."""

    status: ClassVar[Status] = "FAILED_PRECONDITION"
