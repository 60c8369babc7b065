"""Read HTML tables as the ordered trees that TEDS compares; plainly written ones need no parser.

Source: the IBM evaluator (ibm-aur-nlp/PubTabNet, src/metric.py); docs/protocols/teds.md#core and #parser-versions. The
parser is libxml2's, through lxml, because the official numbers are made with it: broken HTML gives other trees
elsewhere.

A plain page is `html`, `body`, one `table`, rows or sections of rows, and cells, in lower case and each with its end
tag, without entities or unusual characters; cells hold text and bold, italic, raised or lowered parts. libxml2 makes
the same of it in twice the time (tests/metrics/test_metrics_teds_plain.py compares the two).
"""

from __future__ import annotations

import functools
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lxml.etree import HTMLParser, XPath, _Element


NO_CONTENT: Final = 0
"""The content of every node that is no cell, and of empty cells: the empty string."""

INSTRUCTION: Final = "x-instruction"
"""An element that stands for a processing instruction: a node, but not counted as an element."""

_FULL_DOCUMENT = re.compile(r"^\s*<(?:html|!doctype)", re.IGNORECASE)  # lxml's own test, word for word
_TAG_CODES = range(0xD800, 0xE000)  # surrogates: the parser decodes UTF-8, so no text of a cell can hold one

_LONGEST_SPAN: Final = 9  # digits; no table is as wide

Label = tuple[str, int, int]


class TedsError(ValueError):
    """This pair has no TEDS: the official evaluator raises (`upstream` names its exception), or there is no table."""

    def __init__(self, message: str, upstream: str) -> None:
        super().__init__(message)
        self.upstream = upstream


class TableTooLargeError(TedsError):
    """Comparing this pair would take more time or memory than one sample may have."""

    def __init__(self, message: str) -> None:
        super().__init__(message, upstream="")


@dataclass(slots=True)
class Vocabulary:
    """Numbers for the labels, cell texts and subtrees of the trees that are compared with each other."""

    labels: dict[Label, int] = field(default_factory=dict)
    contents: dict[str, int] = field(default_factory=lambda: {"": NO_CONTENT})
    subtrees: dict[tuple[int, ...], int] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    _texts: list[str] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """The content strings by number."""
        if len(self._texts) != len(self.contents):
            self._texts = list(self.contents)
        return self._texts

    def tag_code(self, token: str) -> str:
        """One character that stands for a tag inside cells, where a tag counts as one token."""
        code = self.tags.get(token)
        if code is None:
            if len(self.tags) == len(_TAG_CODES):
                raise TableTooLargeError(f"the cells hold more than {len(_TAG_CODES)} different tags")
            code = self.tags[token] = chr(_TAG_CODES[len(self.tags)])
        return code

    @property
    def written_tags(self) -> dict[int, str]:
        """For `str.translate`: what writes the tags in a content string out again."""
        return {ord(code): token for token, code in self.tags.items()}


@dataclass(frozen=True)
class TableTree:
    """One table; the lists have an entry per node, in reversed document order.

    Reversed, because every node then comes after all its descendants, and those of node k are exactly `first[k]` to
    k - 1.
    """

    labels: list[int]
    contents: list[int]
    counts: list[int]  # children
    first: list[int]
    elements: int  # descendant elements of the table, tags inside cells included
    vocabulary: Vocabulary

    def __len__(self) -> int:
        return len(self.labels)

    @functools.cached_property
    def subtrees(self) -> list[int]:
        """A number per node: equal ones for equal subtrees, also in another tree of the same vocabulary."""
        return self._numbered(self.contents)

    @functools.cached_property
    def shapes(self) -> list[int]:
        """The same, but for subtrees that are equal when all cells are emptied."""
        return self._numbered([NO_CONTENT] * len(self))

    def _numbered(self, contents: list[int]) -> list[int]:
        known, first = self.vocabulary.subtrees, self.first
        numbers = [label << 32 | content for label, content in zip(self.labels, contents, strict=True)]
        for node in [node for node, count in enumerate(self.counts) if count]:
            start = first[node]
            children = numbers[start:node]
            if len(children) != self.counts[node]:
                children = []
                child = node - 1
                while child >= start:
                    children.append(numbers[child])
                    child = first[child] - 1
                children.reverse()
            # Numbers of inner nodes are negative, so that none is that of a leaf.
            numbers[node] = known.setdefault((self.labels[node], *children), -1 - len(known))
        return numbers


