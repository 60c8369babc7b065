"""What the page of two runs shows, and the list of samples that `j` and `k` go through from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import urlencode

from loupe.results.unverified import unverified_warning
from loupe.results.visible_differences import signed
from loupe.types import Measure
from loupe.web.view import two_runs
from loupe.web.view.board import Board, Row
from loupe.web.view.grid import page_number
from loupe.web.view.sample_page import address

JsonObject: TypeAlias = dict[str, Any]


def compare_context(board: Board, query: Mapping[str, str]) -> JsonObject:
    """Everything that the page shows."""
    runs = board.ordered()
    keys = [run.key for run in runs]
    a = keys.index(query["a"]) if query.get("a") in keys else min(1, len(runs) - 1)
    b = keys.index(query["b"]) if query.get("b") in keys else 0
    gone = any(query.get(name) and query[name] not in keys for name in ("a", "b"))
    order = _order(query)
    told = [] if gone or a == b else two_runs.told(board, a, b)
    measure = _measure(told, query)
    found = two_runs.pairs_of(board, a, b, measure) if measure else []
    kept = {"a": keys[a], "b": keys[b], "order": order}
    kept |= {"measure": measure.name} if measure and len(told) > 1 else {}
    listed = two_runs.in_order(found, order)
    pages = max(1, -(-len(listed) // two_runs.PAGE))
    number = min(page_number(query), pages)
    inside = urlencode({**kept, "three": 1})
    return {
        "runs": [(run, board.labels[run.key]) for run in runs],
        "unverified": unverified_warning(board.group().results),
        "a": a,
        "b": b,
        "gone": gone,
        "told": told,
        "measure": measure if found else None,
        "counts": two_runs.counts(found),
        "total": len(found),
        "everything": len(board.rows()),
        "plot": two_runs.scatter(found, measure, [board.labels[keys[each]] for each in (a, b)])
        if measure and found
        else None,
        "whole": two_runs.whole(board, runs[a], runs[b]) if found else two_runs.NOTHING,
        "rows": listed[(number - 1) * two_runs.PAGE : number * two_runs.PAGE],
        "said": lambda cell, value: two_runs.said(cell, value, measure) if measure else "",
        "gain": lambda pair: _gain(pair, measure),
        "place": lambda ident: f"{address(board, 'sample', ident)}&{inside}",
        "orders": two_runs.ORDERS,
        "order": order,
        "number": number,
        "pages": pages,
        "turn": lambda to: f"/b/{board.key}/compare?{urlencode({**kept, 'page': to})}",
    }


def compared_rows(board: Board, places: Sequence[int], query: Mapping[str, str]) -> list[Row]:
    """The samples as the page lists them, then all others."""
    a, b = places
    measure = _measure(two_runs.told(board, a, b), query)
    found = two_runs.pairs_of(board, a, b, measure) if measure else []
    rows = [pair.row for pair in two_runs.in_order(found, _order(query))]
    listed = {row.ident for row in rows}
    return [*rows, *(row for row in board.rows() if row.ident not in listed)]


def _order(query: Mapping[str, str]) -> str:
    return query.get("order", "") if query.get("order", "") in two_runs.ORDERS else "losses"


def _measure(told: Sequence[tuple[Measure, int]], query: Mapping[str, str]) -> Measure | None:
    """The measure that was chosen, else the one that tells of the most samples."""
    chosen = next((measure for measure, _ in told if measure.name == query.get("measure")), None)
    return chosen or (told[0][0] if told else None)


def _gain(pair: two_runs.Pair, measure: Measure | None) -> str:
    return "–" if pair.kind == "none" or measure is None else signed(pair.gain, measure.unit)
