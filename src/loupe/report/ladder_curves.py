"""Small pictures of what is read as one thing is turned up: a curve with its band for each engine, rung by rung.

They are drawn from what a benchmark leaves in `figures.ladders` of its result (docs/synth.md#figures). Better is up,
whatever the measure. Each point leads to a page of its rung. Plain SVG with presentation attributes only, as in all
pictures of the report; names are not ours and are escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from markupsafe import Markup

from loupe.report.svg_parts import COLOURS, GREY, closed, line, mark, opening, text, text_width
from loupe.results.groups import Group

WIDTH, HEIGHT = 320, 210
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 12, 14, 46
#: Pages named for each rung; all are in result.json.
_NAMED = 8
#: How figures that are read off a curve are called, and whether they are shares.
_FIGURES = {
    "limit": ("5 % of characters wrong at", False),
    "area": ("area under the curve", True),
    "half_loss": ("half of the clean accuracy is gone at", False),
    "collapse": ("half of the accuracy is gone at", False),
    "reliance": ("last rung less the first", True),
}


@dataclass(frozen=True, slots=True)
class Point:
    """One rung as one engine read it; `samples` are its pages."""

    value: float
    low: float | None
    high: float | None
    bases: int
    samples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """One engine: its number among all of the group, its points by rung, what was read off, in words."""

    engine: str
    number: int
    points: Mapping[str, Point]
    said: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """One ladder: its rungs from easy to hard, and the engines that climbed it."""

    track: str
    kind: str
    axis: str
    error: bool
    rungs: tuple[str, ...]
    curves: tuple[Curve, ...]

    @property
    def title(self) -> str:
        """What the ladder is called."""
        return self.kind.replace("_", " ") or self.track

    @property
    def measure(self) -> str:
        """What the values are, in words."""
        return "CER" if self.error else "accuracy"

    def pages(self) -> list[tuple[str, tuple[str, ...], int]]:
        """Each rung with its pages, of all engines, and how many more there are."""
        found = []
        for rung in self.rungs:
            named = dict.fromkeys(
                sample for each in self.curves if rung in each.points for sample in each.points[rung].samples
            )
            found.append((rung, tuple(named)[:_NAMED], max(0, len(named) - _NAMED)))
        return found

    def words(self, curve: Curve, rung: str) -> str:
        """The value of an engine on a rung."""
        point = curve.points.get(rung)
        return "–" if point is None else _share(point.value, point.low, point.high)

    def svg(self, address: Callable[..., str], *where: Any) -> Markup:
        """The picture; `address(sample, *where)` is where a page is, with the group first as templates have it."""
        group, *rest = where
        return Markup(_picture(self, lambda sample: address(group, sample, *rest)))


def panels(group: Group) -> list[Panel]:
    """The ladders of a group, as the best of its runs orders them; none where no run has any."""
    found: dict[tuple[str, str], list[tuple[int, str, Mapping[str, Any]]]] = {}
    for number, entrant in enumerate(group.entrants):
        for ladder in (entrant.result.figures if entrant.result else {}).get("ladders", ()):
            key = ladder["track"], ladder["kind"]
            found.setdefault(key, []).append((number, entrant.label, ladder))
    return [_panel(*key, members) for key, members in found.items()]


def _panel(track: str, kind: str, members: Sequence[tuple[int, str, Mapping[str, Any]]]) -> Panel:
    rungs: dict[str, float] = {}
    for _, _, ladder in members:
        rungs |= {point["rung"]: point["rank"] for point in ladder["points"]}
    first = max((ladder for _, _, ladder in members), key=lambda ladder: len(ladder["points"]))
    falling = first["points"][0]["rank"] > first["points"][-1]["rank"]
    ordered = sorted(rungs, key=lambda rung: rungs[rung], reverse=falling)
    drawn = tuple(
        Curve(engine, number, _points(ladder), tuple(_read_off(ladder))) for number, engine, ladder in members
    )
    return Panel(track, kind, first["axis"], first["measure"] == "cer", tuple(ordered), drawn)


def _points(ladder: Mapping[str, Any]) -> dict[str, Point]:
    return {
        point["rung"]: Point(point["value"], point["low"], point["high"], point["bases"], tuple(point["samples"]))
        for point in ladder["points"]
        if point["value"] is not None
    }


def _read_off(ladder: Mapping[str, Any]) -> list[str]:
    """What was read off a curve, in words; where it lies beyond the ladder, that it does."""
    said = []
    for name, found in ladder.get("summary", {}).items():
        called, share = _FIGURES.get(name, (name.replace("_", " "), False))
        one = found[-1] if isinstance(found, list) and found else found
        if not one:
            continue
        if "where" in one:
            said.append(f"{called} {_place(one, ladder['axis'])}")
        elif one["value"] is not None:
            value = _share(one["value"], one["low"], one["high"]) if share else _number(one)
            said.append(f"{called}: {value}")
    return said


def _place(found: Mapping[str, Any], axis: str) -> str:
    beyond = {
        "never": f"no rung up to {found['hardest']:g}",
        "always": f"every rung from {found['easiest']:g} on",
        "unknown": "an unknown place",
    }
    where = beyond.get(found["where"]) or _number(found)
    return f"{where} ({axis})"


def _number(found: Mapping[str, Any]) -> str:
    value, low, high = found["value"], found["low"], found["high"]
    if low is None and high is None:
        return f"{value:.3g}"
    ends = ("below" if low is None else f"{low:.3g}", "beyond" if high is None else f"{high:.3g}")
    return f"{value:.3g} [{ends[0]} to {ends[1]}]"


def _share(value: float, low: float | None, high: float | None) -> str:
    said = f"{100 * value:.1f} %"
    return said if low is None or high is None else f"{said} [{100 * low:.1f} to {100 * high:.1f}]"


def _x(panel: Panel, rung: str) -> float:
    last = max(1, len(panel.rungs) - 1)
    return _LEFT + 8 + (WIDTH - _LEFT - _RIGHT - 16) * panel.rungs.index(rung) / last


def _y(panel: Panel, value: float) -> float:
    """From 0 to 1; an error rate beyond 1 lies on the line of 1."""
    good = min(1.0, max(0.0, 1 - value if panel.error else value))
    return HEIGHT - _BOTTOM - (HEIGHT - _BOTTOM - _TOP) * good


def _picture(panel: Panel, address: Callable[[str], str]) -> str:
    label = f"{panel.title}: {panel.measure} by {panel.axis}. " + "; ".join(map(panel_words(panel), panel.curves))
    parts = [opening(WIDTH, HEIGHT, label, role="group"), *_axes(panel)]
    parts += [part for curve in panel.curves for part in _band(panel, curve)]
    parts += [part for curve in panel.curves for part in _curve(panel, curve, address)]
    return closed(parts)


def panel_words(panel: Panel) -> Callable[[Curve], str]:
    """A curve in one sentence, for who does not see it."""
    return lambda curve: f"{curve.engine} " + ", ".join(f"{rung}: {panel.words(curve, rung)}" for rung in panel.rungs)


def _axes(panel: Panel) -> list[str]:
    parts, right, bottom = [], WIDTH - _RIGHT, HEIGHT - _BOTTOM
    for quarter in range(5):
        y = _y(panel, quarter / 4)
        parts.append(line(_LEFT, y, right, y, f'stroke-opacity="{0.3 if quarter % 4 else 0.7}"'))
        parts += [text(_LEFT - 6, y + 4, f"{25 * quarter} %", "end")] if quarter % 2 == 0 else []
    for number, rung in enumerate(panel.rungs):
        x = _x(panel, rung)
        parts.append(line(x, bottom, x, bottom + 4))
        parts += _tick(panel, number, x)
    parts.append(text((_LEFT + right) / 2, HEIGHT - 4, f"{panel.axis} →", "middle", GREY))
    return parts


def _tick(panel: Panel, number: int, x: float) -> list[str]:
    """The name of a rung; long names stand in two rows, in turn, and the outer ones do not leave the picture."""
    rung, y = panel.rungs[number], HEIGHT - _BOTTOM + 16
    long = len(panel.rungs) * max(map(text_width, panel.rungs)) > WIDTH - _LEFT
    half = text_width(rung) / 2
    x = min(max(x, half), WIDTH - half)
    return [text(x, y + (13 if long and number % 2 else 0), rung, "middle")]


def _band(panel: Panel, curve: Curve) -> list[str]:
    """The single intervals of neighbouring rungs as one shape; a rung whose neighbours have none gets a line."""
    colour = COLOURS[curve.number % len(COLOURS)]
    runs: list[list[tuple[float, float, float]]] = [[]]
    for rung in panel.rungs:
        point = curve.points.get(rung)
        if point is None or point.low is None or point.high is None:
            runs.append([])
            continue
        runs[-1].append((_x(panel, rung), _y(panel, point.low), _y(panel, point.high)))
    parts = []
    for ends in filter(None, runs):
        around = [(x, y) for x, y, _ in ends] + [(x, y) for x, _, y in reversed(ends)]
        shape = " ".join(f"{x:.1f},{y:.1f}" for x, y in around)
        edge = f' stroke="{colour}" stroke-opacity="0.5" stroke-width="2"' if len(ends) == 1 else ""
        parts.append(f'<polygon points="{shape}" fill="{colour}" fill-opacity="0.16"{edge}/>')
    return parts


def _curve(panel: Panel, curve: Curve, address: Callable[[str], str]) -> list[str]:
    colour = COLOURS[curve.number % len(COLOURS)]
    there = [(rung, curve.points[rung]) for rung in panel.rungs if rung in curve.points]
    joined = " ".join(f"{_x(panel, rung):.1f},{_y(panel, point.value):.1f}" for rung, point in there)
    parts = [f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="1.5"/>']
    for rung, point in there:
        words = f"{curve.engine}, {panel.title} {rung}: {panel.words(curve, rung)}, base pages: {point.bases}"
        drawn = f"<title>{escape(words)}</title>" + mark(
            curve.number, _x(panel, rung), _y(panel, point.value), colour, filled=True
        )
        if point.samples and math.isfinite(point.value):
            # The list below the picture is for the keyboard: so many stops would be in everybody's way.
            parts.append(f'<a href="{escape(address(point.samples[0]))}" tabindex="-1">{drawn}</a>')
        else:
            parts.append(f"<g>{drawn}</g>")
    return parts
