"""Which field of `GenerateRequest` each keyword of the client is. Plain values."""

from __future__ import annotations

from collections.abc import Mapping

PATHS: Mapping[str, str] = {
    "max_new_tokens": "max_new_tokens",
    "truncate_prompt_tokens": "truncate_prompt_tokens",
    "n": "n",
    "temperature": "sampling.temperature",
    "top_k": "sampling.top_k",
    "top_p": "sampling.top_p",
    "min_p": "sampling.min_p",
    "typical_p": "sampling.typical_p",
    "repetition_penalty": "sampling.repetition_penalty",
    "frequency_penalty": "sampling.frequency_penalty",
    "presence_penalty": "sampling.presence_penalty",
    "logit_bias": "sampling.logit_bias",
    "seed": "sampling.seed",
    "json_schema": "constraint.json_schema",
    "regex": "constraint.regex",
    "choice": "constraint.choice.texts",
    "grammar": "constraint.grammar",
    "stop": "stopping.stop_sequences",
    "stop_token_ids": "stopping.stop_token_ids",
    "include_stop": "stopping.include_stop",
    "ignore_eos": "stopping.ignore_eos",
    "min_new_tokens": "stopping.min_new_tokens",
    "time_limit": "stopping.time_limit_seconds",
    "logprobs": "logprobs.top",
    "prompt_logprobs": "logprobs.prompt_top",
    "speculation": "speculation.mode",
    "draft_tokens": "speculation.draft_tokens",
    "lookup_tokens": "speculation.lookup_tokens",
    "draft_min_probability": "speculation.min_probability",
    "on_draft_failure": "speculation.on_draft_failure",
    "request_id": "request_id",
    "session_id": "session_id",
    "cache_salt": "cache_salt",
    "priority": "priority",
    "metadata": "metadata",
}

# Fields that are no keyword, or that the server names by a shorter path.
_ARGUMENTS: Mapping[str, str] = {
    "text": "prompt",
    "chat": "prompt",
    "chat.messages": "prompt",
    "token_ids.ids": "prompt",
    "constraint.choice": "choice",
}
_KEYWORDS: Mapping[str, str] = {
    **{path: name for name, path in PATHS.items()},
    **_ARGUMENTS,
}


def argument_of(field: str) -> str:
    """The argument of `generate` that a field of the contract comes from, with an index as the
    field has it; the field itself where there is none."""
    ends = [at for at in range(1, len(field) + 1) if field[at : at + 1] in ("", "[", ".")]
    for end in reversed(ends):
        if (name := _KEYWORDS.get(field[:end])) is not None:
            return name + field[end:]
    return field
