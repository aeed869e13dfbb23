"""Sizes of memory as an operator writes them. Pure."""

from __future__ import annotations

import re

UNITS = {"MB": 10**6, "GB": 10**9, "MiB": 2**20, "GiB": 2**30}
SIZE = re.compile(r"(\d+(?:\.\d+)?) ?(MB|GB|MiB|GiB)")


def parse_size(text: str) -> int | None:
    """In bytes; None if it is no size."""
    match = SIZE.fullmatch(text)
    return None if match is None else int(float(match[1]) * UNITS[match[2]])
