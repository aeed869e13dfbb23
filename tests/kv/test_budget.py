"""What an operator may write for the memory of caches."""

from __future__ import annotations

import pytest

from uag_common.kv.budget import Budget


@pytest.mark.parametrize(
    ("text", "of_1000_million"),
    [
        ("800MB", 800_000_000),
        ("8GB", 8_000_000_000),
        ("1.5 GB", 1_500_000_000),
        ("2GiB", 2 << 30),
        ("512MiB", 512 << 20),
        ("40%", 400_000_000),
        ("0.5%", 5_000_000),
    ],
)
def test_sizes_and_shares(text: str, of_1000_million: int) -> None:
    assert Budget.parse(text).of(1_000_000_000) == of_1000_million


@pytest.mark.parametrize("text", ["", "8", "0MB", "8gb", "GB", "-1GB", "0%", "100%", "1e9MB"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        Budget.parse(text)
