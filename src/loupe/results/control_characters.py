"""Make what an engine, a server or a stranger's file says safe to show in a terminal.

Source: ECMA-48 (control characters), UAX 9 (bidirectional controls), UTR 36 (what cannot be seen, but deceives).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

#: First and last of the characters that a reader cannot see: controls, what reorders or breaks a line, what has no
#: glyph, and halves of characters. The terminal, the report and the review page all use this list.
_INVISIBLE = (
    *((0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x9F)),  # C0 but tabs and line ends, DEL, C1
    *((0x061C, 0x061C), (0x200E, 0x200F), (0x202A, 0x202E), (0x2066, 0x2069)),  # bidirectional
    (0x2028, 0x2029),  # line ends
    *((0xAD, 0xAD), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200B), (0x2060, 0x2065)),
    *((0x206A, 0x206F), (0x3164, 0x3164), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB), (0xE0000, 0xE00FF)),
    (0xD800, 0xDFFF),
)
#: Joiners and variation selectors: invisible, too, but they shape the characters around them in many scripts and emoji.
_SHAPING = ((0x034F, 0x034F), (0x200C, 0x200D), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
#: After a character of ASCII a joiner has nothing to join.
_JOINERS = "(?<![^\\x00-\\x7f])[\u200c\u200d]+"


def _listed(ranges: Iterable[tuple[int, int]], escape: str) -> str:
    """The characters of these ranges, between the brackets of a regular expression."""
    return "".join(f"{escape.format(first)}-{escape.format(last)}" for first, last in ranges)


_UNSAFE = re.compile("[" + _listed(_INVISIBLE, "\\U{:08x}") + "]|" + _JOINERS)
#: The same lists between the brackets of a regular expression in JavaScript (flag `u`), as `data-invisible` and
#: `data-shaping` of a page's `<html>`.
PAGE_LISTS = {"invisible": _listed(_INVISIBLE, "\\u{{{:x}}}"), "shaping": _listed(_SHAPING, "\\u{{{:x}}}")}


def printable(text: str) -> str:
    """The text without control characters but line ends and tabs, and without what reorders or hides: nobody else may
    steer the terminal, or show a person another text than there is.

    >>> printable("a\\x1b[2Jb")
    'a�[2Jb'
    """
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text)


def on_one_line(text: str) -> str:
    """Printable, on one line: a name with a line break begins no line that looks like one of ours.

    >>> on_one_line("one\\nhint: rm -r ~")
    'one�hint: rm -r ~'
    """
    return printable(text.rstrip("\n")).replace("\n", "\N{REPLACEMENT CHARACTER}")


def one_paragraph(text: str) -> str:
    """Printable, and every line after the first one indented: no line that looks like one of ours begins in it.

    >>> one_paragraph("no page\\nhint: rm -r ~")
    'no page\\n  hint: rm -r ~'
    """
    return re.sub(r"\n(?![ \n]|\Z)", "\n  ", printable(text))


def printable_json(document: str) -> str:
    """The same JSON document, with what is unsafe to show written as escapes.

    >>> printable_json('{"a": "\x9b2J"}')
    '{"a": "\\\\u009b2J"}'
    """
    return _UNSAFE.sub(lambda found: json.dumps(found[0])[1:-1], document)
