"""Split HTML into tags and texts as older parsers did, whatever versions are installed.

html.parser up to 3.11.13, 3.12.11 and 3.13.5: the official evaluators ran on such versions. Later ones, and Debian's
3.11.2 and 3.13.5 with their security fixes, read comments, CDATA and unfinished tags otherwise: a score would depend on
the patch version of Python. The rule is that of 3.10 to 3.13.0, and is compared with theirs in
tests/metrics/test_html_tokens.py, oddities included.

libxml2 before 2.14: OmniDocBench's official environment has lxml 4.9.1 (libxml2 2.9.14), that of DP-Bench 5.1.0
(2.12.3). Since 2.14 libxml2 splits tags as HTML5 does: a cell `a<b`, or a table that ends within an attribute,
makes another tree. How tags become a tree is as it was, so it is enough to write the old tags out plainly. The real
trees are in tests/metrics/libxml2_trees.jsonl.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from html.entities import name2codepoint
from typing import Any, Final, Literal, TypeAlias

from loupe.metrics.teds.table_tree import INSTRUCTION, TableTooLargeError, is_plain

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
_PARSER_ATTRIBUTE = r"""(?<=['"\s/])([^\s/>][^\s/=>]*)(\s*=+\s*('[^']*'|"[^"]*"|(?!['"])[^>\s]*))?(?:\s|/(?!>))*"""
_TAG_START = re.compile(f"<(?:{_NAME})(?:[\\s/]*+(?:{_PARSER_ATTRIBUTE})*)?\\s*")
_TAG_NAME = re.compile(rf"({_NAME})(?:\s|/(?!>))*")
_NEXT_ATTRIBUTE = re.compile(_PARSER_ATTRIBUTE)
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
        """Read what begins with `<`, and return where the rest begins; half a tag is text."""
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
        """Return where reading goes on after half a tag: behind the next `>`, else at the next `<`, else at once."""
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
        """Read from `start` to a closing mark; -1 if none comes."""
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
        """Return its end, which may be before something that no tag contains; -1 if the text ends first."""
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


#: Read alike by all: finished tags of plain names, texts, numbers and entities of HTML 4 with their semicolon.
_ATTRIBUTE = r"""[ \t\n]++[A-Za-z][A-Za-z0-9-]*+(?:=(?:"[^"<>&\x00\r]*+"|'[^'<>&\x00\r]*+'|[A-Za-z0-9%#.-]++))?"""
_CHANGED = "textarea|title|xmp|iframe|noembed|noframes|plaintext|script|style|svg|math"
_TAG = rf"</?+(?!(?:{_CHANGED})\b)[A-Za-z][A-Za-z0-9]*+(?>(?:{_ATTRIBUTE})*)[ \t\n]*+/?+>"
_TEXT = r"[^<&\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]++|<(?=[ \t\n0-9=<])"
_ALIKE = re.compile(rf"(?>(?:{_TEXT}|{_TAG}|&(?:amp|lt|gt|quot|nbsp);|&(?![A-Za-z#_:]))*)")

_XML_NAME = re.compile(r"[A-Za-z_:.][A-Za-z0-9_:.-]{0,99}")
_INSTRUCTION = re.compile(r"(?:[^\W\d]|:)[\w:.-]*[ \t\n\r]*")
_BLANKS = re.compile(r"[ \t\n\r]*")
_BOGUS = re.compile(r"(?:[^ \t\n\r>/\x00]|/(?!>))*")
_BARE_VALUE = re.compile(r"[^ \t\n\r>\x00]*")
_QUOTED_VALUE = {'"': re.compile('"([^"\x00]*)"?'), "'": re.compile("'([^'\x00]*)'?")}
_COMMENT_END = re.compile("--!?>")
_TO_END_OF_TAG = re.compile(r"[^>\x00]*>?")
_REFERENCE = re.compile(r"&(?:#[xX]([0-9A-Fa-f]*);?|#([0-9]*);?|([A-Za-z_:][A-Za-z0-9_:.-]*);)")
_NO_CHARACTER = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_LESS_OR_AND = re.compile("[<&]")
_ENTITIES: Final = {**name2codepoint, "apos": 39}
#: Newer parsers read the inside of these as text alone; under another name they are elements as any.
_RENAMED: Final = frozenset(_CHANGED.split("|")) - {"script", "style"}
_RAW_ELEMENTS: Final = frozenset({"script", "style"})
_ESCAPED: Final = str.maketrans({"&": "&amp;", "<": "&lt;", '"': "&quot;", "\r": "&#13;"})


#: They differ in `<!x>`, a text for 2.9 and nothing since, and `<!-->`, with which a comment ends since.
Version: TypeAlias = Literal["2.9", "2.12"]


def as_read_by_libxml2(markup: str, version: Version) -> str:
    """The same markup where all versions read it alike; else its tags, with the attributes that count, and its texts.

    A processing instruction, of which these versions made a node that is no element, is an element INSTRUCTION.
    """
    return markup if is_plain(markup) or _ALIKE.fullmatch(markup) else _Rewriter(markup, version).written()


class _Rewriter:
    """One pass over the markup; what is written grows in `_out`."""

    def __init__(self, markup: str, version: Version) -> None:
        self._markup = markup
        self._version = version
        self._at = 0
        self._out: list[str] = []

    def written(self) -> str:
        """The markup, plainly."""
        markup = self._markup
        # Both stop at a NUL but in a text, where it is a blank.
        while self._at < len(markup) and markup[self._at] != "\x00":
            after = markup[self._at + 1 : self._at + 2]
            if markup[self._at] == "&":
                self._reference()
            elif markup[self._at] != "<":
                self._text(_LESS_OR_AND.search(markup, self._at))
            elif after == "/":
                self._end_tag()
            elif after.isascii() and after.isalpha():
                self._start_tag()
            elif after == "!":
                self._declaration()
            elif after == "?":
                self._instruction()
            else:
                self._literally(1)
        return "".join(self._out)

    def _literally(self, count: int) -> None:
        self._write(self._markup[self._at : self._at + count])
        self._at += count

    def _write(self, text: str) -> None:
        self._out.append(_NO_CHARACTER.sub("", text).translate(_ESCAPED))

    def _text(self, end: re.Match[str] | None) -> None:
        stop = end.start() if end else len(self._markup)
        self._write(self._markup[self._at : stop].replace("\x00", " "))
        self._at = stop

    def _reference(self) -> None:
        found = _REFERENCE.match(self._markup, self._at)
        text = _character(found) if found else None
        if found is None or text is None:
            self._literally(1)
            return
        self._at = found.end()
        self._write(text)

    def _name(self) -> str:
        found = _XML_NAME.match(self._markup, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return found[0].lower()

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._markup, self._at)
        self._at = found.end() if found else self._at

    def _skip_to(self, text: str, start: int) -> None:
        """Behind the next `text`, or to the end."""
        found = self._markup.find(text, start)
        self._at = len(self._markup) if found < 0 else found + len(text)

    def _end_tag(self) -> None:
        self._at += 2
        name = self._name()
        if name:
            self._skip(_TO_END_OF_TAG)
            self._out.append(f"</{_written_name(name)}>")

    def _start_tag(self) -> None:
        self._at += 1
        name = self._name()
        attributes: dict[str, str] = {}
        self._skip(_BLANKS)
        while self._at < len(self._markup) and not self._at_end_of_tag():
            if attribute := self._name():
                attributes.setdefault(attribute, self._value())
            else:
                self._skip(_BOGUS)
            self._skip(_BLANKS)
        counted = (
            f' {key}="{attributes[key].translate(_ESCAPED)}"' for key in ("colspan", "rowspan") if key in attributes
        )
        self._out.append(f"<{_written_name(name)}{''.join(counted)}")
        if self._markup.startswith("/>", self._at):
            self._out.append("/>")
            self._at += 2
            return
        self._out.append(">")
        self._at += self._markup.startswith(">", self._at)
        if name in _RAW_ELEMENTS:
            self._raw_text(name)

    def _at_end_of_tag(self) -> bool:
        return self._markup[self._at] in ">\x00" or self._markup.startswith("/>", self._at)

    def _value(self) -> str:
        self._skip(_BLANKS)
        if not self._markup.startswith("=", self._at):
            return ""
        self._at += 1
        self._skip(_BLANKS)
        quoted = _QUOTED_VALUE.get(self._markup[self._at : self._at + 1])
        start = self._at
        self._skip(quoted or _BARE_VALUE)
        value = self._markup[start : self._at]
        if quoted and (found := quoted.fullmatch(value)):
            value = found[1]
        return _NO_CHARACTER.sub("", "".join(_parts(value)))

    def _declaration(self) -> None:
        if self._markup.startswith("<!--", self._at):
            end = _COMMENT_END.search(self._markup, self._at + (4 if self._version == "2.9" else 2))
            self._at = end.end() if end else len(self._markup)
        elif self._markup[self._at + 2 : self._at + 9].upper() == "DOCTYPE":
            start = self._at
            self._skip_to(">", self._at)
            self._out.append(self._markup[start : self._at])
        elif self._version == "2.9":
            self._literally(1)
        else:
            self._skip_to(">", self._at)

    def _instruction(self) -> None:
        self._at += 2
        found = _INSTRUCTION.match(self._markup, self._at)
        if found:
            self._skip_to(">", found.end())
            if self._markup[self._at - 1] == ">":
                self._out.append(f"<{INSTRUCTION}>")
                self._write(self._markup[found.end() : self._at - 1])
                self._out.append(f"</{INSTRUCTION}>")

    def _raw_text(self, name: str) -> None:
        end = re.compile(f"</{name}", re.IGNORECASE).search(self._markup, self._at)
        stop = end.start() if end else len(self._markup)
        self._out.append(_NO_CHARACTER.sub("", self._markup[self._at : stop]))
        self._at = stop


def _written_name(name: str) -> str:
    return f"x-{name}" if name in _RENAMED else name


def _parts(value: str) -> Iterator[str]:
    """The texts of an attribute's value, which ends at a number that is no character."""
    cursor = 0
    for found in _REFERENCE.finditer(value):
        yield value[cursor : found.start()]
        text = _character(found)
        if text == "":
            return
        yield found[0] if text is None else text
        cursor = found.end()
    yield value[cursor:]


def _character(reference: re.Match[str]) -> str | None:
    """The character of a reference, "" for a number that is none; None where it stands for itself."""
    hexadecimal, decimal, name = reference.groups()
    if name is not None:
        return chr(_ENTITIES[name]) if name in _ENTITIES else None
    digits = (hexadecimal if decimal is None else decimal).lstrip("0")
    number = int(digits or "0", 10 if hexadecimal is None else 16) if len(digits) < 8 else 0
    return chr(number) if 0 < number < 0x110000 else ""
