"""What stands in a page of Markdown: its code, its headings, its links, its generated blocks.

Knows text alone: no service, no settings, no contract.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"`([^`\n]+)`")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_NO_PART_OF_A_SLUG = re.compile(r"[^\w\- ]")
_BLOCK = re.compile(
    r"(?P<begin><!-- begin generated: (?P<name>[\w-]+) -->\n)"
    r"(?P<body>.*?)(?P<end><!-- end generated -->)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Page:
    """A page and where it lies, relative to the repository."""

    path: Path
    text: str

    @classmethod
    def read(cls, path: Path) -> Page:
        """`path` relative to the repository."""
        return cls(path, (ROOT / path).read_text(encoding="utf-8"))

    @property
    def prose(self) -> str:
        """The text without its fenced code."""
        return _FENCE.sub("", self.text)

    def fences(self, language: str) -> Iterator[str]:
        """The fenced code of a language."""
        return (code for found, code in _FENCE.findall(self.text) if found == language)

    def spans(self) -> list[str]:
        """The code between single backticks."""
        return _SPAN.findall(self.prose)

    def links(self) -> list[str]:
        """Where its links lead, as they are written."""
        return _LINK.findall(_SPAN.sub("", self.prose))

    def anchors(self) -> set[str]:
        """What a link into it may name after a #."""
        seen: Counter[str] = Counter()
        found = set()
        for heading in _HEADING.findall(self.prose):
            name = slug(heading)
            found.add(f"{name}-{seen[name]}" if seen[name] else name)
            seen[name] += 1
        return found

    def blocks(self) -> dict[str, str]:
        """The generated parts by name."""
        return {match["name"]: match["body"] for match in _BLOCK.finditer(self.text)}

    def with_block(self, name: str, body: str) -> str:
        """The text with another generated part in the place of the one of that name."""

        def replaced(match: re.Match[str]) -> str:
            if match["name"] != name:
                return match[0]
            # Some readers of Markdown take a table for one only after an empty line.
            return f"{match['begin']}\n{body}\n{match['end']}"

        return _BLOCK.sub(replaced, self.text)


def all_pages() -> tuple[Page, ...]:
    """The README and what is written for people beside it."""
    places = [Path("README.md"), *_below("docs"), *_below("deploy")]
    return tuple(Page.read(path) for path in places)


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return _NO_PART_OF_A_SLUG.sub("", text.lower()).replace(" ", "-")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown; a bar in a cell stays a bar."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )


def _below(folder: str) -> list[Path]:
    return sorted(path.relative_to(ROOT) for path in (ROOT / folder).rglob("*.md"))
