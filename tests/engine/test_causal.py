"""Answers of the engine against those of transformers' own search."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from transformers import PreTrainedModel

from tests.engine.networks import VOCABULARY, contexts, full, network, sliding
from tests.engine.tables import CPU, numbered
from uag_common.decoding import Decoding, Sampling
from uag_common.engine.choose import Chooser
from uag_common.engine.noise import TokenNoise
from uag_common.model import Part


@pytest.mark.parametrize("kind", [full, sliding])
def test_processed_choices_are_those_of_transformers(kind: Callable[[], PreTrainedModel]) -> None:
    alone = network(kind)
    prompt = [5, 6, 7, 8]
    biased = ((11, 1.5), (12, -3.0))
    sampling = Sampling(repetition_penalty=1.3, logit_bias=biased)
    tensor = torch.tensor([prompt])
    expected = alone.generate(
        tensor,
        attention_mask=torch.ones_like(tensor),
        max_new_tokens=24,
        min_new_tokens=6,
        do_sample=False,
        repetition_penalty=1.3,
        sequence_bias={(token_id,): bias for token_id, bias in biased},
        eos_token_id=[11, 13],
        pad_token_id=0,
    )
    table = numbered(VOCABULARY)
    chooser = Chooser(
        Decoding(sampling, min_new_tokens=6, end_ids=(11, 13)),
        len(prompt),
        table.pieces,
        TokenNoise(table, CPU),
        None,
    )
    packed = contexts(alone)
    sequence = packed.new_sequence()
    sequence.extend(prompt)
    while len(sequence.ids) < len(prompt) + 24 and sequence.ids[-1] not in (11, 13):
        (logits,) = packed.run([Part(sequence, sequence.pending(1), 1)])
        choice = chooser.choose(logits, 0, sequence.ids, len(sequence.ids))
        sequence.extend([choice.id])
        chooser.advance(choice.id)
    assert sequence.ids == expected[0].tolist()
