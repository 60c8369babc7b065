"""Prepare an answer to one page in the forms that its tests look at, each made once.

An answer is the outputs `html` and `blocks` of the official evaluator, HTML, or Markdown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

from loupe.benchmarks.omni_parse_bench.equations import MathSpan, Symbols, math_spans, read_spans
from loupe.benchmarks.omni_parse_bench.folding import fold
from loupe.benchmarks.omni_parse_bench.outcomes import GradingError
from loupe.benchmarks.omni_parse_bench.page_tables import PageTable, Surroundings, page_tables
from loupe.benchmarks.omni_parse_bench.records import LABELS, OUTPUT_TYPES, Box, OutputType
from loupe.benchmarks.omni_parse_bench.view import html_of_markdown, unwrapped, view_text
from loupe.benchmarks.shared.near_matches import NearMatches, find_near_matches
from loupe.benchmarks.shared.table_answers.table_grid import TableLimitError
from loupe.types import Edit, FormatFault


@dataclass(frozen=True, slots=True)
class Block:
    """A block of the layout; the box is in fractions of the page."""

    label: str
    box: Box
    text: str = ""


@dataclass(frozen=True, slots=True)
class PageEquations:
    """The symbols of the equations of a page, and how many of these cost the browser."""

    symbols: Sequence[Symbols]
    lost: int


class Page:
    """The HTML of a page. What a test asks for first is made then; a fault in making it is met by each that asks."""

    def __init__(self, html: str) -> None:
        self.html = html
        self._near: dict[tuple[str, int, bool], NearMatches | None] = {}

    @cached_property
    def text(self) -> str:
        """The text that a reader sees. Raises GradingError, as all that is made of it."""
        return view_text(self.html)

    @cached_property
    def folded(self) -> str:
        """The text as it is compared."""
        return fold(self.text)

    @cached_property
    def squeezed(self) -> str:
        """The same without white space."""
        return "".join(self.folded.split())

    @cached_property
    def folded_without_images(self) -> str:
        """The folded text without what stands for images."""
        if "alt=" not in self.html.lower() and "![" not in self.html:
            return self.folded
        return fold(view_text(self.html, alt=False))

    @cached_property
    def tables(self) -> list[tuple[PageTable, Surroundings]]:
        """The tables with cells. Raises also TableLimitError."""
        if isinstance(self._tables, Exception):
            raise self._tables
        return self._tables

    @cached_property
    def _tables(self) -> list[tuple[PageTable, Surroundings]] | GradingError | TableLimitError:
        try:
            return [(table, Surroundings(table)) for table in page_tables(self.html)]
        except (GradingError, TableLimitError) as error:
            return error

    @cached_property
    def equations(self) -> list[MathSpan]:
        """The equations as they are written."""
        return math_spans(self.html)

    @cached_property
    def drawn_equations(self) -> PageEquations:
        """The content that the equations show. Raises also MissingToolError and LoupeError."""
        return PageEquations(*read_spans(self.equations))

    def near(self, wanted: str, max_diffs: int, *, squeezed: bool) -> NearMatches | None:
        """Near matches of a folded text."""
        key = (wanted, max_diffs, squeezed)
        if key not in self._near:
            self._near[key] = find_near_matches(wanted, self.squeezed if squeezed else self.folded, max_diffs)
        return self._near[key]


Form: TypeAlias = Literal["auto", "markdown", "html", "json"]
Outputs: TypeAlias = Literal["auto", "html", "both"]

#: Longer HTML, or more blocks, are malformed: limits of ours, far above any page.
LONGEST_HTML = 1_000_000
MOST_BLOCKS = 20_000
_MARKDOWN_SIGN = re.compile(r"(?m)^[ \t]{0,3}(?:#{1,6}[ \t]|\|.*\||[-*+][ \t]|\d{1,9}[.)][ \t])|\*\*\S")


@dataclass(frozen=True, slots=True)
class Answer:
    """The outputs of one page: None where there is none, `malformed` says why one cannot be read.

    `unsupported` are outputs that the engine does not make; `tells_blocks`: this answer shows that it makes blocks.
    """

    html: str | None = None
    blocks: tuple[Block, ...] | None = None
    malformed: Mapping[OutputType, str] = field(default_factory=dict)
    unsupported: frozenset[OutputType] = frozenset()
    tells_blocks: bool = False


def read_answer(text: str, *, form: Form = "auto", outputs: Outputs = "auto") -> Answer:
    """The outputs of an answer. Blocks are unsupported with outputs=html, and expected of each answer with `both`."""
    unsupported: frozenset[OutputType] = frozenset({"blocks"} if outputs == "html" else ())
    expected = {"blocks": None} if outputs == "both" else {}
    found = _prediction(text) if form in ("auto", "json") else None
    if found is not None or form == "json":
        return answer_of(expected | (found or {}), unsupported)
    if form == "auto" and _is_html(inner := unwrapped(text).strip()):
        form, text = "html", inner
    return answer_of(expected | {"html": text if form == "html" else _converted(text)}, unsupported)


def answer_of(found: Mapping[str, Any], unsupported: frozenset[OutputType] = frozenset()) -> Answer:
    """The outputs of an official prediction."""
    malformed: dict[OutputType, str] = {}
    html, blocks = found.get("html"), found.get("blocks")
    if html is not None and not isinstance(html, str):
        malformed["html"] = "`html` is no text"
    elif html is not None and len(html) > LONGEST_HTML:
        malformed["html"] = f"`html` has {len(html):,} characters, and at most {LONGEST_HTML:,} are read"
    read: tuple[Block, ...] | None = None
    if blocks is not None:
        try:
            read = _blocks(blocks)
        except ValueError as error:
            malformed["blocks"] = str(error)
    return Answer(
        html=None if "html" in malformed else html,
        blocks=read,
        malformed=malformed,
        unsupported=unsupported,
        tells_blocks="blocks" in found and "blocks" not in unsupported,
    )


def _prediction(text: str) -> dict[str, Any] | None:
    """The official prediction that a text is: an object with outputs, and nothing else."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found and set(found) <= set(OUTPUT_TYPES) else None


