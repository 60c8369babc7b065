"""Find formatting faults that cost points in answers to OmniDocBench, and the edits that mend them.

`FAULTS` lists them in the order in which they are mended; each fault has one function.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby, pairwise

from loupe.benchmarks.omnidocbench.answer_formulas import take_formulas
from loupe.benchmarks.omnidocbench.answer_tables import tables_in
from loupe.benchmarks.omnidocbench.extraction import TABLES, read_answer, take_each
from loupe.benchmarks.omnidocbench.lint_blocks import (
    escaped_formulas,
    latex_tables,
    markdown_tables,
    prose_between_dollars,
    unclosed_formulas,
)
from loupe.types import Edit, FormatFault


def single_newlines(text: str) -> list[Edit]:
    """An answer without an empty line outside of tables and formulas: every line becomes a block (#paragraphs).

    Where the lines are all about equally long the page was wrapped, and its paragraphs are put together again;
    otherwise each line is a paragraph.
    """
    form = read_answer(text).form
    if not form.split_by_lines or form.text_blocks < 2:
        return []
    kept = _Standing(text)
    lines = _lines(text)
    first, last = _first_and_last(text)
    # Empty lines with blanks in them are a fault of their own.
    if any(not text[start:end].strip() and not kept.covers(start) for start, end in lines if first <= start < last):
        return []
    breaks = [pair for pair in pairwise(lines) if first <= pair[0][1] < last and not kept.covers(pair[0][1])]
    wraps = _wrapped(text, breaks)
    return [
        Edit(end, end + 1, _joint(text[end - 1 : end + 2]) if wrapped else "\n\n")
        for ((_, end), _), wrapped in zip(breaks, wraps, strict=True)
    ]


def joined_blocks(text: str) -> list[Edit]:
    """Headings, tables and displayed formulas with text directly above or below: what is around them becomes one block.

    An empty line with blanks in it separates nothing either (#paragraphs).
    """
    if read_answer(text).form.split_by_lines and not _BLANK_LINE.search(text.strip()):
        return []
    kept = _Standing(text)
    edits = [Edit(*match.span(), "") for match in _BLANK_LINE.finditer(text) if not kept.covers(match.start())]
    for (start, end), (below, below_end) in pairwise(_lines(text)):
        if kept.covers(end) or not text[start:end].strip() or not text[below:below_end].strip():
            continue
        if text.startswith("```", start) or text.startswith("```", below):
            continue
        headings = _HEADING.match(text, start) or _HEADING.match(text, below)
        if headings or end in kept.newlines:
            edits.append(Edit(end, end + 1, "\n\n"))
    return sorted(edits)


def page_fence(text: str) -> list[Edit]:
    """A code fence around the whole page; one without a language only if it ends the page too."""
    first, last = _first_and_last(text)
    lines = [line for line in _lines(text) if first <= line[0] < last]
    opening = _FENCE.fullmatch(text, *lines[0]) if lines else None
    if opening is None:
        return []
    fences = [(start, end) for start, end in lines if text.startswith("```", start)]
    # Fences within the page come in pairs; a bare one that is left over closes the page.
    closing = fences[-1] if len(fences) % 2 == 0 and text[slice(*fences[-1])].strip() == "```" else None
    if opening[1].lower() not in _PAGE_LANGUAGES and (opening[1] or closing != lines[-1]):
        return []
    start, end = lines[0]
    return [Edit(start, min(end + 1, len(text)), ""), *([Edit(*closing, "")] if closing else [])]


def repeated_blocks(text: str) -> list[Edit]:
    """Blocks that the page holds again: long ones anywhere, short ones three times in a row. The first stays."""
    kept = _Standing(text)
    separator = "\n\n" if "\n\n" in text.strip() else "\n"
    blocks = [
        (start, end, " ".join(text[start:end].split()))
        for start, end in _split(text, separator)
        if text[start:end].strip() and not kept.cuts(start, end) and text[start] != "|"
    ]
    seen: set[str] = set()
    edits = []
    for key, group in groupby(blocks, key=lambda block: block[2]):
        run = list(group)
        surplus = run if key in seen else run[1:]
        if len(key) >= _LONG_BLOCK or (len(run) >= _FEW and any(map(str.isalnum, key))):
            edits += [Edit(max(0, start - len(separator)), end, "") for start, end, _ in surplus]
            seen.add(key)
    return edits


def images(text: str) -> list[Edit]:
    """Images, as Markdown or HTML, with what wraps them: a page's figures are not asked for (#prompt)."""
    found = [Edit(*match.span(), "") for match in _HTML_IMAGE.finditer(text)]
    found += [Edit(*match.span(), "") for match in _MARKDOWN_IMAGE.finditer(text)]
    return _apart(sorted(found))


FAULTS = (
    FormatFault(
        name="page-fence", meaning="marks of a code fence around the page", edits=page_fence, adapter="unfence"
    ),
    FormatFault(name="image", meaning="images in the answer", edits=images),
    FormatFault(name="latex-table", meaning="LaTeX tables, which score 0", edits=latex_tables),
    FormatFault(name="md-table", meaning="Markdown tables, which lose cells and lines", edits=markdown_tables),
    FormatFault(name="escaped-math", meaning=r"characters escaped in formulas (\_, &lt;)", edits=escaped_formulas),
    FormatFault(name="unclosed-math", meaning=r"$, $$, \[ or \( that nothing closes", edits=unclosed_formulas),
    FormatFault(name="dollar-prose", meaning="prose between dollars", edits=prose_between_dollars),
    FormatFault(name="repeated-block", meaning="repeated blocks", edits=repeated_blocks),
    FormatFault(name="single-newline", meaning="lines of an answer without an empty line", edits=single_newlines),
    FormatFault(name="joined-block", meaning="blocks joined by a single newline", edits=joined_blocks),
)


_HEADING = re.compile(r"#{1,6} ")
#: What begins a block of its own, so that the line above it cannot have been wrapped.
_BLOCK_START = re.compile(r"#{1,6} |[-*+•] |\(?\d{1,3}[.)、]|[|<$!]|\\\[|```")
_CJK = re.compile("[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]")
_BLANKS = re.compile(r"[ \t]*")
_BLANK_LINE = re.compile(r"(?<=\n)[ \t]+(?=\n)")
#: Lines longer than this are no output of a wrapped page.
_WIDEST_WRAP = 200
#: A line that ends so may end its paragraph: one too many costs little, for upstream joins neighbours (#neighbours).
_SENTENCE_ENDS = frozenset(".!?:。！？：")
_FENCE = re.compile(r"```[ \t]*(\w*)[ \t]*")
#: Languages of a fence that wraps a whole page; code of any other language is content.
_PAGE_LANGUAGES = frozenset({"markdown", "md", "html", "latex", "tex"})
#: A block of this many characters that stands on a page twice is a loop of the model, hardly ever print.
_LONG_BLOCK = 40
_FEW = 3
_MARKDOWN_IMAGE = re.compile(r"!\[[^\[\]\n]*\]\((?:[^()\n]|\([^()\n]*\))*\)")
#: An `<img>` without anything in it is a mark of Nanonets-OCR around a description (docs/adapters.md).
_HTML_IMAGE = re.compile(r"<(div|p|figure|center)\b[^<>]*>\s*(?:<img\b[^<>]+>\s*)+</\1>|<img\b[^<>]+>")


class _Standing:
    """Tables and displayed formulas: newlines within them say nothing; `newlines` are those right before and behind."""

    def __init__(self, text: str) -> None:
        items, rest = take_each(text, (*TABLES, take_formulas))
        spans = [(item.start, _without_newline(text, item.end)) for item in items if not item.fine_category]
        self._starts: list[int] = []
        self._ends: list[int] = []
        self.newlines: set[int] = set()
        self._cover(spans)
        for start, end in spans:
            above = start
            while above and text[above - 1] in " \t":
                above -= 1
            below = _BLANKS.match(text, end)
            # A formula within a line belongs to its paragraph.
            stands = (above == 0 or text[above - 1] == "\n") and below and text[below.end() : below.end() + 1] in "\n"
            if stands and below:
                self.newlines |= {above - 1, below.end()}
        # What stands directly above a Markdown table is a fault of that table.
        self._cover(_markdown_tables(rest))

    def _cover(self, spans: Iterable[tuple[int, int]]) -> None:
        merged = sorted([*zip(self._starts, self._ends, strict=True), *spans])
        self._starts = [start for start, _ in merged]
        self._ends = list(accumulate((end for _, end in merged), max))

    def covers(self, offset: int) -> bool:
        """True if this character stands within one."""
        place = bisect_right(self._starts, offset) - 1
        return place >= 0 and offset < self._ends[place]

    def cuts(self, start: int, end: int) -> bool:
        """True if one begins before this piece, or ends behind it."""
        return (self.covers(start) and self.covers(start - 1)) or (self.covers(end) and self.covers(end - 1))


def _markdown_tables(text: str) -> Iterator[tuple[int, int]]:
    lines = _lines(text)
    for table in tables_in([text[start:end] for start, end in lines]):
        yield lines[table.start][0], lines[table.stop - 1][1]


def _without_newline(text: str, end: int) -> int:
    """The official search takes the character behind a LaTeX table with it (#latex-tables)."""
    return end - 1 if text[end - 1 : end] == "\n" else end


def _lines(text: str) -> list[tuple[int, int]]:
    return list(_split(text, "\n"))


def _split(text: str, separator: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of the pieces between separators."""
    start = 0
    for piece in text.split(separator):
        yield start, start + len(piece)
        start += len(piece) + len(separator)


def _first_and_last(text: str) -> tuple[int, int]:
    """Return the start of the text at the beginning of its first line that is not blank, and ends without blanks."""
    first = len(text) - len(text.lstrip())
    return text.rfind("\n", 0, first) + 1, len(text.rstrip())


def _wrapped(text: str, breaks: Sequence[tuple[tuple[int, int], tuple[int, int]]]) -> list[bool]:
    """For each break between two lines whether it only wraps a paragraph; all false on a page that is not wrapped."""
    prose = [
        not _BLOCK_START.match(text, below) and not _HEADING.match(text, start) for (start, _), (below, _) in breaks
    ]
    width = max((end - start for line_break in breaks for start, end in line_break), default=0)
    full = [
        is_prose and end - start + 1 + _first_word(text, below) > width and text[end - 1] not in _SENTENCE_ENDS
        for ((start, end), below), is_prose in zip(breaks, prose, strict=True)
    ]
    is_wrapped = width <= _WIDEST_WRAP and sum(prose) >= _FEW and 2 * sum(full) > sum(prose)
    return full if is_wrapped else [False] * len(breaks)


def _first_word(text: str, line: tuple[int, int]) -> int:
    """The length of what could have stood on the line above."""
    start, end = line
    word = text[start:end].split(" ", 1)[0]
    return 1 if _CJK.match(word) else len(word)


def _joint(around: str) -> str:
    """Return what takes the place of a newline; Chinese and Japanese have no blanks between words."""
    return "" if _CJK.match(around[:1]) or _CJK.match(around[-1:]) else " "


def _apart(edits: Sequence[Edit]) -> list[Edit]:
    """Those that do not begin within another."""
    found: list[Edit] = []
    for edit in edits:
        if not found or edit.start >= found[-1].end:
            found.append(edit)
    return found
