"""The picture of a load test: throughput above, seconds below, by requests in flight; as SVG, or in a page of its own.

It is a file of its own, so that it may carry a style: light and dark follow who looks at it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from loupe.features.load.measure import Level, LoadTest
from loupe.report.svg_parts import COLOURS, Scale, closed, line, opening, shortened, text
from loupe.results.tables.record import Table

WIDTH, HEIGHT = 760, 600
_LEFT, _RIGHT = 62, 112
_UPPER, _LOWER = (56.0, 270.0), (330.0, 540.0)
_STYLE = (
    "<style>svg{color:#1c2126}.paper{fill:#fff}"
    "@media(prefers-color-scheme:dark){svg{color:#e4e7ea}.paper{fill:#14171a}}</style>"
)
#: Curves of the lower panel: name, what of a level, colour.
_SECONDS: tuple[tuple[str, Callable[[Level], float | None], str], ...] = (
    ("p50", lambda level: level.latency.p50 if level.latency else None, COLOURS[0]),
    ("p95", lambda level: level.latency.p95 if level.latency else None, COLOURS[1]),
    ("p99", lambda level: level.latency.p99 if level.latency else None, COLOURS[3]),
    ("first token", lambda level: level.first_token.p50 if level.first_token else None, COLOURS[2]),
)


def load_svg(test: LoadTest) -> str:
    """The picture. What was not measured is not drawn; levels with errors are marked."""
    numbers = [float(level.in_flight) for level in test.levels]
    across = Scale.around(numbers, _LEFT, WIDTH - _RIGHT, log=True)
    label = f"Load test of {test.engine} on {test.benchmark}: " + "; ".join(map(_in_words, test.levels))
    parts = [opening(WIDTH, HEIGHT, label), _STYLE, '<rect class="paper" width="100%" height="100%" fill="#fff"/>']
    parts.append(text(_LEFT, 22, shortened([f"{test.engine} on {test.benchmark}"], 80)[0]))
    parts += _panel(test, across, _UPPER, "pages/s", [("pages/s", lambda level: level.pages_per_second, COLOURS[0])])
    parts += _panel(test, across, _LOWER, "seconds", _SECONDS)
    if test.knee is not None:
        x = across.place(test.knee)
        parts += [line(x, top, x, bottom, 'stroke-dasharray="4 4"') for top, bottom in (_UPPER, _LOWER)]
        said = f"knee: {test.knee}" if not test.still_growing else f"{test.knee}: still faster"
        parts.append(text(x, _UPPER[0] - 8, said, "end" if x > WIDTH / 2 else "start"))
    parts.append(text((_LEFT + WIDTH - _RIGHT) / 2, HEIGHT - 18, "requests in flight", "middle"))
    return closed(parts)


def _panel(
    test: LoadTest,
    across: Scale,
    height: tuple[float, float],
    title: str,
    curves: Sequence[tuple[str, Callable[[Level], float | None], str]],
) -> list[str]:
    top, bottom = height
    values = [value for _, of, _ in curves for level in test.levels if (value := of(level)) is not None]
    parts = [text(_LEFT, top - 8, title)]
    if not values:
        return [*parts, text(_LEFT + 8, (top + bottom) / 2, "not measured")]
    up = Scale.around(values, bottom, top, zero=True)
    for tick in up.ticks(5):
        parts.append(line(_LEFT, up.place(tick), WIDTH - _RIGHT, up.place(tick), 'stroke-opacity="0.3"'))
        parts.append(text(_LEFT - 8, up.place(tick) + 4, f"{tick:g}", "end"))
    for level in test.levels:
        x = across.place(level.in_flight)
        parts += [line(x, bottom, x, bottom + 5), text(x, bottom + 19, f"{level.in_flight:,}", "middle")]
    ends: list[tuple[float, str, str]] = []
    for name, of, colour in curves:
        points = [(across.place(level.in_flight), up.place(value), level) for level in test.levels
                  if (value := of(level)) is not None]  # fmt: skip
        if not points:
            continue
        drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
        parts.append(f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for x, y, level in points:
            paint = f'fill="none" stroke="{colour}" stroke-width="2"' if level.errors else f'fill="{colour}"'
            words = escape(f"{name}, {_in_words(level)}")
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" {paint}><title>{words}</title></circle>')
        ends.append((points[-1][1], name, colour))
    return parts + _names(ends)


def _names(ends: Sequence[tuple[float, str, str]]) -> list[str]:
    """The names of curves at their right ends, moved apart where they would overlap."""
    parts, lowest = [], float("-inf")
    for y, name, colour in sorted(ends):
        lowest = max(y + 4, lowest + 15)
        x = WIDTH - _RIGHT + 14
        parts += [f'<circle cx="{x}" cy="{lowest - 4:.1f}" r="4" fill="{colour}"/>', text(x + 9, lowest, name)]
    return parts


def _in_words(level: Level) -> str:
    rate = "no rate" if level.pages_per_second is None else f"{level.pages_per_second:.3g} pages/s"
    errors = f", {sum(level.errors.values())} of {level.requests} failed" if level.errors else ""
    p95 = f", p95 {level.latency.p95:.3g} s" if level.latency else ""
    return f"{level.in_flight} in flight: {rate}{p95}{errors}"


def load_page(test: LoadTest, notes: Sequence[str], table: Table) -> str:
    """The picture with its table as one HTML file; it loads nothing."""
    head = "".join(f"<th>{escape(str(cell))}</th>" for cell in table.header)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in table.rows)
    said = "".join(f"<p>{escape(note)}</p>" for note in notes)
    title = escape(f"{test.engine} on {test.benchmark}: load")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        "<style>:root{color-scheme:light dark}body{margin:24px auto;max-width:900px;padding:0 16px;"
        "font:15px/1.5 system-ui,sans-serif;background:light-dark(#fff,#14171a);color:light-dark(#1c2126,#e4e7ea)}"
        "svg{max-width:100%;height:auto}div{overflow-x:auto}table{border-collapse:collapse;"
        "font-variant-numeric:tabular-nums}th,td{padding:5px 14px 5px 0;text-align:right;white-space:nowrap;"
        "border-bottom:1px solid light-dark(#e3e4e1,#2b3137)}th{font-weight:500}</style></head>"
        f"<body><h1>{title}</h1>{load_svg(test)}<div><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
        f"</table></div>{said}</body></html>\n"
    )
