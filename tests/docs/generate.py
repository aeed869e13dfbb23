"""`python -m tests.docs.generate`: writes the generated parts of the pages anew.

A page holds them between `<!-- begin generated: NAME -->` and `<!-- end generated -->`; the rest of
it is written by hand. This file knows which part comes from where, and nothing of its content.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.conversion.vocabularies import TokenizersMissingError
from tests.docs import (
    api_reference,
    architecture_table,
    conversion_example,
    memory_tables,
    metrics_table,
    settings_tables,
    speed_tables,
)
from tests.docs.pages import ROOT, Page

COMMAND = "python -m tests.docs.generate"
DOCS = Path("docs")

BLOCKS: Mapping[Path, Mapping[str, Callable[[], str]]] = {
    DOCS / "configuration.md": {
        "settings-of-all": settings_tables.of_all,
        "settings-of-models": settings_tables.of_models,
        "settings-of-each": settings_tables.of_each,
    },
    DOCS / "operations.md": {"metrics": metrics_table.table},
    DOCS / "api.md": {"api": api_reference.reference},
    DOCS / "architectures.md": {
        "architectures": architecture_table.architectures,
        "other-architectures": architecture_table.others,
    },
    DOCS / "how-it-works.md": {"conversion-example": conversion_example.example},
    DOCS / "choosing-a-pair.md": {
        "best-speed": speed_tables.best,
        "fixed-speed": speed_tables.fixed,
        "break-even": speed_tables.break_even,
        "small-drafts": speed_tables.small_drafts,
        "memory": memory_tables.worked,
    },
}


def written(path: Path) -> str:
    """The page as it should be. Raises TokenizersMissingError where a part needs real ones."""
    page = Page.read(path)
    for name, body in BLOCKS[path].items():
        page = Page(path, page.with_block(name, body()))
    return page.text


def main() -> int:
    """The exit code: 1 if a page could not be written."""
    code = 0
    for path in BLOCKS:
        try:
            (ROOT / path).write_text(written(path), encoding="utf-8")
        except TokenizersMissingError as missing:
            sys.stderr.write(f"{path} is left as it is: {missing}\n")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
