"""Quantised weights that transformers loads by itself: contexts give what the network gives alone.

Eight bits of bitsandbytes choose columns by what is in the whole pass, so rows that share one are
not always those of a row alone; there a token may differ where two are nearly as likely.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from tests.engine.quantized_models import FORMATS, plain
from uag_common.decoding import Decoding, Sampling
from uag_common.engine.load import load_model
from uag_common.model import Model, Part
from verify_service.settings import VerifySettings

PROMPTS = ([20, 21, 22], [30, 31, 32, 33, 34], [40])
TOKENS = 16
DIFFERENCE = 1.0
"""Of logits whose deviation is 0.8, by four bits."""


@pytest.fixture(scope="module")
def whole(llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quantized") / "plain"
    plain(llama, folder)
    return folder


def network(folder: Path) -> PreTrainedModel:
    loaded = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, device_map="cpu")
    return loaded.eval()


def answers(model: Model) -> list[list[int]]:
    """Greedy ones to all prompts, which share passes."""
    sequences = [model.new_sequence() for _ in PROMPTS]
    choosers = [model.new_chooser(Decoding(Sampling()), len(prompt)) for prompt in PROMPTS]
    for sequence, prompt in zip(sequences, PROMPTS, strict=True):
        sequence.extend(prompt)
    for _ in range(TOKENS):
        parts = [Part(sequence, sequence.pending(1), 1) for sequence in sequences]
        for sequence, chooser, logits in zip(sequences, choosers, model.run(parts), strict=True):
            choice = chooser.choose(logits, 0, sequence.ids, len(sequence.ids))
            sequence.extend([choice.id])
            chooser.advance(choice.id)
    return [list(sequence.ids) for sequence in sequences]


@torch.inference_mode()
def expected(loaded: PreTrainedModel) -> list[list[int]]:
    """The same without caches, one by one."""
    ids = [list(prompt) for prompt in PROMPTS]
    for answer in ids:
        for _ in range(TOKENS):
            logits = loaded(input_ids=torch.tensor([answer]), use_cache=False).logits
            answer.append(int(logits[0, -1].argmax()))
    return ids


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.__name__)
@torch.inference_mode()
def test_quantised_weights_answer_as_transformers_does_with_them(
    form: Callable[[Path, Path], None], whole: Path, tmp_path: Path
) -> None:
    form(whole, tmp_path / "quantized")
    folder = tmp_path / "quantized"
    ids = torch.tensor([[20, 21, 22, 23]])
    rounded, exact = (network(each)(ids).logits.float() for each in (folder, whole))
    assert 0.001 < float((rounded - exact).abs().max()) < DIFFERENCE
    settings = VerifySettings(model=str(folder), dtype="float32")
    assert answers(load_model(settings)) == expected(network(folder))
