"""JSON around a page: what the first olmOCR, and models that are asked with its schema, answer.

Source: allenai/olmocr @ f7cfe4c, olmocr/prompts/prompts.py (`PageResponse`).
"""

from __future__ import annotations

import msgspec

from loupe.typed import json_decoder
from loupe.types import UNDECODABLE


class _Page(msgspec.Struct):
    """The one key that is scored; `null` says that nothing stands on the page."""

    natural_text: str | None


def olmocr_json(text: str) -> str:
    """The text of the page in a JSON object with `natural_text`; any other answer stays, as does broken JSON.

    >>> olmocr_json('{"primary_language": "en", "is_table": false, "natural_text": "The harbour"}')
    'The harbour'
    """
    if not text.lstrip().startswith("{"):
        return text
    try:
        return json_decoder(_Page).decode(text).natural_text or ""
    except (*UNDECODABLE, UnicodeEncodeError):
        return text
