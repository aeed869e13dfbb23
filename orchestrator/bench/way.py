"""The ways of answering that are compared. Knows the keywords of a request, no service."""

from __future__ import annotations

from enum import Enum

from orchestrator.client import Options


class Way(Enum):
    """By the name that stands in flags and files."""

    TRANSFORMERS = "transformers"
    TRANSFORMERS_UAG = "transformers-uag"
    TRANSFORMERS_LOOKUP = "transformers-lookup"
    OFF = "off"
    AUTO = "auto"
    FORCED = "forced"
    LOOKUP = "lookup"
    MODEL = "model"


OURS = (Way.OFF, Way.AUTO, Way.FORCED, Way.LOOKUP, Way.MODEL)
TRANSFORMERS = (Way.TRANSFORMERS, Way.TRANSFORMERS_UAG, Way.TRANSFORMERS_LOOKUP)

TITLES = {
    Way.TRANSFORMERS: "transformers, plain",
    Way.TRANSFORMERS_UAG: "transformers, universal assisted generation",
    Way.TRANSFORMERS_LOOKUP: "transformers, prompt lookup",
    Way.OFF: "uag, off: the target alone",
    Way.AUTO: "uag, auto: as it pays",
    Way.FORCED: "uag, forced: the draft model in every round",
    Way.LOOKUP: "uag, auto, lookup only",
    Way.MODEL: "uag, auto, draft model only",
}


def options(way: Way) -> Options:
    """What a request says to be answered in a way of ours. Raises ValueError for another's."""
    match way:
        case Way.OFF:
            return {"speculation": "off"}
        case Way.AUTO:
            return {"speculation": "auto"}
        case Way.FORCED:
            return {"speculation": "force"}
        case Way.LOOKUP:
            return {"speculation": "auto", "draft_tokens": 0}
        case Way.MODEL:
            return {"speculation": "auto", "lookup_tokens": 0}
    raise ValueError(f"{way.value} is no way of ours")