def parse_table(html: str) -> _Element | None:
    """The table that TEDS scores, as the official XPath `body/table` finds it; None when there is none.

    Raises TedsError where lxml raises: a document of blanks only, an XML declaration with an encoding.
    """
    from lxml import etree
    from lxml import html as lxml_html

    try:
        if _FULL_DOCUMENT.match(html):
            root = etree.fromstring(html, _parser())
        else:
            root = lxml_html.fromstring(html, parser=lxml_html.HTMLParser(remove_comments=True, encoding="utf-8"))
    except (ValueError, etree.LxmlError) as error:
        raise TedsError(f"the HTML cannot be parsed: {error}", upstream=type(error).__name__) from error
    if root is None:
        raise TedsError("the HTML cannot be parsed: Document is empty", upstream="ParserError")
    return root.find("body/table")


def first_table(html: str, vocabulary: Vocabulary) -> TableTree | None:
    """Return the first table anywhere in a document, a fragment or other text; None if it has none.

    Not the official reading: header cells have texts and spans like all cells, and a span that is not a number is 1.
    """
    if "<table" not in html.lower():
        return None
    page = html if html.startswith("<html>") else f"<html><body>{html.strip()}</body></html>"
    # Read without a parser, header cells have no texts, and spans must be numbers.
    if is_plain(page) and "<th>" not in page and "<th " not in page and "span=" not in page:
        tree = build_plain_tree(page, vocabulary)
    else:
        from lxml import etree

        root = etree.fromstring(html.encode("utf-8", "replace"), _parser())
        table = None if root is None else next(root.iter("table"), None)
        if table is None:
            return None
        for cell in _xpath(".//td | .//th")(table):
            for name in ("colspan", "rowspan"):
                value = cell.get(name, "1").strip()
                if not value.isdecimal() or len(value) > _LONGEST_SPAN:
                    del cell.attrib[name]
        tree = build_tree(table, vocabulary, cells=("td", "th"))
    return tree if tree.elements else replace(tree, elements=1)  # two empty tables are equal


@functools.cache
def _parser() -> HTMLParser:
    from lxml import etree

    return etree.HTMLParser(remove_comments=True, encoding="utf-8")


@functools.cache
def _xpath(expression: str) -> XPath:
    from lxml import etree

    return etree.XPath(expression)


def build_tree(table: _Element, vocabulary: Vocabulary, *, cells: Sequence[str] = ("td",)) -> TableTree:
    """The tree of a parsed table: cells are leaves, every other element is an inner node without text.

    Officially only `td` is a cell, so that the texts and spans of `th` are ignored (docs/protocols/teds.md#core, step
    6). Raises TedsError for a colspan or rowspan that Python's int() does not read.
    """
    labels, contents, counts = _nodes_in_document_order(table, vocabulary, cells)
    labels.reverse()
    contents.reverse()
    counts.reverse()
    elements = int(_xpath(f"count(.//*[name() != '{INSTRUCTION}'])")(table))
    return TableTree(labels, contents, counts, first_descendants(counts), elements, vocabulary)


def _nodes_in_document_order(
    table: _Element, vocabulary: Vocabulary, cells: Sequence[str]
) -> tuple[list[int], list[int], list[int]]:
    """Label, content and number of children per node."""
    label_ids, content_ids = vocabulary.labels, vocabulary.contents
    plain_cells = {tag: label_ids.setdefault((tag, 1, 1), len(label_ids)) for tag in cells}
    spanning = set(_xpath(".//*[@colspan or @rowspan]")(table))
    labels: list[int] = []
    contents: list[int] = []
    counts: list[int] = []
    nodes = table.iter()
    for node in nodes:
        count = len(node)
        if node.tag in plain_cells:
            label = plain_cells[node.tag]
            if node in spanning:
                colspan, rowspan = node.get("colspan", "1"), node.get("rowspan", "1")
                key = (node.tag, span("colspan", colspan), span("rowspan", rowspan))
                label = label_ids.setdefault(key, len(label_ids))
            text = node.text or ""
            if count:
                text = cell_tokens(node, vocabulary)
                deque(islice(nodes, sum(1 for _ in node.iterdescendants())), maxlen=0)  # they are no nodes
            labels.append(label)
            contents.append(content_ids.setdefault(text, len(content_ids)))
            counts.append(0)
        else:
            labels.append(label_ids.setdefault((node.tag, 0, 0), len(label_ids)))
            contents.append(NO_CONTENT)
            counts.append(count)
    return labels, contents, counts


def first_descendants(counts: list[int]) -> list[int]:
    """The first descendant of each node, or the node itself, from their numbers of children."""
    first = list(range(len(counts)))
    last_inner = -1
    for node in [node for node, count in enumerate(counts) if count]:
        start = node - counts[node]
        if start <= last_inner:  # not all children are leaves
            start = node
            for _ in range(counts[node]):
                start = first[start - 1]
        first[node] = start
        last_inner = node
    return first


def span(name: str, value: str) -> int:
    """A span as Python's int() reads it, blanks, underscores and foreign digits included; as upstream."""
    try:
        return int(value)
    except ValueError as error:
        raise TedsError(f"{name}={value!r} is not a number", upstream="ValueError") from error


