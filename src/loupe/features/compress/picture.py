"""The compression-precision curve of runs as one SVG: points with intervals and counts, and the paper's values.

It is plain SVG with presentation attributes only, so that it stands in a report whose policy admits no other style, and
in a file of its own. Names of engines are not ours and are escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

from markupsafe import Markup

from loupe.features.compress.fox import Binning, CurvePoint, compression_curve
from loupe.quantities import percent
from loupe.report.svg_parts import COLOURS, closed, line, mark, opening, shortened, text
from loupe.results.groups import Group
from loupe.types import Result

WIDTH, HEIGHT = 760, 440
#: Across a whole page, and on telephones: the letters are as large in both.
_SIZES = (("wide-screen", 1240), ("narrow-screen", 380))
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 18, 18, 52
_LEGEND_LINE = 18
_NOTE = "hollow, dashed: the paper (arXiv 2510.18234) for the same bins. Bars: 95 % interval. n: pages of the bin."


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The points of one run that have a compression ratio, with the name of the run."""

    name: str
    points: Sequence[CurvePoint]


def curves(results: Sequence[tuple[str, Result]], by: Binning = "gt_tokens") -> list[Curve]:
    """The curves of results that have one, by name."""
    found = []
    for name, result in results:
        points = [
            point
            for point in compression_curve(result, by)
            if point.compression is not None and point.precision.value is not None
        ]
        if points:
            found.append(Curve(name=name, points=sorted(points, key=lambda point: point.compression or 0.0)))
    return found


def run_name(engine: str, mode: str) -> str:
    """Return the name of a run in the legend: its engine, and its mode unless the name says it."""
    return engine if mode in engine else f"{engine}, {mode}"


def group_picture(group: Group, address: Callable[[str], str]) -> Markup:
    """Return the picture of a report's group, for each kind of screen; "" if its runs have no vision tokens."""
    results = [
        (run_name(entrant.label, entrant.run.info.options.get("mode", "")), entrant.result)
        for entrant in group.entrants
        if entrant.result is not None
    ]
    drawn = curves(results)
    if not drawn:
        return Markup()
    caption = "Each point is a bin of pages, grouped by text tokens. The paper's values are for orientation."
    figures = "".join(f'<figure class="{kind}">{curve_svg(drawn, width=width)}</figure>' for kind, width in _SIZES)
    head = f'<h3>Precision against compression</h3>\n<p class="caption">{caption}</p>'
    return Markup(f'{head}\n<div class="curves">{figures}</div>\n')


def curve_svg(drawn: Sequence[Curve], *, background: str = "", width: int = WIDTH) -> str:
    """The picture; `background` fills it, for a file of its own. Nothing to draw: an empty text."""
    if not drawn:
        return ""
    scale = _Scale.of(drawn, width)
    height = HEIGHT + _LEGEND_LINE * (len(drawn) + len(_notes(width)))
    label = "Precision against compression: " + "; ".join(_in_words(curve) for curve in drawn)
    parts = [opening(width, height, label)]
    if background:
        parts.append(f'<rect width="100%" height="100%" fill="{background}"/>')
    parts += scale.axes()
    for number, curve in enumerate(drawn):
        parts += _paper(curve, scale, number)
    for number, curve in enumerate(drawn):
        parts += _curve(curve, scale, number, shift=_shift(number, len(drawn)))
    parts += _legend(drawn, width)
    return closed(parts)


@dataclass(frozen=True, slots=True)
class _Scale:
    """The places of ratios and precisions in the picture."""

    lowest: float
    highest: float
    floor: float
    step: float
    width: int

    @classmethod
    def of(cls, drawn: Sequence[Curve], width: int) -> _Scale:
        ratios = [point.compression or 0.0 for curve in drawn for point in curve.points]
        precisions = [
            value
            for curve in drawn
            for point in curve.points
            for value in (point.precision.value, point.precision.low, point.expected)
            if value is not None
        ]
        span = max(max(ratios) - min(ratios), 1.0)
        most = 10 if width >= WIDTH else 5
        step = next((size for size in (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0) if span / size <= most), span / 4)
        floor = max(0.0, 0.1 * int(10 * (min(precisions) - 0.02)))
        lowest = step * int(max(0.0, min(ratios) - 0.06 * span) / step)
        return cls(lowest, max(ratios) + 0.08 * span, min(floor, 0.8), step, width)

    def x(self, ratio: float) -> float:
        return _LEFT + (self.width - _LEFT - _RIGHT) * (ratio - self.lowest) / (self.highest - self.lowest)

    def y(self, precision: float) -> float:
        return _TOP + (HEIGHT - _TOP - _BOTTOM) * (1.0 - precision) / (1.0 - self.floor)

    def axes(self) -> list[str]:
        """Grid, ticks and what the axes are."""
        bottom, right = HEIGHT - _BOTTOM, self.width - _RIGHT
        parts = []
        for tenth in range(round(10 * self.floor), 11):
            y = self.y(tenth / 10)
            parts.append(line(_LEFT, y, right, y, 'stroke-opacity="0.3"'))
            parts.append(text(_LEFT - 8, y + 4, f"{10 * tenth} %", "end"))
        ratio = self.lowest
        while ratio <= self.highest:
            x = self.x(ratio)
            parts.append(line(x, bottom, x, bottom + 5))
            parts.append(text(x, bottom + 19, f"{ratio:g}×", "middle"))
            ratio += self.step
        parts.append(line(_LEFT, bottom, right, bottom))
        parts.append(text((_LEFT + right) / 2, bottom + 40, "text tokens per vision token (compression)", "middle"))
        parts.append(text(_LEFT, _TOP - 5, "precision", "start"))
        return parts


