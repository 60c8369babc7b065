"""Tables on a terminal, aligned and coloured, or tab-separated for programs.

Tables that are wider than the terminal become several, each with the columns that name a row: none is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from loupe.results.control_characters import on_one_line, printable
from loupe.results.tables.record import Table, is_of_numbers, one_line
from loupe.results.tables.spreadsheet_cells import tab_separated_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table as RichTable

#: Columns whose cells are paths that people copy: they are never broken, even where the table gets too wide.
_UNBROKEN = frozenset({"run"})
#: Between two columns, and at both ends of a line.
_GAP, _ENDS = 3, 2
#: Words that are longer may be folded.
_LONGEST_WORD = 24


def tab_separated(sections: Iterable[Table]) -> Iterator[str]:
    """The same tables as lines of tab-separated cells; a title stands alone on its line, after `#`."""
    for section in sections:
        if section.title:
            yield f"# {section.title}"
        for row in (section.header, *section.rows) if section.header else section.rows:
            # A sentence that stands alone is no cell of a table, and is kept whole.
            longest = 1000 if len(row) == 1 else 160
            yield tab_separated_line(one_line(printable(str(cell)), longest) for cell in row)


def rich_tables(sections: Iterable[Table], width: int) -> Iterator[RenderableType]:
    """The tables for a terminal of this width. Cells are never read as markup: sample ids and errors are not ours."""
    from rich.text import Text

    for section in fitted((_starred(_flat(each)) for each in sections), width):
        if section.title:
            yield Text(section.title, style="bold red" if section.alarm else "bold")
        yield _rich_table(section, width)
        yield Text()


def _flat(section: Table) -> Table:
    """The section with every text printable and on one line: names are not ours."""
    return replace(
        section,
        title=on_one_line(section.title),
        header=[on_one_line(str(cell)) for cell in section.header],
        rows=[[on_one_line(str(cell)) for cell in row] for row in section.rows],
    )


def _starred(section: Table) -> Table:
    """With a star before the winner's row, for terminals without bold letters; programs read tables without it."""
    if section.winner is None:
        return section
    rows = [(f"★ {row[0]}", *row[1:]) if at == section.winner else row for at, row in enumerate(section.rows)]
    return replace(section, rows=rows)


def _rich_table(section: Table, width: int) -> RichTable:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable
    from rich.text import Text

    grid = RichTable(box=SIMPLE_HEAD if section.header else None, pad_edge=False, show_header=bool(section.header))
    widths = column_widths(section, width) if section.header else None
    for column in range(max((len(row) for row in (section.header, *section.rows)), default=0)):
        cells = section.column(column)
        name = str(section.header[column]) if section.header else ""
        numbers = column > 0 and is_of_numbers(cells)
        fixed = widths[column] if widths else None
        grid.add_column(name, justify="right" if numbers else "left", overflow="fold", min_width=fixed, max_width=fixed)
    style = "red" if section.alarm else ""
    for at, row in enumerate(section.rows):
        row_style = "bold green" if at == section.winner else style
        grid.add_row(*(Text(str(cell), style=row_style) for cell in row))
    return grid


def fitted(sections: Iterable[Table], width: int) -> Iterator[Table]:
    """The sections, those with a header cut between columns where folding texts is not enough for this width."""
    for section in sections:
        blocks = list(_blocks(_least_widths(section), width, section.keys)) if section.header else []
        if len(blocks) < 2:
            yield section
            continue
        for number, columns in enumerate(blocks):
            yield replace(
                section,
                title="" if number else section.title,
                header=[section.header[column] for column in columns],
                rows=[
                    [row[column] for column in columns]
                    for row in section.rows
                    if not section.sparse or any(str(row[each]) != "–" for each in columns[section.keys :])
                ],
            )


def column_widths(section: Table, width: int) -> list[int]:
    """Every column as wide as its widest cell, or where a line is too short for that, the first ones wider than they
    need to be at least.
    """
    from rich.cells import cell_len

    found = _least_widths(section)
    spare = width - _ENDS - _GAP * (len(found) - 1) - sum(found)
    for column, name in enumerate(section.header):
        wanted = max(map(cell_len, [str(name), *section.column(column)]))
        more = max(0, min(wanted - found[column], spare))
        found[column] += more
        spare -= more
    return found


def _least_widths(section: Table) -> list[int]:
    """How narrow each column below a header can get: numbers and paths stay whole, texts fold between words."""
    from rich.cells import cell_len

    found = []
    for column, name in enumerate(map(str, section.header)):
        cells = section.column(column)
        whole = name in _UNBROKEN or (column > 0 and is_of_numbers(cells))
        words = [word for text in ([name] if whole else [name, *cells]) for word in text.split()]
        folded = max((min(cell_len(word), _LONGEST_WORD) for word in words), default=0)
        found.append(max([folded, *(cell_len(cell) for cell in cells if whole)]))
    return found


def _blocks(widths: Sequence[int], width: int, keys: int) -> Iterator[list[int]]:
    """Columns that fit into a line together; a single one that does not stands beside the first `keys` alone."""
    first, least = list(range(keys)), sum(widths[:keys]) + _GAP * (keys - 1) + _ENDS
    block, used = [*first], least
    for column in range(keys, len(widths)):
        if len(block) > keys and used + _GAP + widths[column] > width:
            yield block
            block, used = [*first], least
        block.append(column)
        used += _GAP + widths[column]
    yield block
