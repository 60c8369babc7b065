"""The independent check of the truth: PDFium reads out of a typeset page what the truth says, white space aside."""

from __future__ import annotations

import unicodedata

from loupe.features.synth.page import Truth
from loupe.files.folder import write_file
from loupe.files.scratch import scratch_folder

#: What a font draws as one sign and PDFium reads in drawing order: lam with alef, in Arabic.
LIGATURES = {"لا": "ال", "لأ": "أل", "لإ": "إل", "لآ": "آل"}


def text_layer(pdf: bytes) -> list[str]:
    """The text of each page of a PDF, as PDFium reads it."""
    from loupe.data.page_drawing import open_pdf

    with scratch_folder("loupe-synth-") as folder:
        path = folder / "page.pdf"
        write_file(path, pdf)
        with open_pdf(path) as document:
            return [page.get_textpage().get_text_range() for page in document]


def difference(pdf: bytes, truth: Truth) -> str:
    """How the text layer of a page differs from its truth, in one line; "" where it does not.

    Compared in order, but where a page is drawn in another order than it is read: there as a bag of characters, and of
    formulas as a bag of letters and digits.
    """
    layers = text_layer(pdf)
    if len(layers) != 1:
        return f"{len(layers)} pages instead of one"
    wanted = truth.text if truth.drawn is None else truth.drawn
    found, right = (_plain(text, truth.layer) for text in (layers[0], wanted))
    if found == right:
        return ""
    place = next((i for i, (a, b) in enumerate(zip(found, right, strict=False)) if a != b), min(len(found), len(right)))
    near = slice(max(0, place - 15), place + 25)
    return f"the page has {found[near]!r}, the truth {right[near]!r}"


def _plain(text: str, layer: str) -> str:
    for written, drawn in LIGATURES.items():
        text = text.replace(written, drawn)
    if layer == "letters":
        text = unicodedata.normalize("NFKC", text)
        return "".join(sorted(letter for letter in text if letter.isalnum()))
    text = "".join(unicodedata.normalize("NFC", text).split())
    return "".join(sorted(text)) if layer == "bag" else text
