"""The generated parts of the pages are what their sources say now."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.generate import BLOCKS, COMMAND
from tests.docs.pages import Page

PARTS = [
    pytest.param(path, name, id=f"{path.name}:{name}") for path in BLOCKS for name in BLOCKS[path]
]
NEEDS_TOKENIZERS = ("conversion-example", "architectures")


@pytest.mark.parametrize("path", BLOCKS, ids=str)
def test_each_page_has_its_parts(path: Path) -> None:
    assert Page.read(path).blocks().keys() == BLOCKS[path].keys()


@pytest.mark.parametrize(("path", "name"), PARTS)
def test_each_part_is_what_its_source_says(
    path: Path, name: str, request: pytest.FixtureRequest
) -> None:
    if name in NEEDS_TOKENIZERS:
        request.getfixturevalue("real_tokenizers")
    page = Page.read(path)
    told = f"{path} is not what the code says: run `{COMMAND}`"
    assert page.with_block(name, BLOCKS[path][name]()) == page.text, told
