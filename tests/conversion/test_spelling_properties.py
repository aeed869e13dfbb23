"""Properties of one vocabulary: any bytes to ids, any ids to text, for each real tokenizer."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.conversion.spans import spans
from orchestrator.conversion.utf8 import is_boundary, utf8_end
from orchestrator.text_stream import TextStream
from tests.conversion.pairs import EXACT_NAMES, NAMES, some
from tests.conversion.rounds import (
    Script,
    blocks,
    scripts,
)
from tests.conversion.texts import bytes_of, raw_bytes, texts
from tests.conversion.vocabularies import tokenizer_json, vocabulary
from uag_common.tokenizer.tokenizer_spec import TokenizerSpec

pytestmark = pytest.mark.usefixtures("real_tokenizers")


@pytest.mark.parametrize("name", NAMES)
@some
@given(data=raw_bytes)
def test_2_widths_sum_to_the_length_of_any_bytes(name: str, data: bytes) -> None:
    result = spans(vocabulary(name), data)
    assert min(result.widths, default=0) >= 0
    # Only a lossy vocabulary may have no id at all for what the bytes hold.
    assert sum(result.widths) == len(data) or (vocabulary(name).lossy and not result.ids)


@pytest.mark.parametrize("name", NAMES)
@some
@given(script=scripts(), start=st.booleans())
def test_7_streamed_text_does_not_depend_on_blocks(name: str, script: Script, start: bool) -> None:
    one = vocabulary(name)
    ids = script.ids(one)
    whole, parts = TextStream(one, at_text_start=start), TextStream(one, at_text_start=start)
    pushed = "".join(parts.push(block) for block, _ in blocks(ids, script.turns))
    assert pushed + parts.flush() == whole.push(ids) + whole.flush()
    data = bytes_of(one, ids)
    skipped = 1 if start and one.strips_leading_space and data.startswith(b" ") else 0
    assert pushed.startswith(data[skipped : utf8_end(data)].decode("utf-8", "replace"))


@cache
def control_names(name: str) -> list[str]:
    spec = TokenizerSpec.parse(tokenizer_json(name), frozenset())
    return [token.content for token in spec.added if token.control]


@pytest.mark.parametrize("name", EXACT_NAMES)
@some
@given(text=texts, choices=st.lists(st.integers(0, 999), max_size=4))
def test_8_no_text_becomes_a_control_id(name: str, text: str, choices: list[int]) -> None:
    one = vocabulary(name)
    control = control_names(name)
    typed = text.join(control[choice % len(control)] for choice in choices)
    assert one.control_ids.isdisjoint(spans(one, (text + typed).encode()).ids)


@pytest.mark.parametrize("name", EXACT_NAMES)
@some
@given(data=raw_bytes)
def test_5_both_sides_of_a_cut_encode_as_they_do_together(name: str, data: bytes) -> None:
    one = vocabulary(name)
    data = data[:400]
    whole = spans(one, data).ids
    cuts = [
        at
        for at in range(1, len(data))
        if is_boundary(data, at) and (one.cuts.at_space(data, at) or one.cuts.within_text(data, at))
    ]
    for at in cuts:
        assert spans(one, data[:at]).ids + spans(one, data[at:]).ids == whole
