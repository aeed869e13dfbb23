"""Command lines that call a running orchestrator. Pure text; tests run them."""

from __future__ import annotations

import json
import shlex

METHOD = "uag.orchestrator.v1.Orchestrator/Generate"
REQUEST = {
    "chat": {"messages": [{"role": "user", "content": "Why is the sky blue?"}]},
    "max_new_tokens": 40,
}


def call_examples(address: str) -> tuple[str, ...]:
    """The same question by `uag generate`, `grpcurl` and `buf curl`; reflection does the rest."""
    return (_uag_generate(address), _grpcurl(address), buf_curl(address))


def _uag_generate(address: str) -> str:
    return f'uag generate --target {address} --chat "Why is the sky blue?" --max-new-tokens 40'


def _grpcurl(address: str) -> str:
    return f"grpcurl -plaintext -d {_data()} {address} {METHOD}"


def buf_curl(address: str) -> str:
    """buf speaks gRPC over plain HTTP/2 only if told so."""
    options = "--protocol grpc --http2-prior-knowledge"
    return f"buf curl {options} -d {_data()} http://{address}/{METHOD}"


def _data() -> str:
    return shlex.quote(json.dumps(REQUEST, separators=(",", ":")))
