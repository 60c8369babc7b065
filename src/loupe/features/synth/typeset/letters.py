"""Which letters a font has: the typesetter sets a box for one that is not there, and says nothing."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence

import numpy as np

from loupe.features.synth.page import DPI
from loupe.features.synth.tracks.layouts import sheet
from loupe.features.synth.typeset.drawing import picture
from loupe.features.synth.typeset.fonts import Face

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
