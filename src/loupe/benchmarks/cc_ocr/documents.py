"""Document parsing in CC-OCR: pages and formulas as LaTeX, molecules as SMILES, tables as HTML.

Source: AlibabaResearch/AdvancedLiterateMachinery @ fb6187e, `Benchmarks/CC-OCR/evaluation`; protocol:
docs/protocols/cc_ocr.md#parsing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from loupe.metrics import normalized_edit_similarity, teds
from loupe.metrics.teds.table_tree import TedsError

#: What is deleted from a page: where it begins, and the ends that follow in the same line.
_PREAMBLE = (
    ("\\documentclass{", ("}",)),
    ("\\usepackage[", ("]{", "}")),
    ("\\usepackage{", ("}",)),
    ("\\geometry{", ("}",)),
    ("\\begin{document}", ()),
    ("\\end{document}", ()),
    ("\\noindent", ()),
)
_FENCE = "```"
_BLANKS = str.maketrans("", "", " \n")
_HALF_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}


class UpstreamStopsError(ValueError):
    """The official program ends its whole run at this item; Loupe scores it 0, goes on and says so."""


def parsed(prediction: str, label: str, op: str) -> float:
    """The score of one answer, 0..1 (a table may score below 0). Raises UpstreamStopsError."""
    if op not in _OPS:
        raise UpstreamStopsError(f"there is no rule for {op!r}")
    return _OPS[op](prediction, label)


def _page(prediction: str, label: str) -> float:
    for opening, ends in _PREAMBLE:
        prediction = "\n".join(_without(line, opening, ends) for line in prediction.split("\n"))
    return _alike(_fenced(prediction, "latex").translate(_BLANKS), label.translate(_BLANKS))


def _formula(prediction: str, label: str) -> float:
    for mark in ("\n", "```latex", _FENCE, "\t", " "):
        prediction = prediction.replace(mark, " " if mark == "\n" else "")
    return _alike(prediction, label.replace(" ", ""))


def _molecule(prediction: str, label: str) -> float:
    for mark in ("\n", " ", "<smiles>", "</smiles>"):
        prediction = prediction.replace(mark, "")
    return _alike(prediction, label.replace(" ", ""))


def _table(prediction: str, label: str) -> float:
    try:
        return teds(_one_table(_fenced(prediction, "html")), _one_table(label), variant="ibm")
    except TedsError as error:
        raise UpstreamStopsError(str(error)) from None


_OPS: Mapping[str, Callable[[str, str], float]] = {
    "doc": _page,
    "formula": _formula,
    "molecular": _molecule,
    "table": _table,
}


def _alike(prediction: str, label: str) -> float:
    if not (prediction or label):
        raise UpstreamStopsError("there is no text to compare")
    return normalized_edit_similarity(prediction, label)


def _without(line: str, opening: str, ends: tuple[str, ...]) -> str:
    """The line without everything from an opening to the nearest of its ends."""
    kept: list[str] = []
    place = 0
    while (start := line.find(opening, place)) >= 0:
        end = start + len(opening)
        for mark in ends:
            found = line.find(mark, end)
            if found < 0:  # and so it is for every later opening
                return "".join([*kept, line[place:]])
            end = found + len(mark)
        kept.append(line[place:start])
        place = end
    return "".join([*kept, line[place:]])


def _fenced(text: str, language: str) -> str:
    """What stands in the first code block of this language, closed or not; without one all of the text."""
    _, opening, rest = text.partition(_FENCE + language)
    if not opening:
        return text
    end = rest.find(_FENCE, 1)
    return rest[:end] if end > 0 else rest.split(opening)[0]


def _one_table(text: str) -> str:
    """All tables of a text in the spelling that is compared, as a page."""
    text = text if "</table>" in text else text + "</table>"
    found, place = [], 0
    while (start := text.find("<table", place)) >= 0:
        inside = text.find(">", start)
        end = text.find("</table>", inside + 1) if inside >= 0 else -1
        if end < 0:
            break
        place = end + len("</table>")
        found.append(text[start:place])
    markup = re.sub(r">\s+<", "><", re.sub(r"<table[^>]*>", "<table>", "".join(found)))
    parts = [_cell_without_blanks(part) for part in markup.split("<")]
    return f"<html><body>{'<'.join(parts).replace(chr(10), '').translate(_HALF_WIDTH)}</body></html>"


def _cell_without_blanks(part: str) -> str:
    tag, end, text = part.partition(">")
    return tag + end + text.translate(_BLANKS)
