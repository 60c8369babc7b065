"""Two tables side by side as grids of cells, with what a best mapping of TEDS changes in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from loupe.metrics.teds.pair import Change, Place, TableComparison
from loupe.metrics.teds.table_tree import TedsError

JsonObject: TypeAlias = dict[str, Any]
#: Text, column span, row span, kind of change (or ""), its number (or -1).
Cell: TypeAlias = tuple[str, int, int, str, int]

#: Cells of one table that are shown, characters of a cell, and columns or rows that one may span.
CELL_LIMIT = 1_500
TEXT_LIMIT = 400
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
    """How many cells are drawn."""
    sides = [grids["reference"], grids["prediction"]] if grids else []
    return sum(len(row) for side in sides if side for _, row in side["rows"])


def capital(text: str) -> str:
    """A sentence of it."""
    return text[:1].upper() + text[1:] + "." if text else ""


def _alone(html: str) -> Sequence[Place] | None:
    """One table for itself; None where there is none."""
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
            text = place.text if len(place.text) <= TEXT_LIMIT else place.text[:TEXT_LIMIT] + " …"
            row.append((text, _span(place.colspan), _span(place.rowspan), kind, number))
    hidden = sum(place.cell >= 0 for place in places) - len(seen) if len(seen) >= CELL_LIMIT else 0
    return {"rows": [[kinds.get(key, ""), row] for key, row in rows.items() if row or not hidden], "hidden": hidden}


def _span(value: int) -> int:
    return min(max(value, 1), SPAN_LIMIT)


def _notes(changes: Sequence[Change]) -> Iterator[str]:
    """What cannot be seen on cells: whole rows and the elements around them, counted."""
    counted: dict[tuple[str, str], int] = {}
    for change in changes:
        place = change.reference or change.prediction
        if place is not None and place.cell < 0:
            name = "row" if place.tag == "tr" else f"<{place.tag}>"
            counted[change.kind, name] = counted.get((change.kind, name), 0) + 1
    for (kind, name), count in counted.items():
        word = {"tag": "other tag"}.get(kind, kind)
        yield f"{count:,} {name}{'s' if count > 1 and name == 'row' else ''} {word}"
