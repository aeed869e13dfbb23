"""A program that answers with transformers alone, for `benchmarks.transformers_client`.

Reads lines of JSON and answers each but the first with one. It holds a target and a draft, and
knows nothing of this project: what it measures is what a user would run instead.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig
from transformers.generation.streamers import BaseStreamer
from transformers.utils import logging

LOOKUP_TOKENS = 10


class Arrivals(BaseStreamer):  # type: ignore[misc]
    """When tokens came, and how many together. The first thing that is put is the prompt."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.seen: list[tuple[float, int]] = []
        self._prompt_is_past = False

    def put(self, value: torch.Tensor) -> None:
        if self._prompt_is_past:
            self.seen.append((time.perf_counter() - self.began, value.numel()))
        self._prompt_is_past = True

    def end(self) -> None:
        """Nothing is held back."""


class Peer:
    """Both models as `from_pretrained` gives them."""

    def __init__(self, opening: dict[str, Any]) -> None:
        if opening["threads"]:
            torch.set_num_threads(opening["threads"])
        self._device = opening["device"]
        dtype = getattr(torch, opening["dtype"])
        self._target, self._draft = (
            AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval().to(self._device)
            for folder in (opening["target"], opening["draft"])
        )
        self._target_tokenizer, self._draft_tokenizer = (
            AutoTokenizer.from_pretrained(folder)
            for folder in (opening["target"], opening["draft"])
        )
        self._passes = 0
        self._target.register_forward_hook(self._count)

    def _count(self, *_: object) -> None:
        self._passes += 1

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        match request.pop("do"):
            case "tell":
                return {"torch": torch.__version__, "transformers": transformers.__version__}
            case "generate":
                return self._generate(**request)
            case "gap":
                return self._gap(**request)
        raise ValueError("asked for what there is not")

    def _generate(
        self, way: str, prompt: list[int], tokens: int, temperature: float, seed: int
    ) -> dict[str, Any]:
        self._passes = 0
        torch.manual_seed(seed)
        ids = torch.tensor([prompt], device=self._device)
        arrivals = Arrivals()
        with torch.inference_mode():
            output = self._target.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                generation_config=self._config(tokens, temperature),
                streamer=arrivals,
                **self._assistance(way),
            )
        answer = output[0, len(prompt) :].tolist()
        return {"ids": answer, "arrivals": arrivals.seen, "passes": self._passes}

    def _config(self, tokens: int, temperature: float) -> GenerationConfig:
        """What our own requests ask for, and none of the model's own wishes beside its EOS."""
        drawn = {"temperature": temperature, "top_k": 0, "top_p": 1.0} if temperature else {}
        return GenerationConfig(
            max_new_tokens=tokens,
            do_sample=bool(temperature),
            repetition_penalty=1.0,
            eos_token_id=self._target.generation_config.eos_token_id,
            pad_token_id=0,
            **drawn,
        )

    def _assistance(self, way: str) -> dict[str, Any]:
        match way:
            case "transformers":
                return {}
            case "transformers-lookup":
                return {"prompt_lookup_num_tokens": LOOKUP_TOKENS}
            case "transformers-uag":
                return {"assistant_model": self._draft, **self._tokenizers()}
        raise ValueError(f"{way} is no way of transformers")

    def _tokenizers(self) -> dict[str, Any]:
        """It wants them for models of different vocabularies, and for those alone."""
        if self._target_tokenizer.get_vocab() == self._draft_tokenizer.get_vocab():
            return {}
        return {
            "tokenizer": self._target_tokenizer,
            "assistant_tokenizer": self._draft_tokenizer,
        }

    @torch.inference_mode()
    def _gap(self, context: list[int], one: int, other: int) -> dict[str, float]:
        ids = torch.tensor([context], device=self._device)
        logits = self._target(input_ids=ids, logits_to_keep=1).logits[0, -1]
        step = torch.finfo(logits.dtype).eps
        logits = logits.float()
        return {
            "logits": abs(float(logits[one] - logits[other])),
            "spacing": float(logits.abs().max()) * step,
        }


def replies(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """What went wrong is a reply too: nobody sees what this program writes elsewhere."""
    peer: Peer | None = None
    opening = json.loads(next(lines))
    for line in lines:
        try:
            peer = peer or Peer(opening)
            yield peer.reply(json.loads(line))
        except Exception as error:
            yield {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    for reply in replies(iter(sys.stdin)):
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
