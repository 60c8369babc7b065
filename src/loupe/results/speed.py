"""Time, tokens and money of a run as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from loupe.inference.budget import money
from loupe.types import Result

#: Numbers about the machine that scored, not about the engine; result.json has them.
_NOT_SHOWN = frozenset({"scoring_seconds"})
#: Answers that were only scored have no time; results of earlier versions hold 0.
_UNKNOWN_AT_ZERO = frozenset({"seconds_per_page", "latency_p50", "latency_p95", "latency_p99", "pages_per_second"})
#: What a comparison shows of each run, where any of them knows it: heading and figure.
COLUMNS: Mapping[str, str] = {
    "pages/s": "pages_per_second",
    "s/page": "seconds_per_page",
    "p95 s": "latency_p95",
    "calls/page": "calls_per_page",
    "cost/page": "cost_per_page",
}


def speed_rows(result: Result) -> list[tuple[str, str]]:
    """Every figure with its name, in the order in which it was computed."""
    shown = {name: value for name, value in result.speed.items() if value and name not in _NOT_SHOWN}
    return [(name.replace("_", " "), speed_text(name, value, result.currency)) for name, value in shown.items()]


def speed_text(name: str, value: float | None, currency: str = "") -> str:
    """One figure with its unit where its name does not tell it."""
    if value is None or (not value and name in _UNKNOWN_AT_ZERO):
        return "–"
    if name.startswith("cost"):
        return f"{money(value)} {currency}".rstrip()
    if name.startswith("latency_"):
        return f"{value:,.4g} s"
    return f"{value:,.4g}"


#: What is true of engines that do not say it: one that reads whole pages makes one call for each.
_OTHERWISE: Mapping[str, float] = {"calls_per_page": 1.0}


def speed_columns(results: Sequence[tuple[Mapping[str, float], str]]) -> tuple[list[str], list[list[str]]]:
    """Headings, and for each run (its figures and their currency) the cells below them."""
    shown = {title: name for title, name in COLUMNS.items() if any(figures.get(name) for figures, _ in results)}
    return list(shown), [
        [speed_text(name, figures.get(name, _OTHERWISE.get(name)), currency) for name in shown.values()]
        for figures, currency in results
    ]


def speed_table(results: Iterable[Result | None]) -> list[tuple[str, list[str]]]:
    """Every figure that any of these results has, with a cell for each of them."""
    columns = [({}, "") if result is None else (result.speed, result.currency) for result in results]
    names = dict.fromkeys(name for figures, _ in columns for name in figures if name not in _NOT_SHOWN)
    rows = [
        (name.replace("_", " "), [speed_text(name, figures.get(name), currency) for figures, currency in columns])
        for name in names
    ]
    return [(name, cells) for name, cells in rows if set(cells) != {"–"}]
