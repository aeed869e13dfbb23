"""The tables of architectures: from what the tests run, and from what the engine tells of a model
it has loaded."""

from __future__ import annotations

from transformers import PreTrainedModel

from tests.architectures.architecture import Architecture
from tests.architectures.catalogue import ARCHITECTURES
from tests.architectures.folders import model_folder
from tests.architectures.pairs import ARTICLE, MORE
from tests.docs.pages import table
from tests.engine import networks, test_replay
from tests.engine.recurrent_networks import falcon_h1, recurrent_gemma
from uag_common.engine.caches import CacheLimits, contexts_of
from uag_common.engine.load import load_model
from uag_common.errors import StartError
from uag_common.kv.budget import Budget
from uag_common.model import Rollback
from verify_service.settings import VerifySettings

PAIRS = (*ARTICLE, *MORE)
LIMITS = CacheLimits(Budget.parse("100MB"), contexts=8, context_length=256)
IN_THE_CATALOGUE = (networks.full, networks.capped, networks.experts, networks.long_rope, falcon_h1)
OTHERS = {
    "tests/engine/test_packed.py": networks.KINDS,
    "tests/engine/test_replay.py": test_replay.MORE_KINDS,
    "tests/engine/test_probe.py": (recurrent_gemma,),
}
"""Networks by the file that runs each of them."""


def architectures() -> str:
    """Those that run through the three services, in the order of the catalogue."""
    header = ("class", "as in", "special", "passes", "goes back by", "shown by")
    return table(header, [_row(architecture) for architecture in ARCHITECTURES])


def others() -> str:
    """Those that only the engine's own tests run."""
    rows = [
        (*_other(networks.network(kind)), f"`{path}`")
        for path, kinds in OTHERS.items()
        for kind in kinds
        if kind not in IN_THE_CATALOGUE
    ]
    return table(("class", "passes", "goes back by", "shown by"), rows)


def _row(architecture: Architecture) -> tuple[str, ...]:
    pairs = [pair for pair in PAIRS if architecture in (pair.target, pair.draft)]
    return (
        f"`{architecture.network.__name__}`",
        f"{architecture.name} ({architecture.stands_for})",
        architecture.special,
        *_loaded(architecture),
        ", ".join(f"`{pair.name}`" for pair in pairs),
    )


def _loaded(architecture: Architecture) -> tuple[str, str]:
    folder = str(model_folder(architecture))
    settings = VerifySettings(model=folder, device="cpu", dtype="float32")
    model = load_model(settings, masked=architecture.masked)
    return how_it_runs(model.most_parts, model.description.rollback)


def _other(network: PreTrainedModel) -> tuple[str, ...]:
    name = f"`{type(network).__name__}`"
    try:
        contexts = contexts_of(network, LIMITS)
    except StartError:
        return (name, "refused", "")
    return (name, *how_it_runs(contexts.most_parts, contexts.rollback))


def how_it_runs(most_parts: int, rollback: Rollback) -> tuple[str, str]:
    """Whether sessions share its passes, and how it goes back to an earlier length."""
    return ("packed" if most_parts > 1 else "alone", rollback.value)
