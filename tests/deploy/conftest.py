"""Renders each folder once, for all tests."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.deploy.rendering import FOLDERS, NoKubectlError, Rendered, render


@pytest.fixture(scope="session")
def renderings() -> dict[str, Rendered]:
    """By the names of the folders. Without kubectl: a failure where CI is set, else a skip."""
    try:
        with ThreadPoolExecutor() as pool:
            return dict(zip(FOLDERS, pool.map(render, FOLDERS.values()), strict=True))
    except NoKubectlError as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing))
        pytest.skip(str(missing))


@pytest.fixture(params=FOLDERS, scope="session")
def rendered(renderings: dict[str, Rendered], request: pytest.FixtureRequest) -> Rendered:
    """Each overlay, and all components at once."""
    return renderings[request.param]
