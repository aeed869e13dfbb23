"""What can go wrong on the way to a model. Knows no network and no file format."""

from __future__ import annotations

from uag_common.errors import ModelNotFoundError, UagError


class NoWeightsError(ModelNotFoundError):
    """The directory is there, but holds no weights that can be loaded."""


class CorruptModelError(UagError):
    """A file of the model is cut off, contradicts itself, or differs from what was written."""

    status = "FAILED_PRECONDITION"


class ConversionError(UagError):
    """A GGUF file could not be turned into a model directory."""

    status = "FAILED_PRECONDITION"


class DownloadError(UagError):
    """A file could not be fetched, or is not the one that was asked for."""

    status = "UNAVAILABLE"


class OfflineError(DownloadError):
    """Something has to be fetched, and the user asked for no network."""


class NoSpaceError(UagError):
    """The disk of the cache is too full for what has to be written."""

    status = "RESOURCE_EXHAUSTED"


class BadSettingError(UagError):
    """An environment variable has a value that means nothing."""

    status = "INVALID_ARGUMENT"
