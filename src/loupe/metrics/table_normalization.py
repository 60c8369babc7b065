"""Normalise HTML tables before TEDS compares them, as BeautifulSoup, `str()` and OmniDocBench do.

Protocol: docs/protocols/teds.md#dp-bench and #normalisation; docs/protocols/omnidocbench.md#normalisation;
docs/protocols/omnidocbench_v16.md#html-tables. All are kept with their flaws, because published numbers hold them.

Markup is that of BeautifulSoup 4.15 (docs/protocols/teds.md#normalisation, step 2), to the character, but is written
while the markup is read: in time linear in its length, where the tree of a hostile page costs minutes.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from html import unescape
from html.entities import html5
from typing import Final, NamedTuple

from loupe.metrics.html_markup import Kind, html_tokens
from loupe.metrics.teds.table_tree import TableTooLargeError, TedsError

MAX_TAGS: Final = 200_000
"""Of one answer: some seconds of reading, and five times what a table of 20,000 cells has."""

_ATTRIBUTES = tuple(re.compile(f' {name}=".*?"') for name in ("style", "height", "width", "align", "class"))
_TABLE_START = re.compile(r"<table\b[^>]*>", re.IGNORECASE)
_TABLE_END = re.compile("</table>", re.IGNORECASE)
_BLANKS = re.compile(r"\s+")


def wrap_like_dpbench(table: str) -> str:
    """Do what DP-Bench's `calc_table_score` does to a string before TEDS: wrap it in a page, delete the section tags.

    A string that has one of the two ends of a page with a table is not wrapped, even if it lacks the other.
    """
    if table.startswith("<table>") and table.endswith("</table>"):
        table = f"<html><body>{table}</body></html>"
    elif not table.startswith("<html><body><table>") and not table.endswith("</table></body></html>"):
        table = f"<html><body><table>{table}</table></body></html>"
    for tag in ("<thead>", "</thead>", "<tbody>", "</tbody>"):
        table = table.replace(tag, "")
    return table


def normalize_to_plain_cells(table: str) -> str:
    """One page with one table, header cells made cells, most tags inside cells removed, blanks collapsed, NFKC.

    Several tables become one, from the first `<table>` to the last `</table>`; without any, the whole string becomes
    the inside of a table. Markup that is written as entities becomes markup. Raises TedsError where upstream raises,
    TableTooLargeError for more than MAX_TAGS tags, or more than any honest table has that are never finished.
    """
    if table.count("<") > MAX_TAGS:
        raise TableTooLargeError(f"{table.count('<'):,} tags in one answer, at most {MAX_TAGS:,} are read")
    page = table.strip()
    if not page.lower().startswith("<html"):
        page = f"<html><body>{page}</body></html>"
    text = _as_plain_text(_simplified(page, NORMALIZED))
    inside = _inside_of_tables(text)
    return _page(text if inside is None else inside)


def normalize_like_omnidocbench(table: str) -> str:
    """One page with one table, as `normalize_to_plain_cells`, but only the bare tags in cells are removed.

    "" where there is no table (`<TABLE>` alone is none), as for upstream. Raises as `normalize_to_plain_cells`, but it
    is upstream's whole run that a refusal of html.parser ends.
    """
    if "<table" not in table.replace(" ", ""):
        return ""
    return _omnidocbench_page(_simplified(table, OMNIDOCBENCH))


def normalize_like_omnidocbench_1_6(table: str) -> str:
    """As `normalize_like_omnidocbench`, but bodies are unwrapped too, and texts of cells have a normal form.

    Protocol: docs/protocols/omnidocbench_v16.md#html-tables.
    """
    if "<table" not in table.replace(" ", ""):
        return ""
    return _omnidocbench_page(_simplified(_simplified(table, OMNIDOCBENCH_1_6), CELL_TEXTS))


def _omnidocbench_page(markup: str) -> str:
    page = _page(_inside_of_tables(_as_plain_text(markup)) or "")
    return _without_bare_colgroups(_without_bare_tags_in_cells(page))


def _simplified(page: str, rules: Simplification) -> str:
    try:
        return simplify(page, rules)
    except TableTooLargeError:
        raise
    except (AssertionError, ValueError) as error:
        upstream = "ParserRejectedMarkup" if isinstance(error, AssertionError) else "ValueError"
        raise TedsError(f"the HTML cannot be parsed: {error}", upstream=upstream) from error


def _as_plain_text(markup: str) -> str:
    """Entities become characters (markup too), newlines go, NFKC."""
    return unicodedata.normalize("NFKC", html.unescape(markup).replace("\n", "")).strip()


def _page(inside: str) -> str:
    """A page with one table of this inside, without the attributes and sections that do not count."""
    for attribute in _ATTRIBUTES:
        inside = attribute.sub("", inside)
    inside = _BLANKS.sub(" ", inside.replace("<tbody>", "").replace("</tbody>", ""))
    return f'<html><body><table border="1" >{inside}</table></body></html>'


def _inside_of_tables(text: str) -> str | None:
    """Return what `<table\\b[^>]*>(.*)</table>` captures, greedily, over newlines."""
    start = _TABLE_START.search(text, 0, text.rfind(">") + 1)
    ends = [end.start() for end in _TABLE_END.finditer(text)]
    return text[start.end() : ends[-1]] if start and ends and ends[-1] >= start.end() else None


def _without_bare_tags_in_cells(page: str) -> str:
    """Delete tags of five kinds that have no attributes; those with attributes stay, and only their end tags go."""
    for name in ("sup", "sub", "span", "div", "p"):
        page = page.replace(f"<{name}>", "").replace(f"</{name}>", "")
    return page.replace('<spandata-span-identity="">', "")


def _without_bare_colgroups(page: str) -> str:
    """Delete each `<colgroup>` that has no attributes, up to the next `</colgroup>`."""
    kept: list[str] = []
    cursor = 0
    while (begin := page.find("<colgroup>", cursor)) >= 0 and (end := page.find("</colgroup>", begin)) >= 0:
        kept.append(page[cursor:begin])
        cursor = end + len("</colgroup>")
    return "".join([*kept, page[cursor:]])


_RENAMED: Final = {"th": "td"}


class Simplification(NamedTuple):
    """The rules for elements. Header cells become cells; a `math` with an `alttext` becomes `$alttext$` anyway."""

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


def plain_cell(text: str) -> str:
    r"""The text of a cell in its normal form.

    >>> plain_cell(r" $\alpha$  ✓ "), plain_cell("–")
    ('$α$ √', '—')
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("\xa0", " ").replace("\u200b", "")
    if "\\" in text or "$" in text or not text.isascii():
        text = _with_symbols(_without_delimiters(_with_symbols(text)))
    return "—" if text.strip() in _DASHES else " ".join(text.split())


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
_HTML_BLANKS: Final = " \n\t\f\r"
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
    """Return what `simplify` makes of well-nested markup of usual tags and entities, in a tenth of the time; else
    None.
    """
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
                if text.strip(_HTML_BLANKS)
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
        if not text.strip(_HTML_BLANKS) and not self._open["pre"] and not self._open["textarea"]:
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


