"""Nanonets-OCR: marks around page numbers, watermarks, signatures and descriptions of images are taken away.

Source: the model card's prompt (nanonets/Nanonets-OCR-s), which asks for them; docs/adapters.md.
"""

from __future__ import annotations

import re

#: `<img>` without any attribute: that of HTML has some.
_MARK = re.compile(r"</?(?:page_number|watermark|signature|img)>")


def nanonets_tags(text: str) -> str:
    """The text without the marks; what stands between them stays.

    >>> nanonets_tags("<watermark>DRAFT</watermark> The harbour <page_number>3/9</page_number>")
    'DRAFT The harbour 3/9'
    """
    return _MARK.sub("", text)
