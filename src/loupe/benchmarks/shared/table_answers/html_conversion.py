"""Convert tables that general models answer with to HTML, and score a pair of tables by TEDS."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from loupe.benchmarks.shared.table_answers.spellings import environments, html_tables
from loupe.metrics.table_normalization import normalize_to_plain_cells
from loupe.metrics.teds import Variant, compare_tables
from loupe.metrics.teds.table_tree import TableTooLargeError, TedsError

_MARKER = re.compile(r"<([feul])cel>")
_RULE = re.compile(r"[\s|:-]*")
_WIDE_GAP = re.compile(r"\s{4,}")
_MATH = re.compile(r"\$[^$]*+\$")
_LATEX_BARS = re.compile(r"\\left\||\\right\||\\l\||\\r\||\\\|")
_LATEX_TEXT = re.compile(r"\\text\{([^{}]*)\}")
_LATEX_BOLD = re.compile(r"\\textbf\{([^{}]*)\}")
_LATEX_BEGIN = re.compile(r"\\begin\{\w+\}(?:\{[^}]*\})?")
_LATEX_ESCAPES = (("**", ""), ("\\%", "%"), ("\\&", "&"), ("\\$", "$"), ("\\_", "_"), ("\\#", "#"))
_LATEX_CELL_END = re.compile(r"(?<!\\)&")


def table_of_answer(answer: str) -> str:
    """The answer as HTML, by the first rule that applies; an answer without any table is left as it is."""
    if "<fcel>" in answer:
        return table_of_cell_markers(answer)
    if "<table" in answer.lower():
        return answer
    return table_of_pipes(answer) if "|" in answer else table_of_gaps(answer)


class _Marked(NamedTuple):
    marker: str  # f filled, e empty, l merged into the left, u merged into the one above
    text: str


_Row = tuple[_Marked, ...]


def table_of_cell_markers(text: str) -> str:
    """A table of rows that end with `<nl>` and cells that start with `<fcel>`, `<ecel>`, `<lcel>` or `<ucel>`."""
    rows = [row for line in text.split("<nl>") if (row := tuple(_marked_cells(line)))]
    if not rows:
        return text
    first_like = rows_by_equality(rows)
    below = _merges_below(rows)
    covered: dict[int, int] = {}
    html = []
    for row in rows:
        cells = "".join(_merged_cells(row, below[first_like[row]], covered))
        if cells:
            html.append(f"<tr>{cells}</tr>")
    return f"<table>{''.join(html)}</table>"


def rows_by_equality(rows: Iterable[_Row]) -> Mapping[_Row, int]:
    """The place of each row, looked up by equality: of two identical rows the first one's neighbours are used.

    Kept for parity: below a repeated row a rowspan is lost (docs/benchmarks/pubtabnet.md).
    """
    places: dict[_Row, int] = {}
    for place, row in enumerate(rows):
        places.setdefault(row, place)
    return places


def _marked_cells(line: str) -> Iterator[_Marked]:
    marks = list(_MARKER.finditer(line))
    ends = [mark.start() for mark in marks[1:]] + [len(line)] if marks else []
    for mark, end in zip(marks, ends, strict=True):
        yield _Marked(mark[1], line[mark.end() : end].strip())


def _merges_below(rows: list[_Row]) -> list[dict[int, int]]:
    """Per row: how many rows in sequence below it have `<ucel>` at each place of their lists."""
    below: list[dict[int, int]] = []
    counts: dict[int, int] = {}
    for row in reversed(rows):
        below.append(counts)
        counts = {place: 1 + counts.get(place, 0) for place, cell in enumerate(row) if cell.marker == "u"}
    return below[::-1]


def _merged_cells(row: _Row, below: Mapping[int, int], covered: dict[int, int]) -> Iterator[str]:
    """The cells of one row. `covered` counts, per column, the rows for which a rowspan from above still holds.

    Kept for parity: a covered column is skipped before the next marker is read, also where that marker is the `<ucel>`
    which stands for it, so the column runs ahead by one per covered cell.
    """
    column = place = 0
    while place < len(row):
        while covered.get(column, 0) > 0:
            covered[column] -= 1
            column += 1
        cell = row[place]
        place += 1
        if cell.marker in "ul":
            column += 1
            continue
        colspan = 1
        while place < len(row) and row[place].marker == "l":
            colspan += 1
            place += 1
        rowspan = 1 + below.get(column, 0)
        if rowspan > 1:
            covered.update(dict.fromkeys(range(column, column + colspan), rowspan - 1))
        yield f"<td{_span('colspan', colspan)}{_span('rowspan', rowspan)}>{cell.text}</td>"
        column += colspan


def _span(name: str, count: int) -> str:
    return f' {name}="{count}"' if count > 1 else ""


def table_of_pipes(text: str) -> str:
    """Every line with a `|` as a row of `td`, rules left out; there is no header, and no escaped pipe."""
    lines = [line.strip() for line in text.split("\n")]
    rows = [line for line in lines if "|" in line and not _RULE.fullmatch(line)]
    return _table([cell.strip() for cell in row.strip("|").split("|")] for row in rows) if rows else text


def table_of_gaps(text: str) -> str:
    """Lines whose cells are four or more white-space characters apart; fewer than two rows are no table."""
    lines = [line.strip() for line in text.split("\n")]
    rows = [_WIDE_GAP.split(line) for line in lines if line and line[0] not in "#-"]
    return _table([cell for cell in row if cell] for row in rows) if len(rows) >= 2 else text


def _table(rows: Iterable[list[str]]) -> str:
    """Cells are not escaped, as in the original."""
    return f"<table>{''.join('<tr>' + ''.join(f'<td>{cell}</td>' for cell in row) + '</tr>' for row in rows)}</table>"


def find_tables(text: str) -> list[str]:
    """All tables in a page's answer as HTML: HTML tables, Markdown blocks, LaTeX arrays and tabulars, cell markers."""
    found = [text[span.start : span.end] for span in html_tables(text)]
    found += [table for block in _pipe_blocks(text) if (table := table_of_pipes(block)).count("<td>") >= 2]
    for name in ("array", "tabular"):
        found += [_latex_table(text[span.start : span.end]) for span in environments(text, name)]
    if "<fcel>" in text:
        found.append(table_of_cell_markers(text))
    return found