#: In the official order, and as substrings: of `\pmatrix` there remains `±atrix`.
_COMMANDS: Final = (
    *((r"\checkmark", "√"), (r"\checked", "√"), (r"\surd", "√"), (r"\times", "×"), (r"\xmark", "×")),
    *((r"\crossmark", "×"), (r"\pm", "±"), (r"\mp", "∓"), (r"\alpha", "α"), (r"\beta", "β"), (r"\gamma", "γ")),
    *((r"\gama", "γ"), (r"\mu", "μ"), (r"\lambda", "λ"), (r"\theta", "θ"), (r"\eta", "η"), (r"\pi", "π")),
    *((r"\rho", "ρ"), (r"\sigma", "σ"), (r"\omega", "ω"), (r"\delta", "δ"), (r"\Delta", "Δ"), (r"\epsilon", "ε")),
    *((r"\varepsilon", "ε"), (r"\phi", "φ"), (r"\varphi", "φ"), (r"\tau", "τ"), (r"\partial", "∂")),
    *((r"\varnothing", "∅"), (r"\emptyset", "∅"), (r"\sim", "～")),
)
_ESCAPES: Final = ((r"\%", "%"), (r"\#", "#"), (r"\&", "&"), (r"\_", "_"))
_SYMBOLS: Final = str.maketrans(
    dict.fromkeys("✓✔☑✅🗸", "√") | dict.fromkeys("✗✘✕✖☒❌╳⨯", "×") | {"Ø": "∅", "∼": "～", "〜": "～"}
)
_DASHES: Final = frozenset("-–−－—")
_DELIMITERS: Final = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$"))
_LONGEST_FORMULA: Final = 128
_NOT_IN_A_FORMULA = re.compile("[<>$]")


def _with_symbols(text: str) -> str:
    has_commands = "\\" in text
    for command, symbol in _COMMANDS if has_commands else ():
        text = text.replace(command, symbol)
    text = text.translate(_SYMBOLS)
    for escape, character in _ESCAPES if has_commands else ():
        text = text.replace(escape, character)
    return text


def _without_delimiters(text: str) -> str:
    """A short formula that is the whole cell loses its delimiters, however many pairs there are."""
    text = text.strip()
    while (inside := _inside(text)) is not None:
        text = inside
    return text


def _inside(text: str) -> str | None:
    for begin, end in _DELIMITERS:
        if len(text) >= len(begin) + len(end) and text.startswith(begin) and text.endswith(end):
            inside = text[len(begin) : -len(end)].strip()
            if inside and len(inside) <= _LONGEST_FORMULA and not _NOT_IN_A_FORMULA.search(inside):
                return inside
    return None
