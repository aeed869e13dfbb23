"""The miniatures are what the catalogue says, and what makes them hard is felt in their logits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForMaskedLM, AutoTokenizer, PreTrainedModel

from tests.architectures import catalogue, configs
from tests.architectures.architecture import Architecture
from tests.architectures.folders import model_folder
from tests.architectures.lessons import TEXTS
from tests.architectures.oracle import Oracle
from uag_common.models.roles import read_roles

pytestmark = pytest.mark.usefixtures("real_tokenizers")

FELT = 0.05
"""Two logits that are so far apart are not the same number rounded differently."""
SAME = 1e-4
NEW_TOKENS = 24
causal = pytest.mark.parametrize("architecture", catalogue.CAUSAL, ids=lambda one: one.name)

Config = Any


@dataclass(frozen=True, slots=True)
class Without:
    """A model's configuration with one thing taken off or moved by one."""

    architecture: Architecture
    what: str
    change: Callable[[Config], None]


def setting(**values: object) -> Callable[[Config], None]:
    return lambda config: config.update(values)


def rope(**values: object) -> Callable[[Config], None]:
    return lambda config: config.rope_parameters.update(values)


WITHOUT = (
    Without(catalogue.LLAMA_3_1, "scaling", rope(rope_type="default")),
    Without(catalogue.CODE_LLAMA, "base", rope(rope_theta=10_000.0)),
    Without(catalogue.MISTRAL, "window", setting(sliding_window=None)),
    Without(
        catalogue.MISTRAL, "window off by one", setting(sliding_window=configs.MISTRAL_WINDOW + 1)
    ),
    Without(catalogue.MIXTRAL, "second expert", setting(num_experts_per_tok=1)),
    Without(catalogue.GEMMA_2, "window", setting(sliding_window=configs.CONTEXT_LENGTH)),
    Without(
        catalogue.GEMMA_2, "window off by one", setting(sliding_window=configs.GEMMA_WINDOW + 1)
    ),
    Without(catalogue.GEMMA_2, "cap of attention", setting(attn_logit_softcapping=None)),
    Without(catalogue.GEMMA_2, "cap of logits", setting(final_logit_softcapping=None)),
    Without(catalogue.PHI_3, "long factors", rope(long_factor=configs.PHI_SHORT_FACTOR)),
)
BOUNDED = [one for one in WITHOUT if one.what in ("window", "long factors")]


@causal
def test_each_is_what_the_catalogue_says(architecture: Architecture) -> None:
    folder = model_folder(architecture)
    network = alone(architecture).prompts.network
    assert type(network) is architecture.network
    assert network.get_input_embeddings().weight.shape[0] == architecture.vocabulary_size
    found = read_roles(folder, architecture.vocabulary_size)
    assert found.eos_ids == architecture.roles.eos_ids
    assert (folder / "chat_template.jinja").exists() is bool(architecture.chat_template)


@causal
def test_each_goes_on_with_the_texts_as_it_learnt_them(architecture: Architecture) -> None:
    prompts = alone(architecture).prompts
    known = said = 0
    for text in TEXTS:
        ids = torch.tensor([prompts.text_prompt(text)])
        with torch.inference_mode():
            guessed = prompts.network(input_ids=ids).logits[0, :-1].argmax(-1)
        known += int((guessed == ids[0, 1:]).sum())
        said += len(guessed)
    assert known > 0.8 * said, f"{known} of {said}"


@causal
def test_the_oracle_says_what_transformers_own_search_says(architecture: Architecture) -> None:
    oracle = alone(architecture)
    prompt = oracle.prompts.text_prompt(TEXTS[0][:19])
    answer = oracle.answer(prompt, NEW_TOKENS)
    assert answer == oracle.prompts.answer(prompt, NEW_TOKENS)
    rows = oracle.logits([*prompt, *answer], len(answer) + 1)
    assert rows[:-1].argmax(-1).tolist() == answer


@pytest.mark.parametrize("without", WITHOUT, ids=lambda one: f"{one.architecture.name}-{one.what}")
def test_what_makes_it_hard_is_felt(without: Without) -> None:
    assert difference(without, 40) > FELT


@pytest.mark.parametrize("without", BOUNDED, ids=lambda one: one.architecture.name)
def test_a_boundary_is_where_the_catalogue_says(without: Without) -> None:
    boundary = without.architecture.boundary
    assert boundary is not None
    assert difference(without, boundary.tokens) < SAME
    assert difference(without, boundary.tokens + 1) > SAME


def test_the_masked_model_fills_masks_as_it_learnt() -> None:
    folder = model_folder(catalogue.DISTILBERT)
    network = AutoModelForMaskedLM.from_pretrained(folder).eval()
    assert type(network) is catalogue.DISTILBERT.network
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer("The quick brown fox jumps over [MASK] [MASK].").input_ids
    with torch.inference_mode():
        guessed = network(input_ids=torch.tensor([ids])).logits[0].argmax(-1)
    masks = [at for at, token in enumerate(ids) if token == tokenizer.mask_token_id]
    assert tokenizer.convert_ids_to_tokens(guessed[masks]) == ["the", "lazy"]


@cache
def alone(architecture: Architecture) -> Oracle:
    return Oracle(architecture, model_folder(architecture))


def difference(without: Without, tokens: int) -> float:
    """The largest between the model's logits and those without, after so many tokens."""
    folder = model_folder(without.architecture)
    config = AutoConfig.from_pretrained(folder)
    without.change(config)
    ids = (alone(without.architecture).prompts.text_prompt(TEXTS[0] + TEXTS[2]) * 2)[:tokens]
    other = without.architecture.network.from_pretrained(folder, config=config).eval()
    mine = alone(without.architecture).prompts.network
    return float((logits(mine, ids) - logits(other, ids)).abs().max())


@torch.inference_mode()
def logits(network: PreTrainedModel, ids: list[int]) -> torch.Tensor:
    """After all of them."""
    told: torch.Tensor = network(input_ids=torch.tensor([ids]), logits_to_keep=1).logits[0]
    return told
