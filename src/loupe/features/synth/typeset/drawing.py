"""Drawing of pages: from a recipe to a PNG at DPI or a PDF, and the letters for which a font has no glyph."""

from __future__ import annotations

import hashlib
import io
import re
import unicodedata
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from loupe.features.synth.page import DPI, sheet
from loupe.features.synth.typeset.templates import typeset_template
from loupe.features.synth.typeset.typesetter import Face, typeset
from loupe.files.folder import Folder, write_file
from loupe.files.scratch import scratch_folder
from loupe.types import PdfPage

if TYPE_CHECKING:
    from PIL.Image import Image


#: Quick to write, and a tenth larger than the smallest.
_COMPRESSION = 1
#: How PDFium identifies a file: by chance.
_IDENT = re.compile(rb"/ID\[<[0-9A-F]{32}><[0-9A-F]{32}>\]")


def draw(recipe: dict[str, Any], path: Path) -> None:
    """Make the file of a page, whole or not at all; one that is there already stays. Same recipe, same pixels."""
    if path.is_file():
        return
    content = as_pdf(recipe) if path.suffix == ".pdf" else _as_png(picture(recipe))
    Folder(path.parent).create()
    Folder(path.parent).write(path.name, content, sync=False)


def picture(recipe: dict[str, Any]) -> Image:
    """The pixels of a page, RGB, at DPI, with its damage done."""
    clean = _rendered(clean_pdf(recipe))
    if not recipe.get("damage"):
        return clean
    from PIL import Image as Pillow

    from loupe.features.synth.degradations import degrade

    name, severity = recipe["damage"]
    pixels = degrade(np.asarray(clean), name, severity, x_height=recipe["x_height"], seed=recipe["seed"])
    return Pillow.fromarray(pixels)


def as_pdf(recipe: dict[str, Any]) -> bytes:
    """The page as a PDF: as typeset; or as a picture over the text of another page, which nobody sees."""
    if "hidden" in recipe:
        return _over_hidden_text(picture(recipe), typeset(recipe["hidden"]))
    return clean_pdf(recipe)


def clean_pdf(recipe: dict[str, Any]) -> bytes:
    """The page as it is typeset, with nothing done to it."""
    if "template" in recipe:
        return typeset_template(recipe["template"], recipe["data"])
    return typeset(recipe["layout"])


def _rendered(pdf: bytes) -> Image:
    from loupe.data.pages import load_page

    with scratch_folder("loupe-synth-") as folder:
        path = folder / "page.pdf"
        write_file(path, pdf)
        return load_page(PdfPage(path), dpi=DPI)


def _as_png(image: Image) -> bytes:

    pixels = np.asarray(image)
    red, green, blue = pixels[..., 0], pixels[..., 1], pixels[..., 2]
    if np.array_equal(red, green) and np.array_equal(red, blue):
        image = image.convert("L")
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=_COMPRESSION)
    return buffer.getvalue()


def _over_hidden_text(image: Image, below: bytes) -> bytes:
    """A PDF that shows the picture, and whose text layer is that of another PDF."""
    import pypdfium2

    source, made = pypdfium2.PdfDocument(below), pypdfium2.PdfDocument.new()
    try:
        width, height = source[0].get_size()
        page = made.new_page(width, height)
        page.insert_obj(source.page_as_xobject(0, made).as_pageobject())
        shown = pypdfium2.PdfImage.new(made)
        shown.set_bitmap(pypdfium2.PdfBitmap.from_pil(image))
        shown.set_matrix(pypdfium2.PdfMatrix().scale(width, height))
        page.insert_obj(shown)
        page.gen_content()
        buffer = io.BytesIO()
        made.save(buffer)
        return _without_time(buffer.getvalue())
    finally:
        made.close()
        source.close()


def _without_time(pdf: bytes) -> bytes:
    """A PDF that PDFium wrote, with no date of today's and with an identifier that follows from its content.

    What is written has the length of what was there, because the file holds the places of its parts.
    """
    pdf = re.sub(rb"(?<=/CreationDate\(D:)\d{14}", b"19700101000000", pdf, count=1)
    ident = hashlib.md5(_IDENT.sub(b"", pdf), usedforsecurity=False).hexdigest().upper().encode()
    return _IDENT.sub(b"/ID[<%s><%s>]" % (ident, ident), pdf)


#: No font has it: private, in the last plane.
_NONE = "\U0010fffd"
#: Pixels of a cell, and of the space before its letter (no whole ones, which might be rounded either way).
_PIXELS, _SPACE, _ROW, _SIZE = 75, 12.3, 40, 18.0
#: Letters of a sheet, which then has 23 million pixels.
_SHEET = 4_000
_CELL, _INSET = _PIXELS * 25.4 / DPI, _SPACE * 25.4 / DPI


def without_glyph(letters: Collection[str], face: Face) -> set[str]:
    """The letters that the font lacks. Those that are never seen alone (marks, joiners, spaces) are not tried."""
    seen = [letter for letter in letters if unicodedata.category(letter)[0] not in "CMZ"]
    return {letter for start in range(0, len(seen), _SHEET) for letter in _boxed(seen[start : start + _SHEET], face)}


def _boxed(letters: Sequence[str], face: Face) -> list[str]:
    """The letters that look as one that no font has, all on one sheet."""
    pieces = [
        {"lines": [letter], "x": _INSET + _CELL * column, "y": _INSET + _CELL * row, "width": _CELL}
        for number, letter in enumerate([_NONE, *letters])
        for row, column in (divmod(number, _ROW),)
    ]
    rows = len(letters) // _ROW + 1
    layout = sheet(pieces, face, _SIZE, "en", width=_CELL * _ROW, height=_CELL * rows)
    pixels = np.asarray(picture({"layout": layout}).convert("L"))[: _PIXELS * rows, : _PIXELS * _ROW]
    cells = pixels.reshape(rows, _PIXELS, _ROW, _PIXELS).swapaxes(1, 2).reshape(-1, _PIXELS, _PIXELS)
    return [letter for letter, cell in zip(letters, cells[1:], strict=False) if np.array_equal(cell, cells[0])]
