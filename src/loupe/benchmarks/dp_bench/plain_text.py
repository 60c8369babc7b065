"""The words of a page without the marks of Markdown, HTML and LaTeX, for comparing them with plain ground truth.

Two definitions, both linear in the text: `strip_marks` is ours (`loupe-strip`), `strip_tables_and_headings` belongs to
the variant `best_table`. Protocol: docs/benchmarks/dp_bench.md.
"""

from __future__ import annotations

import html
import re

from loupe.benchmarks.shared.fences import remove_fence
from loupe.benchmarks.shared.table_answers import spans
from loupe.benchmarks.shared.table_answers.html_conversion import is_rule, pipes_outside_math
from loupe.benchmarks.shared.table_answers.pipe_tables import pipe_tables

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
    text = spans.replace(text, spans.between(text, "<think>", "</think>"))
    text = remove_tables(text)
    text = spans.unlink(spans.replace(text, spans.links(text, "![")))
    for opening, closing in (("<|ref|>", "<|/ref|>"), ("<|det|>", "<|/det|>")):
        text = spans.replace(text, spans.between(text, opening, closing))
    text = html.unescape(_TAG.sub("", _SPACE_TAG.sub(" ", text)))
    text = _remove_math_dollars(_DISPLAY_MATH.sub("", text))
    text = _LINE_MARK.sub("", _RULED_LINE.sub("", text))
    return " ".join(_remove_emphasis(text).split())


def remove_tables(text: str) -> str:
    """The text without HTML tables, LaTeX tables and tabulars, and Markdown pipe tables."""
    text = spans.replace(text, spans.html_tables(text))
    for name in ("table", "tabular"):
        text = spans.replace(text, spans.environments(text, name))
    return spans.replace(text, (table.span for table in pipe_tables(text)))


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
    return spans.replace(text, [spans.Span(place, place + 1) for place in removed])


def _remove_emphasis(text: str) -> str:
    """Without pairs of `*`, `**`, `***`, `_`, `__` and backticks around words; `_` inside a word stays."""
    removed: list[spans.Span] = []
    opened: dict[str, int] = {}
    for found in _EMPHASIS.finditer(text):
        mark, start, end = found[0], found.start(), found.end()
        if "\n" in mark:
            opened.clear()
            continue
        before, after = text[start - 1 : start] if start else "", text[end : end + 1]
        if mark in opened and before.strip() and not (mark[0] == "_" and after.isalnum()):
            place = opened.pop(mark)
            removed += [spans.Span(place, place + len(mark)), spans.Span(start, end)]
        elif after.strip() and not (mark[0] == "_" and before.isalnum()):
            opened[mark] = start
    return spans.replace(text, sorted(removed))


def strip_tables_and_headings(answer: str) -> str:
    """The text of an answer without images, tables and heading marks, as one line."""
    text = spans.replace(answer, spans.links(answer, "!["))
    without = spans.replace(text, spans.html_tables(text))
    text = without if without.strip() else spans.replace(text, spans.tags(text), " ")
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
