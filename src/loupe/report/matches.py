"""Matches of answers with references as the report stores them: bounded and safe; tables as grids, layouts as numbers.

Formulas are compared in the form that CDM gives them, whatever way they were written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from loupe.data.pages import page_size
from loupe.engines.adapters.areas import Areas, areas_of, box_within
from loupe.engines.pages.page_images import parse_rule
from loupe.errors import PageError
from loupe.explanation import Area, Explanation, FormulaPair, Region, Unit, Unscored
from loupe.metrics.teds.pair import Change, Place, TableComparison
from loupe.metrics.teds.table_tree import TedsError
from loupe.report.markup import without_surrogates
from loupe.types import PageSource, PdfPage, Prediction

JsonObject: TypeAlias = dict[str, Any]
#: Text, column span, row span, kind of change (or ""), its number (or -1).
Cell: TypeAlias = tuple[str, int, int, str, int]

#: Cells of one table that are shown, characters of a cell, and columns or rows that one may span.
CELL_LIMIT = 1_500
CELL_TEXT_LIMIT = 400
SPAN_LIMIT = 100
#: Characters of HTML that are compared; a mapping of more is not worth its time here.
HTML_LIMIT = 60_000


def table_grids(prediction: str, reference: str) -> JsonObject:
    """Both tables and their differences; `problem` says why there are none."""
    from loupe.metrics.teds import compare_tables

    if len(prediction) + len(reference) > HTML_LIMIT:
        return _grids(None, None, [], "These tables are too large to show cell by cell.")
    try:
        compared = compare_tables(prediction, reference, variant="omnidocbench")
        if compared.pair is None:
            return _grids(_alone(prediction), _alone(reference), [], capital(compared.problem))
        return _grids(*compared.places, compared.changes, "")
    except TedsError as error:
        return _grids(_alone(prediction), _alone(reference), [], f"Not compared: {error}")


def cell_count(grids: JsonObject | None) -> int:
    """The number of cells that are drawn."""
    sides = [grids["reference"], grids["prediction"]] if grids else []
    return sum(len(row) for side in sides if side for _, row in side["rows"])


def capital(text: str) -> str:
    """A sentence of it."""
    return text[:1].upper() + text[1:] + "." if text else ""


def _alone(html: str) -> Sequence[Place] | None:
    """One table for itself; None if there is none."""
    from loupe.metrics.teds import compare_tables

    try:
        compared: TableComparison = compare_tables(html, html, variant="omnidocbench")
        return compared.places[0] or None
    except TedsError:
        return None


def _grids(
    prediction: Sequence[Place] | None, reference: Sequence[Place] | None, changes: Sequence[Change], problem: str
) -> JsonObject:
    number = {id(change): place for place, change in enumerate(changes)}
    sides = []
    for places, side in ((reference, "reference"), (prediction, "prediction")):
        marks: dict[tuple[int, int], tuple[str, int]] = {}
        rows: dict[int, str] = {}
        for change in changes:
            place: Place | None = getattr(change, side)
            # Elements inside a cell share its place; the cell itself comes first.
            if place is not None and place.cell >= 0:
                marks.setdefault((place.row, place.cell), (change.kind, number[id(change)]))
            elif place is not None and place.tag == "tr":
                rows[place.row] = change.kind
        sides.append(None if places is None else _grid(places, marks, rows))
    return {"problem": problem, "reference": sides[0], "prediction": sides[1], "notes": list(_notes(changes))}


def _grid(
    places: Sequence[Place], marks: Mapping[tuple[int, int], tuple[str, int]], kinds: Mapping[int, str]
) -> JsonObject:
    """Rows of cells, each with the kind of change of the row itself."""
    rows: dict[int, list[Cell]] = {}
    seen: set[tuple[int, int]] = set()
    for place in places:
        key = (place.row, place.cell)
        if place.row < 0 or key in seen:
            continue
        row = rows.setdefault(place.row, [])
        if place.cell >= 0 and len(seen) < CELL_LIMIT:
            seen.add(key)
            kind, number = marks.get(key, ("", -1))
            text = place.text if len(place.text) <= CELL_TEXT_LIMIT else place.text[:CELL_TEXT_LIMIT] + " …"
            row.append((text, _span(place.colspan), _span(place.rowspan), kind, number))
    hidden = sum(place.cell >= 0 for place in places) - len(seen) if len(seen) >= CELL_LIMIT else 0
    return {"rows": [[kinds.get(key, ""), row] for key, row in rows.items() if row or not hidden], "hidden": hidden}


def _span(value: int) -> int:
    return min(max(value, 1), SPAN_LIMIT)


def _notes(changes: Sequence[Change]) -> Iterator[str]:
    """Edits that cannot be seen on cells: whole rows and the elements around them, counted."""
    counted: dict[tuple[str, str], int] = {}
    for change in changes:
        place = change.reference or change.prediction
        if place is not None and place.cell < 0:
            name = "row" if place.tag == "tr" else f"<{place.tag}>"
            counted[change.kind, name] = counted.get((change.kind, name), 0) + 1
    for (kind, name), count in counted.items():
        word = {"tag": "other tag"}.get(kind, kind)
        yield f"{count:,} {name}{'s' if count > 1 and name == 'row' else ''} {word}"


#: Areas of one answer that are drawn, and characters of one label.
AREA_LIMIT = 1_000
LABEL_LIMIT = 120


def packed_layout(prediction: Prediction, page: PageSource | None, image_rule: str) -> JsonObject | None:
    """The areas that an answer tells, boxes as fractions of its page; None if it tells none, or has no page.

    `image_rule` is how the page was sent ("": not known): some models answer in pixels of that image.
    """
    found = areas_of(prediction.text, prediction.response)
    if found is None or page is None:
        return None
    areas, unusable = _on_page(found, page, image_rule)
    return {
        "lines": found.lines,
        "areas": [_packed(area) for area in areas[:AREA_LIMIT]],
        "hidden": max(0, len(areas) - AREA_LIMIT),
        "unusable": unusable,
    }


def _packed(area: Area) -> list[Any]:
    label = " ".join(area.label[: 4 * LABEL_LIMIT].split())
    shown = label if len(label) <= LABEL_LIMIT else label[:LABEL_LIMIT] + "…"
    sure = None if area.confidence is None else round(area.confidence, 3)
    return [*(round(side, 4) for side in area.box), without_surrogates(shown), sure]


def _on_page(found: Areas, page: PageSource, image_rule: str) -> tuple[list[Area], int]:
    """The areas as fractions of the page, and how many have no place on it."""
    if not found.pixels:
        return list(found.areas), found.unusable
    size = _sent_size(page, image_rule)
    if size is None:
        return [], found.unusable + len(found.areas)
    width, height = size
    placed = [
        Area(box=box, label=area.label, confidence=area.confidence)
        for area in found.areas
        if (box := box_within([side / whole for side, whole in zip(area.box, (width, height) * 2, strict=True)], 1.0))
    ]
    return placed, found.unusable + len(found.areas) - len(placed)


def _sent_size(page: PageSource, image_rule: str) -> tuple[int, int] | None:
    """Width and height of the page as it was sent, by the rule of its profile.

    A page of a PDF has none of its own: where no rule is known, nor is its size.
    """
    if not image_rule and isinstance(page, PdfPage):
        return None
    try:
        return parse_rule(image_rule or "none").target(*page_size(page))
    except (PageError, ValueError, OSError):
        return None


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
    """The match of one answer, packed."""
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

    None if both stand there like that already, or cannot be brought into that form.
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
