"""Turns one GGUF file into a directory that transformers loads in seconds: safetensors + tokenizer.

Knows torch, transformers and what GGUF files get wrong. Runs as a process of its own (its memory
goes back when it ends) and must not know where the file came from or where the result is kept:
`python -m uag_common.engine.gguf SOURCE.gguf OUTPUT_DIR`, one line on stdout for each step.

The weights are saved in float32: dequantised values have no exact 16-bit form, and the directory
is what "the target alone" means from then on.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from gguf import GGUFReader
from tokenizers import AddedToken, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

# llama.cpp's names for the pre-tokenizers that cut each digit off before the GPT-2 pattern runs.
# transformers 5.24 does not know them and leaves the plain GPT-2 pattern, which keeps "2024" whole.
SINGLE_DIGITS = frozenset(
    {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"}
)
PLAIN_GPT2 = frozenset({"gpt-2", "phi-2", "mpt", "olmo", "default"})
# A GGUF file has room for one EOS id; the published models also stop at the end of a turn.
TURN_ENDS = ("<end_of_turn>", "<|im_end|>", "<|eot_id|>", "<|end|>")
# Control tokens that GGUF files of Gemma 3 list as if a user had added them as text.
IMAGE_MARKS = ("<start_of_image>", "<end_of_image>")
ROLES = ("bos_token", "eos_token", "unk_token", "pad_token")


def convert(source: Path, output: Path) -> None:
    """Write `output` (made if need be, must be empty) from the GGUF file `source`."""
    output.mkdir(parents=True, exist_ok=True)
    if any(output.iterdir()):
        raise FileExistsError(f"{output} is not empty")
    _say("reading the tokenizer")
    tokenizer = _load_tokenizer(source)
    _say("reading and dequantising the weights")
    model = _load_model(source)
    _stop_at_turn_ends(model.generation_config, tokenizer)
    _say("writing float32 safetensors")
    model.save_pretrained(output)
    (output / "model.safetensors").chmod(0o644)
    _save_tokenizer(tokenizer, model.config.max_position_embeddings, output)


def _load_model(source: Path) -> Any:
    model = AutoModelForCausalLM.from_pretrained(
        source.parent, gguf_file=source.name, dtype=torch.float32, local_files_only=True
    )
    # All is dequantised by now, but save_pretrained refuses while these say otherwise.
    model.hf_quantizer = None
    del model.config.quantization_config
    return model


def _load_tokenizer(source: Path) -> Any:
    tokenizer = AutoTokenizer.from_pretrained(
        source.parent, gguf_file=source.name, local_files_only=True
    )
    _correct_digits(tokenizer.backend_tokenizer, source)
    _mark_special(tokenizer.backend_tokenizer, IMAGE_MARKS)
    return tokenizer


def _correct_digits(backend: Any, source: Path) -> None:
    if not isinstance(backend.pre_tokenizer, pre_tokenizers.ByteLevel):
        return
    name = _pre_tokenizer_name(source)
    if name in SINGLE_DIGITS:
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
            ]
        )
    elif name not in PLAIN_GPT2:
        _say(f"warning: pre-tokenizer {name!r} is not known, text may be cut otherwise than meant")


def _pre_tokenizer_name(source: Path) -> str:
    name = GGUFReader(source).fields.get("tokenizer.ggml.pre")
    return "default" if name is None else str(name.contents())


def _mark_special(backend: Any, contents: tuple[str, ...]) -> None:
    known = {token.content for token in backend.get_added_tokens_decoder().values()}
    backend.add_special_tokens(
        [
            AddedToken(content, normalized=False, special=True)
            for content in contents
            if content in known
        ]
    )


def _stop_at_turn_ends(generation: Any, tokenizer: Any) -> None:
    eos = [generation.eos_token_id]
    for token_id, token in sorted(tokenizer.backend_tokenizer.get_added_tokens_decoder().items()):
        if token.special and token.content in TURN_ENDS and token_id not in eos:
            eos.append(token_id)
    generation.eos_token_id = eos if len(eos) > 1 else eos[0]


def _save_tokenizer(tokenizer: Any, context_length: int, output: Path) -> None:
    tokenizer.backend_tokenizer.save(str(output / "tokenizer.json"))
    config: dict[str, str | int | bool] = {
        # The class that takes tokenizer.json as it is; the model's own class would rebuild it.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": context_length,
    }
    config |= {role: str(token) for role in ROLES if (token := getattr(tokenizer, role))}
    _write_json(output / "tokenizer_config.json", config)
    if tokenizer.chat_template:
        (output / "chat_template.jinja").write_text(tokenizer.chat_template, encoding="utf-8")


def _write_json(path: Path, value: dict[str, str | int | bool]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _say(step: str) -> None:
    sys.stdout.write(step + "\n")
    sys.stdout.flush()


def main() -> None:
    """The process: two arguments, exit code 0 or a traceback whose last line tells the reason."""
    if len(sys.argv) != 3:
        sys.exit("usage: python -m uag_common.engine.gguf SOURCE.gguf OUTPUT_DIR")
    transformers_logging.disable_progress_bar()
    convert(Path(sys.argv[1]).absolute(), Path(sys.argv[2]))


if __name__ == "__main__":
    main()
