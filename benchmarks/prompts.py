"""Prompts of several kinds for benchmarks, as conversations and as texts to continue."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from orchestrator.prompt.chat_template import ChatMessage
from orchestrator.request import ChatPrompt, Prompt, TextPrompt

_QUESTIONS = (
    "Why is the sky blue?",
    "Give three tips for learning a new language.",
    "Write a short story about a lighthouse keeper who finds a letter.",
    "Explain how a bicycle stays upright.",
    "What is the difference between weather and climate?",
    "Write a Python function that reverses the words of a sentence.",
    "Summarise the water cycle in two sentences.",
    "Translate into French: The train leaves at nine in the morning.",
    "List five uses of a paper clip.",
    "Write an email that moves a meeting from Monday to Wednesday.",
)
_TEXTS = (
    "The history of the printing press begins",
    "def fibonacci(n: int) -> int:\n",
    "Ingredients:\n- 200 g flour\n- 2 eggs\n",
    "Once upon a time, in a village by the river,",
    "The three laws of motion state that",
    "SELECT name, population FROM cities WHERE",
    "Dear neighbours,\n\nas you may have noticed,",
    "In 1969 two astronauts",
    "The following table lists the planets by size:\n",
    "La tour Eiffel a été construite",
)

PROMPTS: tuple[Prompt, ...] = (
    *(ChatPrompt((ChatMessage("user", question),)) for question in _QUESTIONS),
    *(TextPrompt(text) for text in _TEXTS),
)


def read_prompts(path: Path) -> tuple[Prompt, ...]:
    """Both forms of each line, `{"chat": [{"role", "content"}], "raw"}`."""
    return tuple(_both(path))


def _both(path: Path) -> Iterator[Prompt]:
    for line in path.read_text(encoding="utf-8").splitlines():
        item = json.loads(line)
        yield ChatPrompt(tuple(ChatMessage(turn["role"], turn["content"]) for turn in item["chat"]))
        yield TextPrompt(item["raw"])
