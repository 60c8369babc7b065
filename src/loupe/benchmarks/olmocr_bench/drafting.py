"""Tests in olmOCR-Bench's form, drafted from the transcript of a page: what stands there, in which order, what not.

The kinds are those of the paper (Poznanski et al., 2025, section on olmOCR-Bench): text that is present, the order of
two texts, cells of tables with what stands around them, equations, and headers and footers that must be absent. A test
is drafted only if it holds on its own transcript and fails where its fact is broken, by the code that scores.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, TypeAlias, TypeVar

from loupe.benchmarks.olmocr_bench.page_facts import check_test, without_images
from loupe.benchmarks.olmocr_bench.page_text import PageText, ReadTable
from loupe.benchmarks.olmocr_bench.records import TestRecordError, normalize, read_test
from loupe.benchmarks.shared.table_answers.table_grid import TableReadError

T = TypeVar("T")
#: A test as its line of the file has it.
Record: TypeAlias = dict[str, Any]

#: Tests of each kind on one page at most.
MOST: Mapping[str, int] = {"present": 4, "order": 3, "absent": 4, "table": 6, "math": 3}
#: Drafts that are looked at for each test that a page may have: a page made for it could have any number.
_TRIES = 4
#: Cells of one table, and characters of a transcript that is looked at.
_MOST_CELLS, _LONGEST_PAGE = 3, 200_000
#: Characters of a text to look for; what is shorter says little, and stands in other places, too.
_SHORTEST, _LONGEST, _LONGEST_ORDER = 20, 120, 60
_LONGEST_CELL, _SHORTEST_MATH, _LONGEST_MATH = 60, 8, 400
_SHORTEST_MARGIN, _LONGEST_MARGIN = 5, 150
#: What amounts between two dollar signs have not.
_MATH = re.compile(r"\\[a-zA-Z]|[\^_=]")
#: Marks of a line that say how it is set, and what makes the rest of it no plain text.
_LINE_MARK = re.compile(r"^\s*(?:#{1,6}\s+|>\s*|[-*+]\s+)")
_NOT_PLAIN = re.compile(r"[|<>$\\`*_\[\]{}#^~]")
#: What transcripts call a running header or footer, as engines write it.
_MARGIN_TAGS = ("header", "footer", "page_header", "page_footer", "page_number", "watermark")
#: Lines at either end of a page that may be a running header or footer, and pages that must have it.
_ENDS, _LEAST_PAGES = 2, 3
#: Numbers of such a line that may be that of the page; lists, and what makes a heading of the line above.
_NUMBER, _MOST_NUMBERS = re.compile(r"(?<![0-9])[0-9]{1,6}(?![0-9])"), 4
_LISTED = re.compile(r"\s*(?:[-+\u2022]|\w{1,3}[.)])\s")
_RULE = re.compile(r"=+|-+")


@dataclass(frozen=True, slots=True)
class Transcript:
    """A page as it should be read, and the headers and footers on it that should not."""

    body: str
    margins: tuple[str, ...] = ()


def read_transcript(text: str) -> Transcript:
    """The transcript in a text that may mark margins: `<header>…</header>`, `<footer>…</footer>`, and the like.

    >>> read_transcript("<header>The Times, 1931</header>\\nNews").margins
    ('The Times, 1931',)
    """
    margins: list[str] = []
    for tag in _MARGIN_TAGS:
        text, found = _taken_out(text, f"<{tag}>", f"</{tag}>")
        margins += found
    return Transcript(text, tuple(dict.fromkeys(each for each in (" ".join(one.split()) for one in margins) if each)))


def without_recurring(pages: Sequence[tuple[int, Transcript]]) -> list[Transcript]:
    """The pages of one file, given with their numbers, without the plain lines that stand at the same end of most.

    Three pages or more must have such a line, and half of all: word for word, or with a number that follows the page's.
    """
    ends = [(_end_lines(page.body, first=True), _end_lines(page.body, first=False)) for _, page in pages]
    counts = [
        Counter(
            key
            for (number, _), lines in zip(pages, ends, strict=True)
            for key in {key for line in lines[end] for key in _running_keys(line, number)}
        )
        for end in (0, 1)
    ]
    least = max(_LEAST_PAGES, -(-len(pages) // 2))
    found = []
    for (number, page), lines in zip(pages, ends, strict=True):
        running = {
            place: line
            for end in (0, 1)
            for line, place in lines[end].items()
            if any(counts[end][key] >= least for key in _running_keys(line, number))
        }
        kept = [line for place, line in enumerate(page.body.split("\n")) if place not in running]
        found.append(Transcript("\n".join(kept), tuple(dict.fromkeys([*page.margins, *running.values()]))))
    return found


def draft_tests(page: Transcript, *, pdf: str, number: int, ident: str, math: bool = True) -> list[Record]:
    """The tests of a page, named `ident-KIND-N`; none of equations without `math`.

    Raises MissingToolError for equations where nothing renders them.
    """
    body = page.body[:_LONGEST_PAGE]
    seen = PageText(body)
    drafts: dict[str, Callable[[], Iterator[Record]]] = {
        "present": lambda: _present(body),
        "order": lambda: _order(body),
        "absent": lambda: _absent(page.margins),
        "table": lambda: _tables(seen),
        "math": lambda: _equations(seen),
    }
    tests: list[Record] = []
    for kind, make in drafts.items():
        if kind == "math" and not math:
            continue
        kept = 0
        for facts in islice(make(), _TRIES * MOST[kind]):
            record = {"pdf": pdf, "page": number, "id": f"{ident}-{kind}-{kept + 1}", "type": kind, **facts}
            if kept < MOST[kind] and _tells(seen, body, record):
                kept += 1
                tests.append(record)
    return tests


def is_drafted(record: Mapping[str, Any], ident: str) -> bool:
    """True if a test bears a name that drafts of this page have."""
    kinds = "|".join(MOST)
    name = record.get("id")
    return isinstance(name, str) and re.fullmatch(rf"{re.escape(ident)}-(?:{kinds})-\d+", name) is not None


def broken(body: str, record: Mapping[str, Any]) -> Iterator[str]:
    """The transcript with the fact of a test broken, in each way that there is."""
    kind = record["type"]
    if kind == "absent":
        yield f"{record['text']}\n\n{body}"
        yield f"{body}\n\n{record['text']}"
    elif kind == "order":
        before, after = record["before"], record["after"]
        yield body.replace(before, "\0").replace(after, before).replace("\0", after)
        yield body.replace(before, "")
        yield body.replace(after, "")
    elif kind == "table":
        for name in ("cell", "up", "left", "top_heading", "left_heading"):
            if record.get(name):
                yield body.replace(record[name], "")
    else:
        yield body.replace(record["math"], "0") if kind == "math" else body.replace(record["text"], "")


def _tells(seen: PageText, body: str, record: Record) -> bool:
    """True if a test holds on its transcript, and on no transcript in which its fact is broken."""
    try:
        test = read_test(record)
        if not check_test(seen, test).passed:
            return False
        return not any(check_test(PageText(other), test).passed for other in broken(body, record))
    except (TestRecordError, TableReadError):
        return False


def _present(body: str) -> Iterator[Record]:
    for text in _spread(_unique(body, _LONGEST), MOST["present"]):
        yield {"text": text, "max_diffs": _slips(text)}


def _order(body: str) -> Iterator[Record]:
    """Neighbours among texts from all over the page: what a wrong column or a lost block turns round."""
    texts = _spread(_unique(body, _LONGEST_ORDER), MOST["order"] + 1)
    for before, after in pairwise(texts):
        yield {"before": before, "after": after, "max_diffs": min(_slips(before), _slips(after))}


def _absent(margins: Sequence[str]) -> Iterator[Record]:
    for text in margins:
        if sum(map(str.isalnum, text)) >= _SHORTEST_MARGIN and len(text) <= _LONGEST_MARGIN:
            yield {"text": text, "case_sensitive": False, "max_diffs": _slips(text)}


def _tables(seen: PageText) -> Iterator[Record]:
    try:
        tables = [*seen.markdown_tables, *seen.html_tables]
    except TableReadError:
        return
    counts = Counter(text for table in tables for text in table.texts)
    for table in tables:
        cells = [
            number
            for number, cell in enumerate(table.table.cells)
            if not cell.heading and 0 < len(cell.text) <= _LONGEST_CELL and counts[table.texts[number]] == 1
        ]
        for number in _spread([each for each in cells if any(map(str.isalnum, table.texts[each]))], _MOST_CELLS):
            around = {**_beside(table, number, "top_heading", "up"), **_beside(table, number, "left_heading", "left")}
            if around:
                yield {"cell": _flat(table.table.cells[number].text), **around}


def _beside(table: ReadTable, number: int, heading: str, neighbour: str) -> dict[str, str]:
    """The heading of a cell in one direction, or what stands beside it there."""
    for relation in (heading, neighbour):
        texts = [_flat(table.table.cells[other].text) for other in sorted(table.related(number, relation))]
        if text := next((each for each in texts if any(map(str.isalnum, each)) and len(each) <= _LONGEST), ""):
            return {relation: text}
    return {}


def _equations(seen: PageText) -> Iterator[Record]:
    found = [each for each in seen.equations() if _SHORTEST_MATH <= len(each) <= _LONGEST_MATH and _MATH.search(each)]
    for equation in _spread([each for each, count in Counter(found).items() if count == 1], MOST["math"]):
        yield {"math": equation}


def _unique(body: str, longest: int) -> list[str]:
    """Texts of the page in its order, one of each plain line at most; each stands on it once."""
    whole = normalize(body)
    texts = Counter(_beginning(line, longest) for line in _plain_lines(body))
    once = [text for text, count in texts.items() if text and count == 1]
    return [text for text in once if body.count(text) == 1 and whole.count(normalize(text)) == 1]


def _plain_lines(body: str) -> Iterator[str]:
    """Lines of running text: not of tables, code, displayed equations or images, and without marks in them."""
    for line in _outside_blocks(without_images(body)):
        text = _LINE_MARK.sub("", line).strip()
        if not _NOT_PLAIN.search(text):
            yield text


def _outside_blocks(body: str) -> Iterator[str]:
    """Lines that are of no table in HTML, code or displayed equation."""
    inside = ""
    for line in body.split("\n"):
        if inside:
            inside = "" if inside in line else inside
            continue
        inside = next((end for begin, end in _FENCED if begin in line and end not in line.split(begin, 1)[1]), "")
        if not inside:
            yield line


_FENCED = (("<table", "</table>"), ("```", "```"), ("$$", "$$"), ("\\[", "\\]"))


def _beginning(line: str, longest: int) -> str:
    """The line, or its beginning up to the end of a word; "" where too little is left to look for."""
    text = line if len(line) <= longest else line[:longest].rpartition(" ")[0] or line[:longest]
    text = text.rstrip(" -\u00ad")
    wide = sum(map(_is_wide, text))
    return text if len(text) + wide >= _SHORTEST and sum(map(str.isalnum, text)) >= len(text) / 2 else ""


def _is_wide(char: str) -> bool:
    """Chinese, Japanese, Korean: a character says as much as a short word."""
    return "\u2e80" <= char <= "\ud7ff" or "\uf900" <= char <= "\ufaff"


def _slips(text: str) -> int:
    """Characters that may be read otherwise: one in forty, three at most."""
    return min(3, len(text) // 40)


def _spread(items: Sequence[T], count: int) -> list[T]:
    """So many of them, evenly from the first to the last."""
    if len(items) <= count or count < 2:
        return list(items[:count])
    return [items[round(place * (len(items) - 1) / (count - 1))] for place in range(count)]


def _flat(text: str) -> str:
    return " ".join(text.split())


def _end_lines(body: str, *, first: bool) -> dict[str, int]:
    """Plain lines at one end of a page with their places; of equal lines the outermost."""
    lines = [line.strip() for line in body.split("\n")]
    filled = [place for place, line in enumerate(lines) if line]
    rules = {place for place in filled if _RULE.fullmatch(lines[place])}
    headings = {above for above, below in pairwise(filled) if below in rules}
    plain = {line.strip() for line in _outside_blocks(body) if not _NOT_PLAIN.search(line) and not _LISTED.match(line)}
    found: dict[str, int] = {}
    for place in filled[:_ENDS] if first else filled[: -_ENDS - 1 : -1]:
        if lines[place] in plain and place not in rules | headings:
            found.setdefault(lines[place], place)
    return found


def _running_keys(line: str, page: int) -> Iterator[str]:
    """Yield what lines that run through a file share: all, or all but one number that counts with the pages."""
    yield line.casefold()
    for number in islice(_NUMBER.finditer(line), _MOST_NUMBERS):
        yield f"{line[: number.start()]}\0{int(number[0]) - page}\0{line[number.end() :]}".casefold()


def _taken_out(text: str, opening: str, closing: str) -> tuple[str, list[str]]:
    """The text without what stands between the marks, and that."""
    kept, found, position = [], [], 0
    while (start := text.find(opening, position)) >= 0 and (end := text.find(closing, start)) >= 0:
        kept.append(text[position:start])
        found.append(text[start + len(opening) : end])
        position = end + len(closing)
    return "".join([*kept, text[position:]]), found
