"""Explanations of scores as the report stores them: bounded, safe to show, the page once and each answer's match.

Formulas are compared in the form that CDM gives them, whatever way they were written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from loupe.explanation import Explanation, FormulaPair, Region, Unit, Unscored
from loupe.report.markup import without_surrogates
from loupe.report.table_grids import cell_count, table_grids

JsonObject: TypeAlias = dict[str, Any]

#: Units, unscored pieces and regions of one page that are shown; `scores.jsonl` has them all.
UNIT_LIMIT = 400
REGION_LIMIT = 1_000
#: Tables of one answer that are compared cell by cell; and cells, and characters of HTML, after which no more are.
TABLE_LIMIT = 30
CELLS = 3_000
HTML = 90_000
#: Characters of one text, and of all texts of one answer.
TEXT_LIMIT = 4_000
BUDGET = 400_000
#: Characters of a pair of formulas; a longer one is compared as it was written.
_LONGEST_PAIR = 20_000
#: Corners of one polygon.
_CORNERS = 100


def packed_page(explanations: Sequence[Explanation | None], ratio: float) -> JsonObject | None:
    """The annotated page, without a size where nothing is marked on it; `ratio` is width to height of its picture (0:
    not known)."""
    known = next((each for each in explanations if each is not None), None)
    if known is None:
        return None
    return {
        "size": list(_size(known, ratio)) if known.regions or min(known.size) > 0 else None,
        "regions": [_region(region) for region in known.regions[:REGION_LIMIT]],
        "hidden": max(0, len(known.regions) - REGION_LIMIT),
    }


def _size(explanation: Explanation, ratio: float) -> tuple[float, float]:
    """Width and height of the annotated page. Some annotations name them the wrong way round; the picture decides."""
    width, height = explanation.size
    if width <= 0 or height <= 0:
        corners = [region.polygon for region in explanation.regions]
        width = max((max(each[0::2]) for each in corners), default=1.0)
        height = max((max(each[1::2]) for each in corners), default=1.0)
        return max(width, 1.0), max(height, 1.0)
    turned = ratio > 0 and abs(height / width - ratio) < abs(width / height - ratio)
    return (height, width) if turned else (width, height)


def _region(region: Region) -> list[Any]:
    polygon = [round(value, 1) for value in region.polygon[: 2 * _CORNERS]]
    return [polygon, without_surrogates(region.category), region.order, int(region.scored)]


def packed_match(explanation: Explanation) -> JsonObject:
    """What one answer was matched with."""
    texts = _Texts()
    tables = cells = html = 0
    units = []
    for unit in explanation.units[:UNIT_LIMIT]:
        packed = _unit(unit, texts, draw=tables < TABLE_LIMIT and cells < CELLS and html < HTML)
        tables += packed["grids"] is not None
        cells += cell_count(packed["grids"])
        html += sum(map(len, unit.tables or ()))
        units.append(packed)
    return {
        "units": units,
        "hiddenUnits": max(0, len(explanation.units) - UNIT_LIMIT),
        "unscored": [_unscored(each, texts) for each in explanation.unscored[:UNIT_LIMIT]],
        "hiddenUnscored": max(0, len(explanation.unscored) - UNIT_LIMIT),
        "trueOrder": list(explanation.true_order[:REGION_LIMIT]),
        "predictedOrder": list(explanation.predicted_order[:REGION_LIMIT]),
        "flags": [[flag.name, flag.meaning, flag.count] for flag in explanation.flags],
    }


class _Texts:
    """Cuts texts, so that all of one answer together stay within the budget."""

    def __init__(self) -> None:
        self.left = BUDGET

    def cut(self, text: str) -> str | list[Any]:
        """The text; or, where it is cut, its beginning and how many characters are missing."""
        room = min(TEXT_LIMIT, self.left)
        kept = without_surrogates(text[:room])
        self.left -= len(kept)
        return kept if len(text) <= room else [kept, len(text) - room]


def _unit(unit: Unit, texts: _Texts, *, draw: bool) -> JsonObject:
    packed: JsonObject = {
        "element": unit.element,
        "regions": list(unit.regions),
        "step": unit.step,
        "distance": unit.distance,
        "value": unit.value,
        "verdict": unit.verdict,
        "note": unit.note,
        "grids": table_grids(*unit.tables) if unit.tables is not None and draw else None,
    }
    if packed["grids"] is None or packed["grids"]["reference"] is None:
        packed["reference"] = texts.cut(unit.reference)
    if packed["grids"] is None or packed["grids"]["prediction"] is None:
        packed["pieces"] = [texts.cut(piece) for piece in unit.pieces[:UNIT_LIMIT]]
    if unit.compared is not None and unit.compared[0] != unit.compared[1]:
        packed["compared"] = [texts.cut(text) for text in unit.compared]
    if unit.formulas is not None:
        pair = unit.formulas
        packed["formulas"] = {
            "key": pair.key if pair.f1 is not None else "",
            "f1": pair.f1,
            "latex": [texts.cut(text) for text in compared_texts(pair) or (pair.prediction, pair.reference)],
            "failures": [without_surrogates(why) for why in (pair.prediction_failure, pair.reference_failure)],
        }
    return packed


def _unscored(piece: Unscored, texts: _Texts) -> list[Any]:
    return [texts.cut(piece.text), piece.reason, list(piece.regions)]


def compared_texts(pair: FormulaPair) -> list[str] | None:
    """Prediction and reference normalised as CDM does it, and without delimiters around them, which draw nothing.

    None where both stand there like that already, or cannot be brought into that form.
    """
    from loupe.metrics import strip_formula_wrapping
    from loupe.metrics.cdm import PROFILES, NotColouredError, colour

    sides = (pair.prediction, pair.reference)
    if pair.prediction == pair.reference or len(pair.prediction) + len(pair.reference) > _LONGEST_PAIR:
        return None
    try:
        found = [colour(strip_formula_wrapping(side), PROFILES[pair.profile]).normalized.strip() for side in sides]
    except NotColouredError:
        return None
    return None if found == list(sides) else found
