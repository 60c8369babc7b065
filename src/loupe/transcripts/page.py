"""A page of text: regions of lines in reading order, and notes for the reader.

The limits hold for every format: docs/protocols/archives.md#safety.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from loupe.errors import DatasetError

MOST_CHARACTERS: Final = 2_000_000
MOST_LINES: Final = 200_000

#: Left, top, right, bottom, as shares of the page's width and height.
Box: TypeAlias = tuple[float, float, float, float]
Level: TypeAlias = Literal["line", "region", "word", "glyph"]
Hyphens: TypeAlias = Literal["keep", "join"]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text, not empty; `box` is None without coordinates, `id` "" without one."""

    text: str
    id: str = ""
    box: Box | None = None


@dataclass(frozen=True, slots=True)
class Region:
    """The lines of one region in reading order; at least one."""

    lines: tuple[Line, ...]
    id: str = ""
    box: Box | None = None

    @property
    def text(self) -> str:
        """The lines, joined by line breaks."""
        return "\n".join(line.text for line in self.lines)


@dataclass(frozen=True, slots=True)
class PageText:
    """A page as read by the rules of Loupe; `notes` are sentences for people."""

    regions: tuple[Region, ...]
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All regions, joined by line breaks."""
        return "\n".join(region.text for region in self.regions)

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines of all regions in reading order."""
        return tuple(line for region in self.regions for line in region.lines)


def page_text(regions: Iterable[Region], notes: Iterable[str] = (), *, hyphens: Hyphens = "keep") -> PageText:
    """A page of regions with text; `hyphens="join"` puts words together that a line break divides.

    Raises DatasetError beyond 2,000,000 characters or 200,000 lines.
    """
    kept = [region for region in regions if region.lines]
    if hyphens == "join":
        kept = [Region(lines, region.id, region.box) for region in kept if (lines := join_hyphens(region.lines))]
    page = PageText(tuple(kept), tuple(notes))
    check_size(sum(len(line.text) for line in page.lines), len(page.lines))
    return page


def check_size(characters: int, lines: int) -> None:
    """Raise DatasetError beyond the limits of one page."""
    if characters > MOST_CHARACTERS:
        raise DatasetError(f"more than {MOST_CHARACTERS:,} characters on a page", hint="split the file by page")
    if lines > MOST_LINES:
        raise DatasetError(f"more than {MOST_LINES:,} lines on a page", hint="split the file by page")


def lines_of_text(text: str) -> tuple[Line, ...]:
    """Lines split at line feeds and carriage returns, stripped; empty ones left out."""
    return tuple(Line(stripped) for line in re.split(r"\r\n|\r|\n", text) if (stripped := line.strip()))


_HYPHEN_AT_END: Final = re.compile(r"(?<=[^\W\d_])[-⸗¬‐\u00ad]$")


def join_hyphens(lines: Sequence[Line]) -> tuple[Line, ...]:
    """Move the first word of a line up if the line before ends in a letter and a hyphen, and the word is lower case.

    The rest of that line stays a line; an empty rest vanishes.
    """
    joined: list[Line] = []
    for line in lines:
        text = line.text
        if joined and text and text[0].islower() and _HYPHEN_AT_END.search(joined[-1].text):
            word, _, text = text.partition(" ")
            before = joined[-1]
            joined[-1] = Line(before.text[:-1] + word, before.id, before.box)
            text = text.strip()
        if text:
            joined.append(Line(text, line.id, line.box))
    return tuple(joined)
