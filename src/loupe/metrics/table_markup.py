"""Table markup made simple, as BeautifulSoup and `str()` do it: for normalised tables, and for OmniDocBench.

Protocol: docs/protocols/teds.md#normalisation, step 2. The result is that of BeautifulSoup 4.15, to the character, but
is written while the markup is read: in time linear in its length, where the tree of a hostile page costs minutes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from html import unescape
from html.entities import html5
from typing import Final, NamedTuple

from loupe.metrics.html_tokens import Kind, html_tokens
from loupe.metrics.table_cell_text import plain_cell

_RENAMED: Final = {"th": "td"}


class Simplification(NamedTuple):
    """What becomes of elements. Header cells become cells; a `math` with an `alttext` becomes `$alttext$` anyway."""

    unwrapped: frozenset[str]
    dropped: frozenset[str] = frozenset()
    math_becomes_dollars: bool = False
    """A `math` element without `alttext` becomes `$$`, and loses its contents."""
    cell_text: Callable[[str], str] | None = None
    """What becomes of every text in a cell, once for each cell that it lies in; of a comment too, then as text."""


NORMALIZED: Final = Simplification(
    unwrapped=frozenset(("thead", "span", "sup", "sub", "div", "p", "math")), dropped=frozenset(("colgroup",))
)
OMNIDOCBENCH: Final = Simplification(unwrapped=frozenset(("thead", "span")), math_becomes_dollars=True)
#: Version 1.6, which then reads the markup a second time, for the texts of cells.
OMNIDOCBENCH_1_6: Final = OMNIDOCBENCH._replace(unwrapped=frozenset(("thead", "tbody", "span")))
CELL_TEXTS: Final = Simplification(unwrapped=frozenset(), cell_text=plain_cell)

_VOID: Final = frozenset(
    (
        *("area", "base", "basefont", "bgsound", "br", "col", "command", "embed", "frame", "hr", "image", "img"),
        *("input", "isindex", "keygen", "link", "menuitem", "meta", "nextid", "param", "source", "spacer", "track"),
        "wbr",
    )
)
_LISTS: Final = {
    "*": ("class", "accesskey", "dropzone"),
    "a": ("rel", "rev"),
    "area": ("rel",),
    "form": ("accept-charset",),
    "icon": ("sizes",),
    "iframe": ("sandbox",),
    "link": ("rel", "rev"),
    "object": ("archive",),
    "output": ("for",),
    "td": ("headers",),
    "th": ("headers",),
}
"""Attributes whose blanks BeautifulSoup collapses, by tag."""
_CHARSET = re.compile(r"((^|[\s;])charset=)([^;]*)", re.MULTILINE)
_BLANKS: Final = " \n\t\f\r"
_SPECIAL: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


#: Tags of markup that needs no parser: none is void, none has rules of its own for its contents.
_PLAIN_TAG = (
    "</?(?:html|body|table|thead|tbody|tfoot|tr|td|th|b|i|sup|sub|span|div|p)"
    r'(?>(?: [a-z]++="[^"<>&]*+")*) *+>'
)
_PLAIN = re.compile(f"(?>(?:{_PLAIN_TAG}[^<&]*+(?>(?:&(?:amp|lt|gt|quot);[^<&]*+)*))*)")
_PIECE = re.compile("<(/?)([a-z]++)([^>]*+)>([^<]*+)")
#: Elements within one another whose texts are told apart; each text is in all of them.
_MOST_OPEN: Final = 50
_ATTRIBUTE = re.compile(' ([a-z]++)="([^"]*+)"')


def simplify(markup: str, rules: Simplification = NORMALIZED) -> str:
    """The markup under these rules.

    Raises AssertionError or ValueError where html.parser or BeautifulSoup does, and TableTooLargeError where more tags
    than any honest table has never end.
    """
    plain = simplify_plain(markup, rules)
    if plain is not None:
        return plain
    return _Simplifier(rules).simplified(markup)


def simplify_plain(markup: str, rules: Simplification) -> str | None:
    """What `simplify` makes of well-nested markup of usual tags and entities, in a tenth of the time; else None."""
    if _PLAIN.fullmatch(markup) is None:
        return None
    parts: list[str] = []
    stack: list[str] = []
    cells = 0  # that are open
    for slash, tag, attributes, text in _PIECE.findall(markup):
        if slash:
            if not stack or stack.pop() != tag or attributes:
                return None
        else:
            stack.append(tag)
        if tag == "td" or tag == "th":
            cells += -1 if slash else 1
        if tag not in rules.unwrapped:
            written = _written(tag, dict(_ATTRIBUTE.findall(attributes))) if attributes else ""
            parts.append(f"<{slash}{_RENAMED.get(tag, tag)}{written}>")
        if text and cells and rules.cell_text:
            parts.append(_applied(rules.cell_text, unescape(text), cells).translate(_SPECIAL))
        elif text:
            parts.append(
                text.replace(">", "&gt;").replace("&quot;", '"')
                if text.strip(_BLANKS)
                else "\n"
                if "\n" in text
                else " "
            )
    return "".join(parts) if not stack else None


def plain_texts_of(tags: Sequence[str], markup: str) -> list[str] | None:
    """The texts in these elements, in the order of their tags, for markup that `simplify_plain` reads; else None.

    A blank stands between the texts of an element. An element within another is in the text of both.
    """
    if _PLAIN.fullmatch(markup) is None:
        return None
    found: list[list[str]] = []
    stack: list[str] = []
    opened: list[list[str]] = []
    for slash, tag, attributes, text in _PIECE.findall(markup):
        if slash:
            if not stack or stack.pop() != tag or attributes:
                return None
            if tag in tags:
                opened.pop()
        else:
            stack.append(tag)
            if tag in tags:
                if len(opened) == _MOST_OPEN:
                    return None
                opened.append([])
                found.append(opened[-1])
        for texts in opened if text else ():
            texts.append(unescape(text))
    return [" ".join(texts) for texts in found] if not stack else None


def _applied(change: Callable[[str], str], text: str, times: int) -> str:
    for _ in range(times):
        before, text = text, change(text)
        if text == before:
            break
    return text


class _Simplifier:
    """Writes each tag and text as soon as BeautifulSoup would have it in its tree."""

    def __init__(self, rules: Simplification) -> None:
        self._unwrapped, self._dropped, self._math_becomes_dollars, self._cell_text = rules
        self._parts: list[str] = []
        self._data: list[str] = []
        self._stack: list[str] = []
        self._open: Counter[str] = Counter()
        self._closed: Counter[str] = Counter()  # void tags whose end tag may still come
        self._skipped: int | None = None  # how deep the element stands whose contents are left out

    def simplified(self, markup: str) -> str:
        """Everything that is read, with what is still open at the end closed."""
        takes: dict[Kind, Callable[..., None]] = {
            "start": self._start_tag,
            "empty": self._empty_tag,
            "end": self._end_tag,
            "text": self._data.append,
            "number": self._number,
            "entity": self._entity,
            "comment": lambda data: self._special("<!--", data, "-->"),
            "doctype": lambda data: self._special("<!DOCTYPE ", data[len("DOCTYPE ") :], ">\n"),
            "section": self._section,
            "instruction": lambda data: self._special("<?", data, ">"),
        }
        for kind, *found in html_tokens(markup):
            takes[kind](*found)
        self._end_text()
        while self._stack:
            self._pop()
        return "".join(self._parts)

    def _start_tag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element; a void one is closed at once."""
        self._start(tag, attrs)
        if tag in _VOID:
            self._end(tag)
            self._closed[tag] += 1

    def _empty_tag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open and close an element."""
        self._start(tag, attrs)
        self._end(tag)

    def _end_tag(self, tag: str) -> None:
        """Close elements up to the last one of this name, if there is one."""
        if self._closed[tag]:
            self._closed[tag] -= 1
        else:
            self._end(tag)

    def _number(self, name: str) -> None:
        """Collect a numbered character, and what html.parser took for a part of its number."""
        hexadecimal = name[:1] in ("x", "X")
        digits, base = (name[1:], 16) if hexadecimal else (name, 10)
        try:
            self._data += (_character(int(digits, base)), "")
        except ValueError:
            match = re.match(r"([0-9a-f]+)(.*)" if hexadecimal else "([0-9]+)(.*)", digits)
            self._data += (_character(int(match[1], base)), match[2]) if match else ("", digits)

    def _entity(self, name: str) -> None:
        """Collect a named character."""
        self._data.append(html5.get(f"{name};") or html5.get(name) or f"&{name}")

    def _section(self, data: str) -> None:
        """Write a CDATA section or another declaration."""
        if data.upper().startswith("CDATA["):
            self._special("<![CDATA[", data[len("CDATA[") :], "]]>")
        else:
            self._special("<?", data, "?>")

    def _special(self, prefix: str, data: str, suffix: str) -> None:
        self._end_text()
        self._data.append(data)
        text = self._take_text()
        if self._skipped is None:
            changed = self._in_cells(text)
            self._parts.append(prefix + text + suffix if changed == text else changed.translate(_SPECIAL))

    def _end_text(self) -> None:
        if self._data:
            text = self._take_text()
            if self._skipped is None:
                raw = bool(self._stack) and self._stack[-1] in ("script", "style")
                text = self._in_cells(text)
                self._parts.append(text if raw else text.translate(_SPECIAL))

    def _in_cells(self, text: str) -> str:
        cells = self._open["td"] + self._open["th"] if self._cell_text else 0
        return _applied(self._cell_text, text, cells) if self._cell_text and cells else text

    def _take_text(self) -> str:
        text = "".join(self._data)
        self._data.clear()
        if not text.strip(_BLANKS) and not self._open["pre"] and not self._open["textarea"]:
            return "\n" if "\n" in text else " "
        return text

    def _start(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._end_text()
        self._stack.append(tag)
        self._open[tag] += 1
        if self._skipped is not None:
            return
        values = {name: value or "" for name, value in attrs}
        alternative = values.get("alttext", "")
        if tag == "math" and (alternative or self._math_becomes_dollars):
            self._skipped = len(self._stack)
            self._parts.append(f"${alternative}$".translate(_SPECIAL))
        elif tag in self._dropped:
            self._skipped = len(self._stack)
        elif tag not in self._unwrapped:
            end = "/>" if tag in _VOID else ">"
            self._parts.append(f"<{_RENAMED.get(tag, tag)}{_written(tag, values)}{end}")

    def _end(self, tag: str) -> None:
        self._end_text()
        if self._open[tag]:
            while self._pop() != tag:
                pass

    def _pop(self) -> str:
        tag = self._stack.pop()
        self._open[tag] -= 1
        if self._skipped is None:
            if tag not in self._unwrapped and tag not in _VOID:
                self._parts.append(f"</{_RENAMED.get(tag, tag)}>")
        elif len(self._stack) < self._skipped:
            self._skipped = None
        return tag


def _written(tag: str, values: dict[str, str]) -> str:
    """The attributes of a tag in alphabetical order; a declared encoding becomes UTF-8."""
    if tag == "meta":
        if "charset" in values:
            values["charset"] = "utf-8"
        elif values.get("http-equiv", "").lower() == "content-type" and "content" in values:
            values["content"] = _CHARSET.sub(r"\1utf-8", values["content"])
    for name in (*_LISTS["*"], *_LISTS.get(tag, ())):
        if name in values:
            values[name] = " ".join(re.findall(r"\S+", values[name]))
    return "".join(f" {name}={_quoted(value.translate(_SPECIAL))}" for name, value in sorted(values.items()))


def _quoted(value: str) -> str:
    if '"' in value and "'" not in value:
        return f"'{value}'"
    return '"' + value.replace('"', "&quot;") + '"'


def _character(number: int) -> str:
    """The character of a numeric reference; 128 to 159 are those of Windows-1252, as in browsers."""
    if number == 0 or number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        return "\ufffd"
    if 0x80 <= number <= 0x9F:
        return bytes([number]).decode("cp1252", "ignore") or chr(number)
    return chr(number)
