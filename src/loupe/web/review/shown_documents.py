"""Which files may be shown: the documents that entries name, below one folder and nowhere else.

What an entry names is anybody's text. A browser never names a file, only the number that a page has here.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

from loupe.data.pages import IMAGE_SUFFIXES, document_page, has_pages
from loupe.errors import PageError
from loupe.files.foreign import is_inside, real_path
from loupe.types import PageSource

_LONGEST_NAME = 1000


@dataclass(slots=True)
class Documents:
    """The folder, and the pages named so far; the number of a page stays as long as the program runs."""

    folder: Path
    _pages: dict[tuple[str, int], int] = field(default_factory=dict)
    _by_number: list[tuple[str, int]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def number(self, document: str, page: int) -> int:
        """The number under which a browser may ask for the page."""
        with self._lock:
            if (document, page) not in self._pages:
                self._pages[document, page] = len(self._by_number)
                self._by_number.append((document, page))
            return self._pages[document, page]

    def source(self, number: int) -> PageSource:
        """The page as a file. Raises PageError where there is none, or not below the folder."""
        if not 0 <= number < len(self._by_number):
            raise PageError(f"there is no page {number}")
        document, page = self._by_number[number]
        path = self._inside(document)
        if has_pages(path):
            return document_page(path, max(page, 1))
        if path.suffix.lower() in IMAGE_SUFFIXES:
            return path
        raise PageError(f"{document}: neither a PDF nor an image")

    def _inside(self, document: str) -> Path:
        """The file that is meant. Links are followed first, so that none leads out either."""
        if not document:
            raise PageError("this entry does not name a document")
        if len(document) > _LONGEST_NAME or any(ord(char) < 32 for char in document) or "\\" in document:
            raise PageError(f"{document[:100]!r} is not a file name")
        outside = PageError(f"{document}: outside {self.folder}, so it is not shown")
        if Path(document).is_absolute() or ".." in Path(document).parts:
            raise outside
        if not is_inside(self.folder / document, self.folder):
            raise outside
        path = real_path(self.folder / document)
        if not path.is_file():
            raise PageError(f"{document}: not in {self.folder}", hint="use --data DIR")
        return path


def documents_folder(file: Path, data: Path | None) -> Path:
    """Where documents are looked for: `pdfs` in the data folder or beside the file, as upstream has it, else there."""
    base = data if data is not None else real_path(file).parent
    return base / "pdfs" if (base / "pdfs").is_dir() else base
