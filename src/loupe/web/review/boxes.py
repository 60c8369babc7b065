"""Where an OCR engine that drafted saw the lines of a page: kept beside its drafts, so that scans have marks, too.

An engine tells it as `lines` in its response (`PlacedLine`).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from loupe.engines.shared.placed_text import PlacedLine
from loupe.errors import UnsafeFileError
from loupe.files.folder import Folder
from loupe.files.json_lines import RecordLog, read_lines
from loupe.runs.folder import RunFolder
from loupe.typed import convert, encode_json, json_decoder
from loupe.types import UNDECODABLE
from loupe.web.phrases import MOST_CHARACTERS, Box, page_text, places
from loupe.web.review.entries import Entry

#: Below the folder of the documents.
PLACE, FILE = ".loupe", "boxes.jsonl"
#: Lines of a text that are looked for, and how long one may be.
_MOST_LINES, _SHORTEST, _LONGEST = 200, 4, 300
#: A larger file is no help of ours: 64 MB are the lines of some 20,000 pages. Nor is a page of more lines.
_LARGEST, _MOST_LINES_OF_PAGE = 64 * 2**20, 2_000
#: Engines whose lines are kept for one page: those that told last.
_MOST_ENGINES = 8


class PageLines(msgspec.Struct, frozen=True, kw_only=True):
    """What one engine saw on the page of one sample."""

    sample: str
    engine: str
    lines: list[PlacedLine]


def text_lines(entry: Entry) -> list[tuple[str, str]]:
    """The lines of a text that is reviewed as a whole, by field: what of the page has no mark is not in them."""
    found = [
        (field.name, line.strip())
        for field in entry.fields
        if field.control in ("prose", "markdown") and isinstance(field.value, str)
        for line in field.value.splitlines()[:_MOST_LINES]
    ]
    return [(name, line) for name, line in found if _SHORTEST <= len(line) <= _LONGEST]


def keep_boxes(folder: Path, engine: str, run: RunFolder) -> None:
    """Keep the lines of every answer that tells where they stand; nothing is written where none does."""
    seen = []
    for sample, prediction in run.predictions().items():
        try:
            lines = convert((prediction.response or {}).get("lines"), list[PlacedLine])
        except msgspec.ValidationError:
            continue
        seen.append(PageLines(sample=sample, engine=engine, lines=lines))
    if not seen:
        return
    place = Folder(folder) / PLACE
    place.create()
    with RecordLog(place, FILE) as log:
        log.append(encode_json(page) for page in seen)


@dataclass(slots=True)
class Boxes:
    """The lines that are kept for a folder, read again when the file has changed. Of several engines the last to tell
    comes first."""

    folder: Path
    _known: tuple[int, int] = (0, 0)
    _pages: dict[str, dict[str, list[PlacedLine]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def marks(self, sample: str, phrases: Sequence[str]) -> list[list[list[Box]]]:
        """For each phrase its places on the page; none where no engine has seen it."""
        with self._lock:
            self._refresh()
            engines = [*self._pages.get(sample, {}).values()]
        found: list[list[list[Box]]] = [[] for _ in phrases]
        for lines in reversed(engines):
            if all(found):
                break
            text = page_text(_characters(lines))
            found = [there or places(text, phrase) for there, phrase in zip(found, phrases, strict=True)]
        return found

    def _refresh(self) -> None:
        place = Folder(self.folder) / PLACE
        try:
            state = (place.path / FILE).lstat()
            if (state.st_mtime_ns, state.st_size) == self._known:
                return
            self._known, self._pages = (state.st_mtime_ns, state.st_size), {}
            if state.st_size > _LARGEST:
                return
            pages: dict[str, dict[str, list[PlacedLine]]] = {}
            for _, _, line in read_lines(place, FILE):
                page = json_decoder(PageLines).decode(line)
                seen = pages.setdefault(page.sample, {})
                seen.pop(page.engine, None)
                seen[page.engine] = [
                    line._replace(text=line.text[:_LONGEST]) for line in page.lines[:_MOST_LINES_OF_PAGE]
                ]
                if len(seen) > _MOST_ENGINES:
                    del seen[next(iter(seen))]
            self._pages = pages
        except (OSError, UnsafeFileError, *UNDECODABLE):
            # Marks are a help; without them the page is still there.
            self._pages = {}


def _characters(lines: Sequence[PlacedLine]) -> list[tuple[str, Box]]:
    """Every character of the lines with its share of the line's box, which is held within the page."""
    found: list[tuple[str, Box]] = []
    for text, *box, _ in lines:
        left, top, right, bottom = (min(1.0, max(0.0, end)) for end in box)
        width = (right - left) / max(1, len(text))
        found += [
            (char, (left + width * at, top, left + width * (at + 1), bottom))
            for at, char in enumerate(text[: MOST_CHARACTERS - len(found)])
        ]
    return found
