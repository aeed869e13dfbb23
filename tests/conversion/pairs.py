"""The real tokenizers by name, the pairs that the properties run on, and how often."""

from __future__ import annotations

from hypothesis import settings

from orchestrator.conversion.vocabulary import Vocabulary
from tests.conversion.vocabularies import vocabulary
from uag_common.models import catalogue

# Target + draft.
PAIRS = (
    "codellama+starcoder",
    "mixtral+llama2",
    "gemma2+llama2",
    "mixtral+qwen2",
    "llama31+qwen2",
    "phi3+qwen2",
    "gemma2+smollm2",
    "qwen2+llama31",
    "starcoder+codellama",
    "smollm2+gemma2",
    f"{catalogue.DEFAULT_TARGET}+{catalogue.DEFAULT_DRAFT}",
    f"{catalogue.DEFAULT_DRAFT}+{catalogue.DEFAULT_TARGET}",
    "llama31+distilbert",
)
EXACT_PAIRS = tuple(pair for pair in PAIRS if not pair.endswith("distilbert"))
EXACT_NAMES = (
    "codellama",
    "gemma2",
    "llama2",
    "llama31",
    "mixtral",
    "phi3",
    "qwen2",
    "smollm2",
    "starcoder",
    catalogue.DEFAULT_TARGET,
    catalogue.DEFAULT_DRAFT,
)
NAMES = (*EXACT_NAMES, "distilbert")

# The same examples in each run: what is found once is found again.
some = settings(max_examples=25, deadline=None, derandomize=True)


def sides(pair: str) -> tuple[Vocabulary, Vocabulary]:
    """The target's and the draft's vocabulary of a pair."""
    target, draft = pair.split("+")
    return vocabulary(target), vocabulary(draft)
