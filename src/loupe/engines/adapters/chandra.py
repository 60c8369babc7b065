"""Chandra answers with HTML, one `<div>` for each block of the page; here blocks become a page that `html_text` reads.

Source: `parse_html` and `Markdownify` of datalab-to/chandra @ 3958707, chandra/output.py; docs/adapters.md. Not taken
from there: bold and italics as Markdown, escaped signs, names of image files.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator

_DIV = re.compile(r"<(/?)div\b([^<>]*)>", re.IGNORECASE)
_LABEL = re.compile(r"""data-label\s*=\s*["']([\w-]{1,40})["']""", re.IGNORECASE)
_MARGINS = frozenset({"page-header", "page-footer"})
_TABLE = re.compile(r"<(/?)table\b[^<>]*>", re.IGNORECASE)
_MATH = re.compile(r"<(/?)math\b([^<>]*)>", re.IGNORECASE)
_IMAGE = re.compile(r"""<img\b(?:[^<>"']|"[^"<>]*"|'[^'<>]*')*>""", re.IGNORECASE)
_ALT = re.compile(r"""\balt\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)


def chandra_layout(text: str) -> str:
    """The blocks of an answer with an empty line between them, without page headers and footers; any other as it is.

    >>> chandra_layout('<div data-label="Text">Tides</div><div data-label="Page-Footer">3</div>')
    '<p>Tides</p>'
    """
    blocks = list(_blocks(text))
    if not any(label for label, _ in blocks):
        return text
    return "\n\n".join(_block(label, inside) for label, inside in blocks if label not in _MARGINS)


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Label and content of each outermost `<div>`; one that never ends goes to the end of the answer."""
    depth, start, label = 0, 0, ""
    for mark in _DIV.finditer(text):
        if not mark[1]:
            if depth == 0:
                found = _LABEL.search(mark[2])
                start, label = mark.end(), found[1].lower() if found else ""
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                yield label, text[start : mark.start()]
    if depth:
        yield label, text[start:]


def _block(label: str, inside: str) -> str:
    inside = inside.strip()
    if label == "text" and not ("<" in inside and ">" in inside):
        return f"<p>{inside}</p>"
    return _outside_tables(inside, lambda part: _IMAGE.sub(_picture, _with_dollars(part)))


def _outside_tables(text: str, change: Callable[[str], str]) -> str:
    """The text with all changed that stands in no table; a table that never ends is none."""
    kept, end, depth, start = [], 0, 0, 0
    for mark in _TABLE.finditer(text):
        if not mark[1]:
            start = start if depth else mark.start()
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                kept += [change(text[end:start]), text[start : mark.end()]]
                end = mark.end()
    return "".join([*kept, change(text[end:])])


def _with_dollars(text: str) -> str:
    """`<math>` as `$…$` or, if it is displayed, as `$$…$$` on lines of its own; one that never ends stays."""
    kept, end, opened = [], 0, None
    for mark in _MATH.finditer(text):
        if not mark[1]:
            opened = opened or mark
        elif opened:
            formula = text[opened.end() : mark.start()].strip()
            shown = f"\n$${formula}$$\n" if "block" in opened[2].lower() else f" ${formula}$ "
            kept += [text[end : opened.start()], shown]
            end, opened = mark.end(), None
    return "".join([*kept, text[end:]])


def _picture(tag: re.Match[str]) -> str:
    """A picture by its description; the file itself is no part of an answer."""
    alt = _ALT.search(tag[0])
    return f"![{html.unescape(alt[1] or alt[2] or '') if alt else ''}]()"
