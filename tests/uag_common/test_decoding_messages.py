from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uag.model.v1 import model_pb2 as pb
from uag_common.decoding import (
    Choice,
    Constraint,
    ConstraintKind,
    NoisePosition,
    PrefixReuse,
    Sampling,
    TokenLogprob,
)
from uag_common.errors import InvalidRequestError
from uag_common.rpc import decoding_messages as messages

UINT32 = st.integers(0, 2**32 - 1)
UINT64 = st.integers(0, 2**64 - 1)
DOUBLE = st.floats(allow_nan=False)
FLOAT = st.floats(width=32, allow_nan=False)

SAMPLINGS = st.builds(
    Sampling,
    temperature=DOUBLE,
    top_k=st.none() | UINT32,
    top_p=st.none() | DOUBLE,
    min_p=st.none() | DOUBLE,
    typical_p=st.none() | DOUBLE,
    repetition_penalty=st.none() | DOUBLE,
    frequency_penalty=DOUBLE,
    presence_penalty=DOUBLE,
    logit_bias=st.dictionaries(UINT32, FLOAT, max_size=3).map(
        lambda bias: (*sorted(bias.items()),)
    ),
    seed=UINT64,
    choice=UINT32,
)
CHOICES = st.builds(
    Choice,
    id=UINT32,
    logprob=st.none() | FLOAT,
    top=st.lists(st.builds(TokenLogprob, UINT32, FLOAT), max_size=3).map(tuple),
)


@given(SAMPLINGS)
def test_sampling_comes_back(sampling: Sampling) -> None:
    wire = messages.encode_sampling(sampling).SerializeToString()
    assert messages.decode_sampling(pb.Sampling.FromString(wire)) == sampling


@given(st.builds(NoisePosition, UINT64, UINT32), st.builds(PrefixReuse, st.binary(), st.booleans()))
def test_positions_and_prefixes_come_back(position: NoisePosition, prefix: PrefixReuse) -> None:
    assert messages.decode_position(messages.encode_position(position)) == position
    assert messages.decode_prefix(messages.encode_prefix(prefix)) == prefix


@given(CHOICES)
def test_choices_come_back(choice: Choice) -> None:
    assert messages.decode_choice(messages.encode_choice(choice)) == choice


@pytest.mark.parametrize("kind", list(ConstraintKind))
def test_constraints_come_back(kind: ConstraintKind) -> None:
    constraint = Constraint(kind, ("a", "b") if kind is ConstraintKind.CHOICE else ("a",))
    message = messages.encode_constraint(constraint)
    assert message is not None
    assert messages.decode_constraint(message, "here") == constraint
    assert message.WhichOneof("kind") == kind.value


def test_what_is_no_constraint_is_refused() -> None:
    assert messages.encode_constraint(None) is None
    with pytest.raises(InvalidRequestError, match=r"here\.it"):
        messages.decode_constraint(pb.Constraint(), "here.it")
    with pytest.raises(ValueError, match="one text"):
        messages.encode_constraint(Constraint(ConstraintKind.REGEX, ("a", "b")))


def test_what_is_not_given_is_off() -> None:
    assert messages.decode_sampling(pb.Sampling()) == Sampling()
