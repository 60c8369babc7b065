"""tesserocr 2: the Tesseract library in the process, with the language data of the system."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tesserocr

PLACES = ("/usr/share/tesseract-ocr/5/tessdata", "/usr/share/tesseract-ocr/4.00/tessdata", "/usr/share/tessdata")


def load(options: dict[str, Any]) -> Callable[[Any], str]:
    """`language`: such as `eng`; `psm`: page segmentation mode. Raises FileNotFoundError without language data."""
    language = options.get("language", "eng")
    first = language.partition("+")[0]
    named = [os.environ["TESSDATA_PREFIX"]] if "TESSDATA_PREFIX" in os.environ else []
    program = shutil.which("tesseract")
    beside = [str(Path(program).resolve().parents[1] / "share" / "tessdata")] if program else []
    places = [place for place in (*named, *beside, *PLACES) if (Path(place) / f"{first}.traineddata").is_file()]
    if not places:
        raise FileNotFoundError(f"no {first}.traineddata: install tesseract-ocr-{first}, or set TESSDATA_PREFIX")
    api = tesserocr.PyTessBaseAPI(path=places[0], lang=language, psm=options.get("psm", 3))

    def read(page: Any) -> str:
        api.SetImageFile(page.path)
        return str(api.GetUTF8Text())

    return read
