"""Between the messages that say how tokens are chosen, and which were, and the plain values of
`uag_common.decoding`. Checks no values but that a constraint is there."""

from __future__ import annotations

from uag.model.v1 import model_pb2 as pb
from uag.verify.v1 import verify_pb2
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


def encode_sampling(sampling: Sampling) -> pb.Sampling:
    return pb.Sampling(
        temperature=sampling.temperature,
        top_k=sampling.top_k,
        top_p=sampling.top_p,
        min_p=sampling.min_p,
        typical_p=sampling.typical_p,
        repetition_penalty=sampling.repetition_penalty,
        frequency_penalty=sampling.frequency_penalty,
        presence_penalty=sampling.presence_penalty,
        logit_bias=dict(sampling.logit_bias),
        seed=sampling.seed,
        choice=sampling.choice,
    )


def decode_sampling(message: pb.Sampling) -> Sampling:
    given = {field.name for field, _ in message.ListFields()}
    return Sampling(
        temperature=message.temperature,
        top_k=message.top_k if "top_k" in given else None,
        top_p=message.top_p if "top_p" in given else None,
        min_p=message.min_p if "min_p" in given else None,
        typical_p=message.typical_p if "typical_p" in given else None,
        repetition_penalty=message.repetition_penalty if "repetition_penalty" in given else None,
        frequency_penalty=message.frequency_penalty,
        presence_penalty=message.presence_penalty,
        # A map has no order of its own.
        logit_bias=tuple(sorted(message.logit_bias.items())),
        seed=message.seed,
        choice=message.choice,
    )


def encode_position(position: NoisePosition) -> pb.NoisePosition:
    return pb.NoisePosition(offset=position.offset, repeats=position.repeats)


def decode_position(message: pb.NoisePosition) -> NoisePosition:
    return NoisePosition(message.offset, message.repeats)


def encode_prefix(prefix: PrefixReuse) -> pb.PrefixReuse:
    return pb.PrefixReuse(key=prefix.key, keep=prefix.keep)


def decode_prefix(message: pb.PrefixReuse) -> PrefixReuse:
    return PrefixReuse(message.key, message.keep)


def encode_constraint(constraint: Constraint | None) -> pb.Constraint | None:
    match constraint:
        case None:
            return None
        case Constraint(ConstraintKind.CHOICE, texts):
            return pb.Constraint(choice=pb.Choices(texts=texts))
        case Constraint(kind, (text,)):
            message = pb.Constraint()
            setattr(message, kind.value, text)
            return message
        case _:
            raise ValueError(f"a constraint of kind {constraint.kind.value} has one text")


def decode_constraint(message: pb.Constraint, field: str) -> Constraint:
    """Raises InvalidRequestError that names the `field` if the message has no kind."""
    name = message.WhichOneof("kind")
    if name is None:
        raise InvalidRequestError(field, "must be one of the kinds")
    kind = ConstraintKind(name)
    if kind is ConstraintKind.CHOICE:
        return Constraint(kind, tuple(message.choice.texts))
    return Constraint(kind, (getattr(message, name),))


def encode_choice(choice: Choice) -> verify_pb2.ChosenToken:
    top = (pb.TokenLogprob(id=token.id, logprob=token.logprob) for token in choice.top)
    return verify_pb2.ChosenToken(id=choice.id, logprob=choice.logprob, top=top)


def decode_choice(message: verify_pb2.ChosenToken) -> Choice:
    return Choice(
        message.id,
        message.logprob if message.HasField("logprob") else None,
        tuple(TokenLogprob(token.id, token.logprob) for token in message.top),
    )