def _is_html(text: str) -> bool:
    """True if an answer of unknown form is HTML: it begins with a tag, and shows no mark of Markdown."""
    return text.startswith("<") and not _MARKDOWN_SIGN.search(text)


def _converted(text: str) -> str | None:
    if len(text) > LONGEST_HTML:
        return text
    try:
        return html_of_markdown(text)
    except GradingError:
        # The official adapter of such an engine fails, and its page has no output.
        return None


def _blocks(found: Any) -> tuple[Block, ...]:
    """The blocks of an output. Raises ValueError, which says what is wrong with it."""
    if not isinstance(found, list):
        raise ValueError("`blocks` is no list")
    if len(found) > MOST_BLOCKS:
        raise ValueError(f"{len(found):,} blocks, and at most {MOST_BLOCKS:,} are read")
    return tuple(_block(block, number) for number, block in enumerate(found))


def _block(block: Any, number: int) -> Block:
    names = set(block) if isinstance(block, dict) else set()
    if names - {"text"} != {"label", "bbox"}:
        raise ValueError(f"block {number} is no object of `label`, `bbox` and perhaps `text`")
    label, box, text = block["label"], block["bbox"], block.get("text")
    if not isinstance(label, str) or label not in LABELS:
        raise ValueError(f"block {number}: the label {str(label)[:40]!r} is none of {', '.join(LABELS)}")
    if not isinstance(box, list) or len(box) != 4 or not all(map(_is_fraction, box)):
        raise ValueError(f"block {number}: `bbox` is not four numbers from 0 to 1")
    if text is not None and not isinstance(text, str):
        raise ValueError(f"block {number}: `text` is neither a text nor null")
    return Block(label, (box[0], box[1], box[2], box[3]), text or "")


def _is_fraction(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


_FENCED = re.compile(r"```(?:html|markdown|md)?[ \t]*\n(.*?)\n?```[ \t]*(?=\n|\Z)", re.DOTALL | re.IGNORECASE)
_EMPHASIS = re.compile(r"\*\*(?=\S)(?P<text>[^*\n<>]+)(?<=\S)\*\*")
_TAG = re.compile(r"\s*</?[A-Za-z!]")


def _words_around(text: str) -> Sequence[Edit]:
    """Words before a fence around the page: it then is a listing of code, and tables in it are none."""
    found = _FENCED.search(text)
    if found is None or not text[: found.start()].strip() or 2 * len(found[1]) < len(text):
        return ()
    edits = [Edit(0, found.start(1), ""), Edit(found.end(1), len(text), "")]
    return [edit for edit in edits if edit.start < edit.end]


def _markdown_in_html(text: str) -> Sequence[Edit]:
    """Marks of emphasis in HTML: nothing takes them away, and they stand in the text that is compared."""
    if not _TAG.match(text):
        return ()
    marks = (place for found in _EMPHASIS.finditer(text) for place in (found.start(), found.end() - 2))
    return [Edit(place, place + 2, "") for place in marks]


FAULTS = (
    FormatFault(name="words-around-page", meaning="words before a fence around the page", edits=_words_around),
    FormatFault(name="markdown-in-html", meaning="Markdown emphasis in HTML", edits=_markdown_in_html),
)
#: Of the faults that adapters mend, those that cost nothing here: HTML is read as it is, front matter is taken off.
HARMLESS = frozenset(("html-text", "front-matter"))
