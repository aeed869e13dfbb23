"""The right answer: transformers' own greedy search on the target alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from orchestrator.prompt.chat_template import ChatMessage, PlainChat

transformers_logging.disable_progress_bar()
# The services of a test run beside it, and threads that wait for a core spin.
torch.set_num_threads(1)


class Reference:
    """A target, loaded by transformers and by nothing of this project."""

    def __init__(self, folder: Path, dtype: torch.dtype = torch.float32) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.network = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()

    def text_prompt(self, text: str) -> list[int]:
        return list(self.tokenizer(text).input_ids)

    def chat_prompt(self, messages: Sequence[ChatMessage]) -> list[int]:
        """By the model's template; without one, by the plain rendering that the docs promise."""
        if self.tokenizer.chat_template is None:
            return self.text_prompt(PlainChat().render(messages))
        turns = [{"role": message.role, "content": message.content} for message in messages]
        encoded = self.tokenizer.apply_chat_template(turns, add_generation_prompt=True)
        return list(encoded["input_ids"])

    def answer(self, prompt_ids: Sequence[int], max_new_tokens: int) -> list[int]:
        """Ids of the answer, an EOS included."""
        tensor = torch.tensor([list(prompt_ids)])
        output = self.network.generate(
            tensor,
            attention_mask=torch.ones_like(tensor),
            max_new_tokens=max_new_tokens,
            do_sample=False,
            pad_token_id=0,
        )
        return list(output[0, len(prompt_ids) :].tolist())

    @torch.inference_mode()
    def next_logits(self, ids: Sequence[int]) -> torch.Tensor:
        """Float32 logits after `ids`, [vocabulary]."""
        output = self.network(input_ids=torch.tensor([list(ids)]), logits_to_keep=1)
        logits: torch.Tensor = output.logits[0, -1].float()
        return logits
