"""Page elements in the shape of DP-Bench: what ground truth and official predictions are made of.

Source: upstage/dp-bench, src/layout_evaluation.py and dataset/reference.json; docs/benchmarks/dp_bench.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from loupe.typed import convert, decode_json

_OPENING = re.compile(r'\ufeff?\s*\{\s*"elements"\s*:')
#: Categories whose text does not count, in lower case.
IGNORED: frozenset[str] = frozenset({"figure", "table", "chart"})


class Content(msgspec.Struct, frozen=True):
    """What an element says. Table HTML has rows only in the ground truth, no `<table>` around them.

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
    """Whether an answer begins like the official form, whatever comes then."""
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
