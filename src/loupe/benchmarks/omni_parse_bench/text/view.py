"""What a reader sees of a page's HTML, as one text (docs/protocols/omni_parse_bench.md#view).

The official program rewrites the source text by regular expressions, one after the other, and parses nothing. Each pass
here finds the same spans in time linear in the text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import partial

from loupe.benchmarks.omni_parse_bench.outcomes import GradingError
from loupe.benchmarks.omni_parse_bench.text.spans import NextSign, between, replaced

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
