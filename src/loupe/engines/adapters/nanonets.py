"""Nanonets-OCR: marks around page numbers, watermarks, signatures and descriptions of images are taken away.

Source: the model card's prompt (nanonets/Nanonets-OCR-s), which asks for them; docs/adapters.md. Page numbers go with
their marks in olmOCR-Bench's runner (allenai/olmocr @ f7cfe4c, olmocr/bench/runners/run_nanonetsocr.py).
"""

from __future__ import annotations

import re

#: `<img>` without any attribute: that of HTML has some.
_MARK = re.compile(r"</?(?:page_number|watermark|signature|img)>")
_PAGE_NUMBER = re.compile(r"<page_number>\d+</page_number>")


def nanonets_page_numbers(text: str) -> str:
    """The text without page numbers that are marked as such and all digits.

    >>> nanonets_page_numbers("The harbour <page_number>3</page_number><page_number>3/9</page_number>")
    'The harbour <page_number>3/9</page_number>'
    """
    return _PAGE_NUMBER.sub("", text)


def nanonets_tags(text: str) -> str:
    """The text without the marks; what stands between them stays.

    >>> nanonets_tags("<watermark>DRAFT</watermark> The harbour <page_number>3/9</page_number>")
    'DRAFT The harbour 3/9'
    """
    return _MARK.sub("", text)
