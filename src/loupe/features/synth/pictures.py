"""Small pictures of what is read as one thing is turned up: a curve with its band for each engine, rung by rung.

They are drawn from what a benchmark leaves in `figures.ladders` of its result (docs/synth.md#figures). Better is up,
whatever the measure. Each point leads to a page of its rung. Plain SVG with presentation attributes only, as in all
pictures of the report; names are not ours and are escaped.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup

from loupe.features.synth.ladders import Ladder, ReadOff, Rung, ladders_of, read_off
from loupe.quantities import percent
from loupe.report.html import environment
from loupe.report.svg_parts import COLOURS, closed, line, mark, opening, text, text_width
from loupe.results.groups import Group

WIDTH = 320
_LEFT, _RIGHT, _TOP, _FLOOR = 44, 12, 10, 158
_ROW = 13
#: Pages named for each rung; all are in result.json.
_NAMED = 8
#: How figures that are read off a curve are called.
_PLACES = {
    "limit": "5 % of characters are wrong at",
    "half_loss": "half of the accuracy is gone at",
    "collapse": "half of the accuracy is gone at",
}
_SHARES = {"area": "area under the curve", "reliance": "CER of the last rung less that of the first"}


@dataclass(frozen=True, slots=True)
class Curve:
    """One engine: its number among all of the group, its points by rung, and what was read off, in words."""

    engine: str
    number: int
    points: Mapping[str, Rung]
    said: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """One ladder: its rungs from easy to hard with where they stand, 0 to 1, and the engines that climbed it."""

    track: str
    kind: str
    axis: str
    error: bool
    rungs: Mapping[str, float]
    curves: tuple[Curve, ...]

    @property
    def title(self) -> str:
        """The name of the ladder."""
        return f"{self.track}: {self.kind}".replace("_", " ") if self.kind else self.track

    @property
    def measure(self) -> str:
        """The values, in words."""
        return "CER" if self.error else "accuracy"

    def pages(self) -> list[tuple[str, tuple[str, ...], int]]:
        """Each rung with its pages, of all engines, and how many more there are."""
        found = []
        for rung in self.rungs:
            named = dict.fromkeys(
                sample for each in self.curves if (point := each.points.get(rung)) for sample in point.samples
            )
            found.append((rung, tuple(named)[:_NAMED], max(0, len(named) - _NAMED)))
        return found

    def words(self, curve: Curve, rung: str) -> str:
        """The value of an engine on a rung."""
        point = curve.points.get(rung)
        return "–" if point is None or point.value is None else _share(point.value, point.low, point.high)

    def svg(self, address: Callable[[str], str]) -> Markup:
        """The picture; `address` says where a page of the group is."""
        return Markup(_picture(self, address))


def group_pictures(group: Group, address: Callable[[str], str]) -> Markup:
    """Return the pictures of a group with their numbers and pages; "" if no run has ladders."""
    found = panels(group)
    if not found:
        return Markup()
    engines = [entrant.label for entrant in group.entrants]
    template = _templates().get_template("ladders.html")
    return Markup(template.render(panels=found, engines=engines, keys=keys(engines), address=address))


@cache
def _templates() -> Environment:
    return environment(Path(__file__).parent / "templates")


def keys(engines: Sequence[str]) -> list[tuple[Markup, str]]:
    """The mark and colour of each engine of a group."""
    return [(Markup(_key(number)), engine) for number, engine in enumerate(engines)]


def _key(number: int) -> str:
    drawn = mark(number, 8, 7, COLOURS[number % len(COLOURS)], filled=True)
    return f'<svg width="16" height="14" aria-hidden="true">{drawn}</svg>'


def panels(group: Group) -> list[Panel]:
    """The ladders of a group; none if no run has any."""
    found: dict[tuple[str, str], list[tuple[int, str, Ladder]]] = {}
    for number, entrant in enumerate(group.entrants):
        for ladder in ladders_of(entrant.result) if entrant.result else ():
            found.setdefault((ladder.track, ladder.kind), []).append((number, entrant.label, ladder))
    return [_panel(members) for members in found.values()]


def _panel(members: Sequence[tuple[int, str, Ladder]]) -> Panel:
    ladders = [ladder for _, _, ladder in members]
    ranks = {point.rung: point.rank for ladder in ladders for point in ladder.points}
    first = ladders[0]
    falling = first.points[0].rank > first.points[-1].rank
    drawn = [
        Curve(engine, number, {point.rung: point for point in ladder.points if point.value is not None}, _said(ladder))
        for number, engine, ladder in members
    ]
    rungs = sorted(ranks, key=lambda rung: ranks[rung], reverse=falling)
    places = _spread([ranks[rung] for rung in rungs])
    error = first.measure == "cer"
    return Panel(first.track, first.kind, first.axis, error, dict(zip(rungs, places, strict=True)), tuple(drawn))


def _spread(ranks: Sequence[float]) -> list[float]:
    """The places of rungs: true to scale, or in even steps if some lie more than twice as far apart as others."""
    gaps = [abs(after - before) for before, after in itertools.pairwise(ranks)]
    if not gaps:
        return [0.0] * len(ranks)
    if min(gaps) <= 0 or max(gaps) > 2 * min(gaps):
        return [number / len(gaps) for number in range(len(ranks))]
    return [abs(rank - ranks[0]) / sum(gaps) for rank in ranks]


def _said(ladder: Ladder) -> tuple[str, ...]:
    """A figure of a curve in words, also if it lies beyond the ladder."""
    said = []
    for name, stored in ladder.summary.items():
        found = read_off(stored[-1] if isinstance(stored, list) and stored else stored)
        if found is None:
            continue
        if name in _PLACES and found.where:
            said.append(f"{_PLACES[name]} {_place(found)} ({ladder.axis})")
        elif name in _SHARES and found.value is not None:
            said.append(f"{_SHARES[name]}: {_share(found.value, found.low, found.high)}")
    return tuple(said)


def _place(found: ReadOff) -> str:
    if found.where == "within" and found.value is not None:
        ends = ["beyond" if end is None else f"{end:.3g}" for end in (found.low, found.high)]
        return f"{found.value:.3g}" + ("" if ends == ["beyond", "beyond"] else f" [{ends[0]} to {ends[1]}]")
    return {
        "never": f"no rung up to {found.hardest:g}",
        "always": f"every rung from {found.easiest:g} on",
    }.get(found.where, "an unknown place")


def _share(value: float, low: float | None, high: float | None) -> str:
    said = percent(value)
    return said if low is None or high is None else f"{said} [{100 * low:.1f} to {100 * high:.1f}]"


def _x(panel: Panel, rung: str) -> float:
    return _LEFT + 8 + (WIDTH - _LEFT - _RIGHT - 16) * panel.rungs[rung]


def _y(panel: Panel, value: float) -> float:
    """From 0 to 1; an error rate beyond 1 lies on the line of 1."""
    good = min(1.0, max(0.0, 1 - value if panel.error else value))
    return _FLOOR - (_FLOOR - _TOP) * good


def _picture(panel: Panel, address: Callable[[str], str]) -> str:
    label = f"{panel.title}: {panel.measure} by {panel.axis}. " + "; ".join(
        _in_words(panel, curve) for curve in panel.curves
    )
    parts = [opening(WIDTH, _FLOOR + 36 + _second_row(panel), label, role="group"), *_axes(panel)]
    parts += [part for curve in panel.curves for part in _band(panel, curve)]
    parts += [part for curve in panel.curves for part in _curve(panel, curve, address)]
    return closed(parts)


def _in_words(panel: Panel, curve: Curve) -> str:
    return f"{curve.engine} " + ", ".join(f"{rung}: {panel.words(curve, rung)}" for rung in panel.rungs)


def _axes(panel: Panel) -> list[str]:
    parts, right, second = [], WIDTH - _RIGHT, _second_row(panel)
    for quarter in range(5):
        y = _y(panel, quarter / 4)
        parts.append(line(_LEFT, y, right, y, f'stroke-opacity="{0.3 if quarter % 4 else 0.7}"'))
        parts += [text(_LEFT - 6, y + 4, f"{25 * quarter} %", "end")] if quarter % 2 == 0 else []
    for number, rung in enumerate(panel.rungs):
        x, half = _x(panel, rung), text_width(rung) / 2
        parts.append(line(x, _FLOOR, x, _FLOOR + 4))
        # The outer names do not leave the picture.
        parts.append(text(min(max(x, half), WIDTH - half), _FLOOR + 16 + second * (number % 2), rung, "middle"))
    parts.append(text((_LEFT + right) / 2, _FLOOR + 32 + second, f"{panel.axis} →", "middle"))
    return parts


def _second_row(panel: Panel) -> int:
    """The drop of every other name of a rung, if names are too long for one row."""
    return _ROW if len(panel.rungs) * max(map(text_width, panel.rungs)) > WIDTH - _LEFT else 0


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
    places = [(_x(panel, rung), _y(panel, point.value or 0.0), point) for rung, point in _in_order(panel, curve)]
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
    parts = [f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="1.5"/>']
    for x, y, point in places:
        words = (
            f"{curve.engine}, {panel.title} {point.rung}: {panel.words(curve, point.rung)}, base pages: {point.bases}"
        )
        drawn = f"<title>{escape(words)}</title>{mark(curve.number, x, y, colour, filled=True)}"
        # The list below the picture is for the keyboard: so many stops would be in everybody's way.
        link = f'<a href="{escape(address(point.samples[0]))}" tabindex="-1">{drawn}</a>' if point.samples else ""
        parts.append(link or f"<g>{drawn}</g>")
    return parts


def _in_order(panel: Panel, curve: Curve) -> list[tuple[str, Rung]]:
    return [(rung, curve.points[rung]) for rung in panel.rungs if rung in curve.points]