def cell_tokens(cell: _Element, vocabulary: Vocabulary) -> str:
    """The content of a cell that holds tags: a string in which each tag is one character of its own.

    Kept as upstream: `unk` has no closing token, and text after a `td` inside a `td` is dropped.
    """
    from lxml import etree

    code = vocabulary.tag_code
    tokens: list[str] = []
    for event, node in etree.iterwalk(cell, events=("start", "end")):
        if event == "start":
            tokens += (code(f"<{node.tag}>"), node.text or "")
        else:
            if node.tag != "unk":
                tokens.append(code(f"</{node.tag}>"))
            if node.tag != "td" and node is not cell:
                tokens.append(node.tail or "")
    return "".join(tokens)[1:-1]


_MAX_LENGTH: Final = 1_000_000  # libxml2 has limits too, far above
_UNUSUAL = re.compile("[&\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
# Groups are atomic, `(?>(?:…)*)`, and not possessive, `(?:…)*+`: Python before 3.11.5 matches those wrongly.
_SPACE = r"[ \t\n]*+"
_ATTRIBUTES = r'(?>(?: [a-z]++="[^"<>]*+")*)'
_PART = r"<(?:b>[^<]*+</b|i>[^<]*+</i|sup>[^<]*+</sup|sub>[^<]*+</sub)>[^<]*+"
_CELLS = rf"(?>(?:<t(?:d{_ATTRIBUTES}>[^<]*+(?>(?:{_PART})*)</td|h{_ATTRIBUTES}>[^<]*+</th)>{_SPACE})*)"
_ROWS = f"(?>(?:<tr>{_SPACE}{_CELLS}</tr>{_SPACE})*)"
_SECTIONS = f"(?>(?:<(thead|tbody|tfoot)>{_SPACE}{_ROWS}</\\1>{_SPACE})+)"
_PAGE = re.compile(
    f"<html>{_SPACE}<body>{_SPACE}<table{_ATTRIBUTES} ?>{_SPACE}(?:{_SECTIONS}|{_ROWS})</table>{_SPACE}</body>{_SPACE}"
    f"</html>{_SPACE}"
)
_TAG_IN_CELL = re.compile("</?(?:b|i|sup|sub)>")
_ELEMENT = re.compile("<(t[a-z]++)([^>]*+)>([^<]*+)")
_ATTRIBUTE = re.compile(' ([a-z]++)="([^"]*+)"')


def is_plain(html: str) -> bool:
    """True if this is a plain page."""
    return len(html) <= _MAX_LENGTH and _PAGE.fullmatch(html) is not None and not _UNUSUAL.search(html)


def build_plain_tree(html: str, vocabulary: Vocabulary) -> TableTree:
    """The tree of the table in a plain page, as `table_tree.build_tree` makes it. Raises TedsError as that does."""
    ends_in_cells = html.count("</b>") + html.count("</i>") + html.count("</su")
    if ends_in_cells:
        html = _TAG_IN_CELL.sub(lambda tag: vocabulary.tag_code(tag[0]), html)
    label_ids, content_ids = vocabulary.labels, vocabulary.contents
    plain_cell = label_ids.setdefault(("td", 1, 1), len(label_ids))
    labels: list[int] = []
    contents: list[int] = []
    inner: list[tuple[int, str]] = []
    for tag, attributes, text in _ELEMENT.findall(html):
        if tag == "td":
            label = plain_cell
            if attributes:
                key = _cell_label(attributes)
                label = label_ids.setdefault(key, len(label_ids))
            labels.append(label)
            contents.append(content_ids.setdefault(text, len(content_ids)))
        else:
            if tag != "th":
                inner.append((len(labels), tag))
            labels.append(label_ids.setdefault((tag, 0, 0), len(label_ids)))
            contents.append(NO_CONTENT)
    counts = _children(inner, len(labels))
    labels.reverse()
    contents.reverse()
    counts.reverse()
    elements = len(labels) - 1 + ends_in_cells
    return TableTree(labels, contents, counts, first_descendants(counts), elements, vocabulary)


def _cell_label(attributes: str) -> tuple[str, int, int]:
    found: dict[str, str] = {}
    for name, value in _ATTRIBUTE.findall(attributes):
        found.setdefault(name, value)  # libxml2 keeps the first of several
    return "td", span("colspan", found.get("colspan", "1")), span("rowspan", found.get("rowspan", "1"))


def _children(inner: list[tuple[int, str]], count: int) -> list[int]:
    """The number of children of each node, from the places of those that are no cells."""
    counts = [0] * count
    section = 0
    for (place, tag), (following, _) in pairwise([*inner, (count, "")]):
        if tag == "tr":
            counts[place] = following - place - 1
            counts[section] += 1
        elif place:
            section = place
            counts[0] += 1
    return counts
