"""Show the HTML of a page as a reader sees it, as one text (docs/protocols/omni_parse_bench.md#view).

Answers in Markdown become HTML by the rules that every engine's Markdown is converted with.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, TypeAlias

from loupe.benchmarks.omni_parse_bench.outcomes import GradingError

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


CHECKED, UNCHECKED = "☒", "☐"

_MATH, _MATH_END = re.compile(r"<math\b([^<>]*)>", re.I), re.compile("</math>", re.I)
_NOTE, _NOTE_END = re.compile(r"<annotation\b([^<>]*)>", re.I), re.compile("</annotation>", re.I)
_IN_TEX = re.compile(r"encoding=[\"']application/x-tex[\"']", re.I)
_MARKUP = re.compile("<[^<>]+>")
_LIST_TAG = re.compile(r"<(/?)(ol|ul|li)\b([^<>]*)>", re.I)
_START = re.compile(r"\bstart=[\"']?(\d+)", re.I)
_INPUT = re.compile(r"<input\b([^<>]*)>", re.I)
_BOX_TYPE = re.compile(r"\btype=[\"']?(?:checkbox|radio)", re.I)
_WORD_CHECKED = re.compile(r"\bchecked\b", re.I)
_BOX_TAG = re.compile(r"<(un)?checked\s*/?>", re.I)
_INPUT_TAG, _VALUE = re.compile(r"<input\b", re.I), re.compile("\\bvalue=([\"'])", re.I)
_IMG_TAG, _ALT = re.compile(r"<img\b", re.I), re.compile("\\balt=([\"'])", re.I)
_ANGLE = re.compile("[<>]")
_COMMENT, _COMMENT_END = re.compile("<!--"), re.compile("-->")
_DOCTYPE, _DOCTYPE_END = re.compile("<!DOCTYPE", re.I), re.compile(">")
_UNSEEN = re.compile(r"<(script|style|head|title)\b", re.I)
_UNSEEN_ENDS = {name: re.compile(f"</{name}>", re.I) for name in ("script", "style", "head", "title")}
_SUP = re.compile(r"<sup\b[^<>]*>", re.I)
_BLOCK = re.compile(
    r"</?(?:table|thead|tbody|tfoot|tr|td|th|p|div|li|ul|ol|dl|dt|dd|h[1-6]|br|hr|section|article|figure|figcaption|"
    r"blockquote|pre|caption|header|footer|nav|aside|form|label|select|option|textarea|img)\b[^<>]*>",
    re.I,
)
_OTHER_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9-]*(?:\s[^<>]*)?/?>")


def view_text(source: str, *, alt: bool = True) -> str:
    """The text of the HTML; without `alt`, what stands for images is left out.

    Raises GradingError for numbers of more digits than Python reads.
    """
    try:
        return html.unescape(_without_tags(source, alt=alt))
    except ValueError as error:
        raise GradingError(f"ValueError: {error}") from None


def _without_tags(text: str, *, alt: bool) -> str:
    if "<" in text:
        text = replaced(text, between(text, _MATH, _MATH_END), partial(_dollars, text))
        if "<ol" in text.lower():
            text = _numbered(text)
        text = _INPUT.sub(_box, text)
        text = _BOX_TAG.sub(lambda tag: f" {UNCHECKED if tag[1] else CHECKED} ", text)
        text = _with_attributes(text, _INPUT_TAG, _VALUE)
        text = _with_attributes(text, _IMG_TAG, _ALT, last=True, shown=alt)
    text = _with_image_names(text, shown=alt)
    if "<" not in text:
        return text
    for opening, closing in ((_COMMENT, _COMMENT_END), (_DOCTYPE, _DOCTYPE_END)):
        text = replaced(text, between(text, opening, closing), _blank)
    text = replaced(text, between(text, _UNSEEN, _end_of_unseen), _blank)
    return _OTHER_TAG.sub("", _BLOCK.sub(" ", _SUP.sub(" ", text)))


def _blank(*_: re.Match[str]) -> str:
    return " "


def _end_of_unseen(tag: re.Match[str]) -> re.Pattern[str]:
    # Without regard to case, Python takes "ſ" for an "s", as the official patterns do.
    return _UNSEEN_ENDS[tag[1].casefold()]


def _dollars(text: str, start: re.Match[str], end: re.Match[str]) -> str:
    """An equation between dollars; MathML without TeX as its text."""
    body = text[start.end() : end.start()].strip()
    note = next((note for note in _NOTE.finditer(body) if _IN_TEX.search(note[1])), None)
    closing = _NOTE_END.search(body, note.end()) if note else None
    if note and closing:
        body = html.unescape(body[note.end() : closing.start()].strip())
    elif "<" in body:
        return f" {html.unescape(_MARKUP.sub('', body))} "
    return f" $${body}$$ " if "block" in start[1] else f"${body}$"


def _numbered(text: str) -> str:
    """The items of numbered lists with their numbers; a list within a list counts for itself."""
    numbers: list[int | None] = []

    def with_number(tag: re.Match[str]) -> str:
        closes, name = tag[1], tag[2].lower()
        if name == "li":
            if closes or not numbers or numbers[-1] is None:
                return tag[0]
            numbers[-1] += 1
            return f"{tag[0]}{numbers[-1] - 1}. "
        if not closes:
            start = _START.search(tag[3])
            numbers.append(None if name == "ul" else int(start[1]) if start else 1)
        elif numbers:
            numbers.pop()
        return tag[0]

    return _LIST_TAG.sub(with_number, text)


def _box(tag: re.Match[str]) -> str:
    if not _BOX_TYPE.search(tag[0]):
        return tag[0]
    return f" {CHECKED if _WORD_CHECKED.search(tag[0]) else UNCHECKED} "


def _with_attributes(
    text: str, tag: re.Pattern[str], name: re.Pattern[str], *, last: bool = False, shown: bool = True
) -> str:
    """Tags with such an attribute as its value, which may hold `<` and `>`; the last one counts, or the first."""
    if not name.search(text):
        return text
    parts, position = [], 0
    for start, end, value in _attributes(text, tag, name, last=last):
        parts += [text[position:start], f" {value} " if shown else " "]
        position = end
    return "".join(parts) + text[position:]


def _attributes(
    text: str, tag: re.Pattern[str], name: re.Pattern[str], *, last: bool
) -> Iterator[tuple[int, int, str]]:
    """Start, end and value of each tag that has the attribute before its first `<` or `>`."""
    quotes = {sign: NextSign(text, sign) for sign in "\"'"}
    position = 0
    while opening := tag.search(text, position):
        position = opening.end()
        angle = _ANGLE.search(text, opening.end())
        limit = angle.start() if angle else len(text)
        named = list(name.finditer(text, opening.end(), limit))
        for attribute in reversed(named) if last else named:
            closing = quotes[attribute[1]].after(attribute.end())
            if closing < 0:
                continue
            end = angle if closing < limit else _ANGLE.search(text, closing + 1)
            if end and end[0] == ">":
                position = end.end()
                yield opening.start(), position, text[attribute.end() : closing]
                break


def _with_image_names(text: str, *, shown: bool) -> str:
    """`![name](address)` as the name."""
    if "![" not in text:
        return text
    brackets, parentheses = NextSign(text, "]"), NextSign(text, ")")
    parts, position, start = [], 0, text.find("![")
    while start >= 0:
        bracket = brackets.after(start + 2)
        if bracket < 0:
            break
        end = parentheses.after(bracket + 2) if text.startswith("(", bracket + 1) else -1
        if end >= 0:
            parts += [text[position:start], f" {text[start + 2 : bracket]} " if shown else " "]
            position = end + 1
        start = text.find("![", max(start + 1, position))
    return "".join(parts) + text[position:]


_FENCE = re.compile(r"[ \t]*```([A-Za-z]*)[ \t]*")
_PAGES = frozenset(("", "markdown", "md", "html"))
_FRONT_MATTER = re.compile(r"^\s*---[ \t]*\n(?:[ \t]*[A-Za-z_][\w-]*:.*\n)+---[ \t]*(?:\n|$)")
_NAMES = (
    "figure|table|div|details|section|aside|p|pre|blockquote|ul|ol|li|dl|center|form|header|footer|article|main|nav|"
    "fieldset|figcaption"
)
_ELEMENT = re.compile(rf"<({_NAMES})\b", re.I)
_ELEMENT_ENDS = {name: re.compile(rf"</{name}\s*>", re.I) for name in _NAMES.split("|")}
_CODE = re.compile(r"(?m)^[ \t]*```[^\n]*\n|`[^`\n]+`")
_FENCE_END = re.compile(r"(?m)^[ \t]*```[ \t]*$")
_NUMBERED = re.compile(r"(?m)^([ \t]{0,3}\d{1,9})([.)])(?=[ \t]|$)")
_BULLETED = re.compile(r"(?m)^([ \t]{0,3})([-+*])(?=[ \t])")
_ADDRESS = re.compile(r"<(?=[^<>\s@]+@[^<>\s@]+>)")
_TABLE, _TABLE_END = re.compile(r"<table\b", re.I), re.compile("</table>", re.I)
_DISPLAYED = re.compile(r"\$\$|\\\[")
_DISPLAYED_ENDS = {"$$": re.compile(r"\$\$"), "\\[": re.compile(r"\\\]")}
_LINES_OF_ROWS = re.compile(r"(?m)((?:^[ \t]*\|.*(?:\n|$))+)")
_IN_LINE = re.compile(r"(?<!\\)\$(?!\s)[^$\n]+?(?<![\s\\])\$|\\\(")
#: In a row of a table, dollars on both sides of a bar are amounts, unless there is LaTeX between them.
_IN_ROW = re.compile(r"(?<!\\)\$(?!\s)(?:(?=[^$\n]*[\\^_{])[^$\n]+?|[^$\n|]+?)(?<![\s\\])\$|\\\(")
_PARENTHESIS_END = re.compile(r"\\\)")


def html_of_markdown(markdown: str) -> str:
    """The HTML of a page. Raises GradingError where the official converter raises."""
    text = textwrap.dedent(_FRONT_MATTER.sub("", unwrapped(markdown), count=1))
    return _rendered(_with_escaped_marks(text))


def unwrapped(text: str) -> str:
    """Without a fence around the whole page, which may lack its end; a listing of code within the page stays."""
    lines = text.strip().split("\n")
    first = _FENCE.fullmatch(lines[0])
    if first is None or first[1].lower() not in _PAGES:
        return text
    fences = [number for number, line in enumerate(lines) if _FENCE.fullmatch(line)]
    if len(fences) % 2:
        return "\n".join(lines[1:])
    ends_page = fences[-1] == len(lines) - 1
    return "\n".join(lines[1 : fences[-1]]) if first[1] or ends_page else text


def _with_escaped_marks(text: str) -> str:
    """Marks of lists stay the text that is printed; within code and HTML no escape would be read as one."""
    held = Held()
    text = _held(text, between(text, _ELEMENT, lambda mark: _ELEMENT_ENDS[mark[1].casefold()]), held)
    text = _held(text, _with_ends(text, _CODE, _FENCE_END), held)
    text = _BULLETED.sub(r"\1\\\2", _NUMBERED.sub(r"\1\\\2", text))
    return held.put_back(_ADDRESS.sub("&lt;", text))


def _rendered(text: str) -> str:
    """Tables and formulas stay as they are: Markdown ends the ones at blank lines, and eats braces of the others."""
    held = Held()
    text = _held(text, between(text, _TABLE, _TABLE_END), held)
    text = _held(text, between(text, _DISPLAYED, lambda mark: _DISPLAYED_ENDS[mark[0]], least=1), held)
    parts = _LINES_OF_ROWS.split(text)  # text, rows, text, rows and so on
    for number, part in enumerate(parts):
        parts[number] = _held(part, _with_ends(part, _IN_ROW if number % 2 else _IN_LINE, _PARENTHESIS_END), held)
    return held.put_back(str(_renderer().render("".join(parts))))


def _held(text: str, spans: Iterator[tuple[Mark, Mark]], held: Held) -> str:
    return replaced(text, spans, lambda start, end: held.keep(text[start.start() : end.end()]))


def _with_ends(text: str, pattern: re.Pattern[str], closing: re.Pattern[str]) -> Iterator[tuple[Mark, Mark]]:
    """Spans that the pattern finds whole, and those of which it finds the beginning: a fence, or a parenthesis."""
    position, closes = 0, True
    while found := pattern.search(text, position):
        begins = found[0].endswith(("\n", "\\("))
        end = closing.search(text, found.end() + (closing is _PARENTHESIS_END)) if begins and closes else None
        if begins and end is None:
            closes, position = False, found.start() + 1
            continue
        yield found, end or found
        position = (end or found).end()


@cache
def _renderer() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).disable("reference")


#: What stands for a span that is held out: its number between two characters of private use.
_OPEN, _CLOSE = "\ue000", "\ue001"
_HELD = re.compile(rf"{_OPEN}(\d+){_CLOSE}")


Mark: TypeAlias = re.Match[str]


def between(
    text: str, opening: re.Pattern[str], closing: re.Pattern[str] | Callable[[Mark], re.Pattern[str]], *, least: int = 0
) -> Iterator[tuple[Mark, Mark]]:
    """Each opening with the nearest closing behind it, from left to right, `least` characters between them.

    It finds what `opening.*?closing` finds. A closing that is missing once is missing for all later openings.
    """
    closing_of = closing if callable(closing) else lambda _: closing
    missing: set[re.Pattern[str]] = set()
    position = 0
    while start := opening.search(text, position):
        wanted = closing_of(start)
        end = None if wanted in missing else wanted.search(text, start.end() + least)
        if end is None:
            missing.add(wanted)
            position = start.start() + 1
            continue
        yield start, end
        position = end.end()


def replaced(text: str, found: Iterator[tuple[Mark, Mark]], write: Callable[[Mark, Mark], str]) -> str:
    """The text with something else in place of each span, marks included."""
    parts, position = [], 0
    for start, end in found:
        parts += [text[position : start.start()], write(start, end)]
        position = end.end()
    return "".join(parts) + text[position:]


class NextSign:
    """The next place of a character, asked for again and again from left to right."""

    def __init__(self, text: str, sign: str) -> None:
        self._text = text
        self._sign = sign
        self._asked, self._found = 0, text.find(sign)

    def after(self, position: int) -> int:
        """The first place from `position` on; -1 where there is none."""
        if position < self._asked or 0 <= self._found < position:
            self._found = self._text.find(self._sign, position)
            self._asked = position
        return self._found


class Held:
    """Spans that are taken out of a text, so that a rewrite steps around them, and put back afterwards."""

    def __init__(self) -> None:
        self._spans: list[str] = []

    def keep(self, span: str) -> str:
        """Keep the span, and return the placeholder that stands for it."""
        self._spans.append(span)
        return f"{_OPEN}{len(self._spans) - 1}{_CLOSE}"

    def hold(self, text: str, pattern: re.Pattern[str]) -> str:
        """The text without what matches."""
        return pattern.sub(lambda found: self.keep(found[0]), text)

    def put_back(self, text: str) -> str:
        """The text with the spans again. Raises GradingError for what looks like a stand-in and stands for none."""
        if not self._spans:
            return text
        try:
            return _HELD.sub(lambda found: self._spans[int(found[1])], text)
        except (IndexError, ValueError) as error:
            raise GradingError(f"{type(error).__name__}: characters of private use") from None
