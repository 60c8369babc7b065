"""Convert documents as a whole, once each, and divide the text into pages by what converters write between them.

An assignment is made only where it is certain: the marks of one kind must come to exactly the pages of the document.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

from loupe.errors import EngineError, EngineTimeoutError, TransientEngineError

FORM_FEED = "\f"


@dataclass(frozen=True, slots=True)
class _Marks:
    """The marks that one family of converters writes. Numbered marks hold the page's number, from 0 or from 1."""

    name: str
    pattern: re.Pattern[str]
    place: Literal["before", "between or after", "after"]
    numbered: bool = False


#: Tried in this order. pdftotext, mutool and pdfminer end pages with a form feed; marker (--paginate_output) writes
#: {0} and 48 dashes above each; PyMuPDF4LLM (page_separators) "end of page=0" below; others comments.
_KNOWN = (
    _Marks("form feeds", re.compile(FORM_FEED), "between or after"),
    _Marks("{0}----", re.compile(r"^\{(\d{1,6})\}-{40,}[ \t]*\r?$", re.M), "before", numbered=True),
    _Marks(
        "end of page=0",
        re.compile(r"^--- end of page(?:\.page_number)?=(\d{1,6}) ---[ \t]*\r?$", re.M),
        "after",
        numbered=True,
    ),
    _Marks(
        "<!-- page 1 -->",
        re.compile(r"^<!-- ?page:? ?(\d{1,6})(?: ?(?:/|of) ?\d{1,6})? ?-->[ \t]*\r?$", re.M | re.I),
        "before",
        numbered=True,
    ),
    _Marks(
        "<!-- page break -->", re.compile(r"^<!-- ?page[ _-]?break ?-->[ \t]*\r?$", re.M | re.I), "between or after"
    ),
    _Marks("<--- Page Split --->", re.compile(r"^<--- Page Split --->[ \t]*\r?$", re.M), "between or after"),
)


def told_apart(text: str, pages: int, *, page_break: str = "") -> list[str]:
    """The text of each of the document's `pages`. `page_break` is a line between or below them; "": any known mark.

    A document of one page, or without any text, needs no marks. Raises EngineError where the marks do not fit.

    >>> told_apart("one\\fthree lines", 2)
    ['one', 'three lines']
    """
    kinds: Sequence[_Marks] = _KNOWN
    if page_break:
        own = re.compile(rf"^{re.escape(page_break)}[ \t]*\r?$", re.M)
        kinds = (_Marks(repr(page_break), own, "between or after"),)
    for kind in kinds:
        parts = _parts(text, kind, pages)
        if parts is not None:
            return [part.strip("\r\n") for part in parts]
    if pages == 1 or not text.strip():
        return [text.strip(FORM_FEED + "\r\n") if pages == 1 else ""] * pages
    counts = {kind.name: sum(1 for _ in kind.pattern.finditer(text)) for kind in kinds}
    found = ", ".join(f"{count:,} x {name}" for name, count in counts.items() if count) or "no page marks"
    raise EngineError(
        f"{found} in the text of {pages:,} pages: name {{page}} in the command, or the line that stands between pages "
        "(-o page_break=LINE)"
    )


def _parts(text: str, kind: _Marks, pages: int) -> list[str] | None:
    """The text between the marks, None where they do not fit the number of pages."""
    marks = list(kind.pattern.finditer(text))
    if not pages - 1 <= len(marks) <= pages or not marks:
        return None
    ends = [0, *(mark.end() for mark in marks)]
    begins = [*(mark.start() for mark in marks), len(text)]
    parts = [text[end:begin] for end, begin in zip(ends, begins, strict=True)]
    if kind.numbered:
        numbers = [int(mark[1]) for mark in marks]
        # A program that was given one page of many may number it as it is in its document.
        if len(marks) != pages or (pages > 1 and numbers not in ([*range(pages)], [*range(1, pages + 1)])):
            return None
    if len(parts) == pages:
        # Nothing below the last mark: a blank last page, or a converter that ends every page and has left one out.
        return parts if parts[-1].strip() else None
    outside = parts.pop(0 if kind.place == "before" else -1)
    return None if outside.strip() else parts


#: Characters of finished documents that are kept; beyond, those asked for longest ago are let go.
_KEPT = 100_000_000


@dataclass(frozen=True, slots=True)
class Document:
    """The texts of a document's pages, in order, and the seconds that a page took."""

    pages: list[str]
    seconds: float

    @property
    def size(self) -> int:
        """Characters of all pages."""
        return sum(map(len, self.pages))


@dataclass(slots=True)
class Conversions:
    """Use `conversions`, which ends what still runs."""

    _tasks: OrderedDict[Hashable, asyncio.Task[Document]] = field(default_factory=OrderedDict)
    _size: int = 0

    async def get(self, key: Hashable, convert: Callable[[], Awaitable[Document]]) -> Document:
        """The document under this key, converted by whoever asks first.

        Raises what converting it raised, to everybody who asks: a document that failed is not tried again in this run,
        but after an error that may pass. A timeout is one of the first page; the others fail for want of their
        document.
        """
        task = self._tasks.get(key)
        is_first = task is None
        if task is None:
            task = self._tasks[key] = asyncio.create_task(self._convert(convert))
        self._tasks.move_to_end(key)
        try:
            # Shielded: one page that is given up takes nothing from the others.
            return await asyncio.shield(task)
        except TransientEngineError:
            if self._tasks.get(key) is task:
                del self._tasks[key]
            raise
        except EngineTimeoutError as error:
            if is_first:
                raise
            raise EngineError(f"its document was not converted: {error.message}") from None

    async def close(self) -> None:
        """End what still runs; no program is left when this returns."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _convert(self, convert: Callable[[], Awaitable[Document]]) -> Document:
        document = await convert()
        self._size += document.size
        for key in [key for key, task in self._tasks.items() if task.done()] if self._size > _KEPT else []:
            task = self._tasks[key]
            if self._size > _KEPT and not task.cancelled() and task.exception() is None:
                self._size -= task.result().size
                del self._tasks[key]
        return document


@asynccontextmanager
async def conversions() -> AsyncIterator[Conversions]:
    """The documents of one engine while it is open."""
    documents = Conversions()
    try:
        yield documents
    finally:
        await documents.close()
