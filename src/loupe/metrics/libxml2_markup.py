"""Markup as libxml2 before 2.14 split it into tags and texts, written so that every libxml2 reads the same.

OmniDocBench's official environment has lxml 4.9.1 (libxml2 2.9.14), that of DP-Bench 5.1.0 (2.12.3). Since 2.14 libxml2
splits tags as HTML5 does: a cell `a<b`, or a table that ends within an attribute, makes another tree. How tags become a
tree is as it was, so it is enough to write the old tags out plainly. The real trees are
in tests/metrics/libxml2_trees.jsonl.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.entities import name2codepoint
from typing import Final, Literal, TypeAlias

from loupe.metrics.teds.plain_tables import is_plain
from loupe.metrics.teds.table_tree import INSTRUCTION

#: Read alike by all: finished tags of plain names, texts, numbers and entities of HTML 4 with their semicolon.
_ATTRIBUTE = r"""[ \t\n]++[A-Za-z][A-Za-z0-9-]*+(?:=(?:"[^"<>&\x00\r]*+"|'[^'<>&\x00\r]*+'|[A-Za-z0-9%#.-]++))?"""
_CHANGED = "textarea|title|xmp|iframe|noembed|noframes|plaintext|script|style|svg|math"
_TAG = rf"</?+(?!(?:{_CHANGED})\b)[A-Za-z][A-Za-z0-9]*+(?>(?:{_ATTRIBUTE})*)[ \t\n]*+/?+>"
_TEXT = r"[^<&\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]++|<(?=[ \t\n0-9=<])"
_ALIKE = re.compile(rf"(?>(?:{_TEXT}|{_TAG}|&(?:amp|lt|gt|quot|nbsp);|&(?![A-Za-z#_:]))*)")

_NAME = re.compile(r"[A-Za-z_:.][A-Za-z0-9_:.-]{0,99}")
_INSTRUCTION = re.compile(r"(?:[^\W\d]|:)[\w:.-]*[ \t\n\r]*")
_BLANKS = re.compile(r"[ \t\n\r]*")
_BOGUS = re.compile(r"(?:[^ \t\n\r>/\x00]|/(?!>))*")
_BARE_VALUE = re.compile(r"[^ \t\n\r>\x00]*")
_QUOTED_VALUE = {'"': re.compile('"([^"\x00]*)"?'), "'": re.compile("'([^'\x00]*)'?")}
_COMMENT_END = re.compile("--!?>")
_TO_END_OF_TAG = re.compile(r"[^>\x00]*>?")
_REFERENCE = re.compile(r"&(?:#[xX]([0-9A-Fa-f]*);?|#([0-9]*);?|([A-Za-z_:][A-Za-z0-9_:.-]*);)")
_NO_CHARACTER = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_SPECIAL = re.compile("[<&]")
_ENTITIES: Final = {**name2codepoint, "apos": 39}
#: Newer parsers read the inside of these as text alone; under another name they are elements as any.
_RENAMED: Final = frozenset(_CHANGED.split("|")) - {"script", "style"}
_RAW: Final = frozenset({"script", "style"})
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
                self._text(_SPECIAL.search(markup, self._at))
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
        found = _NAME.match(self._markup, self._at)
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
        if name in _RAW:
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
