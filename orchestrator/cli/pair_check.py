"""Whether one model can draft for another: vocabularies, context, memory, a round trip of text.

Reads two model folders. Knows the conversion, no service and no terminal.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from orchestrator.cli.probe import Probe, probe
from orchestrator.conversion.roles import Roles
from orchestrator.conversion.vocabulary import Vocabulary
from uag_common.errors import StartError
from uag_common.models import catalogue
from uag_common.models.memory import Dtype, estimate
from uag_common.models.roles import read_roles
from uag_common.tokenizer.errors import TokenizerError

_CONTEXT_FIELDS = ("max_position_embeddings", "n_positions", "n_ctx")


class Verdict(Enum):
    """How the draft's tokens become the target's."""

    SAME = "same vocabulary"
    TRANSLATED = "different vocabularies"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a folder tells of its model; `context_length` in tokens, None if it does not tell."""

    name: str
    architecture: str
    context_length: int | None
    float32_bytes: int
    bfloat16_bytes: int


@dataclass(frozen=True, slots=True)
class PairReport:
    """`note`: what is special about the pair, or why it is unsupported and what to do."""

    draft: ModelFacts
    target: ModelFacts
    verdict: Verdict
    note: str
    probe: Probe | None


@dataclass(frozen=True, slots=True)
class NamedFolder:
    """A model as the user names it, and where it lies."""

    name: str
    folder: Path


def check_pair(draft: NamedFolder, target: NamedFolder) -> PairReport:
    """Takes seconds for a large vocabulary. Raises CorruptModelError or NoWeightsError."""
    facts = _facts(draft), _facts(target)
    try:
        draft_vocabulary, target_vocabulary = _vocabulary(draft), _vocabulary(target)
    except (TokenizerError, StartError) as error:
        return PairReport(*facts, Verdict.UNSUPPORTED, str(error), None)
    if target_vocabulary.lossy:
        return PairReport(*facts, Verdict.UNSUPPORTED, _lossy_target(target.name), None)
    same = draft_vocabulary.fingerprint == target_vocabulary.fingerprint
    return PairReport(
        *facts,
        verdict=Verdict.SAME if same else Verdict.TRANSLATED,
        note=_note(draft_vocabulary, same),
        probe=probe(draft_vocabulary, target_vocabulary),
    )


def _facts(model: NamedFolder) -> ModelFacts:
    config = json.loads((model.folder / "config.json").read_text(encoding="utf-8"))
    text = config.get("text_config") or config
    lengths = (text.get(name) for name in _CONTEXT_FIELDS)
    return ModelFacts(
        name=model.name,
        architecture=(config.get("architectures") or ["unknown architecture"])[0],
        context_length=next((length for length in lengths if isinstance(length, int)), None),
        float32_bytes=_resident_bytes(model, "float32"),
        bfloat16_bytes=_resident_bytes(model, "bfloat16"),
    )


def _resident_bytes(model: NamedFolder, dtype: Dtype) -> int:
    """As measured for a packaged model, else as estimated from the files."""
    if model.name in catalogue.names():
        return catalogue.find(model.name).resident_bytes(dtype)
    return estimate(model.folder, dtype).resident_bytes()


def _vocabulary(model: NamedFolder) -> Vocabulary:
    """Raises TokenizerError or StartError that names the model and the remedy."""
    text = (model.folder / "tokenizer.json").read_text(encoding="utf-8")
    roles = read_roles(model.folder, _rows(text))
    try:
        return Vocabulary.build(text, Roles.ending(roles.eos_ids))
    except TokenizerError as error:
        raise TokenizerError(
            f"{model.name}: {error}; choose a model with a byte-level or SentencePiece tokenizer"
        ) from error


def _rows(tokenizer_json: str) -> int:
    """One more than the largest id that a tokenizer can give."""
    content = json.loads(tokenizer_json)
    vocabulary = content["model"]["vocab"]
    ids = vocabulary.values() if isinstance(vocabulary, dict) else range(len(vocabulary))
    added = (token["id"] for token in content["added_tokens"])
    return max((*ids, *added), default=-1) + 1


def _note(draft: Vocabulary, same: bool) -> str:
    if same:
        return "ids pass as they are"
    if draft.lossy:
        return "the draft's vocabulary forgets case and spaces, so its drafts are guesses of a text"
    return "drafts are translated byte by byte"


def _lossy_target(name: str) -> str:
    return (
        f"{name}: a WordPiece vocabulary forgets case and spaces, so it cannot decide a text; "
        "it can only draft: name it as DRAFT"
    )
