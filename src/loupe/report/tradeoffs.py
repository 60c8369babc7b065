"""Quality against speed and against cost, for the runs of one benchmark on the same data, with the Pareto front.

On the front is who is not beaten in both: nobody is at least as good and at least as fast (or cheap), and better in one
of the two. Better is up, whatever the measure. Plain SVG with presentation attributes only: the report admits no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from loupe.inference.budget import money
from loupe.report.svg_parts import COLOURS, GREY, Scale, closed, line, opening, place_labels, shortened, text
from loupe.results.groups import Entrant, Group
from loupe.results.sections import failed_count, format_estimate
from loupe.results.speed import speed_text
from loupe.types import Estimate, Measure

WIDTH, HEIGHT = 600, 420
#: Of a picture that has the page's width for itself, and for telephones: the letters are as large in all of them.
FULL, NARROW = 1240, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 20, 30, 56
#: A larger ratio between the ends of an axis is drawn in even ratios.
_LOG_FROM = 12.0
#: Half of the line that ends an interval.
_CAP = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One run: how good, and how fast or dear. `flaw` says what is not as it should be ("12 of 100 failed")."""

    name: str
    quality: Estimate
    x: float
    flaw: str = ""

    @property
    def value(self) -> float:
        """The quality as a number."""
        return self.quality.value or 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tradeoff:
    """One picture, so many pixels wide: its points, what the axis along the bottom is, and the runs not known there."""

    figure: str
    title: str
    points: Sequence[Point]
    measure: Measure
    less_is_better: bool = False
    currency: str = ""
    unknown: Sequence[str] = ()
    width: int = WIDTH

    def front(self) -> list[Point]:
        """The points that no other one beats, from the left to the right."""
        kept = [point for point in self.points if not any(self._beats(other, point) for other in self.points)]
        return sorted(kept, key=lambda point: point.x)

    def _beats(self, one: Point, other: Point) -> bool:
        mine, theirs = self._merits(one), self._merits(other)
        return mine != theirs and mine[0] >= theirs[0] and mine[1] >= theirs[1]

    def _merits(self, point: Point) -> tuple[float, float]:
        return self.measure.merit(point.value), -point.x if self.less_is_better else point.x

    def in_words(self, point: Point) -> str:
        """A point as a line of text."""
        quality = format_estimate(point.quality, self.measure.unit)
        flaw = f", {point.flaw}" if point.flaw else ""
        unit = "" if self.less_is_better else " pages/s"
        return f"{point.name}: {quality}, {speed_text(self.figure, point.x, self.currency)}{unit}{flaw}"


def tradeoffs(group: Group) -> list[Tradeoff]:
    """The pictures of a group: those for which at least two runs are known."""
    measure = next((each for each in group.measures if each.name == group.headline), None)
    if measure is None:
        return []
    found = [_tradeoff(group, measure, "pages_per_second", "pages per second")]
    currencies = dict.fromkeys(result.currency for result in group.results if "cost_per_page" in result.speed)
    for currency in currencies:
        title = ", ".join(filter(None, ["cost per page", currency]))
        found.append(_tradeoff(group, measure, "cost_per_page", title, less_is_better=True, currency=currency))
    return [each for each in found if len(each.points) > 1]


def heading(found: Sequence[Tradeoff]) -> str:
    """Return the heading of these pictures: what is held against quality in them."""
    against = dict.fromkeys("cost" if each.less_is_better else "speed" for each in found)
    return " and ".join(["Quality", *against]) if len(against) < 2 else "Quality, speed and cost"


def _tradeoff(
    group: Group, measure: Measure, figure: str, title: str, *, less_is_better: bool = False, currency: str = ""
) -> Tradeoff:
    totals = {entrant.result.total for entrant in group.entrants if entrant.result}
    wanted = {currency} if less_is_better else {result.currency for result in group.results}
    points, unknown = [], []
    for entrant in group.entrants:
        result = entrant.result
        quality = result.measures.get(measure.name) if result else None
        x = result.speed.get(figure) if result else None
        if result is None or quality is None or quality.value is None or x is None or result.currency not in wanted:
            unknown.append(entrant.label)
        else:
            flaw = _flaw(entrant, several_sizes=len(totals) > 1)
            points.append(Point(name=entrant.label, quality=quality, x=x, flaw=flaw))
    return Tradeoff(
        figure=figure,
        title=title,
        points=points,
        measure=measure,
        less_is_better=less_is_better,
        currency=currency,
        unknown=unknown,
    )


def _flaw(entrant: Entrant, *, several_sizes: bool) -> str:
    result = entrant.result
    assert result is not None
    failed = failed_count(result)
    size = f"n = {result.total:,}" if several_sizes else ""
    return ", ".join(filter(None, [f"{failed:,} of {result.total:,} failed" if failed else "", size]))


def tradeoff_svg(drawn: Tradeoff) -> str:
    """The picture of one trade-off."""
    across, up = _scales(drawn)
    front = drawn.front()
    label = (
        f"{_name(drawn.measure)} against {drawn.title}: {'; '.join(map(drawn.in_words, drawn.points))}. "
        f"On the Pareto front: {', '.join(point.name for point in front)}."
    )
    parts = [opening(drawn.width, HEIGHT, label), *_axes(drawn, across, up), *_front_line(front, across, up)]
    places = [(across.place(point.x), up.place(point.value)) for point in drawn.points]
    names = _labels(drawn.points)
    labels = place_labels(places, names, _area(drawn), _line_places(front, across, up))
    for point, (x, y), name, place in zip(drawn.points, places, names, labels, strict=True):
        colour = COLOURS[0] if point in front else GREY
        parts.append(f"<g><title>{escape(drawn.in_words(point))}</title>")
        parts += _interval(point, x, up, colour)
        paint = f'fill="none" stroke="{colour}" stroke-width="2"' if point.flaw else f'fill="{colour}"'
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" {paint}/>')
        if place is not None:
            parts += _leader(x, y, place.box, colour)
            parts.append(text(place.x, place.y, name, place.anchor))
        parts.append("</g>")
    return closed(parts)