def _shift(number: int, count: int) -> float:
    """Curves that share their ratios stand a little beside each other, so that no interval hides another."""
    return 5.0 * (number - (count - 1) / 2) if count > 1 else 0.0


def _curve(curve: Curve, scale: _Scale, number: int, *, shift: float) -> list[str]:
    colour = COLOURS[number % len(COLOURS)]
    places = [
        (scale.x(point.compression or 0.0) + shift, scale.y(point.precision.value or 0.0), point)
        for point in curve.points
    ]
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
    parts = [f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="1.5" stroke-opacity="0.6"/>']
    for x, y, point in places:
        precision = point.precision
        parts.append(f"<g><title>{escape(_point_in_words(curve.name, point))}</title>")
        below = y
        if precision.low is not None and precision.high is not None:
            below, high = scale.y(max(precision.low, scale.floor)), scale.y(min(precision.high, 1.0))
            parts.append(
                f'<path d="M{x:.1f} {high:.1f}V{below:.1f}M{x - 4:.1f} {high:.1f}h8M{x - 4:.1f} {below:.1f}h8" '
                f'stroke="{colour}" stroke-width="1.5" fill="none"/>'
            )
        parts.append(mark(number, x, y, colour, filled=True))
        parts.append(text(x, max(below, y + 4) + 13, f"n={point.pages:,}", "middle", colour))
        parts.append("</g>")
    return parts


def _paper(curve: Curve, scale: _Scale, number: int) -> list[str]:
    """The paper's precision for the same bins: hollow marks on a dashed line."""
    colour = COLOURS[number % len(COLOURS)]
    places = [
        (scale.x(point.compression or 0.0), scale.y(point.expected))
        for point in curve.points
        if point.expected is not None
    ]
    if not places:
        return []
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dashed = f'stroke="{colour}" stroke-dasharray="4 4" stroke-opacity="0.7"'
    return [f'<polyline points="{joined}" fill="none" {dashed}/>'] + [
        mark(number, x, y, colour, filled=False) for x, y in places
    ]


def _legend(drawn: Sequence[Curve], width: int) -> list[str]:
    """Return what the marks stand for: lines of (mark, words) below each other, as long as the picture is wide."""
    longest = int((width - _LEFT - 18) / 6.5)
    parts = []
    counts = [f" ({sum(point.pages for point in curve.points):,} pages)" for curve in drawn]
    names = shortened([curve.name for curve in drawn], min(80, longest - max(map(len, counts), default=0)))
    for number, (name, pages) in enumerate(zip(names, counts, strict=True)):
        y = HEIGHT + _LEGEND_LINE * number
        parts.append(mark(number, _LEFT + 6, y - 4, COLOURS[number % len(COLOURS)], filled=True))
        parts.append(text(_LEFT + 18, y, name + pages))
    for place, words in enumerate(_notes(width), len(drawn)):
        parts.append(text(_LEFT, HEIGHT + _LEGEND_LINE * place, words))
    return parts


def _notes(width: int) -> list[str]:
    return wrap(_NOTE, int((width - _LEFT) / 6.5))


def _in_words(curve: Curve) -> str:
    return ", ".join(_point_in_words(curve.name, point) for point in curve.points)


def _point_in_words(name: str, point: CurvePoint) -> str:
    precision = point.precision
    said = f"{name}: {point.label}, {point.compression or 0:.1f}x, {percent(precision.value or 0)}"
    if precision.low is not None and precision.high is not None:
        said += f" ({100 * precision.low:.1f} to {100 * precision.high:.1f})"
    return f"{said}, {point.pages:,} pages" + (f", paper {percent(point.expected)}" if point.expected else "")
