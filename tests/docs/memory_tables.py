"""What two models take in memory together, from their shapes. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from tests.docs.pages import table

BFLOAT16_BYTES = 2
SESSION_TOKENS = 8192
SESSIONS = 16


@dataclass(frozen=True, slots=True)
class Shape:
    """What config.json tells of a model of the Llama kind. `biases`: of queries, keys, values."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    feed_forward: int
    vocabulary: int
    context: int
    tied: bool
    biases: bool

    @property
    def head(self) -> int:
        return self.hidden // self.heads

    @property
    def embedding(self) -> int:
        return self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        """Embeddings, layers with two norms each, and the last norm."""
        queries_keys_values = (self.heads + 2 * self.kv_heads) * self.head
        attention = (queries_keys_values + self.hidden) * self.hidden
        layer = attention + 3 * self.hidden * self.feed_forward + 2 * self.hidden
        if self.biases:
            layer += queries_keys_values
        return self.embedding * (1 if self.tied else 2) + self.layers * layer + self.hidden

    @property
    def weight_bytes(self) -> int:
        return BFLOAT16_BYTES * self.parameters

    @property
    def kv_token_bytes(self) -> int:
        """Keys and values of one token."""
        return 2 * self.layers * self.kv_heads * self.head * BFLOAT16_BYTES


TARGET = Shape(
    "Llama-3.1-70B", layers=80, hidden=8192, heads=64, kv_heads=8, feed_forward=28672,
    vocabulary=128256, context=131072, tied=False, biases=False,
)  # fmt: skip
DRAFT = Shape(
    "Qwen2-0.5B", layers=24, hidden=896, heads=14, kv_heads=2, feed_forward=4864,
    vocabulary=151936, context=32768, tied=True, biases=True,
)  # fmt: skip


def worked() -> str:
    """The arithmetic for one pair in bfloat16."""
    header = ("", TARGET.name, DRAFT.name, "both")
    rows = [
        ("parameters", *(f"{model.parameters:,}" for model in (TARGET, DRAFT)), ""),
        ("weights, 2 bytes each", *_sizes(TARGET.weight_bytes, DRAFT.weight_bytes)),
        ("layers, KV heads, size of a head", _heads(TARGET), _heads(DRAFT), ""),
        ("KV cache of a token", *(f"{m.kv_token_bytes:,} bytes" for m in (TARGET, DRAFT)), ""),
        _cache(f"KV cache of a session of {SESSION_TOKENS:,} tokens", SESSION_TOKENS),
        _cache(f"the same {SESSIONS} times", SESSION_TOKENS * SESSIONS),
        ("context", *(f"{model.context:,} tokens" for model in (TARGET, DRAFT)), ""),
    ]
    return f"{table(header, rows)}\n{_shares()}"


def _shares() -> str:
    weights = DRAFT.weight_bytes / TARGET.weight_bytes
    cache = DRAFT.kv_token_bytes / TARGET.kv_token_bytes
    embedding = DRAFT.embedding / DRAFT.parameters
    return (
        f"So the draft adds {weights:.1%} to the weights and {cache:.1%} to the KV cache. Of the "
        f"draft's own parameters {embedding:.0%} are its embedding.\n"
    )


def _heads(model: Shape) -> str:
    return f"{model.layers}, {model.kv_heads}, {model.head}"


def _cache(name: str, tokens: int) -> tuple[str, ...]:
    return (name, *_sizes(TARGET.kv_token_bytes * tokens, DRAFT.kv_token_bytes * tokens))


def _sizes(target: int, draft: int) -> tuple[str, str, str]:
    return (_gigabytes(target), _gigabytes(draft), _gigabytes(target + draft))


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.2f} GB"