def left_over(drawn: Tradeoff) -> list[str]:
    """All that the picture cannot show, in sentences."""
    across, up = _scales(drawn)
    places = [(across.place(point.x), up.place(point.value)) for point in drawn.points]
    labels = place_labels(places, _labels(drawn.points), _area(drawn), _line_places(drawn.front(), across, up))
    crowded = [drawn.in_words(point) for point, place in zip(drawn.points, labels, strict=True) if place is None]
    said = [f"On the front: {', '.join(point.name for point in drawn.front())}."]
    said += [f"Not labelled for lack of room: {'; '.join(crowded)}."] if crowded else []
    why = f"Unknown, or not in {drawn.currency}, for" if drawn.currency else "Unknown for"
    said += [f"{why}: {', '.join(drawn.unknown)}."] if drawn.unknown else []
    return said


def _scales(drawn: Tradeoff) -> tuple[Scale, Scale]:
    xs = [point.x for point in drawn.points]
    log = min(xs) > 0 and max(xs) / min(xs) > _LOG_FROM
    across = Scale.around(xs, _LEFT, drawn.width - _RIGHT, zero=not log, log=log)
    ends = [end for point in drawn.points for end in (point.quality.low, point.quality.high) if end is not None]
    values = [*(point.value for point in drawn.points), *ends]
    bottom, top = HEIGHT - _BOTTOM, _TOP
    higher = drawn.measure.higher_is_better
    return across, Scale.around(values, bottom if higher else top, top if higher else bottom)


def _area(drawn: Tradeoff) -> tuple[float, float, float, float]:
    """The area in which names may stand."""
    return _LEFT + 2, _TOP, drawn.width - 2, HEIGHT - _BOTTOM - 3


def _axes(drawn: Tradeoff, across: Scale, up: Scale) -> list[str]:
    parts = []
    bottom, right = HEIGHT - _BOTTOM, drawn.width - _RIGHT
    percent = drawn.measure.unit == "fraction"
    whole = 1.0 if all(point.value <= 1 for point in drawn.points) else up.high
    for tick in up.ticks(most=whole if percent else None):
        y = up.place(tick)
        parts.append(line(_LEFT, y, right, y, 'stroke-opacity="0.3"'))
        parts.append(text(_LEFT - 8, y + 4, f"{100 * tick:.6g} %" if percent else f"{tick:.6g}", "end"))
    for tick in across.ticks(4 if drawn.width == NARROW else 6):
        x = across.place(tick)
        parts += [
            line(x, bottom, x, bottom + 5),
            text(x, bottom + 19, money(tick) if drawn.less_is_better else f"{tick:.6g}", "middle"),
        ]
    parts.append(line(_LEFT, bottom, right, bottom))
    along = f"← {drawn.title} (less is better)" if drawn.less_is_better else f"{drawn.title} (more is better) →"
    parts.append(text((_LEFT + right) / 2, HEIGHT - 12, along, "middle"))
    direction = "" if drawn.measure.higher_is_better else " (less is better)"
    parts.append(text(8, 16, f"↑ {_name(drawn.measure)}{direction}"))
    return parts


def _name(measure: Measure) -> str:
    return measure.title or measure.name


def _line_places(front: Sequence[Point], across: Scale, up: Scale) -> list[tuple[float, float]]:
    return [(across.place(point.x), up.place(point.value)) for point in front]


def _front_line(front: Sequence[Point], across: Scale, up: Scale) -> list[str]:
    if len(front) < 2:
        return []
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in _line_places(front, across, up))
    return [f'<polyline points="{places}" fill="none" stroke="{COLOURS[0]}" stroke-opacity="0.5" stroke-width="1.5"/>']


def _interval(point: Point, x: float, up: Scale, colour: str) -> list[str]:
    low, high = point.quality.low, point.quality.high
    if low is None or high is None:
        return []
    y1, y2 = sorted((up.place(low), up.place(high)))
    caps = "".join(f"M{x - _CAP:.1f} {y:.1f}h{2 * _CAP}" for y in (y1, y2))
    return [f'<path d="M{x:.1f} {y1:.1f}V{y2:.1f}{caps}" stroke="{colour}" stroke-opacity="0.7" stroke-width="1.5"/>']


def _leader(x: float, y: float, box: tuple[float, float, float, float], colour: str) -> list[str]:
    """A thin line to a name that does not stand right beside its point."""
    near_x, near_y = min(max(x, box[0]), box[2]), min(max(y, box[1]), box[3])
    if abs(near_x - x) + abs(near_y - y) < 14:
        return []
    return [
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{near_x:.1f}" y2="{near_y:.1f}" stroke="{colour}" stroke-opacity="0.9"/>'
    ]


def _labels(points: Sequence[Point]) -> list[str]:
    names = shortened([point.name for point in points])
    return [name + (f" ({point.flaw})" if point.flaw else "") for name, point in zip(names, points, strict=True)]