def _pipe_blocks(text: str) -> Iterator[str]:
    block: list[str] = []
    of_two_columns = False
    for line, following in itertools.pairwise([*text.split("\n"), "", ""]):
        of_two_columns |= _heads_two_columns(line, following)
        if is_table_line(line) or (of_two_columns and "|" in line):
            block.append(line)
        else:
            if len(block) >= 2:
                yield "\n".join(block)
            block, of_two_columns = [], False


def _heads_two_columns(line: str, following: str) -> bool:
    """True if a line begins a table of two columns without outer pipes: a rule must stand below it."""
    first, _, second = line.partition("|")
    return bool(first.strip() and second.strip()) and "|" not in second and "-" in following and is_rule(following)


def is_table_line(line: str) -> bool:
    """True if a line belongs to a Markdown table: two pipes, or a rule with a pipe."""
    line = line.strip()
    if line.startswith("|"):
        return "|" in line[1:] or is_rule(line)
    return line.count("|") >= 2 or is_rule(line)


def is_rule(line: str) -> bool:
    """True if a line is a separator row: nothing but blanks, `|`, `:` and `-`, with a pipe."""
    return "|" in line and _RULE.fullmatch(line) is not None


def pipes_outside_math(line: str) -> bool:
    r"""True if two pipes, text before the first, remain without `$..$` and the bars of formulas (`\left|`, ...)."""
    rest = _LATEX_BARS.sub("", _MATH.sub("", line))
    return rest.count("|") >= 2 and bool(rest.partition("|")[0].strip())


def _latex_table(source: str) -> str:
    r"""An array or tabular; `\&` is a character of its cell."""
    inside = _LATEX_BEGIN.sub("", source[: source.rindex("\\end")], count=1)
    rows = [row.strip() for row in inside.split("\\\\")]
    kept = [row for row in rows if row.replace("\\hline", "").strip()]
    return _table([_latex_cell(cell) for cell in _LATEX_CELL_END.split(row.replace("\\hline", ""))] for row in kept)


def _latex_cell(text: str) -> str:
    text = _LATEX_BOLD.sub(r"\1", _LATEX_TEXT.sub(r"\1", text.strip()))
    for found, wanted in _LATEX_ESCAPES:
        text = text.replace(found, wanted)
    return text.strip()


class TableScores(NamedTuple):
    """Both scores of a pair. `error` names the exception that the official evaluator raises on it."""

    teds: float
    teds_struct: float
    error: str = ""


def score_pair(prediction: str, reference: str, *, variant: Variant) -> TableScores:
    """Compare two HTML strings; 0.0 where the official evaluator raises."""
    try:
        found = compare_tables(prediction, reference, variant=variant)
    except TableTooLargeError:
        raise
    except TedsError as error:
        return TableScores(0.0, 0.0, error.upstream)
    return TableScores(found.teds, found.teds_struct)


def score_normalized(prediction: str, reference: str) -> TableScores:
    """Compare two tables after a normalisation that makes `td` of `th` and drops sections."""
    return score_pages(normalized_page(prediction), normalized_page(reference))


def normalized_page(table: str) -> str | TableScores:
    """The page of a table after that normalisation; where it fails, the scores of any pair with this table."""
    try:
        return normalize_to_plain_cells(table)
    except TableTooLargeError:
        raise
    except TedsError as error:
        return TableScores(0.0, 0.0, error.upstream)


def score_pages(prediction: str | TableScores, reference: str | TableScores) -> TableScores:
    """Compare two pages that `normalized_page` made."""
    if isinstance(prediction, TableScores):
        return prediction
    if isinstance(reference, TableScores):
        return reference
    return score_pair(prediction, reference, variant="omnidocbench")
