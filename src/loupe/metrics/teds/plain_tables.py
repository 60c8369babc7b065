"""Trees of tables that are written so plainly that they need no parser.

A plain page is `html`, `body`, one `table`, rows or sections of rows, and cells, in lower case and each with its end
tag, without entities or unusual characters; cells hold text and bold, italic, raised or lowered parts. libxml2 makes
the same of it in twice the time (tests/metrics/test_metrics_teds_plain.py compares the two).
Others are left to table_tree.py.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from loupe.metrics.teds.table_tree import NO_CONTENT, TableTree, Vocabulary, first_descendants, span

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
    """Whether this is a plain page."""
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
