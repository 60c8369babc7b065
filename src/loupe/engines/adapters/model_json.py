"""Turn the JSON or YAML that models write around a page into the page: dots.ocr and olmOCR.

dots.ocr answers with a list of areas with category and text, which becomes Markdown.
Source: `layoutjson2md` of rednote-hilab/dots.ocr @ 36d72488; docs/adapters.md.

olmOCR's first model, and models that are asked with its schema, answer with JSON; later ones write a block of YAML
above the page, which nobody printed there.
Source: allenai/olmocr @ f7cfe4c, olmocr/prompts/prompts.py (`PageResponse`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from loupe.typed import json_decoder
from loupe.types import UNDECODABLE

_MARGINS = frozenset({"Page-header", "Page-footer"})
#: Stands for a picture; the page itself is no part of an answer.
_PICTURE = "![]()"
_INLINE = re.compile(r"\$[^$]+\$")
_COMMAND = re.compile(r"\\[a-zA-Z]")
_PREAMBLE = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\\documentclass\{[^}]+\}",
        r"\\usepackage\{[^}]+\}",
        r"\\usepackage\[[^\]]*\]\{[^}]+\}",
        r"\\begin\{document\}",
        r"\\end\{document\}",
    )
)
#: Longer formulas keep their preamble: these patterns take quadratic time on hostile text.
_MOST_PREAMBLE = 20_000
_AREA = re.compile(r'\{\s*"bbox"\s*:')
_SAME_TEXT, _SAME_BOX = 5, 2


def dots_layout(text: str) -> str:
    """The Markdown of a JSON answer, without page headers and footers; anything else stays as it is.

    From an answer that is no whole JSON the areas that are whole are taken, without repeated ones, their texts joined.
    """
    return _page(text, margins=False)


def dots_layout_whole(text: str) -> str:
    """The same with page headers and footers: the vendor's plain `.md`, where the other is its `_nohf.md`."""
    return _page(text, margins=True)


def _page(text: str, *, margins: bool) -> str:
    if not _AREA.search(text):
        return text
    areas = _json(text)
    if isinstance(areas, list) and areas and all(map(_is_area, areas)):
        return layout_markdown(areas, margins=margins)
    found = [area for piece in _pieces(text) if isinstance(area := _json_at_start(piece), dict)]
    return "\n\n".join(str(area["text"]) for area in _without_repeats(found) if "text" in area)


def layout_markdown(areas: Sequence[Mapping[str, Any]], *, picture: str = _PICTURE, margins: bool = False) -> str:
    """The texts of the areas with an empty line between them; page headers and footers only with `margins`."""
    return "\n\n".join(_markdown(area, picture) for area in areas if margins or area["category"] not in _MARGINS)


def _markdown(area: Mapping[str, Any], picture: str) -> str:
    text = str(area.get("text") or "")
    if area["category"] == "Picture":
        return picture
    if area["category"] == "Formula":
        return _formula(text.strip())
    text = text.strip()
    # Inline code around a formula is a slip of the model.
    return text[1:-1] if text[:2] == "`$" and text[-2:] == "$`" else text


def _formula(text: str) -> str:
    """A formula in double dollars, unless it is none or has delimiters of its own inside."""
    if text.startswith("$$") and text.endswith("$$"):
        inner = text[2:-2].strip()
        return text if "$" in inner else _displayed(inner)
    if text.startswith("\\[") and text.endswith("\\]"):
        return _displayed(text[2:-2].strip())
    if _has_brackets_in_a_line(text) or _INLINE.search(text) or not _looks_like_latex(text):
        return text
    if "usepackage" in text and len(text) <= _MOST_PREAMBLE:
        for pattern in _PREAMBLE:
            text = pattern.sub("", text)
    return _displayed(text[1:-1] if text[:1] == "`" and text[-1:] == "`" else text)


def _displayed(formula: str) -> str:
    return f"$$\n{formula}\n$$"


def _has_brackets_in_a_line(text: str) -> bool:
    return any(0 <= line.find("\\[") < line.rfind("\\]") - 1 for line in text.split("\n"))


def _looks_like_latex(text: str) -> bool:
    r"""A command, or a pair of `\(…\)`; formulas in dollars or `\[…\]` have been told apart before.

    Two pairs of dollars with nothing between them and `\[…\]` over several lines count, too.
    """
    if _COMMAND.search(text):
        return True
    return any(0 <= text.find(left) <= text.rfind(right) - 2 for left, right in _PAIRS)


_PAIRS = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"))


def _is_area(area: object) -> bool:
    if not isinstance(area, dict) or not isinstance(area.get("category"), str):
        return False
    box = area.get("bbox")
    return isinstance(box, list) and len(box) == 4 and all(isinstance(edge, int | float) for edge in box)


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _json_at_start(text: str) -> object:
    """Return the JSON at the start of a text, as far as it is whole."""
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None


def _pieces(text: str) -> list[str]:
    """The text from each area to the next."""
    starts = [found.start() for found in _AREA.finditer(text)]
    return [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]


def _without_repeats(areas: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the later ones of areas that say the same five times, or stand in the same box twice."""
    texts = Counter(_saying(area) for area in areas)
    seen_texts: set[str] = set()
    seen_boxes: set[str] = set()
    kept = []
    for area in areas:
        saying, box = _saying(area), repr(area["bbox"])
        repeated = (texts[saying] >= _SAME_TEXT and saying in seen_texts) or box in seen_boxes
        if not repeated:
            kept.append(area)
        seen_texts.add(saying)
        seen_boxes.add(box)
    return kept


def _saying(area: Mapping[str, Any]) -> str:
    return repr((area.get("category"), area.get("text")))


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


#: A key at the start of a line. Capitals are left to letters that begin with "From:" between two rules.
_KEY = re.compile(r"[a-z][\w-]*:(?:[ \t]|$)")
#: What may stand below a key: more of its value, an item of a list, a remark, or nothing.
_BELOW = re.compile(r"[ \t]+\S|-[ \t]|#|[ \t]*$")
#: No model writes more lines of it.
_MOST_LINES = 100


def front_matter(text: str) -> str:
    """The page without a block of YAML at its start, between `---` and `---` (or `...`); any other text stays.

    >>> front_matter("---\\nprimary_language: en\\nis_table: false\\n---\\nThe harbour")
    'The harbour'
    """
    opening, *lines = text.lstrip().split("\n", _MOST_LINES)
    if opening.rstrip() != "---" or not lines or not _KEY.match(lines[0]):
        return text
    for number, line in enumerate(lines):
        if line.rstrip() in ("---", "..."):
            return "\n".join(lines[number + 1 :]).lstrip("\n")
        if not (_KEY.match(line) or _BELOW.match(line)):
            break
    return text
