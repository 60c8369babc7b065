"""Score page elements of DP-Bench as the official evaluator does, and Markdown answers by tolerant rules.

Ground truth and official predictions are page elements. Markdown is compared without its marks; `best_table` is a
variant.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec

from loupe.benchmarks.shared.answer_texts import remove_fence
from loupe.benchmarks.shared.table_answers import spellings
from loupe.benchmarks.shared.table_answers.html_conversion import (
    TableScores,
    find_tables,
    is_rule,
    normalized_page,
    pipes_outside_math,
    score_pages,
    score_pair,
)
from loupe.benchmarks.shared.table_answers.html_grids import parse_html
from loupe.benchmarks.shared.table_answers.spellings import pipe_tables, tables_of_answer
from loupe.metrics import nid
from loupe.metrics.edit import nid_dp_bench_v1
from loupe.metrics.html_markup import as_read_by_libxml2
from loupe.metrics.table_normalization import wrap_like_dpbench
from loupe.metrics.teds.table_tree import TableTooLargeError, TedsError
from loupe.typed import convert, decode_json

_OPENING = re.compile(r'\ufeff?\s*\{\s*"elements"\s*:')
#: Categories whose text does not count, in lower case.
IGNORED: frozenset[str] = frozenset({"figure", "table", "chart"})


class Content(msgspec.Struct, frozen=True):
    """The content of an element. Table HTML has rows only in the ground truth, no `<table>` around them.

    The official evaluator raises on a table whose `html` is missing (UNSET) or is no text (None).
    """

    text: str | None = None
    html: str | msgspec.UnsetType | None = msgspec.UNSET
    markdown: str | None = None


class Element(msgspec.Struct, frozen=True):
    """One element of a page, in reading order with the others."""

    category: str = ""
    content: Content = Content()

    @property
    def text(self) -> str:
        """The text, "" if there is none."""
        return self.content.text or ""

    @property
    def html(self) -> str:
        """The HTML, "" if there is none."""
        return self.content.html or ""


def elements_of(truth: Iterable[Any]) -> list[Element]:
    """Elements from what a sample holds as its truth."""
    return convert(list(truth), list[Element])


def elements_in_answer(answer: str) -> list[Element] | None:
    """The elements of an answer in the official form, `{"elements": [...]}` or the list alone; None for others.

    One odd element does not cost the page: what is no text in it is none; a number is its digits, but not as `html`.
    """
    answer = answer.removeprefix("\ufeff").strip()
    if answer[:1] not in ("{", "["):
        return None
    try:
        found = decode_json(answer)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None
    elements = found.get("elements") if isinstance(found, dict) else found
    if not isinstance(elements, list) or (found is elements and not all(isinstance(each, dict) for each in elements)):
        return None
    return [_element(each) for each in elements if isinstance(each, dict)]


def opens_elements(answer: str) -> bool:
    """True if an answer begins like the official form, whatever comes then."""
    return _OPENING.match(answer) is not None


def _element(values: dict[str, Any]) -> Element:
    content = values.get("content", {})
    content = content if isinstance(content, dict) else {"html": None}
    html = content.get("html", msgspec.UNSET)
    said = Content(
        text=_text(content.get("text")),
        html=html if isinstance(html, str | msgspec.UnsetType) else None,
        markdown=_text(content.get("markdown")),
    )
    return Element(category=_text(values.get("category")) or "", content=said)


def _text(value: Any) -> str | None:
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None


def text_of_page(elements: Iterable[Element], ignored: Collection[str] = IGNORED) -> str:
    """The page text of the official evaluator: each text and one space, then every line feed deleted.

    Upstream deletes line feeds rather than replacing them, so "a\\nb" becomes "ab"; the last space stays.
    """
    texts = (element.text + " " for element in elements if element.category.lower() not in ignored)
    return "".join(texts).replace("\n", "")


def tables_of_page(elements: Iterable[Element]) -> list[Element]:
    """The elements that are tables, whatever the case of their category."""
    return [element for element in elements if element.category.lower() == "table"]


def answer_of_elements(elements: Iterable[Element]) -> str:
    """Elements as a Markdown page, tables as HTML, for variants that read plain answers."""
    return "\n\n".join(
        wrapped_table(element.html) if element.category.lower() == "table" and element.html else element.text
        for element in elements
        if element.category.lower() not in IGNORED or element.category.lower() == "table"
    )


def wrapped_table(html: str) -> str:
    """Rows of a table as a whole table; a whole table as it is."""
    return html if html.startswith("<table") else f"<table>{html}</table>"


_END = "</table>"


def page_nid(prediction: Sequence[Element], reference: Sequence[Element], ignored: Collection[str] = IGNORED) -> float:
    """NID of one page; two pages without any text earn 0.01, as upstream."""
    return nid_dp_bench_v1(text_of_page(prediction, ignored), text_of_page(reference, ignored))


def page_tables(prediction: Sequence[Element], reference: Sequence[Element], *, v1: bool = False) -> TableScores | None:
    """TEDS and TEDS-struct of the first tables of a page; None where the ground truth has no table.

    Only the first table counts, because upstream's XPath finds no other, and `th` is not `td`. A page without
    a predicted table is wrapped in an empty one by upstream, and earns the share of tags inside cells, mostly 0.
    """
    wanted, found = tables_of_page(reference), tables_of_page(prediction)
    if not wanted:
        return None
    try:
        if v1:
            right = [_html(table, null="None") for table in wanted]  # written into an f-string upstream
            read = [unwrap_like_dp_bench_v1(_html(table)) for table in found]
        else:
            right, read = (
                [part for table in tables for part in table_contents(_html(table))] for tables in (wanted, found)
            )
    except TableTooLargeError:
        raise
    except TedsError as error:
        return TableScores(0.0, 0.0, error.upstream)
    return score_pair(_page_of_tables(read), _page_of_tables(right), variant="ibm")


def table_contents(html: str) -> list[str]:
    """Return the content of each table of the string, `<table[^>]*?>(.*?)</table>` as plain text; without any, the
    string.

    Kept for parity: a nested table ends the outer one, tags in capitals are none, text around tables is lost.
    """
    found, cursor = [], 0
    while (
        (start := html.find("<table", cursor)) >= 0
        and (inside := html.find(">", start) + 1) > 0
        and (end := html.find(_END, inside)) >= 0
    ):
        found.append(html[inside:end])
        cursor = end + len(_END)
    return found or [html]


def unwrap_like_dp_bench_v1(html: str) -> str:
    """The rows of a predicted table: the child tags of its first `<table>`.

    Kept for parity: text between the tags and further tables are lost, and `<table border="1">` is not recognised, so
    that it ends up inside another table and costs a node. Raises TedsError where `<table>` stands in a comment or an
    attribute alone: upstream takes the children of None there.
    """
    if "<table>" not in html:
        return html
    from bs4 import Tag

    table = parse_html(html).find("table")
    if not isinstance(table, Tag):
        raise TedsError("html.parser finds no table in this", upstream="AttributeError")
    return "".join(str(child) for child in table.find_all(recursive=False))


def _html(table: Element, null: str | None = None) -> str:
    """The HTML of a table element, `null` for what is no text. Raises TedsError where upstream raises."""
    html = table.content.html
    if isinstance(html, msgspec.UnsetType):
        raise TedsError("a table has no html", upstream="KeyError")
    html = null if html is None else html
    if html is None:
        raise TedsError("the html of a table is no text", upstream="TypeError")
    return html


def _page_of_tables(tables: Sequence[str]) -> str:
    page = f"<html><body>{''.join(f'<table>{rows}</table>' for rows in tables)}</body></html>"
    return as_read_by_libxml2(wrap_like_dpbench(page), "2.12")  # upstream pins lxml 5.1.0


#: Of tables of one page, each of the answer with each of the ground truth.
MAX_PAIRS = 2_000


def elements_of_markdown(answer: str) -> list[Element]:
    """A Markdown answer as official elements: one paragraph with its words, and its tables."""
    tables = [Element(category="Table", content=Content(html=table)) for table in tables_of_answer(answer)]
    return [Element(category="Paragraph", content=Content(text=strip_marks(answer))), *tables]


def tolerant_page_nid(answer: str, reference: Sequence[Element]) -> float:
    """NID of the words of an answer and those of the ground truth, in which a line feed is a space."""
    counted = [element.text for element in reference if element.category.lower() not in IGNORED]
    return nid(strip_marks(answer), " ".join(" ".join(counted).split()))


def tolerant_page_tables(answer: str, reference: Sequence[Element], *, first_only: bool) -> list[TableScores]:
    """One score per ground-truth table, paired by order; a table without a partner earns 0."""
    wanted = [tables_of_answer(wrapped_table(table.html)) for table in tables_of_page(reference)]
    found = tables_of_answer(answer)
    scores = []
    for place, table in enumerate(wanted[:1] if first_only else wanted):
        pair = (found[place] if place < len(found) else "", table[0] if table else "")
        scores.append(
            score_pair(*map(_tolerant_page, pair), variant="omnidocbench") if all(pair) else TableScores(0.0, 0.0)
        )
    return scores


def _tolerant_page(table: str) -> str:
    return f"<html><body>{table}</body></html>"


def stripped_page_nid(answer: str, reference: Sequence[Element]) -> float:
    """NID of the stripped answer. Line feeds of the ground truth are deleted, those of the answer are blanks."""
    counted = [each.text or each.content.markdown or "" for each in reference if each.category.lower() not in IGNORED]
    return nid(strip_tables_and_headings(answer), " ".join(" ".join(counted).replace("\n", "").split()))


def best_tables(answer: str, reference: Sequence[Element]) -> list[TableScores]:
    """Each ground-truth table against every table in the answer; the best TEDS counts, with its TEDS-struct.

    A predicted table may serve for several. Tables of an empty HTML, or of a category spelt otherwise, do not count.
    Raises TableTooLargeError for more than MAX_PAIRS pairs.
    """
    wanted = [table for table in reference if table.category == "Table" and table.html]
    if not wanted:
        return []
    found = dict.fromkeys(find_tables(answer))  # of equal ones the first counts
    if len(found) * len(wanted) > MAX_PAIRS:
        raise TableTooLargeError(f"{len(found):,} tables in one answer against {len(wanted):,}: too many to compare")
    pages = [normalized_page(table) for table in found]
    return [
        max(
            (score_pages(page, truth) for page in pages),
            key=lambda score: score.teds,
            default=TableScores(0.0, 0.0),
        )
        for truth in [normalized_page(wrapped_table(each.html)) for each in wanted]
    ]


_SPACE_TAG = re.compile(r"<(?:img|br)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_DISPLAY_MATH = re.compile(r"\$\$|\\[()\[\]]")
_DOLLAR = re.compile(r"\\.|\$|\n\n", re.DOTALL)
_RULED_LINE = re.compile(r"^[ \t]*([-*_])(?:[ \t]*\1){2,}[ \t]*$", re.MULTILINE)
_LINE_MARK = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|(?:>[ \t]?)+|[-*+][ \t]+)", re.MULTILINE)
_EMPHASIS = re.compile(r"\*{1,3}|_{1,2}|`+|\n[ \t]*\n")
_HEADING = re.compile(r"^#{1,6}\s+", re.MULTILINE)
_BLANKS = re.compile(r"[^\S\n]+")


def strip_marks(answer: str) -> str:
    """The words of a Markdown answer: no tables, images, tags, math delimiters or line marks, single spaces."""
    text = remove_fence(answer)
    text = spellings.replace(text, spellings.between(text, "<think>", "</think>"))
    text = remove_tables(text)
    text = spellings.unlink(spellings.replace(text, spellings.links(text, "![")))
    for opening, closing in (("<|ref|>", "<|/ref|>"), ("<|det|>", "<|/det|>")):
        text = spellings.replace(text, spellings.between(text, opening, closing))
    text = html.unescape(_TAG.sub("", _SPACE_TAG.sub(" ", text)))
    text = _remove_math_dollars(_DISPLAY_MATH.sub("", text))
    text = _LINE_MARK.sub("", _RULED_LINE.sub("", text))
    return " ".join(_remove_emphasis(text).split())


def remove_tables(text: str) -> str:
    """The text without HTML tables, LaTeX tables and tabulars, and Markdown pipe tables."""
    text = spellings.replace(text, spellings.html_tables(text))
    for name in ("table", "tabular"):
        text = spellings.replace(text, spellings.environments(text, name))
    return spellings.replace(text, (table.span for table in pipe_tables(text)))


def _remove_math_dollars(text: str) -> str:
    """Without the `$` around inline math. As in Pandoc, no space follows the first nor precedes the last, and no digit
    follows the last; the dollars of prices stay.
    """
    removed: list[int] = []
    opened = -1
    for mark in _DOLLAR.finditer(text):
        place = mark.start()
        if mark[0] != "$":
            opened = -1 if mark[0] == "\n\n" else opened
        elif opened >= 0 and not text[place - 1].isspace() and not text[place + 1 : place + 2].isdigit():
            removed += [opened, place]
            opened = -1
        elif text[place + 1 : place + 2].strip():
            opened = place
    return spellings.replace(text, [spellings.Span(place, place + 1) for place in removed])


def _remove_emphasis(text: str) -> str:
    """Without pairs of `*`, `**`, `***`, `_`, `__` and backticks around words; `_` inside a word stays."""
    removed: list[spellings.Span] = []
    opened: dict[str, int] = {}
    for found in _EMPHASIS.finditer(text):
        mark, start, end = found[0], found.start(), found.end()
        if "\n" in mark:
            opened.clear()
            continue
        before, after = text[start - 1 : start] if start else "", text[end : end + 1]
        if mark in opened and before.strip() and not (mark[0] == "_" and after.isalnum()):
            place = opened.pop(mark)
            removed += [spellings.Span(place, place + len(mark)), spellings.Span(start, end)]
        elif after.strip() and not (mark[0] == "_" and before.isalnum()):
            opened[mark] = start
    return spellings.replace(text, sorted(removed))


def strip_tables_and_headings(answer: str) -> str:
    """The text of an answer without images, tables and heading marks, as one line."""
    text = spellings.replace(answer, spellings.links(answer, "!["))
    without = spellings.replace(text, spellings.html_tables(text))
    text = without if without.strip() else spellings.replace(text, spellings.tags(text), " ")
    return _one_line(_without_table_lines(_HEADING.sub("", text)).replace("\n", " "))


def _without_table_lines(text: str) -> str:
    """Without the lines of Markdown tables; between two lines of `$$` all lines stay."""
    kept: list[str] = []
    in_math = False
    for line in text.split("\n"):
        bare = line.strip()
        if bare == "$$":
            in_math = not in_math
            kept.append(line)
        elif in_math or not _is_table_line(bare):
            kept.append(line)
    return "\n".join(kept)


def _is_table_line(line: str) -> bool:
    if is_rule(line):
        return True
    if line.startswith("|"):
        return line.endswith("|") and line.count("|") >= 3
    return line.count("|") >= 2 and pipes_outside_math(line)


def _one_line(text: str) -> str:
    return re.sub(r" +", " ", _BLANKS.sub(" ", text)).strip()
