"""LiteParse 2: text with its layout; pages without text by the Tesseract library inside it.

It would download language data at the first image, so it is told where the system keeps its own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from liteparse import LiteParse

#: Where packages of systems put Tesseract's language data.
PLACES = ("/usr/share/tesseract-ocr/5/tessdata", "/usr/share/tesseract-ocr/4.00/tessdata", "/usr/share/tessdata")


def load(options: dict[str, Any]) -> Callable[[Any], str]:
    """`language`: of Tesseract, such as `eng`. Raises FileNotFoundError without its data."""
    language = options.get("language", "eng")
    named = [os.environ["TESSDATA_PREFIX"]] if "TESSDATA_PREFIX" in os.environ else []
    program = shutil.which("tesseract")
    beside = [str(Path(program).resolve().parents[1] / "share" / "tessdata")] if program else []
    places = [place for place in (*named, *beside, *PLACES) if (Path(place) / f"{language}.traineddata").is_file()]
    if not places:
        raise FileNotFoundError(f"no {language}.traineddata: install tesseract-ocr-{language}, or set TESSDATA_PREFIX")
    parser = LiteParse(ocr_enabled=True, ocr_language=language, tessdata_path=places[0], quiet=True)
    return lambda page: str(parser.parse(page.path).text)
