"""Fetches the tokenizers that the conversion tests need: `python -m tests.fetch_tokenizers`.

For a clone without the shared folder. They come from the model hub, into `tokenizers/` of the
folder that UAG_SHARED names, by default `shared/` beside the repository. Some of the models are
gated: accept their licences on the hub and set HF_TOKEN.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from huggingface_hub import hf_hub_download
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

from tests.conversion.vocabularies import shared_directory

FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")

Fetch = Callable[[str, str], str]
"""A repository and a file in it to a local path."""


@dataclass(frozen=True, slots=True)
class Source:
    """A repository, and the ids that mean something by role."""

    repository: str
    roles: Mapping[str, int]
    extra_eos: tuple[int, ...] = field(default=())


SOURCES: Mapping[str, Source] = {
    "llama2": Source("double7/vicuna-68m", {"bos": 1, "eos": 2, "unk": 0}),
    "codellama": Source("codellama/CodeLlama-13b-Instruct-hf", {"bos": 1, "eos": 2, "unk": 0}),
    "phi3": Source(
        "microsoft/Phi-3-medium-128k-instruct",
        {"bos": 1, "eos": 32000, "turn_end": 32007},
        extra_eos=(32007,),
    ),
    "mixtral": Source("mistralai/Mixtral-8x22B-Instruct-v0.1", {"bos": 1, "eos": 2, "unk": 0}),
    "gemma2": Source(
        "google/gemma-2-9b",
        {"bos": 2, "eos": 1, "pad": 0, "unk": 3, "turn_start": 106, "turn_end": 107},
        extra_eos=(107,),
    ),
    "qwen2": Source(
        "Qwen/Qwen2-0.5B-Instruct",
        {"eos": 151645, "pad": 151643, "turn_start": 151644, "turn_end": 151645},
        extra_eos=(151643,),
    ),
    "llama31": Source(
        "meta-llama/Llama-3.1-70B-Instruct",
        {"bos": 128000, "eos": 128009, "turn_end": 128009},
        extra_eos=(128001, 128008),
    ),
    "starcoder": Source("bigcode/tiny_starcoder_py", {"bos": 0, "eos": 0}),
    "distilbert": Source(
        "distilbert/distilbert-base-uncased", {"eos": 102, "unk": 100, "pad": 0, "mask": 103}
    ),
    "smollm2": Source(
        "HuggingFaceTB/SmolLM2-135M-Instruct",
        {"bos": 1, "eos": 2, "turn_start": 1, "turn_end": 2},
    ),
}


def fetch_all(folder: Path, fetch: Fetch) -> None:
    """Fills `folder`, one subfolder a tokenizer, and writes `manifest.json` when all are there."""
    entries = {}
    for name, source in SOURCES.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for file in FILES:
            shutil.copyfile(fetch(source.repository, file), folder / name / file)
        roles = {**source.roles, "extra_eos": list(source.extra_eos)}
        entries[name] = {"models": [source.repository], "roles": roles}
        print(f"{name}: {source.repository}")
    (folder / "manifest.json").write_text(json.dumps({"tokenizers": entries}, indent=1))


def main() -> int:
    folder = shared_directory() / "tokenizers"
    try:
        fetch_all(folder, lambda repository, file: hf_hub_download(repository, file))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        print(f"{error}\nNothing was finished in {folder}.", file=sys.stderr)
        print("Gated models need an accepted licence and HF_TOKEN.", file=sys.stderr)
        return 1
    print(f"All in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
