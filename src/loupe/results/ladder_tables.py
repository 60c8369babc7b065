"""Generated pages as short tables: where print becomes illegible, what each degradation costs, which traps are passed.

From the figures of the benchmark `synth` (docs/synth.md#figures).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loupe.results.sections import Section, format_value
from loupe.types import Result

_NAMES = {
    ("legibility", "size", "limit"): "legible down to (px of x-height)",
    ("legibility", "contrast", "limit"): "legible down to (contrast)",
    ("density", "", "collapse"): "half of the accuracy is gone at (tokens)",
}


def ladder_sections(result: Result) -> list[Section]:
    """The tables of one result for a terminal; nothing for results without ladders."""
    ladders = result.figures.get("ladders") or []
    sections = [_limits(ladders), _reliance(ladders), _degradations(ladders), _traps(result.figures)]
    return [each for each in sections if each is not None]


def _limits(ladders: list[dict[str, Any]]) -> Section | None:
    rows = []
    for ladder in ladders:
        for name, found in ladder["summary"].items():
            title = _NAMES.get((ladder["track"], ladder["kind"], name))
            if title:
                rows.append((title, _crossing(found), _ends(found, "number"), f"{found['n']}"))
    return Section(title="limits", header=("", "value", "95 % interval", "pages"), rows=rows) if rows else None


def _reliance(ladders: list[dict[str, Any]]) -> Section | None:
    rows = []
    for ladder in ladders:
        for point, more in zip(ladder["points"], ladder["summary"].get("reliance", []), strict=False):
            value = format_value(point["value"], "fraction")
            rows.append((point["rung"], value, format_value(more["value"], "fraction"), _ends(more, "fraction")))
    header = ("text", "CER", "above natural", "95 % interval")
    return Section(title="prior reliance, by how little the text means", header=header, rows=rows) if rows else None


def _degradations(ladders: list[dict[str, Any]]) -> Section | None:
    rows = []
    for ladder in ladders:
        if "area" in ladder["summary"]:
            area, half = ladder["summary"]["area"], ladder["summary"]["half_loss"]
            curve = " ".join(f"{100 * point['value']:.0f}" for point in ladder["points"] if point["value"] is not None)
            value = format_value(area["value"], "fraction")
            rows.append((ladder["kind"].replace("_", " "), value, _ends(area, "fraction"), curve, _crossing(half)))
    rows.sort(key=lambda row: float(row[1].rstrip(" %")) if row[1] != "–" else 0.0)
    header = ("degradation", "area", "95 % interval", "% right, clean to worst", "half is gone at")
    return Section(title="robustness, worst first", header=header, rows=rows) if rows else None


def _traps(figures: Mapping[str, Any]) -> Section | None:
    rows = [
        (kind, f"{found['passed']} of {found['n']}", _ends(found, "fraction"))
        for kind, found in sorted(
            (figures.get("traps") or {}).items(), key=lambda item: item[1]["passed"] / item[1]["n"]
        )
    ]
    if corrected := figures.get("corrected"):
        count = f"{corrected['corrected']} of {corrected['n']}"
        rows.append(("wrong check digits put right", count, _ends(corrected, "fraction")))
    return Section(title="traps", header=("kind", "passed", "95 % interval, exact"), rows=rows) if rows else None


def _crossing(found: Mapping[str, Any]) -> str:
    """The place of a crossing, or on which side of the ladder it lies."""
    if found["where"] == "never":
        return f"beyond {found['hardest']:g}"
    if found["where"] == "always":
        return f"before {found['easiest']:g}"
    return "–" if found["value"] is None else _number(found["value"])


def _number(value: float) -> str:
    """Three digits that mean something: more would only look exact."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _ends(found: Mapping[str, Any], unit: str) -> str:
    """The interval; an end that lies beyond the ladder is left open."""
    low, high = found.get("low"), found.get("high")
    if low is None and high is None:
        return ""
    shown = [
        _number(end) if unit == "number" else format_value(end, unit).replace(" %", "")
        for end in (low, high)
        if end is not None
    ]
    if low is None or high is None:
        return f"from {shown[0]} on" if high is None else f"up to {shown[0]}"
    return " … ".join(shown)
