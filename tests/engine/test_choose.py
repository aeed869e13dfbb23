"""Which token is chosen, what is told of it, and what a chooser remembers."""

from __future__ import annotations

import math

import pytest
import torch

from tests.engine.tables import CPU, chooser, numbered, token_table
from tests.fakes import FakeLogits
from uag_common.decoding import Choice, Decoding, NoisePosition, Sampling, TokenLogprob
from uag_common.engine.choose import NoNumbersError
from uag_common.engine.logits import TensorLogits
from uag_common.engine.noise import TokenNoise

DRAWN = Decoding(Sampling(temperature=1.0, seed=5))
NAN = math.nan


def test_an_exact_tie_goes_to_the_lowest_id() -> None:
    logits = torch.tensor([[0.0, 3.0, 3.0, 1.0], [2.0, 2.0, 2.0, 2.0]], dtype=torch.bfloat16)
    for decoding in (Decoding(), Decoding(Sampling(presence_penalty=0.1))):
        one = chooser(decoding, numbered(4))
        assert [one.choose(TensorLogits.of(logits), row, [], 0).id for row in (0, 1)] == [1, 0]


def test_log_probabilities_are_told_only_if_asked_for() -> None:
    logits = TensorLogits.of(torch.tensor([[1.0, 3.0, 3.0, -math.inf]]))
    table = numbered(4)
    assert chooser(Decoding(), table).choose(logits, 0, [], 0) == Choice(1)
    alone = chooser(Decoding(top_logprobs=0), table).choose(logits, 0, [], 0)
    assert (alone.id, alone.top) == (1, ())
    assert alone.logprob == pytest.approx(-0.7586, abs=1e-4)
    four = chooser(Decoding(top_logprobs=4), table).choose(logits, 0, [], 0)
    assert four.logprob == alone.logprob
    assert [token.id for token in four.top] == [1, 2, 0]
    assert four.top[0] == TokenLogprob(1, alone.logprob or 0.0)


def test_ties_among_the_most_probable_go_by_id() -> None:
    logits = torch.zeros(1, 1000)
    logits[0, [900, 40, 41]] = 1.0
    one = chooser(Decoding(top_logprobs=5), numbered(1000))
    top = one.choose(TensorLogits.of(logits), 0, [], 0).top
    assert [token.id for token in top] == [40, 41, 900, 0, 1]


def test_log_probabilities_of_a_draw_are_those_that_it_was_drawn_by() -> None:
    decoding = Decoding(Sampling(temperature=0.5, top_k=2), top_logprobs=3)
    choice = chooser(decoding, numbered(4)).choose(
        TensorLogits.of(torch.tensor([[0.0, 1.0, 2.0, -5.0]])), 0, [], 0
    )
    expected = torch.tensor([4.0, 2.0]).log_softmax(-1).tolist()
    assert [token.id for token in choice.top] == [2, 1]
    assert [token.logprob for token in choice.top] == pytest.approx(expected)


@pytest.mark.parametrize(
    "decoding",
    [
        Decoding(),
        Decoding(Sampling(repetition_penalty=1.2)),
        DRAWN,
        Decoding(Sampling(temperature=0.7, top_k=2, top_p=0.8, min_p=0.1, typical_p=0.9)),
    ],
)
@pytest.mark.parametrize(
    "row", [[NAN, NAN, NAN], [1.0, NAN, 2.0], [math.inf, 1.0, 2.0], [-math.inf] * 3]
)
def test_nothing_is_chosen_from_what_is_no_number(decoding: Decoding, row: list[float]) -> None:
    logits = TensorLogits.of(torch.tensor([[1.0, 2.0, 3.0], row]))
    one = chooser(decoding, numbered(3))
    one.choose(logits, 0, [1], 1)
    with pytest.raises(NoNumbersError):
        one.choose(logits, 1, [1], 1)


def test_the_greatest_of_logit_and_noise_is_drawn() -> None:
    table = numbered(50)
    logits = torch.linspace(0, 2, 50)[None]
    noise = TokenNoise(table, CPU).gumbel(5, 0, NoisePosition(), None)
    drawn = chooser(DRAWN, table).choose(TensorLogits.of(logits), 0, [], 0).id
    assert drawn == int((logits[0] + noise).argmax())
    assert drawn != int(logits[0].argmax())


def test_the_choice_does_not_depend_on_how_many_tokens_are_left() -> None:
    """Of few the noise is computed for these alone."""
    table, logits = numbered(50), torch.linspace(0, 1, 50)
    for seed in range(30):
        one = chooser(Decoding(Sampling(temperature=1.0, seed=seed)), table)
        drawn = one.choose(TensorLogits.of(logits[None]), 0, [], 0).id
        few = torch.full((50,), -math.inf)
        few[[drawn, 3, 17]] = logits[[drawn, 3, 17]]
        assert one.choose(TensorLogits.of(few[None]), 0, [], 0).id == drawn


def test_the_place_moves_by_the_bytes_of_a_token() -> None:
    table = token_table([None, b"abc", b"", b"\xff", None], eos_ids=(0,), controls={4: "<turn>"})
    logits = TensorLogits.of(torch.zeros(1, 5))
    walked, moved = chooser(DRAWN, table), chooser(DRAWN, table)
    seen = []
    for token_id, position in (
        (1, NoisePosition(3)),
        (4, NoisePosition(3, 1)),
        (2, NoisePosition(3, 2)),
        (0, NoisePosition(3, 3)),
        (3, NoisePosition(4)),
    ):
        walked.advance(token_id)
        moved.move(position)
        assert walked.choose(logits, 0, [], 0) == moved.choose(logits, 0, [], 0)
        noise = TokenNoise(table, CPU).gumbel(5, 0, position, None)
        assert moved.choose(logits, 0, [], 0).id == int(noise.argmax())
        seen.append(noise.tolist())
    assert len({value for row in seen for value in row}) == 25


def test_only_logits_of_its_own_are_read() -> None:
    with pytest.raises(TypeError, match="FakeLogits"):
        chooser(Decoding(), numbered(3)).choose(FakeLogits(1), 0, [], 0)
