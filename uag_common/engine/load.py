"""From a folder on disk to a model that has run a test step, or one line that says why not."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from transformers import PreTrainedModel
from transformers.utils import logging as transformers_logging

from uag_common.engine.caches import Asked, CacheLimits, contexts_of, runner_of_follower
from uag_common.engine.contexts import Contexts
from uag_common.engine.language_model import LanguageModel
from uag_common.engine.mask_vocabulary import MaskVocabulary
from uag_common.engine.masked import MaskedContexts
from uag_common.engine.network import check_network, is_masked, load_network
from uag_common.engine.parallel import ALONE, Leading, Team, follow, lead
from uag_common.engine.placement import choose_device
from uag_common.engine.prepacked import prepack
from uag_common.engine.rope import usable_context
from uag_common.engine.weights import WeightSize, fetched_sizes, home
from uag_common.errors import StartError, UagError, first_line
from uag_common.model import (
    ModelDescription,
    TokenizerFile,
    TokenRoles,
    tokenizer_sha256,
)
from uag_common.model_settings import ModelServiceSettings
from uag_common.models.roles import read_roles
from uag_common.models.source import resolve
from uag_common.ranks.errors import RankLostError
from uag_common.ranks.place import SINGLE, Place
from uag_common.settings import variable_name
from uag_common.tokenizer.errors import TokenizerError
from uag_common.tokenizer.token_table import TokenTable

log = logging.getLogger(__name__)

MAX_CONTEXT_LENGTH = (1 << 31) - 1
"""More than the contract has room for; some configurations mean "no limit" by it."""

CONTEXT_LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
"""What configurations call it."""

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
)
"""What is handed out; only the first must be there."""


def load_model(
    settings: ModelServiceSettings,
    place: Place = SINGLE,
    failed: Callable[[Exception], None] = lambda _: None,
    *,
    masked: bool = False,
    compiled: bool = False,
) -> LanguageModel:
    """Resolves, checks and loads the model that the settings name, and runs a test step. `masked`:
    a masked language model will do; `compiled`: its steps are to be. Where several processes share
    the model this one leads, and `failed` is told of a pass that was the last. Raises StartError
    that names the setting and the remedy."""
    _quieten()
    device = choose_device(settings, place)
    with _told(settings):
        folder = resolve(settings.model)
        check_network(folder, settings, device, place.size)
        team = lead(place, device, failed)
        team.say(str(folder))
        return load_folder(folder, settings, device, team, masked=masked, compiled=compiled)


def follow_model(settings: ModelServiceSettings, place: Place) -> None:
    """Loads this process's part of the model, and follows the leader until that has gone. Raises
    StartError."""
    _quieten()
    device = choose_device(settings, place)
    with _told(settings):
        team = follow(place, device)
        folder = Path(team.hear())
        _use_threads(settings, team)
        network = load_network(folder, settings, device, team.size)
        runner = runner_of_follower(network, _cache_limits(network, settings), team)
    team.follow(runner)


@contextmanager
def _told(settings: ModelServiceSettings) -> Iterator[None]:
    """What fails within is one line for an operator."""
    try:
        yield
    except RankLostError:
        raise
    except Exception as error:
        # What can be wrong with a folder has no end, and all of it is one line for an operator.
        log.debug("the model cannot be loaded", exc_info=error)
        told = str(error) if isinstance(error, UagError) else first_line(error)
        name = variable_name(type(settings), "model")
        raise StartError(f"{name}={settings.model}: {told}") from error


def load_folder(
    folder: Path,
    settings: ModelServiceSettings,
    device: torch.device,
    team: Leading = ALONE,
    *,
    masked: bool = False,
    compiled: bool = False,
) -> LanguageModel:
    """Loads a model from a folder, under the name that the settings give it. Raises StartError."""
    _quieten()
    _use_threads(settings, team)
    files = _tokenizer_files(folder)
    network = load_network(folder, settings, device, team.size)
    size = WeightSize.of(network)
    wanted = settings.prepack and team.size == 1 and not any(fetched_sizes(network))
    order = prepack(network) if wanted else ""
    vocabulary_size = network.get_input_embeddings().weight.shape[0]
    roles = read_roles(folder, vocabulary_size)
    table = _token_table(files[0], roles, vocabulary_size)
    if not is_masked(network.config):
        limits = _cache_limits(network, settings)
        contexts = contexts_of(network, limits, Asked(settings.deterministic, compiled), team)
    elif masked and compiled:
        raise StartError("COMPILE=true: a masked language model is not compiled")
    elif masked:
        contexts = MaskedContexts(network, MaskVocabulary.read(files, vocabulary_size))
    else:
        raise StartError("it is a masked language model: such a one can draft, and not verify")
    description = _describe(network, size, settings, contexts, tokenizer_sha256(files), roles)
    model = LanguageModel(contexts, home(network), description, files, table)
    model.test_step()
    if order:
        log.info(order)
    return model


def _use_threads(settings: ModelServiceSettings, team: Team) -> None:
    """This process's share of them."""
    threads = settings.threads or torch.get_num_threads()
    torch.set_num_threads(max(1, threads // team.size))


def _quieten() -> None:
    """transformers' own lines come as all others do."""
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_default_handler()
    transformers_logging.enable_propagation()
    transformers_logging.disable_progress_bar()


def _describe(
    network: PreTrainedModel,
    size: WeightSize,
    settings: ModelServiceSettings,
    contexts: Contexts,
    sha256: str,
    roles: TokenRoles,
) -> ModelDescription:
    name, _, revision = settings.model.partition("@")
    return ModelDescription(
        model_id=name,
        revision=revision,
        architecture=type(network).__name__,
        tokenizer_sha256=sha256,
        vocabulary_size=network.get_input_embeddings().weight.shape[0],
        # One session alone must find room for all of its context.
        context_length=min(_context_length(network), contexts.longest),
        dtype=str(network.dtype).removeprefix("torch."),
        device=str(home(network)),
        rollback=contexts.rollback,
        parameter_count=size.parameters,
        weight_bytes=size.bytes,
        roles=roles,
    )


def _cache_limits(network: PreTrainedModel, settings: ModelServiceSettings) -> CacheLimits:
    """More memory than all sessions take with full contexts, and what is kept, is of no use."""
    budget = settings.kv_budget(accelerated=home(network).type != "cpu")
    contexts, length = settings.max_sessions + 1, _context_length(network)
    return CacheLimits(budget, contexts, length, max(fetched_sizes(network), default=0))


def _tokenizer_files(folder: Path) -> tuple[TokenizerFile, ...]:
    present = [folder / name for name in TOKENIZER_FILES if (folder / name).is_file()]
    if not present or present[0].name != TOKENIZER_FILES[0]:
        raise StartError(
            f"{folder} has no tokenizer.json; save the model's fast tokenizer there "
            "(AutoTokenizer.from_pretrained(...).save_pretrained(...))"
        )
    return tuple(TokenizerFile(path.name, path.read_bytes()) for path in present)


def _context_length(network: PreTrainedModel) -> int:
    text = network.config.get_text_config(decoder=True)
    named = (getattr(text, name, None) for name in CONTEXT_LENGTHS)
    length = next((value for value in named if isinstance(value, int) and value > 0), None)
    if is_masked(network.config) or (length is None and network._is_stateful):
        # It looks at the last tokens alone, or keeps a state instead of tokens.
        return MAX_CONTEXT_LENGTH
    if length is None:
        raise StartError(
            "the model's config.json tells no context length (max_position_embeddings)"
        )
    return min(usable_context(network.config, length), MAX_CONTEXT_LENGTH)


def _token_table(tokenizer_json: TokenizerFile, roles: TokenRoles, rows: int) -> TokenTable:
    try:
        return TokenTable.build(tokenizer_json.content.decode(), roles.eos_ids, rows)
    except (TokenizerError, UnicodeDecodeError) as error:
        raise StartError(f"its tokenizer cannot be used: {error}") from error
