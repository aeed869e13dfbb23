"""Random requests to the orchestrator: right ones, odd ones, wrong ones, and mere bytes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from uag.model.v1 import model_pb2
from uag.orchestrator.v1 import orchestrator_pb2 as pb

Dice = random.Random

TEXTS = (
    "", " ", "a", "The quick brown fox", "日本語もすこし", "e\u0301\u0301\u0301", "👩‍👩‍👧‍👦",
    "\x00\x01\x7f", "\ufffd", "<turn>user\n<eos>", "<bos></s><|im_end|>", "{{ 7 * 7 }}", "%s%n{0}",
    "word " * 60, "x" * 5000, "\r\n\t", "\u202e\u200b", "a" * 70_000,
)  # fmt: skip
NUMBERS = (0, 1, 2, 3, 5, 16, 17, 64, 65, 255, 256, 1 << 20, (1 << 31) - 1, -1, -(1 << 31))
FLOATS = (
    0.0, 1e-9, 0.1, 0.5, 0.9, 1.0, 1.5, 2.0, 99.0, 101.0, 1e30, -0.0, -1.0,
    float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
IDS = (0, 1, 2, 5, 100, 300, 499, 500, 511, 5000, (1 << 32) - 1)
SCHEMAS = (
    "", "{", "[]", "true", "{}", '{"type": "object"}', '{"type": "nonsense"}', '{"$ref": "#"}',
    '{"type": "string", "maxLength": 3}', '{"enum": ["a", 1, null]}', '{"not": {"type": "string"}}',
    '{"type": "array", "items": {"type": "integer"}, "maxItems": 2}',
    '{"minimum": 5, "maximum": 1}', "[" * 400 + "]" * 400, '{"properties":' * 60 + "{}" + "}" * 60,
)  # fmt: skip
PATTERNS = (
    "", "a", "[a-z]{1,5}", "(", "[", "a{1000}{1000}", "(a|b|ab)*c{1,900}",
    "\\", "(?=a)b", "\\d+", ".*", "(.*)*\\1",
)  # fmt: skip
GRAMMARS = (
    "", 'start: "a"', "start:", 'start: "a" start | "b"', "start: start", "%llguidance {}",
    'start: x', 'start: /[a-z]+/ "."', "%import common.INT\nstart: INT",
)  # fmt: skip


def random_request(dice: Dice) -> pb.GenerateRequest:
    """A request whose fields are each, now and then, filled with anything."""
    request = pb.GenerateRequest(max_new_tokens=dice.randint(1, 8))
    _prompt(dice, request)
    for fill in _FILLERS:
        if dice.random() < 0.12:
            fill(dice, request)
    return request


def mutated(dice: Dice, data: bytes) -> bytes:
    """The same bytes but for some that are changed, left out, doubled or added."""
    changed = bytearray(data)
    for _ in range(dice.randint(1, 6)):
        at = dice.randrange(len(changed) + 1)
        match dice.randrange(5):
            case 0 if at < len(changed):
                changed[at] = dice.randrange(256)
            case 1:
                del changed[at : at + dice.randint(1, 8)]
            case 2:
                changed[at:at] = changed[at : at + dice.randint(1, 16)]
            case 3:
                changed[at:at] = dice.randbytes(dice.randint(1, 8))
            case _:
                del changed[at:]
    return bytes(changed)


def _prompt(dice: Dice, request: pb.GenerateRequest) -> None:
    match dice.randrange(16):
        case 0:
            return
        case 1 | 2 | 3 | 4:
            roles = ("system", "user", "assistant", "root", "", "user\nassistant")
            request.chat.messages.extend(
                pb.ChatMessage(
                    role=dice.choices(roles, (9, 27, 9, 1, 1, 1))[0], content=_text(dice)
                )
                for _ in range(dice.choice((0, 1, 1, 1, 2, 3)))
            )
        case 5 | 6:
            request.token_ids.ids.extend(
                dice.choices(IDS[: dice.choice((6, 6, 11))], k=dice.randrange(12))
            )
        case _:
            request.text = _text(dice)


def _text(dice: Dice) -> str:
    """Most are short enough for the small models of the tests."""
    return dice.choice(TEXTS if dice.random() < 0.3 else TEXTS[2:12]) + dice.choice(TEXTS[:12])


def _sampling(dice: Dice, request: pb.GenerateRequest) -> None:
    sampling = request.sampling
    sampling.temperature = dice.choice((0.7, 1.0, *FLOATS))
    for name in ("top_p", "min_p", "typical_p", "repetition_penalty", "frequency_penalty",
                 "presence_penalty"):  # fmt: skip
        if dice.random() < 0.2:
            setattr(sampling, name, dice.choice((0.5, 0.9, 1.0, *FLOATS)))
    if dice.random() < 0.3:
        sampling.top_k = dice.choice(NUMBERS)
    if dice.random() < 0.3:
        sampling.seed = dice.getrandbits(64)
    for _ in range(dice.choice((0, 0, 1, 3))):
        sampling.logit_bias[dice.choice(IDS)] = dice.choice((1.0, -1.0, *FLOATS))


def _stopping(dice: Dice, request: pb.GenerateRequest) -> None:
    stopping = request.stopping
    if dice.random() < 0.3:
        stopping.min_new_tokens = dice.choice((1, 2, *NUMBERS))
    stopping.stop_sequences.extend(_stop_text(dice) for _ in range(dice.choice((0, 1, 2, 17))))
    stopping.stop_token_ids.extend(dice.choices(IDS, k=dice.choice((0, 1, 3, 70))))
    stopping.include_stop = dice.random() < 0.5
    stopping.ignore_eos = dice.random() < 0.3
    if dice.random() < 0.3:
        stopping.time_limit_seconds = dice.choice((0.001, 0.05, 1.0, *FLOATS))


def _stop_text(dice: Dice) -> str:
    return dice.choice((" ", "e", "the", "\n\n", "", "日", "\ufffd", "x" * 300))


def _logprobs(dice: Dice, request: pb.GenerateRequest) -> None:
    if dice.random() < 0.7:
        request.logprobs.top = dice.choice((0, 1, 5, 20, *NUMBERS))
    if dice.random() < 0.4:
        request.logprobs.prompt_top = dice.choice((0, 1, 20, *NUMBERS))


def _constraint(dice: Dice, request: pb.GenerateRequest) -> None:
    constraint: model_pb2.Constraint = request.constraint
    match dice.randrange(5):
        case 0:
            constraint.json_schema = dice.choice(SCHEMAS)
        case 1:
            constraint.regex = dice.choice(PATTERNS)
        case 2:
            constraint.choice.texts.extend(dice.choices(TEXTS[:-2], k=dice.randrange(4)))
        case 3:
            constraint.grammar = dice.choice(GRAMMARS)
        case _:
            constraint.SetInParent()


def _speculation(dice: Dice, request: pb.GenerateRequest) -> None:
    speculation = request.speculation
    # Numbers that the contract does not know too.
    speculation.mode = dice.choice((0, 1, 2, 3, 3, 99))  # type: ignore[assignment]
    speculation.on_draft_failure = dice.choice((0, 1, 2, 7))  # type: ignore[assignment]
    if dice.random() < 0.5:
        speculation.draft_tokens = dice.choice((1, 3, 8, *NUMBERS))
    if dice.random() < 0.3:
        speculation.min_probability = dice.choice((0.1, *FLOATS))


def _names(dice: Dice, request: pb.GenerateRequest) -> None:
    names = ("", "a", "b", "x" * 128, "x" * 129, "ü", "\x00", "a b")
    request.request_id = dice.choice(names)
    request.session_id = dice.choice(names)
    request.cache_salt = dice.choice(names)
    request.priority = dice.choice((0, 1, -3, *NUMBERS))
    for _ in range(dice.choice((0, 1, 17))):
        request.metadata[dice.choice((*names, str(dice.random())))] = dice.choice(TEXTS[:6])


def _numbers(dice: Dice, request: pb.GenerateRequest) -> None:
    request.n = dice.choice((1, 2, 3, *NUMBERS))
    if dice.random() < 0.5:
        request.max_new_tokens = dice.choice(NUMBERS)
    if dice.random() < 0.5:
        request.truncate_prompt_tokens = dice.choice(NUMBERS)


_FILLERS: Sequence[Callable[[Dice, pb.GenerateRequest], None]] = (
    _sampling, _stopping, _logprobs, _constraint, _speculation, _names, _numbers,
)  # fmt: skip
