"""Links lead somewhere, and the README leads everywhere."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Page, all_pages

PAGES = {page.path: page for page in all_pages()}
A_SCHEME = re.compile(r"^[a-z]+:")


@pytest.mark.parametrize("page", PAGES.values(), ids=lambda page: str(page.path))
def test_each_link_leads_to_what_is_there(page: Page) -> None:
    broken = [link for link in page.links() if not A_SCHEME.match(link) and not leads(page, link)]
    assert not broken, f"{page.path}: {broken}"


def test_the_readme_links_each_page_of_docs() -> None:
    linked = {target(PAGES[Path("README.md")], link) for link in PAGES[Path("README.md")].links()}
    missing = [str(path) for path in PAGES if path.parts[0] == "docs" and path not in linked]
    assert not missing, f"README.md does not link {missing}"


def leads(page: Page, link: str) -> bool:
    path, anchor = target(page, link), link.partition("#")[2]
    if not anchor:
        return (ROOT / path).exists()
    return path in PAGES and anchor in PAGES[path].anchors()


def target(page: Page, link: str) -> Path:
    """Where a link leads, from the root of the repository."""
    path = link.partition("#")[0]
    if not path:
        return page.path
    return Path(os.path.normpath(page.path.parent / path))
