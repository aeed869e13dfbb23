"""Which ids have a role, read from a model folder's configuration. Never from a token's text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from uag_common.errors import StartError
from uag_common.model import TokenRoles


def read_roles(folder: Path, vocabulary_size: int) -> TokenRoles:
    """Raises StartError if no EOS is configured anywhere, or one lies outside the vocabulary."""
    generation = _read(folder / "generation_config.json")
    config = _read(folder / "config.json")
    text = config.get("text_config", {})
    tokenizer = _read(folder / "tokenizer_config.json")
    ids = _ids_by_text(folder / "tokenizer.json")

    def role(name: str) -> tuple[int, ...]:
        for source in (generation, config, text):
            found = _as_ids(source.get(f"{name}_token_id"))
            if found:
                return found
        token = tokenizer.get(f"{name}_token")
        content = token.get("content") if isinstance(token, dict) else token
        return (ids[content],) if content in ids else ()

    # Models that fill masks call what ends a text a separator.
    eos = role("eos") or role("sep")
    if not eos:
        raise StartError(
            f"{folder} names no EOS: without one no answer can end; set eos_token_id in its "
            "generation_config.json"
        )
    outside = [item for item in eos if not 0 <= item < vocabulary_size]
    if outside:
        raise StartError(
            f"{folder}: EOS {outside[0]} is outside the vocabulary of {vocabulary_size}"
        )

    def optional(name: str) -> int | None:
        # Some configurations write -1 for "none".
        return next((item for item in role(name) if 0 <= item < vocabulary_size), None)

    return TokenRoles(eos, optional("bos"), optional("pad"))


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StartError(f"{path} is not valid JSON: {error}") from error
    return content if isinstance(content, dict) else {}


def _as_ids(value: Any) -> tuple[int, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(item for item in values if isinstance(item, int) and not isinstance(item, bool))


def _ids_by_text(tokenizer_json: Path) -> dict[str, int]:
    added = _read(tokenizer_json).get("added_tokens", [])
    return {token["content"]: token["id"] for token in added}
