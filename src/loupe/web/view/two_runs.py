"""Two runs against each other, sample by sample: wins, by how much, what the whole says of it, and their page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import urlencode

from loupe.errors import LoupeError
from loupe.report.leaderboard import round_step
from loupe.report.svg_parts import shortened
from loupe.results.comparing.runs import compare_runs
from loupe.results.sections import format_value
from loupe.results.unverified import unverified_warning
from loupe.results.visible_differences import difference_cells, no_ranks, signed, visible_differences
from loupe.stats.comparison import Difference
from loupe.types import FAILED, Measure
from loupe.web.view.board import Board, Cell, Row
from loupe.web.view.grid import NOT_ANSWERED, OUTCOMES, page_number
from loupe.web.view.run_reader import RunIndex
from loupe.web.view.sample_page import address

JsonObject: TypeAlias = dict[str, Any]

PAGE = 40
ORDERS = {"losses": "Largest regressions", "wins": "Largest gains", "order": "All, as in the data"}
#: Differences below this are ties: numbers are shown with fewer digits.
_TIE = 5e-5
#: Points of the scatter stand on a grid of so many steps, so that ten thousand samples stay a picture.
_GRID = 120
_MARGIN, _SIDE = 58.0, 410.0
#: What is said of runs that cannot be compared as a whole.
NOTHING: JsonObject = {"verdict": "", "said": [], "rows": [], "visible": None}


@dataclass(frozen=True, slots=True)
class Pair:
    """One sample in both runs, by one measure; `gain` is positive where B is better."""

    row: Row
    a: Cell
    b: Cell
    value_a: float
    value_b: float
    gain: float

    @property
    def failed(self) -> tuple[bool, bool]:
        """True for A, and for B, if there is no answer."""
        return self.a.outcome in NOT_ANSWERED, self.b.outcome in NOT_ANSWERED

    @property
    def kind(self) -> str:
        """`win` and `loss` of B, `tie`, or `none`: as bad in both, and at least one of them no answer."""
        if abs(self.gain) > _TIE:
            return "win" if self.gain > 0 else "loss"
        return "none" if any(self.failed) else "tie"


@dataclass(frozen=True, slots=True)
class Dot:
    """A place of the scatter and what lies there."""

    x: float
    y: float
    radius: float
    kind: str
    ident: str
    title: str


def told(board: Board, a: int, b: int) -> list[tuple[Measure, int]]:
    """The measures that tell of samples in these runs, each with how many, the most first."""
    measures = board.measures()
    found: Counter[str] = Counter()
    for row in board.rows():
        found.update({row.cells[place].measure for place in (a, b)} - {""})
    return [(measures[name], count) for name, count in found.most_common()]


def pairs_of(board: Board, a: int, b: int, measure: Measure) -> list[Pair]:
    """The samples that are told by this measure in both runs. A failed answer is as bad as one can be."""
    pairs = []
    for row in board.rows():
        first, second = row.cells[a], row.cells[b]
        value_a, value_b = _value(first, measure), _value(second, measure)
        if value_a is None or value_b is None:
            continue
        pairs.append(Pair(row, first, second, value_a, value_b, gain=measure.merit(value_b - value_a)))
    return pairs


def _value(cell: Cell, measure: Measure) -> float | None:
    if cell.measure == measure.name:
        return cell.value
    # A failed sample that was scored is told by the measure that it would have.
    unscored = cell.outcome in FAILED and not cell.measure and measure.unit == "fraction"
    return (0.0 if measure.higher_is_better else 1.0) if unscored else None


def in_order(pairs: list[Pair], order: str) -> list[Pair]:
    """Return the regressions, largest first, or the gains, or all as they stand in the data."""
    if order == "order":
        return pairs
    kind, sign = ("win", -1.0) if order == "wins" else ("loss", 1.0)
    return sorted((pair for pair in pairs if pair.kind == kind), key=lambda pair: (sign * pair.gain, pair.row.place))


def counts(pairs: list[Pair]) -> Counter[str]:
    """Counts of pairs of each kind, and of those that failed in A and in B."""
    found = Counter(pair.kind for pair in pairs)
    found["failed_a"] = sum(pair.failed[0] for pair in pairs)
    found["failed_b"] = sum(pair.failed[1] for pair in pairs)
    return found


def scatter(pairs: list[Pair], measure: Measure, names: Sequence[str]) -> JsonObject:
    """The picture: A across, B upwards, equal on the diagonal. Samples that fall together make a larger dot; those
    without an answer stand apart from those that were read as badly."""
    values = [value for pair in pairs for value in (pair.value_a, pair.value_b)]
    low, high = min([*values, 0.0]), max([*values, 1.0 if measure.unit == "fraction" else 0.0])
    if measure.unit == "fraction":
        high = min(high, 1.5) if high > 1 else 1.0
    step = round_step(((high - low) or 1.0) / 5)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    span = (high - low) or 1.0
    found: dict[tuple[int, int, bool], list[Pair]] = {}
    for pair in pairs:
        at = [round(_GRID * min(1.0, max(0.0, (value - low) / span))) for value in (pair.value_a, pair.value_b)]
        found.setdefault((at[0], at[1], any(pair.failed)), []).append(pair)
    dots = [_dot(across, up, failed, here, measure) for (across, up, failed), here in found.items()]
    dots.sort(key=lambda dot: -dot.radius)
    values = [low + step * number for number in range(round(span / step) + 1)]
    places = [(value, (value - low) / span) for value in values]
    ticks = [(_MARGIN + _SIDE * share, _SIDE + 10 - _SIDE * share, _tick(value, measure)) for value, share in places]
    return {
        "dots": dots,
        "ticks": ticks,
        "left": _MARGIN,
        "bottom": _SIDE + 10,
        "side": _SIDE,
        "names": shortened(names, 46),
    }


def _dot(across: int, up: int, failed: bool, here: list[Pair], measure: Measure) -> Dot:
    most = max(here, key=lambda pair: abs(pair.gain))
    text = f"{most.row.ident}: {said(most.a, most.value_a, measure)} → {said(most.b, most.value_b, measure)}"
    more = f", and {len(here) - 1:,} more here" if len(here) > 1 else ""
    x, y = _MARGIN + _SIDE * across / _GRID, _SIDE + 10 - _SIDE * up / _GRID
    kind = f"{most.kind} hollow" if failed else most.kind
    return Dot(round(x, 1), round(y, 1), min(3.5 + len(here) ** 0.5 / 2, 14.0), kind, most.row.ident, text + more)


def said(cell: Cell, value: float, measure: Measure) -> str:
    """A value, or the class of what is no answer."""
    return OUTCOMES[cell.outcome] if cell.outcome in NOT_ANSWERED else format_value(value, measure.unit)


def _tick(value: float, measure: Measure) -> str:
    return f"{100 * value:.4g}" if measure.unit == "fraction" else f"{value:.4g}"


def whole(board: Board, a: RunIndex, b: RunIndex) -> JsonObject:
    """The verdict of `loupe compare A B` on B against A; nothing if it has none."""
    return board.kept((a.serial, a.scored, b.serial, b.scored), lambda: _whole(board, a, b))


def _whole(board: Board, a: RunIndex, b: RunIndex) -> JsonObject:
    group = board.group()
    if group.benchmark is None or a.result is None or b.result is None or group.uncompared:
        return NOTHING
    try:
        compared = compare_runs([a.folder.path, b.folder.path], measure=board.chosen)
    except LoupeError as error:
        return NOTHING | {"said": [error.message]}
    (pair,) = compared.pairs
    measures = {measure.name: measure for measure in group.measures}
    known = {name: one for name, one in pair.measures.items() if not (one.value_a is None and one.value_b is None)}
    found = known.get(compared.headline)
    said = [compared.headline_note] if compared.headline_note else []
    said += [no_ranks(compared.headline)] if compared.untold else []
    said += [*compared.notes, *filter(None, [compared.part, compared.accepted])]
    said += [f"The runs differ in {part}: {' | '.join(values)}." for part, values in compared.differing.items()]
    base = next(row.name for row in compared.runs if row.run == compared.baseline)
    pairs = [(f"{pair.name} minus {base}", found)] if found is not None and not compared.warning else []
    visible = visible_differences(pairs, compared.headline, compared.units.get(compared.headline, "fraction"))
    rows = [
        _line(measures[name], one, pair.samples)
        for name, one in known.items()
        if name in measures and name not in compared.twice
    ]
    return {"verdict": compared.verdict, "said": said, "rows": rows, "visible": visible[0] if visible else None}


def _line(measure: Measure, found: Difference, samples: int) -> JsonObject:
    cells = difference_cells(found, measure.unit, higher_is_better=measure.higher_is_better)
    return {
        "measure": measure,
        "a": format_value(found.value_b, measure.unit, of=samples),
        "b": format_value(found.value_a, measure.unit, of=samples),
        **dict(zip(("difference", "interval", "p", "verdict"), cells, strict=True)),
    }


def compare_context(board: Board, query: Mapping[str, str]) -> JsonObject:
    """Everything that the page shows."""
    runs = board.ordered()
    keys = [run.key for run in runs]
    a = keys.index(query["a"]) if query.get("a") in keys else min(1, len(runs) - 1)
    b = keys.index(query["b"]) if query.get("b") in keys else 0
    gone = any(query.get(name) and query[name] not in keys for name in ("a", "b"))
    order = _order(query)
    measures = [] if gone or a == b else told(board, a, b)
    measure = _measure(measures, query)
    found = pairs_of(board, a, b, measure) if measure else []
    kept = {"a": keys[a], "b": keys[b], "order": order}
    kept |= {"measure": measure.name} if measure and len(measures) > 1 else {}
    listed = in_order(found, order)
    pages = max(1, -(-len(listed) // PAGE))
    number = min(page_number(query), pages)
    inside = urlencode({**kept, "three": 1})
    return {
        "runs": [(run, board.labels[run.key]) for run in runs],
        "unverified": unverified_warning(board.group().results),
        "a": a,
        "b": b,
        "gone": gone,
        "told": measures,
        "measure": measure if found else None,
        "counts": counts(found),
        "total": len(found),
        "everything": len(board.rows()),
        "plot": scatter(found, measure, [board.labels[keys[each]] for each in (a, b)]) if measure and found else None,
        "whole": whole(board, runs[a], runs[b]) if found else NOTHING,
        "rows": listed[(number - 1) * PAGE : number * PAGE],
        "said": lambda cell, value: said(cell, value, measure) if measure else "",
        "gain": lambda pair: _gain(pair, measure),
        "place": lambda ident: f"{address(board, 'sample', ident)}&{inside}",
        "orders": ORDERS,
        "order": order,
        "number": number,
        "pages": pages,
        "turn": lambda to: f"/b/{board.key}/compare?{urlencode({**kept, 'page': to})}",
    }


def compared_rows(board: Board, places: Sequence[int], query: Mapping[str, str]) -> list[Row]:
    """The samples as the page lists them, then all others."""
    a, b = places
    measure = _measure(told(board, a, b), query)
    found = pairs_of(board, a, b, measure) if measure else []
    rows = [pair.row for pair in in_order(found, _order(query))]
    listed = {row.ident for row in rows}
    return [*rows, *(row for row in board.rows() if row.ident not in listed)]


def _order(query: Mapping[str, str]) -> str:
    return query.get("order", "") if query.get("order", "") in ORDERS else "losses"


def _measure(told: Sequence[tuple[Measure, int]], query: Mapping[str, str]) -> Measure | None:
    """The measure that was chosen, else the one that tells of the most samples."""
    chosen = next((measure for measure, _ in told if measure.name == query.get("measure")), None)
    return chosen or (told[0][0] if told else None)


def _gain(pair: Pair, measure: Measure | None) -> str:
    return "–" if pair.kind == "none" or measure is None else signed(pair.gain, measure.unit)
