"""Random commands to the two inner services: right ones, wrong ones, in any order."""

from __future__ import annotations

from typing import Any

from tests.fuzz.requests import FLOATS, GRAMMARS, IDS, NUMBERS, PATTERNS, SCHEMAS, Dice
from uag.draft.v1 import draft_pb2
from uag.model.v1 import model_pb2
from uag.verify.v1 import verify_pb2
from uag_common.context import ContextVersion

SMALL_IDS = range(1, 400)


def draft_commands(dice: Dice, tokenizer_sha256: str) -> list[draft_pb2.SessionRequest]:
    """What one draft session is told."""
    commands = [_draft_open(dice, tokenizer_sha256)]
    commands += [
        _propose(dice, list(commands[0].open.context_ids)) for _ in range(dice.randrange(4))
    ]
    return _shuffled(dice, commands)


def verify_commands(dice: Dice, tokenizer_sha256: str) -> list[verify_pb2.SessionRequest]:
    """What one verify session is told."""
    commands = [_verify_open(dice, tokenizer_sha256)]
    commands += [_verify(dice, list(commands[0].open.prompt_ids)) for _ in range(dice.randrange(4))]
    return _shuffled(dice, commands)


def _shuffled(dice: Dice, commands: list[Any]) -> list[Any]:
    if dice.random() < 0.15:
        dice.shuffle(commands)
    return commands


def _ids(dice: Dice) -> list[int]:
    pool = SMALL_IDS if dice.random() < 0.8 else IDS
    return dice.choices(pool, k=dice.choice((0, 1, 2, 8, 30, 300)))


def _version(dice: Dice, ids: list[int]) -> model_pb2.ContextVersion:
    if dice.random() < 0.2:
        return model_pb2.ContextVersion(length=_uint(dice), hash=dice.getrandbits(64))
    version = ContextVersion.of(ids, len(ids))
    return model_pb2.ContextVersion(length=version.length, hash=version.hash)


def _uint(dice: Dice) -> int:
    return dice.choice(NUMBERS) % (1 << 32)


def _sampling(dice: Dice) -> model_pb2.Sampling | None:
    if dice.random() < 0.5:
        return None
    sampling = model_pb2.Sampling(temperature=dice.choice((0.7, 1.0, *FLOATS)), seed=7)
    for name in ("top_p", "min_p", "typical_p", "repetition_penalty", "frequency_penalty"):
        if dice.random() < 0.2:
            setattr(sampling, name, dice.choice((0.9, *FLOATS)))
    if dice.random() < 0.2:
        sampling.top_k = _uint(dice)
    if dice.random() < 0.2:
        sampling.logit_bias[dice.choice(IDS)] = dice.choice(FLOATS)
    sampling.choice = _uint(dice) if dice.random() < 0.2 else 0
    return sampling


def _sha(dice: Dice, tokenizer_sha256: str) -> str:
    return tokenizer_sha256 if dice.random() < 0.95 else dice.choice(("", "0" * 64, "x" * 9999))


def _prefix(dice: Dice) -> model_pb2.PrefixReuse:
    return model_pb2.PrefixReuse(key=dice.randbytes(dice.choice((0, 1, 16, 5000))), keep=True)


def _draft_open(dice: Dice, tokenizer_sha256: str) -> draft_pb2.SessionRequest:
    message = draft_pb2.Open(
        context_ids=_ids(dice),
        tokenizer_sha256=_sha(dice, tokenizer_sha256),
        sampling=_sampling(dice),
    )
    if dice.random() < 0.2:
        message.answer_start = _uint(dice)
    if dice.random() < 0.3:
        message.prefix.CopyFrom(_prefix(dice))
    message.priority = dice.choice((0, 0, *NUMBERS))
    return draft_pb2.SessionRequest(open=message)


def _propose(dice: Dice, context: list[int]) -> draft_pb2.SessionRequest:
    keep = len(context) if dice.random() < 0.6 else _uint(dice)
    message = draft_pb2.Propose(
        round=_uint(dice),
        keep=keep,
        kept=_version(dice, context[:keep]),
        append_ids=_ids(dice),
        max_tokens=dice.choice((1, 3, _uint(dice))),
        position=model_pb2.NoisePosition(offset=dice.getrandbits(64), repeats=_uint(dice)),
    )
    if dice.random() < 0.3:
        message.min_probability = dice.choice(FLOATS)
    if dice.random() < 0.2:
        message.ClearField("position")
    return draft_pb2.SessionRequest(propose=message)


def _verify_open(dice: Dice, tokenizer_sha256: str) -> verify_pb2.SessionRequest:
    message = verify_pb2.Open(
        prompt_ids=_ids(dice),
        tokenizer_sha256=_sha(dice, tokenizer_sha256),
        sampling=_sampling(dice),
        min_new_tokens=_uint(dice) if dice.random() < 0.2 else 0,
        end_ids=dice.choices(IDS, k=dice.choice((0, 0, 1, 200))),
        priority=dice.choice((0, 0, *NUMBERS)),
    )
    for name in ("answer_start", "top_logprobs", "prompt_top_logprobs"):
        if dice.random() < 0.2:
            setattr(message, name, dice.choice((1, _uint(dice))))
    if dice.random() < 0.3:
        message.prefix.CopyFrom(_prefix(dice))
    if dice.random() < 0.3:
        message.constraint.CopyFrom(_constraint(dice))
    return verify_pb2.SessionRequest(open=message)


def _constraint(dice: Dice) -> model_pb2.Constraint:
    return dice.choice(
        (
            model_pb2.Constraint(json_schema=dice.choice(SCHEMAS)),
            model_pb2.Constraint(regex=dice.choice(PATTERNS)),
            model_pb2.Constraint(grammar=dice.choice(GRAMMARS)),
            model_pb2.Constraint(),
        )
    )


def _verify(dice: Dice, prompt: list[int]) -> verify_pb2.SessionRequest:
    # The first token is the target's own, so most versions are stale.
    message = verify_pb2.Verify(
        round=_uint(dice), committed=_version(dice, prompt), candidate_ids=_ids(dice)[:70]
    )
    return verify_pb2.SessionRequest(verify=message)
