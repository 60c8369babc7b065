"""Find formatting faults inside formulas and tables, and mend them.

Formulas: delimiters that nothing closes, prose between dollars, escaped characters. Tables: what the official evaluator
damages or scores 0 (#bar-tables, #tables).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from loupe.benchmarks.omnidocbench.answer_tables import (
    latex_table_to_html,
    tables_in,
    take_html_tables,
    take_latex_tables,
)
from loupe.benchmarks.omnidocbench.delimiters import Delimiters, Piece, pieces
from loupe.benchmarks.omnidocbench.extraction import TABLES, take_each
from loupe.benchmarks.shared.table_answers.spellings import cells_of_row, is_delimiter_row
from loupe.types import Edit

_FORMULAS = (Delimiters("$$", "$$"), Delimiters(r"\[", r"\]"), Delimiters("$", "$"), Delimiters(r"\(", r"\)"))
_OPENING = re.compile(r"\$\$|\$|(?<!\\)\\[\[(]")
#: What comes first behind an opening mark: the end of its formula, or another one.
_DOLLARS = re.compile(r"\$\$")
_BRACKET = re.compile(r"(?<!\\)\\\[|\\\]")
_PARENTHESIS = re.compile(r"(?<!\\)\\\(|\\\)")
_PARAGRAPH_BREAK = re.compile(r"\n[ \t]*\n")
#: Looks like a dollar to a reader, and is no delimiter.
_WIDE_DOLLAR = "\uff04"
_TEX = re.compile(r"[\\^_{}=]")
_WORD = re.compile(r"[A-Za-z]?[a-z]{2,}|[\u4e00-\u9fff]{2,}")
_TOKEN = re.compile(r"[^ \n$]+")
_PLAIN_WORD = re.compile(r"[A-Za-z]{2,}[.,;:]?|.*[\u3000-\u303f\u4e00-\u9fff].*")
_IN_TEXT = re.compile(r"\\(?:text\w*|mathrm|mbox|operatorname)\*?\s?\{[^{}]*\}|\\[A-Za-z]+")
_SENTENCE = re.compile(r"(?:\b[A-Za-z]{2,}[,.;:]?\s+){3}|[\u4e00-\u9fff]{8}")
#: Of a formula that nothing closes.
_LONGEST = 1000

_ESCAPED = re.compile(r"(?<!\\)\\(?=[_^*])")
_ESCAPED_COMMAND = re.compile(
    r"(?<!\\)(?:\\\\)+(?=(?:frac|dfrac|tfrac|sqrt|sum|int|prod|lim|log|ln|sin|cos|tan|alpha|beta|gamma|delta|epsilon|"
    r"theta|lambda|mu|nu|pi|rho|sigma|tau|phi|varphi|psi|omega|Delta|Omega|Sigma|Phi|cdot|cdots|ldots|times|div|pm|leq?|"
    r"geq?|neq?|approx|equiv|sim|infty|partial|nabla|left|right|mathrm|mathbf|mathcal|mathbb|text|hat|bar|vec|"
    r"overline|rightarrow|to|in|quad|qquad|begin|end|tag)(?![A-Za-z]))"
)
_ENTITY = re.compile("&(?:amp;)*(lt|gt|amp);")
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&"}

_Fault: TypeAlias = Literal["unclosed", "prose"]


class _Found(NamedTuple):
    fault: _Fault
    edit: Edit


def unclosed_formulas(text: str) -> list[Edit]:
    r"""Formulas whose `$`, `$$`, `\[` or `\(` nothing closes, so that another one far away does (#formulas)."""
    return [found.edit for found in _delimiter_faults(text) if found.fault == "unclosed"]


def prose_between_dollars(text: str) -> list[Edit]:
    """Dollars that are money: all between two of them becomes a formula, paragraphs included (#formulas)."""
    return [found.edit for found in _delimiter_faults(text) if found.fault == "prose"]


def escaped_formulas(text: str) -> list[Edit]:
    r"""Formulas escaped for Markdown, JSON or HTML: `x\_1`, `\\frac`, `\\( … \\)`, `a &lt; b`."""
    edits: list[Edit] = []
    for formula in pieces(_without_tables(text), _FORMULAS):
        edits += _escapes(text, formula)
    return edits


def _escapes(text: str, formula: Piece) -> Iterator[Edit]:
    inside, begin = formula.inside, formula.start + len(_FORMULAS[formula.kind].begin)
    end = begin + len(inside)
    has_rows = "&" in inside or r"\begin" in inside
    found = [Edit(begin + match.start(), begin + match.end(), "\\") for match in _ESCAPED_COMMAND.finditer(inside)]
    found = [] if has_rows and r"\\begin" not in inside else found
    words = [match.span() for match in _IN_TEXT.finditer(inside)]
    for match in _ESCAPED.finditer(inside):
        place = bisect_left(words, (match.end(),)) - 1
        if place < 0 or match.start() >= words[place][1]:
            found.append(Edit(begin + match.start(), begin + match.end(), ""))
    for match in _ENTITY.finditer(inside):
        found.append(Edit(begin + match.start(), begin + match.end(), _ENTITIES[match[1]]))
    if text[formula.start - 1 : formula.start] == "\\" and inside.endswith("\\") and formula.kind in (1, 3):
        found += [Edit(formula.start - 1, formula.start, ""), Edit(end - 1, end, "")]
    yield from sorted(found)


def _delimiter_faults(text: str) -> list[_Found]:
    """Every delimiter that does not do what it was meant to, in one walk over the text."""
    text = _without_tables(text)
    breaks = [match.start() for match in _PARAGRAPH_BREAK.finditer(text)]
    found: list[_Found] = []
    opening = _OPENING.search(text)
    while opening:
        place = bisect_left(breaks, opening.end())
        paragraph_end = breaks[place] if place < len(breaks) else len(text)
        mark = opening[0]
        look = _dollar if mark == "$" else _parenthesis if mark == r"\(" else _displayed
        fault, cursor = look(text, opening, paragraph_end)
        if fault:
            found.append(fault)
        opening = _OPENING.search(text, cursor)
    return found


def _dollar(text: str, opening: re.Match[str], paragraph_end: int) -> tuple[_Found | None, int]:
    start, inside = opening.span()
    close = text.find("$", inside)
    if 0 <= close < paragraph_end and not _is_money(text, inside, close):
        return None, close + 1
    end = _formula_end(text, inside, min(paragraph_end, close) if close >= 0 else paragraph_end)
    if end > inside:
        return _Found("unclosed", Edit(end, end, "$")), end
    if close < 0:  # a single dollar harms nobody
        return None, inside
    begin = start - 1 if text[start - 1 : start] == "\\" else start
    return _Found("prose", Edit(begin, inside, _WIDE_DOLLAR)), inside


def _parenthesis(text: str, opening: re.Match[str], paragraph_end: int) -> tuple[_Found | None, int]:
    inside = opening.end()
    nearest = _PARENTHESIS.search(text, inside, paragraph_end)
    if nearest and nearest[0] == r"\)":
        return None, nearest.end()
    end = _formula_end(text, inside, nearest.start() if nearest else paragraph_end)
    edit = Edit(end, end, r"\)") if end > inside else Edit(*opening.span(), "")
    return _Found("unclosed", edit), max(end, inside)


def _displayed(text: str, opening: re.Match[str], paragraph_end: int) -> tuple[_Found | None, int]:
    r"""`$$` and `\[`. Empty lines within a formula are harmless, sentences are not."""
    start, inside = opening.span()
    end_mark, nearest = ("$$", _DOLLARS) if opening[0] == "$$" else (r"\]", _BRACKET)
    close = nearest.search(text, inside)
    if close and close[0] == end_mark:
        beyond = text[paragraph_end : close.start()]
        if not beyond or not _SENTENCE.search(_IN_TEXT.sub("", beyond)):
            return None, close.end()
    end = inside + len(text[inside : min(paragraph_end, close.start() if close else paragraph_end)].rstrip())
    edit = Edit(end, end, end_mark) if text[inside:end].strip() else Edit(start, inside, "")
    return _Found("unclosed", edit), max(end, inside)


def _is_money(text: str, inside: int, close: int) -> bool:
    """True if there are words between two dollars, or a number with a blank or bracket up to the second."""
    between = text[inside:close]
    if _TEX.search(between):
        return False
    first, last = between[:1], between[-1:]
    is_range = last in "-–~/" and text[close + 1 : close + 2].isdigit()
    return (first.isdigit() and (last in " (" or is_range)) or len(_WORD.findall(between)) > 1


def _formula_end(text: str, start: int, limit: int) -> int:
    """Return the end of the formula that begins here: before the first plain word; `start` itself if there is no
    formula.
    """
    line_end = text.find("\n", start, limit)
    limit = min(limit if line_end < 0 else line_end, start + _LONGEST)
    end, depth = start, 0
    for token in _TOKEN.finditer(text, start, limit):
        if depth <= 0 and _PLAIN_WORD.fullmatch(token[0]):
            break
        depth += token[0].count("{") - token[0].count("}")
        end = token.end()
    end = start + len(text[start:end].rstrip(".,;: "))
    return end if _TEX.search(text[start:end]) else start


def _without_tables(text: str) -> str:
    """The text with blanks in place of its tables, in which no delimiter counts."""
    return take_each(text, TABLES)[1]


#: A "<" that opens no tag is text, and would swallow what follows.
_LESS_THAN = re.compile(r"<(?![A-Za-z/!])")


def markdown_tables(text: str) -> list[Edit]:
    """Markdown tables: converting drops cells with a colon or hyphens, and the line above the table (#bar-tables)."""
    _, rest = take_html_tables(text)
    lines = rest.split("\n")
    starts, offset = [], 0
    for line in lines:
        starts.append(offset)
        offset += len(line) + 1
    separator = "\n" if "\n\n" in text.strip() else ""  # an answer without an empty line is split by its lines
    edits = []
    for table in tables_in(lines):
        first, last = table.start, table.stop
        html = _html(lines[first:last])
        above = separator if first and lines[first - 1].strip() else ""
        below = separator if last < len(lines) and lines[last].strip() else ""
        edits.append(Edit(starts[first], starts[last - 1] + len(lines[last - 1]), above + html + below))
    return edits


def latex_tables(text: str) -> list[Edit]:
    """LaTeX tables, which score 0 (#tables). One that nobody can read stays as it is, and is still named."""
    found = []
    for item in take_latex_tables(text)[0]:
        # The official search takes the character behind a `tabular` with it.
        surplus = 0 if item.content.endswith((r"\end{tabular}", r"\end{table}")) else 1
        end = item.end - surplus
        found.append(Edit(item.start, end, latex_table_to_html(item.content) or text[item.start : end]))
    return [edit for edit, before in zip(found, [None, *found], strict=False) if not before or edit.start >= before.end]


def _html(lines: Sequence[str]) -> str:
    rows = [cells_of_row(line) for line in lines if not is_delimiter_row(line)]
    return "<table>" + "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows) + "</table>"


def _cell(text: str) -> str:
    return f"<td>{_LESS_THAN.sub('&lt;', text)}</td>"
