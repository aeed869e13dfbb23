"""Estimates from headers and configurations, and the kernel's counters."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.tiny_weights import entry, write, write_model
from uag_common.models.errors import CorruptModelError
from uag_common.models.memory import DTYPE_BYTES, RUNTIME_BYTES, available_bytes, estimate

LLAMA = {
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "hidden_size": 576,
}
GEMMA = {
    "num_hidden_layers": 18,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "hidden_size": 640,
    "head_dim": 256,
}
GPT2 = {"n_layer": 2, "n_head": 4, "n_embd": 32}


def test_floats_follow_the_dtype_and_integers_do_not(tmp_path: Path) -> None:
    write_model(tmp_path)
    assert estimate(tmp_path, "float32").weight_bytes == 6 * 4 + 16
    assert estimate(tmp_path, "bfloat16").weight_bytes == 6 * 2 + 16


def test_an_output_layer_that_shares_its_weights_is_held_twice(tmp_path: Path) -> None:
    shape: dict[str, object] = {"vocab_size": 3, "hidden_size": 2}
    tied, plain = write_model(tmp_path / "tied", shape), write_model(tmp_path / "plain")
    own = write_model(tmp_path / "own", shape)
    header = {name: entry("F32", [3, 2], 24 * at, 24 * at + 24) for at, name in enumerate("ab")}
    write(own / "model.safetensors", header, 48)
    for dtype, item in DTYPE_BYTES.items():
        added = estimate(tied, dtype).weight_bytes - estimate(plain, dtype).weight_bytes
        assert added == (0 if dtype == "float16" else 6 * item)
        assert estimate(own, dtype).weight_bytes == 2 * 6 * item


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (LLAMA, 2 * 30 * 3 * 64 * 2),
        (GEMMA, 2 * 18 * 1 * 256 * 2),
        (GPT2, 2 * 2 * 4 * 8 * 2),
        (GPT2 | {"multi_query": True}, 2 * 2 * 1 * 8 * 2),
        ({"text_config": LLAMA}, 2 * 30 * 3 * 64 * 2),
        ({"num_hidden_layers": 4, "hidden_size": 8}, 0),
    ],
)
def test_a_token_in_the_cache(tmp_path: Path, config: dict[str, object], expected: int) -> None:
    guess = estimate(write_model(tmp_path, config), "bfloat16")
    assert guess.kv_token_bytes == expected
    assert guess.resident_bytes(10) - guess.resident_bytes() == 10 * expected
    assert guess.resident_bytes() > RUNTIME_BYTES


@pytest.mark.parametrize("text", ["{", "[]", '{"n_layer": "many"}'])
def test_a_broken_configuration(tmp_path: Path, text: str) -> None:
    (write_model(tmp_path) / "config.json").write_text(text)
    with pytest.raises(CorruptModelError, match=r"config\.json"):
        estimate(tmp_path, "float32")


def test_the_cgroup_limits_what_the_machine_has(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable:    5000 kB\n")
    assert available_bytes(tmp_path, tmp_path) == 5000 * 1024
    (tmp_path / "memory.max").write_text("max\n")
    assert available_bytes(tmp_path, tmp_path) == 5000 * 1024
    (tmp_path / "memory.max").write_text("3000000\n")
    (tmp_path / "memory.current").write_text("2500000\n")
    (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 400000\n")
    assert available_bytes(tmp_path, tmp_path) == 900_000


def test_the_narrowest_of_nested_groups_counts(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemAvailable: 5000 kB\n")
    (tmp_path / "self").mkdir()
    (tmp_path / "self/cgroup").write_text("0::/outer/inner\n")
    for group, limit in (("outer", 2_000_000), ("outer/inner", 4_000_000)):
        (tmp_path / group).mkdir()
        (tmp_path / group / "memory.max").write_text(f"{limit}\n")
        (tmp_path / group / "memory.current").write_text("500000\n")
        (tmp_path / group / "memory.stat").write_text("inactive_file 0\n")
    assert available_bytes(tmp_path, tmp_path) == 1_500_000


def test_this_machine_has_some_memory() -> None:
    assert available_bytes() > 100_000_000
