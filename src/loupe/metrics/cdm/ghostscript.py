"""Drawing pages as the official programs do: Ghostscript, 200 dpi, on nothing, so that glyph edges keep their colour.

ImageMagick, which upstream calls, has it do so with the device `pngalpha` and four levels of smoothing in each
direction; the alpha channel is then dropped, and whatever a glyph touches has its full colour (section D).
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from PIL import Image

from loupe.metrics.cdm.boxes import DPI, PageInk, ink_of_pixels

_SECONDS_A_PAGE: Final = 20
_PAGES_AT_ONCE: Final = 20  # what is drawn lies on disk, uncompressed it is some megabytes a page
_LIMITED: Final = 'ulimit -c 0; ulimit -t "$1"; shift; exec "$@"'


def drawn_pages(pdf: bytes, pages: range) -> Iterator[PageInk | None]:
    """The ink of these pages (from 0); None where Ghostscript did not draw one. Raises OSError without Ghostscript."""
    for start in range(pages.start, pages.stop, _PAGES_AT_ONCE):
        yield from _drawn(pdf, range(start, min(start + _PAGES_AT_ONCE, pages.stop)))


def _drawn(pdf: bytes, pages: range) -> Iterator[PageInk | None]:
    with tempfile.TemporaryDirectory(prefix="loupe-gs-") as name:
        folder = Path(name)
        (folder / "formulas.pdf").write_bytes(pdf)
        words = [
            *("gs", "-q", "-dBATCH", "-dNOPAUSE", "-dSAFER", "-sDEVICE=pngalpha", f"-r{DPI}"),
            *("-dTextAlphaBits=4", "-dGraphicsAlphaBits=4"),
            *(f"-dFirstPage={pages.start + 1}", f"-dLastPage={pages.stop}", "-o", "page-%d.png", "formulas.pdf"),
        ]
        subprocess.run(
            ["/bin/sh", "-c", _LIMITED, "gs", str(_SECONDS_A_PAGE * len(pages)), *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        for number in range(1, len(pages) + 1):
            file = folder / f"page-{number}.png"
            if not file.is_file():
                yield None
                continue
            with Image.open(file) as image:
                # Dropping the alpha channel is the point: edge pixels keep the colour of the glyph.
                yield ink_of_pixels(np.asarray(image.convert("RGB")))
