"""Draw pages for CDM as the official programs do: Ghostscript, 200 dpi, on nothing, so glyph edges keep their colour.

ImageMagick, which upstream calls, has it do so with the device `pngalpha` and four levels of smoothing in each
direction; the alpha channel is then dropped, and whatever a glyph touches has its full colour
(docs/protocols/cdm.md#rendering).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Final

import numpy as np
import pypdfium2
from PIL.PngImagePlugin import PngImageFile

from loupe.metrics.cdm.drawing.limited_processes import private_folder, read_bounded, run_limited
from loupe.metrics.cdm.drawing.pdf_pages import DPI, PageInk, PageReader, ink_of_pixels
from loupe.metrics.cdm.drawing.rendering import profile_named, render
from loupe.metrics.cdm.drawing.tex_setup import BrokenTexError
from loupe.metrics.cdm.pairs import CdmResult, compared

_SECONDS_A_PAGE: Final = 20
_PAGES_AT_ONCE: Final = 20  # what is drawn lies on disk, uncompressed it is some megabytes a page
#: In points: the long side of A1, the largest paper that a formula is set on, and a little.
_LARGEST_SIDE: Final = 2400


def ghostscript(pdf: bytes, pages: Sequence[int]) -> Iterator[PageInk | str]:
    """Draw these pages, in order: what `render` takes as `draw`."""
    span = range(pages[0], pages[-1] + 1)
    return (ink for number, ink in zip(span, drawn_pages(pdf, span), strict=True) if number in pages)


def exact_cdm(pairs: Sequence[tuple[str, str]], profile: str) -> list[CdmResult]:
    """CDM of pairs (prediction, reference), as `cdm_pairs` with the pages drawn by Ghostscript."""
    chosen = profile_named(profile)
    true = render([reference for _, reference in pairs], profile=chosen, draw=ghostscript)
    said = render([prediction for prediction, _ in pairs], profile=chosen, draw=ghostscript)
    return [compared(*sides, chosen) for sides in zip(said, true, strict=True)]


def drawn_pages(pdf: bytes, pages: range) -> Iterator[PageInk | str]:
    """The ink of these pages (from 0), or why a page is not drawn: `not drawn`, or how Ghostscript ended.

    What is missing of many is tried alone, so that no page spoils another. Raises BrokenTexError where Ghostscript does
    not draw even an empty page then.
    """
    failed = False
    for start in range(pages.start, pages.stop, _PAGES_AT_ONCE):
        some = range(start, min(start + _PAGES_AT_ONCE, pages.stop))
        for number, found in zip(some, _drawn(pdf, some), strict=True):
            again = isinstance(found, str) and len(some) > 1
            drawn = _drawn(pdf, range(number, number + 1))[0] if again else found
            failed |= drawn in ("not drawn", "crashed")
            yield drawn
    if failed and isinstance(_drawn(_empty_page(), range(1))[0], str):
        raise BrokenTexError("gs")


@lru_cache(maxsize=1)
def _empty_page() -> bytes:
    document, file = pypdfium2.PdfDocument.new(), BytesIO()
    document.new_page(100, 100).close()
    document.save(file)
    document.close()
    return file.getvalue()


def _drawn(pdf: bytes, pages: range) -> list[PageInk | str]:
    if not _are_pages_of_ours(pdf, pages):
        return ["not drawn"] * len(pages)
    with private_folder("loupe-gs-") as folder:
        (folder / "formulas.pdf").write_bytes(pdf)
        words = [
            *(
                str(Path(shutil.which("gs") or "/usr/bin/gs").absolute()),
                "-q",
                "-dBATCH",
                "-dNOPAUSE",
                "-dSAFER",
                "-sDEVICE=pngalpha",
                f"-r{DPI}",
            ),
            *("-dTextAlphaBits=4", "-dGraphicsAlphaBits=4"),
            *(f"-dFirstPage={pages.start + 1}", f"-dLastPage={pages.stop}", "-o", "page-%d.png", "formulas.pdf"),
        ]
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LC_ALL": "C.UTF-8"}
        ending = run_limited(words, folder, seconds=_SECONDS_A_PAGE * len(pages), environment=environment)
        files = [read_bounded(folder / f"page-{number}.png") for number in range(1, len(pages) + 1)]
    return [_ink(file) or ending or "not drawn" for file in files]


def _are_pages_of_ours(pdf: bytes, pages: range) -> bool:
    """Whether none is larger than our papers: a formula may set its own, and a drawing takes memory by its size."""
    with PageReader(pdf) as reader:
        return all(max(reader.size(number)) <= _LARGEST_SIDE for number in pages)


def _ink(file: bytes) -> PageInk | None:
    try:
        with PngImageFile(BytesIO(file)) as image:
            # Dropping the alpha channel is the point: edge pixels keep the colour of the glyph.
            return ink_of_pixels(np.asarray(image.convert("RGB")))
    except (OSError, SyntaxError):
        return None  # not there, or cut off
