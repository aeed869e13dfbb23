"""From a folder to a model that chooses tokens."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from uag_common.decoding import Constraint, ConstraintKind, Decoding, NoisePosition, Sampling
from uag_common.engine.language_model import LanguageModel
from uag_common.engine.load import load_folder, load_model
from uag_common.engine.logits import tensor_logits
from uag_common.errors import InvalidRequestError, StartError
from uag_common.model import Model, run_alone
from uag_common.model_settings import ModelServiceSettings
from verify_service.settings import VerifySettings

CPU = torch.device("cpu")


def load(folder: Path) -> LanguageModel:
    return load_folder(folder, ModelServiceSettings(listen="", model=str(folder)), CPU)


@pytest.fixture(scope="module")
def model(llama: Path) -> LanguageModel:
    return load(llama)


def test_a_model_that_is_spread_by_layers_answers_the_same(
    model: LanguageModel, llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine without accelerators all layers come to lie on the one device that there is."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    settings = ModelServiceSettings(listen="", model=str(llama), device="spread")
    spread = load_folder(llama, settings, CPU)
    sampling = Sampling(temperature=1.0, seed=1)
    assert answer(spread, sampling, 12) == answer(model, sampling, 12)


def test_nothing_is_spread_over_no_accelerator(
    llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    settings = VerifySettings(model=str(llama), device="spread")
    with pytest.raises(StartError, match="UAG_VERIFY_DEVICE=spread: there is no accelerator"):
        load_model(settings)


@pytest.fixture
def broken(llama: Path, tmp_path: Path) -> Path:
    shutil.copytree(llama, tmp_path / "broken")
    return tmp_path / "broken"


def answer(model: Model, sampling: Sampling, length: int) -> list[int]:
    sequence = model.new_sequence()
    sequence.extend([20, 21, 22])
    chooser = model.new_chooser(Decoding(sampling), 3)
    for _ in range(length):
        choice = chooser.choose(run_alone(model, sequence, 1), 0, sequence.ids, len(sequence.ids))
        sequence.extend([choice.id])
        chooser.advance(choice.id)
    return list(sequence.ids[3:])


def test_a_seed_and_a_choice_make_an_answer(model: LanguageModel) -> None:
    drawn = answer(model, Sampling(temperature=1.0, seed=1), 12)
    assert answer(model, Sampling(temperature=1.0, seed=1), 12) == drawn
    assert answer(model, Sampling(temperature=1.0, seed=2), 12) != drawn
    assert answer(model, Sampling(temperature=1.0, seed=1, choice=1), 12) != drawn
    assert answer(model, Sampling(), 12) != drawn


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_a_constraint_shapes_the_answer(model: LanguageModel, temperature: float) -> None:
    decoding = Decoding(
        Sampling(temperature=temperature, seed=3),
        min_new_tokens=4,
        end_ids=model.description.roles.eos_ids,
        constraint=Constraint(ConstraintKind.REGEX, ("[a-f ]{3,60}",)),
    )
    sequence, chooser = model.new_sequence(), model.new_chooser(decoding, 3)
    sequence.extend([20, 21, 22])
    while sequence.ids[-1] not in decoding.end_ids:
        choice = chooser.choose(run_alone(model, sequence, 1), 0, sequence.ids, len(sequence.ids))
        sequence.extend([choice.id])
        chooser.advance(choice.id)
    text = Tokenizer.from_str(model.tokenizer_files[0].content.decode()).decode(sequence.ids[3:])
    assert re.fullmatch("[a-f ]{3,60}", text)
    assert len(sequence.ids) - 3 > decoding.min_new_tokens
    # Behind the end all is allowed, for what is chosen there is thrown away.
    chooser.choose(run_alone(model, sequence, 1), 0, sequence.ids, len(sequence.ids))


def test_a_constraint_that_cannot_be_compiled_is_refused(model: LanguageModel) -> None:
    broken = Constraint(ConstraintKind.REGEX, ("(",))
    with pytest.raises(InvalidRequestError, match="regex"):
        model.new_chooser(Decoding(constraint=broken), 3)


def test_places_move_by_what_the_tokenizer_spells(model: LanguageModel) -> None:
    """Its first bytes are written as visible characters; "Ġ" is a space."""
    ids = json.loads(model.tokenizer_files[0].content)["model"]["vocab"]
    sequence = model.new_sequence()
    sequence.extend([20])
    logits = run_alone(model, sequence, 1)
    decoding = Decoding(Sampling(temperature=3.0, seed=4))
    walked, moved = model.new_chooser(decoding, 0), model.new_chooser(decoding, 0)
    for token_id, position in (
        (ids["Ġ"], NoisePosition(1)),
        (ids["<eos>"], NoisePosition(1, 1)),
        (model.description.vocabulary_size - 1, NoisePosition(1, 2)),
        (ids["T"], NoisePosition(2)),
    ):
        walked.advance(token_id)
        moved.move(position)
        assert walked.choose(logits, 0, [], 0) == moved.choose(logits, 0, [], 0)


def test_a_prompts_log_probabilities_are_those_of_the_model(model: LanguageModel) -> None:
    sequence, ids = model.new_sequence(), [20, 21, 22, 23]
    sequence.extend(ids)
    logits = run_alone(model, sequence, 4)
    told = model.prompt_logprobs(logits, ids[1:], 2)
    expected = tensor_logits(logits).tensor.log_softmax(-1)
    assert [choice.id for choice in told] == ids[1:]
    for row, choice in enumerate(told):
        best = expected[row].topk(2)
        assert choice.logprob == pytest.approx(float(expected[row, choice.id]), abs=1e-5)
        assert [token.id for token in choice.top] == best.indices.tolist()
        assert [token.logprob for token in choice.top] == pytest.approx(best.values.tolist())


def test_a_tokenizer_that_cannot_be_read_is_refused(broken: Path) -> None:
    path = broken / "tokenizer.json"
    raw = json.loads(path.read_text(encoding="utf-8"))
    raw["model"]["end_of_word_suffix"] = "</w>"
    path.write_text(json.dumps(raw), encoding="utf-8")
    with pytest.raises(StartError, match="tokenizer cannot be used"):
        load(broken)


def test_weights_that_are_no_numbers_are_refused(broken: Path) -> None:
    path = broken / "model.safetensors"
    weights = load_file(path)
    weights["model.norm.weight"] = weights["model.norm.weight"] * float("nan")
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(StartError, match="no numbers"):
        load(broken)
