"""Fields and kinds of office papers by a few rules, from what an OCR program reads: an engine of one's own.

`loupe example pages` copies this file beside its pages. `rapidocr` and `tesseract` are functions for the kind `python`:
they get a request and return a JSON object for the task fields, a word for the task class, else the text.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from loupe.data.pages import load_page
from loupe.errors import EngineError
from loupe.helpers import said_by
from loupe.metrics.dates import normalize_date
from loupe.metrics.field_values import read_amount
from loupe.types import Request

DPI = 150.0
_KINDS = re.compile(r"\b(invoice|rechnung|facture|factura|fattura)\b", re.IGNORECASE)
_DATES = re.compile(
    r"\d{1,2}[./]\d{1,2}[./]\d{4}|\d{4}-\d{2}-\d{2}"
    r"|\d{1,2}\.? (?:de )?[^\W\d]{3,12} (?:de )?\d{4}|[A-Z][a-z]{2,9} \d{1,2}, \d{4}"
)
_AMOUNTS = re.compile(r"(?:£|€|EUR)? ?\d{1,3}(?:[., ]\d{3})*[.,]\d{2}(?: ?€)?(?![\d.,])")
_COMPANY = re.compile(r".*\b(?:Ltd|Limited|plc|GmbH|KG|AG|e\.? ?K\.?|SARL|SAS|SA|SL|Srl|SpA)(?=\W|$)")
_NUMBER = re.compile(r"\bRE ?\d{5}\b|\b20\d{2}-\d{3}\b(?!-)")


def rapidocr(request: Request) -> str:
    """Read with RapidOCR, then apply the rules."""
    return answer(request, _rapidocr()(request).text)


def tesseract(request: Request) -> str:
    """Read with Tesseract, then apply the rules."""
    program = shutil.which("tesseract")
    if program is None:
        raise EngineError("tesseract is not installed")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.png"
        load_page(request.images[0], dpi=DPI).save(page)
        done = said_by([program, str(page), "stdout"], seconds=120)
    if done.returncode:
        raise EngineError(done.stderr.strip()[-200:])
    return answer(request, done.stdout)


@cache
def _rapidocr() -> Any:
    from loupe.engines.rapidocr import load

    return load(threads=1, upright=False, text_score=0.5, dpi=DPI, longest=None).read


def answer(request: Request, text: str) -> str:
    """Return what the task asks for."""
    if request.task == "fields":
        return json.dumps(fields(text), ensure_ascii=False)
    return kind(text) if request.task == "class" else text


def kind(text: str) -> str:
    """An invoice says so in its first lines."""
    return "invoice" if _KINDS.search("\n".join(text.strip().splitlines()[:8])) else "other"


def fields(text: str) -> dict[str, str]:
    """The first date, the largest amount, the first line with a legal form, and what looks like a number."""
    dates = [found for found in _DATES.findall(text) if normalize_date(found)]
    amounts = [(amount.value, found.strip()) for found in _AMOUNTS.findall(text) if (amount := read_amount(found))]
    company, number = _COMPANY.search(text), _NUMBER.search(text)
    return {
        "date": dates[0] if dates else "",
        "total": max(amounts)[1] if amounts else "",
        "company": company[0].strip() if company else "",
        "number": number[0] if number else "",
    }
