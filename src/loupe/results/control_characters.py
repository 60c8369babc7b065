"""What an engine, a server or a stranger's file says, made safe to show in a terminal.

Source: ECMA-48 (control characters), UAX 9 (bidirectional controls), UTR 36 (what cannot be seen, but deceives).
"""

from __future__ import annotations

import json
import re

#: Orders to the terminal: C0, DEL and C1.
_CONTROLS = r"\x00-\x1f\x7f-\x9f"
#: What reorders the text beside it, breaks its line or hides in it; and halves of characters, which no terminal takes.
_DECEIVING = (
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional
    "\u2028\u2029"  # line ends
    "\u00ad\u180e\u200b\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"  # invisible
    "\ud800-\udfff"
)
#: Joiners stand between letters of many scripts and in emoji; after a character of ASCII they have nothing to join.
_JOINERS = "(?<![^\\x00-\\x7f])[\u200c\u200d]+"
_UNSAFE = re.compile(f"(?![\\n\\t])[{_CONTROLS}{_DECEIVING}]|{_JOINERS}")


def printable(text: str) -> str:
    """The text without control characters but line ends and tabs, and without what reorders or hides: nobody else may
    steer the terminal, or show a person another text than there is.

    >>> printable("a\\x1b[2Jb")
    'a�[2Jb'
    """
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text)


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
