"""The files that describe a tokenizer, as text. Knows where they lie, not what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from orchestrator.conversion.errors import TokenizerError


@dataclass(frozen=True, slots=True)
class TokenizerFiles:
    """What a model service hands out of its tokenizer; an absent file is `{}` or None."""

    tokenizer_json: str
    tokenizer_config_json: str = "{}"
    generation_config_json: str = "{}"
    chat_template: str | None = None

    @classmethod
    def read(cls, directory: Path) -> TokenizerFiles:
        """The files of a model directory; TokenizerError if it holds no `tokenizer.json`."""
        tokenizer_json = _text(directory / "tokenizer.json")
        if tokenizer_json is None:
            raise TokenizerError(f"{directory} holds no tokenizer.json")
        return cls(
            tokenizer_json=tokenizer_json,
            tokenizer_config_json=_text(directory / "tokenizer_config.json") or "{}",
            generation_config_json=_text(directory / "generation_config.json") or "{}",
            chat_template=_text(directory / "chat_template.jinja"),
        )


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None
