"""The cache directory and the offline flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from uag_common.models.errors import BadSettingError
from uag_common.models.settings import StoreSettings


@pytest.mark.parametrize(
    ("environment", "root"),
    [
        ({"UAG_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, Path("/a")),
        ({"XDG_CACHE_HOME": "/b"}, Path("/b/uag")),
        ({"XDG_CACHE_HOME": "relative"}, Path.home() / ".cache/uag"),
        ({}, Path.home() / ".cache/uag"),
        ({"UAG_CACHE": "~/x"}, Path.home() / "x"),
    ],
)
def test_the_cache_directory(environment: dict[str, str], root: Path) -> None:
    assert StoreSettings.from_environment(environment).root == root


@pytest.mark.parametrize("name", ["UAG_OFFLINE", "HF_HUB_OFFLINE"])
@pytest.mark.parametrize(("value", "offline"), [("1", True), ("True", True), ("0", False)])
def test_offline(name: str, value: str, offline: bool) -> None:
    assert StoreSettings.from_environment({name: value}).offline is offline


def test_a_meaningless_flag_is_named() -> None:
    with pytest.raises(BadSettingError, match="UAG_OFFLINE is 'perhaps': set it to 1 or 0"):
        StoreSettings.from_environment({"UAG_OFFLINE": "perhaps"})
