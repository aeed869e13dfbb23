"""Makes `recorded.json`: `python -m benchmarks.emulation.record [--tokens N]`.

The target of the default pair, and then its draft as a target, answer prompts greedily behind the
real services. Their ids are recorded, and for each token other text that a draft may say instead.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence

from rich.progress import track

from benchmarks.emulation.recordings import FILE, Recording, encoded
from benchmarks.emulation.tokenizers import TokenizedModel
from benchmarks.emulation.wrong_text import WrongText
from orchestrator.cli.services import DEFAULT_PAIR
from tests.services import RunningServices, running_services
from uag.orchestrator.v1 import orchestrator_pb2 as pb

DTYPE = "bfloat16"
CHATS = (
    "Explain in detail how a bicycle stays upright.",
    "Write a long story about a lighthouse keeper who finds a letter.",
    "Describe the water cycle step by step, and explain each step.",
    "Give ten tips for learning a new language, with a sentence on each.",
    "Write a Python program that reads a file and counts how often each word occurs.",
    "What is the difference between weather and climate? Answer in several paragraphs.",
    "Write a letter to a friend about a journey through the mountains.",
    "Explain to a child how the heart works.",
    "Write an essay on why people keep pets.",
    "Describe the history of the printing press.",
    "Explain how a computer stores numbers and text.",
    "Plan a week of dinners for a family of four, with the ingredients.",
)
TEXTS = (
    "The history of the printing press begins",
    "The three laws of motion state that",
    "Once upon a time, in a village by the river, there lived a miller who",
    "The human heart is a muscle that",
    "In 1969 two astronauts",
    "A computer stores a number as",
    "The water cycle has several steps. First,",
    "def word_count(path: str) -> dict[str, int]:\n",
    "The city of Paris is known for",
    "Bread is made of flour, water, salt and yeast. To bake it,",
    "The difference between weather and climate is",
    "Dear Anna,\n\nI am writing to you from the mountains, where",
)


def chat_request(text: str) -> pb.GenerateRequest:
    return pb.GenerateRequest(chat=pb.Chat(messages=[pb.ChatMessage(role="user", content=text)]))


def text_request(text: str) -> pb.GenerateRequest:
    return pb.GenerateRequest(text=text)


def recorded(
    model: TokenizedModel,
    wrong: WrongText,
    services: RunningServices,
    request: pb.GenerateRequest,
    name: str,
) -> Recording:
    answer = services.generate(request)
    eos = model.description.roles.eos_ids
    ids = [token_id for token_id in answer.ids if token_id not in eos]
    spelled = model.vocabulary.spell(ids)
    prompt = request.text or request.chat.messages[0].content
    return Recording(
        name=name,
        target=model.name,
        prompt=prompt,
        ids=tuple(ids),
        spelled=tuple(spelled),
        wrong=tuple(wrong.of(spelled, at) for at in range(len(ids))),
    )


def record(target: str, requests: Sequence[pb.GenerateRequest], tokens: int) -> Iterator[Recording]:
    """The answers of one target."""
    model = TokenizedModel.named(target)
    wrong = WrongText(model.vocabulary)
    with running_services(target, None, model_settings={"dtype": DTYPE}) as services:
        for number, request in enumerate(track(requests, target), start=1):
            request.max_new_tokens = tokens
            request.speculation.mode = pb.SPECULATION_MODE_OFF
            name = f"{target.partition('-')[0]}-{number:02}"
            yield recorded(model, wrong, services, request, name)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tokens", type=int, default=160, help="of each answer, at most")
    flags = parser.parse_args()
    found = [
        *record(DEFAULT_PAIR.target, [chat_request(text) for text in CHATS], flags.tokens),
        *record(DEFAULT_PAIR.draft, [text_request(text) for text in TEXTS], flags.tokens),
    ]
    lines = ",\n".join(json.dumps(encoded(each), ensure_ascii=False) for each in found)
    made = f"python -m benchmarks.emulation.record --tokens {flags.tokens}, {DTYPE}"
    FILE.write_text(
        f'{{"made_by": {json.dumps(made)},\n"recordings": [\n{lines}\n]}}\n', encoding="utf-8"
    )
    sys.stdout.write(f"{len(found)} answers, {sum(len(each.ids) for each in found)} tokens\n")


if __name__ == "__main__":
    main()
