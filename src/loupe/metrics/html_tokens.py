"""HTML split into tags and texts by one rule: that of Python's html.parser up to 3.11.13, 3.12.11 and 3.13.5.

The official evaluators ran on such versions. Later ones, and Debian's 3.11.2 and 3.13.5 with their security fixes, read
comments, CDATA and unfinished tags otherwise: a score would depend on the patch version of Python. The rule is that of
3.10 to 3.13.0, and is compared with theirs in tests/metrics/test_html_tokens.py, oddities included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any, Final, Literal, TypeAlias

from loupe.metrics.teds.table_tree import TableTooLargeError

Kind: TypeAlias = Literal[
    "start", "empty", "end", "text", "number", "entity", "comment", "doctype", "section", "instruction"
]
#: A kind, then what was found: (tag, attributes) for "start" and "empty" (`<tag/>`), else one text. Attributes are
#: pairs of a name in lower case and a value, None for `<td nowrap>`. "number" is the `x41` of `&#x41;`, "entity" the
#: `amp` of `&amp;`; "section" is the inside of `<![CDATA[…]]>` and its like, with its keyword.
Token: TypeAlias = tuple[Any, ...]

#: Characters read in vain in one text, a second: ten tags that never end before a megabyte, a thousand before 10 kB.
MAX_READ_IN_VAIN: Final = 10_000_000

_NAME = r"[a-zA-Z][^\t\n\r\f />\0]*+"
_ATTRIBUTE = r"""(?<=['"\s/])([^\s/>][^\s/=>]*)(\s*=+\s*('[^']*'|"[^"]*"|(?!['"])[^>\s]*))?(?:\s|/(?!>))*"""
_TAG_START = re.compile(f"<(?:{_NAME})(?:[\\s/]*+(?:{_ATTRIBUTE})*)?\\s*")
_TAG_NAME = re.compile(rf"({_NAME})(?:\s|/(?!>))*")
_NEXT_ATTRIBUTE = re.compile(_ATTRIBUTE)
_TAG_END = re.compile(r"</\s*([a-zA-Z][-.a-zA-Z0-9:_]*)\s*>")
_UNFINISHED_AFTER = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ=/")

_SPECIAL = re.compile("[&<]")
_LETTER_TAG = re.compile("<[a-zA-Z]")
_LETTER = re.compile("[a-zA-Z]")
_NUMBER = re.compile("&#([0-9]+|[xX][0-9a-fA-F]+)([^0-9a-fA-F])")
_ENTITY = re.compile("&([a-zA-Z][-.a-zA-Z0-9]*)([^a-zA-Z0-9])")
_CLOSING = {
    "comment": re.compile(r"--\s*>"),
    "tag": re.compile(">"),
    "section": re.compile(r"]\s*]\s*>"),
    "condition": re.compile(r"]\s*>"),
}
_KEYWORD = re.compile(r"([a-zA-Z][-_.a-zA-Z0-9]*)\s*")
_SECTIONS = frozenset(("temp", "cdata", "ignore", "include", "rcdata"))
_CONDITIONS = frozenset(("if", "else", "endif"))
_RAW = {name: re.compile(rf"</\s*{name}\s*>", re.IGNORECASE) for name in ("script", "style")}


def html_tokens(markup: str) -> Iterator[Token]:
    """The tokens of a text, in order; what is cut off or malformed is text, or left out, as the rule has it.

    Raises AssertionError for a `<![…` that html.parser refuses, TableTooLargeError where tags that never end make the
    text too slow to read.
    """
    return _Reader(markup).read()


class _Reader:
    """Reads a text from its beginning to its end."""

    def __init__(self, markup: str) -> None:
        self._text = markup
        self._raw: re.Pattern[str] | None = None  # the end of the script or style that is open
        self._is_second = False  # html.parser reads again from where it got stuck, with less patience
        self._missing: set[str] = set()  # closing marks of which no further one comes
        self._in_vain = 0

    def read(self) -> Iterator[Token]:
        """All tokens."""
        text, place = self._text, 0
        while place < len(text):
            found = (self._raw or _SPECIAL).search(text, place)
            if found is None and self._raw:
                return  # What follows a script that never ends is lost.
            stop = found.start() if found else len(text)
            if place < stop:
                yield "text", text[place:stop]
            if found is None:
                return
            token, place = self._markup(stop) if text[stop] == "<" else self._reference(stop)
            if token is not None:
                yield token

    def _markup(self, start: int) -> tuple[Token | None, int]:
        """What begins with `<`, and where the rest begins; half a tag is text."""
        text = self._text
        if _LETTER_TAG.match(text, start):
            token, end = self._start_tag(start)
        elif text.startswith("</", start):
            token, end = self._end_tag(start)
        elif text.startswith("<!--", start):
            token, end = self._closed("comment", start + 4, "comment")
        elif text.startswith("<?", start):
            token, end = self._closed("instruction", start + 2, "tag")
        elif text.startswith("<!", start):
            token, end = self._declaration(start)
        else:
            token, end = ("text", "<"), start + 1
        if end < 0:
            self._is_second = True
            end = self._after(start + 1)
            token = "text", text[start:end]
        return token, end

    def _after(self, start: int) -> int:
        """Where reading goes on after half a tag: behind the next `>`, else at the next `<`, else at once."""
        if (closed := self._find("tag", start)) is not None:
            return closed.end()
        opened = self._text.find("<", start)
        return opened if opened >= 0 else start

    def _find(self, mark: str, start: int) -> re.Match[str] | None:
        """The next closing mark of this kind. The text is searched to its end in vain once for each kind."""
        if mark in self._missing:
            return None
        found = _CLOSING[mark].search(self._text, start)
        if found is None:
            self._missing.add(mark)
        return found

    def _closed(self, kind: Kind, start: int, mark: str) -> tuple[Token | None, int]:
        """What reaches from `start` to a closing mark; -1 where none comes."""
        found = self._find(mark, start)
        return ((kind, self._text[start : found.start()]), found.end()) if found else (None, -1)

    def _declaration(self, start: int) -> tuple[Token | None, int]:
        if self._text.startswith("<![", start):
            return self._section(start + 3)
        is_type = self._text[start : start + 9].lower() == "<!doctype"
        found = self._find("tag", start + 9 if is_type else start + 2)
        if found is None:
            return None, -1
        return ("doctype" if is_type else "comment", self._text[start + 2 : found.start()]), found.end()

    def _section(self, start: int) -> tuple[Token | None, int]:
        """`<![CDATA[…]]>`, `<![if …]>` and their like, from behind the `[`."""
        keyword = _KEYWORD.match(self._text, start)
        if start == len(self._text) or (keyword and keyword.end() == len(self._text)):
            return None, -1
        name = keyword[1].lower() if keyword else ""
        if name not in _SECTIONS | _CONDITIONS:
            raise AssertionError(f"no section begins like {self._text[start - 3 : start + 17]!r}")
        return self._closed("section", start, "section" if name in _SECTIONS else "condition")

    def _start_tag(self, start: int) -> tuple[Token | None, int]:
        text = self._text
        end = self._end_of_start_tag(start)
        if end < 0:
            return None, -1
        name = _TAG_NAME.match(text, start + 1)
        assert name is not None
        attributes: list[tuple[str, str | None]] = []
        place = name.end()
        while place < end and (found := _NEXT_ATTRIBUTE.match(text, place)):
            attributes.append((found[1].lower(), _value(found[3]) if found[2] else None))
            place = found.end()
        tag, closing = name[1].lower(), text[place:end].strip()
        if closing == "/>":
            return ("empty", tag, attributes), end
        if closing != ">":
            return ("text", text[start:end]), end
        self._raw = _RAW.get(tag)
        return ("start", tag, attributes), end

    def _end_of_start_tag(self, start: int) -> int:
        """Where it ends, which may be before something that no tag holds; -1 where the text ends first."""
        found = _TAG_START.match(self._text, start)
        assert found is not None
        end = found.end()
        following = self._text[end : end + 1]
        if following == ">":
            return end + 1
        if self._text.startswith("/>", end):
            return end + 2
        if following and following not in _UNFINISHED_AFTER:
            return end
        self._in_vain += end - start
        if self._in_vain > MAX_READ_IN_VAIN:
            raise TableTooLargeError("too many tags that never end in one answer")
        return -1

    def _end_tag(self, start: int) -> tuple[Token | None, int]:
        closing = self._find("tag", start + 1)
        if closing is None:
            return None, -1
        if found := _TAG_END.match(self._text, start):
            self._raw = None
            return ("end", found[1].lower()), found.end()
        if self._raw:
            return ("text", self._text[start : closing.end()]), closing.end()
        name = _TAG_NAME.match(self._text, start + 2)
        if name:
            return ("end", name[1].lower()), closing.end()
        if self._text.startswith("</>", start):
            return None, start + 3
        return ("comment", self._text[start + 2 : closing.start()]), closing.end()

    def _reference(self, start: int) -> tuple[Token | None, int]:
        """A character by number or name. One that is malformed makes text of itself, or of all that follows."""
        text = self._text
        is_number = text.startswith("&#", start)
        found = (_NUMBER if is_number else _ENTITY).match(text, start)
        if found:
            return ("number" if is_number else "entity", found[1]), found.end() - (found[2] != ";")
        if is_number and not self._is_second and ";" in text[start:]:
            self._is_second = True
            return ("text", "&#"), start + 2
        if not is_number and not _LETTER.match(text, start + 1):
            return ("text", "&"), start + 1
        # An `&x` at the very end loses its `&`.
        is_short = len(text) - start == 2 and not is_number
        return ("text", text[start + is_short :]), len(text)


def _value(written: str) -> str:
    """The value of an attribute, without its quotes."""
    return unescape(written[1:-1] if written[:1] in ("'", '"') else written)
