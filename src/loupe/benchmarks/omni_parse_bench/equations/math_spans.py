r"""The equations of a page, in order: `$$…$$`, `\[…\]`, `\(…\)`, `$…$` and `<math>`.

Protocol: docs/protocols/omni_parse_bench.md#equations-of-a-page.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from loupe.benchmarks.omni_parse_bench.outcomes import GradingError

#: Equations that are read of one page. Upstream reads all; pages have up to 300.
MOST_EQUATIONS = 3_000
_OPENING = re.compile(r"\$\$|\\\[|\\\(|(?<![\\$])\$(?!\s)|<math\b([^<>]*)>", re.I)
_CLOSING = {
    "$$": re.compile(r"\$\$"),
    "\\[": re.compile(r"\\\]"),
    "\\(": re.compile(r"\\\)"),
    "<": re.compile("</math>", re.I),
}
#: From behind a dollar to the next one, within a line, with no blank before it.
_UP_TO_DOLLAR = re.compile(r"[^$\n]+(?<!\s)\$")
_TAG = re.compile("<[^<>]+>")


@dataclass(frozen=True, slots=True)
class MathSpan:
    """LaTeX, or with `markup` MathML without the element around it."""

    source: str
    display: bool
    markup: bool = False


def math_spans(source: str) -> list[MathSpan]:
    """The equations. Raises GradingError where the official program raises."""
    try:
        return list(islice(_spans(source), MOST_EQUATIONS))
    except ValueError as error:
        raise GradingError(f"ValueError: {error}") from None


def _spans(source: str) -> Iterator[MathSpan]:
    missing: set[str] = set()
    position = 0
    while opening := _OPENING.search(source, position):
        found = _span(source, opening, missing)
        if found is None:
            position = opening.start() + 1
            continue
        span, position = found
        yield span


def _span(source: str, opening: re.Match[str], missing: set[str]) -> tuple[MathSpan, int] | None:
    """What begins there, and where it ends; None where nothing does. `missing` are marks that close nothing more."""
    start = opening.end()
    if opening[0] == "$":
        found = _UP_TO_DOLLAR.match(source, start)
        return (_written(source[start : found.end() - 1], display=False), found.end()) if found else None
    kind = "<" if opening[1] is not None else opening[0]
    closing = None if kind in missing else _CLOSING[kind].search(source, start + (kind != "<"))
    if closing is None:
        missing.add(kind)
        return None
    body = source[start : closing.start()]
    if kind != "<":
        return _written(body, display=kind != "\\("), closing.end()
    body, display = body.strip(), "block" in opening[1]
    span = MathSpan(body, display, markup=True) if "<" in body else _latex(html.unescape(body), display=display)
    return span, closing.end()


def _written(body: str, *, display: bool) -> MathSpan:
    return _latex(html.unescape(_TAG.sub(" ", body)), display=display)


def _latex(source: str, *, display: bool) -> MathSpan:
    """What looks like MathML when its entities are read is taken for it."""
    if source.startswith("<math>"):
        return MathSpan(source[len("<math>") : -len("</math>")], display, markup=True)
    return MathSpan(source, display)
