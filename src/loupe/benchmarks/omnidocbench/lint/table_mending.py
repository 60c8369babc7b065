"""Tables that the official evaluator damages or scores 0 (#bar-tables, #tables), and the HTML that mends them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from loupe.benchmarks.omnidocbench.extract.html_tables import take_html_tables
from loupe.benchmarks.omnidocbench.extract.latex_tables import take_latex_tables
from loupe.benchmarks.omnidocbench.lint.visible_tables import tables_in
from loupe.benchmarks.omnidocbench.scores.latex_table_html import latex_table_to_html
from loupe.benchmarks.shared.table_answers.gfm_tables import cells_of_row, is_delimiter_row
from loupe.types import Edit

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
