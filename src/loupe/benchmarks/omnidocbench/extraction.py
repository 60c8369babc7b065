"""Turn the Markdown of a page into items: tables, formulas and paragraphs, for versions 1.5 and 1.6.

Each step works on the text that the step before left. Version 1.6 also rescues and drops some formulas.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

from loupe.benchmarks.omnidocbench.answer_formulas import (
    formulas_in_cells,
    is_dropped,
    rescue_candidate,
    take_formulas,
    with_margins_apart,
    without_formulas_in_descriptions,
)
from loupe.benchmarks.omnidocbench.answer_tables import bar_losses, take_bar_tables, take_html_tables, take_latex_tables
from loupe.benchmarks.omnidocbench.delimiters import blank
from loupe.benchmarks.omnidocbench.records import FormFacts, Item
from loupe.benchmarks.shared.table_answers.html_grids import parse_html
from loupe.metrics.teds.table_tree import TableTooLargeError, TedsError

_Take: TypeAlias = Callable[[str], tuple[list[Item], str]]

#: What is taken out before any formula is looked for.
TABLES: Sequence[_Take] = (take_latex_tables, take_html_tables)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """The items of a page, sorted by where they start (those that start together in the order of the steps).

    `form` says what the steps lost, or took for something else.
    """

    items: list[Item]
    form: FormFacts


def read_answer(markdown: str) -> Extraction:
    """Take an answer apart."""
    tables, text = take_each(prepare(markdown), TABLES)
    formulas, rest = take_formulas(text)
    inline = [text[item.start : item.end] for item in formulas if item.fine_category]
    bar_tables, left = take_bar_tables(rest)
    losses = bar_losses(rest, bar_tables)
    code, left = take_code_blocks(left)
    left = unwrap_headings(left)
    blocks = paragraphs(left)
    form = FormFacts(
        formulas_over_paragraphs=sum("\n\n" in formula for formula in inline),
        table_cells_lost=losses.cells,
        lines_above_tables_lost=losses.lines_above,
        stray_bars=losses.stray,
        split_by_lines=is_split_by_lines(left),
        text_blocks=len(blocks),
    )
    items = [*tables, *formulas, *bar_tables, *code, *blocks]
    return Extraction(items=sorted(items, key=lambda item: item.start), form=form)


def extract(markdown: str) -> list[Item]:
    """The items alone."""
    return read_answer(markdown).items


def take_each(text: str, takes: Iterable[_Take]) -> tuple[list[Item], str]:
    """Return what several steps take, and the text with blanks in the places."""
    items: list[Item] = []
    for take in takes:
        found, text = take(text)
        items += found
    return items, text


def by_category(items: Iterable[Item]) -> dict[str, list[Item]]:
    """The items grouped by category, the categories in the order of their first item (#item-order)."""
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(item.category, []).append(item)
    return groups


_RESCUES = ("image_formula", "table_formula_rescue", "text_formula")


def read_answer_rescuing(markdown: str, convert_table: Callable[[str], str] | None = None) -> Extraction:
    """Take an answer apart; `convert_table` returns a LaTeX table as HTML, or "" to leave it as it is."""
    rescued, markdown = _take_images(markdown)
    text = without_page_tags(shorten_runs(without_fence_marks(markdown)))
    text, descriptions = without_formulas_in_descriptions(text)
    latex_tables, text = take_latex_tables(text)
    latex_tables = [_as_html(table, convert_table) for table in latex_tables]
    html_tables, text = take_html_tables(text)
    formulas, rest = take_formulas(text)
    inline = [text[item.start : item.end] for item in formulas if item.fine_category]
    bar_tables, left = take_bar_tables(rest)
    losses = bar_losses(rest, bar_tables)
    code, left = take_code_blocks(left)
    left = unwrap_headings(left)
    texts = _texts(left)
    items = [
        *(*rescued, *latex_tables, *html_tables, *formulas_in_cells(html_tables)),
        *(part for formula in formulas for part in with_margins_apart(formula)),
        *(*bar_tables, *formulas_in_cells(bar_tables), *code, *texts),
    ]
    kept = [item for item in items if not is_dropped(item)]
    form = FormFacts(
        formulas_over_paragraphs=sum("\n\n" in formula for formula in inline),
        table_cells_lost=losses.cells,
        lines_above_tables_lost=losses.lines_above,
        stray_bars=losses.stray,
        split_by_lines=is_split_by_lines(left),
        text_blocks=sum(item.category == "text_all" for item in texts),
        rescued=Counter(item.fine_category for item in items if item.fine_category in _RESCUES),
        short_inline_dropped=len(items) - len(kept),
        image_descriptions=descriptions,
    )
    return Extraction(items=sorted(kept, key=lambda item: item.start), form=form)


def _as_html(table: Item, convert: Callable[[str], str] | None) -> Item:
    html = convert(table.content) if convert else ""
    if html:
        return replace(table, category="html_table", fine_category="latex2html_table", content=html)
    return replace(table, fine_category="latex_table")


def _take_images(markdown: str) -> tuple[list[Item], str]:
    """The formulas that stand for images, and the text with blanks in the places of all images."""
    found = images(markdown)
    candidates = [
        rescue_candidate(image.alt.strip(), start=image.start, end=image.end, fine_category="image_formula")
        for image in found
    ]
    return [item for item in candidates if item], blank(markdown, [(image.start, image.end) for image in found])


def _texts(text: str) -> list[Item]:
    """The paragraphs, each with the formula that it may be behind it."""
    items: list[Item] = []
    for start, end, inside in text_pieces(text):
        piece = without_html_blocks(inside)
        if not piece:
            continue
        items.append(Item(category="text_all", content=piece, start=start, end=end, fine_category="text_block"))
        if rescued := rescue_candidate(piece, start=start, end=end, fine_category="text_formula"):
            items.append(rescued)
    return items


_OPENING_FENCES = tuple(re.compile(f"^```{word}\n?", re.MULTILINE) for word in ("markdown", "html", "latex"))
_FENCE_AT_LINE_END = re.compile("```\n?$", re.MULTILINE)
_UNDERSCORES = re.compile("_{4,}")
_SPACES = re.compile(" {4,}")


def prepare(markdown: str) -> str:
    """Steps 1 to 4, one after the other."""
    return without_page_tags(shorten_runs(without_fence_marks(without_images(markdown))))


class Image(NamedTuple):
    """An image of the Markdown: where it stands, and the text that stands for it."""

    start: int
    end: int
    alt: str


def images(markdown: str) -> list[Image]:
    """All `![…](…)`, lazily and within a line."""
    found, begin = list[Image](), markdown.find("![")
    while begin >= 0:
        line_end = markdown.find("\n", begin)
        line_end = len(markdown) if line_end < 0 else line_end
        middle = markdown.find("](", begin + 2, line_end)
        end = markdown.find(")", middle + 2, line_end) if middle >= 0 else -1
        if end < 0:  # then nor has any later image of this line an end
            begin = markdown.find("![", line_end)
            continue
        found.append(Image(begin, end + 1, markdown[begin + 2 : middle]))
        begin = markdown.find("![", end + 1)
    return found


def without_images(markdown: str) -> str:
    """Delete all images (#images)."""
    parts, cursor = list[str](), 0
    for image in images(markdown):
        parts.append(markdown[cursor : image.start])
        cursor = image.end
    return "".join([*parts, markdown[cursor:]])


def without_fence_marks(markdown: str) -> str:
    """Delete the fence marks of Markdown, HTML and LaTeX, and any mark at the end of a line (#fences).

    Most closing marks go, and bare opening ones too, while the opening mark of any other language stays as text.
    """
    for fence in _OPENING_FENCES:
        markdown = fence.sub("", markdown)
    return _FENCE_AT_LINE_END.sub("", markdown)


def shorten_runs(markdown: str) -> str:
    """Four underscores and four spaces are the longest runs (#long-runs)."""
    return _SPACES.sub("    ", _UNDERSCORES.sub("____", markdown))


def without_page_tags(markdown: str) -> str:
    """Delete the tags of a page, where they have no attributes (#page-tags)."""
    for tag in ("<html>", "</html>", "<body>", "</body>"):
        markdown = markdown.replace(tag, "")
    return markdown


_CODE = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def take_code_blocks(text: str) -> tuple[list[Item], str]:
    """Code between a fence with a word and the next fence, also in a line (#code-blocks); blanks in its place."""
    items = [
        Item(
            category="text_all",
            content=match[2].strip(),
            start=match.start(),
            end=match.end(),
            fine_category="code",
            language=match[1],
        )
        for match in _CODE.finditer(text)
    ]
    return items, blank(text, [(item.start, item.end) for item in items])


class _Wrapper(NamedTuple):
    command: re.Pattern[str]
    one_line: bool


_WRAPPERS: Sequence[_Wrapper] = (
    _Wrapper(re.compile(r"\\title\{"), True),
    _Wrapper(re.compile(r"\\title\s*\{"), False),
    _Wrapper(re.compile(r"\\text\s*\{"), False),
    _Wrapper(re.compile(r"\\section\*?\{"), True),
    _Wrapper(re.compile(r"\\section\*?\{"), False),
)
"""Commands that give way to what they hold, in the official order; those on one line keep the blanks around it."""


def unwrap_headings(text: str) -> str:
    r"""Unwrap `\title{…}`, `\text{…}` and `\section{…}`, up to the first closing brace (#latex-headings)."""
    for wrapper in _WRAPPERS if "\\" in text else ():
        text = _unwrap(text, wrapper)
    return text


def _unwrap(text: str, wrapper: _Wrapper) -> str:
    parts: list[str] = []
    cursor = search_from = 0
    while match := wrapper.command.search(text, search_from):
        limit = text.find("\n", match.end()) if wrapper.one_line else -1
        limit = len(text) if limit < 0 else limit
        brace = text.find("}", match.end(), limit)
        if brace < 0:
            search_from = limit
            continue
        inside = text[match.end() : brace]
        parts += (text[cursor : match.start()], inside if wrapper.one_line else inside.strip())
        cursor = search_from = brace + 1
    return "".join([*parts, text[cursor:]])


def paragraphs(text: str) -> list[Item]:
    """The pieces between empty lines; where there is none, the lines (#paragraphs)."""
    items = []
    for piece in text_pieces(text):
        if category := _category(piece.inside):
            fine_category = "text_block" if category == "text_all" else ""
            items.append(
                Item(
                    category=category,
                    content=piece.inside,
                    start=piece.start,
                    end=piece.end,
                    fine_category=fine_category,
                )
            )
    return items


class TextPiece(NamedTuple):
    """A piece of text: where it stands for the official evaluator, and its lines without blanks around them."""

    start: int
    end: int
    inside: str


def text_pieces(text: str) -> list[TextPiece]:
    """The pieces between empty lines, or the lines; those with nothing in them are left out."""
    raw_pieces = text.split("\n" if is_split_by_lines(text) else "\n\n")
    found = []
    for raw, start in zip(raw_pieces, starts_without_separators(raw_pieces), strict=True):
        inside = "\n".join(filter(None, (line.strip() for line in raw.strip().split("\n"))))
        if inside:
            found.append(TextPiece(start, start + len(raw), inside))
    return found


def is_split_by_lines(text: str) -> bool:
    """Without an empty line every line is a piece (#paragraphs)."""
    return "\n\n" not in text


def starts_without_separators(raw_pieces: Sequence[str]) -> list[int]:
    """Return the starts of pieces for the official evaluator, which does not count the newlines between them
    (#paragraphs).
    """
    starts, start = [], 0
    for raw in raw_pieces:
        starts.append(start)
        start += len(raw)
    return starts


def _category(piece: str) -> str:
    """A piece's category; "" for dollars without a formula, which are dropped."""
    if piece.startswith("<table") and piece.endswith("</table>"):
        return "html_table"
    if piece.startswith("$") and piece.endswith("$"):
        return "equation_isolated" if piece.replace("$", "").strip() else ""
    return "text_all"


_BLOCK = re.compile(r"<di[vr]\b", re.IGNORECASE)
_TABLE = re.compile("<table", re.IGNORECASE)
_UNSEEN: Final = frozenset(("style", "script"))
_UNWRAPPED: Final = frozenset(("span", "font", "b", "strong", "i", "em", "u", "a", "sup", "sub"))
_BLOCKS: Final = frozenset(("div", "dir", "p", "li"))


class _End(NamedTuple):
    """Behind the last child of an element."""

    name: str


def without_html_blocks(piece: str) -> str:
    r"""The text of a piece that begins with a `div`; any other piece, or one without text, as it is.

    >>> without_html_blocks("<div><p>a</p>b<br/>c</div>")
    'a\nb\nc'
    """
    stripped = piece.strip()
    if not _BLOCK.match(stripped) or _TABLE.search(stripped):
        return piece
    try:
        text = _text_of(stripped)
    except (TedsError, TableTooLargeError):
        text = ""
    return text or stripped


def _text_of(markup: str) -> str:
    """The lines of a fragment that have text. The tree is only walked: to change it takes quadratic time."""
    from bs4.element import CData, NavigableString, Tag

    parts: list[str] = []
    pending: list[object] = list(reversed(parse_html(markup).contents))
    last = [""]  # child of each element that is open, if it is a text
    while pending:
        node = pending.pop()
        if isinstance(node, _End):
            if last.pop() != "\n" and node.name in _BLOCKS:
                parts.append("\n")
            last[-1] = ""
        elif isinstance(node, NavigableString):
            last[-1] = str(node)
            parts += (str(node),) if type(node) in (NavigableString, CData) else ()
        elif isinstance(node, Tag) and node.name == "br":
            last[-1] = "\n"
            parts.append("\n")
        elif isinstance(node, Tag) and node.name not in _UNSEEN:
            if node.name not in _UNWRAPPED:
                last.append("")
                pending.append(_End(node.name))
            pending += reversed(node.contents)
    lines = "".join(parts).replace("\xa0", " ").split("\n")
    return "\n".join(filter(None, map(str.strip, lines)))
