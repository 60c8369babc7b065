"""Every run below a root as one table, engines by benchmarks: `loupe compare` without arguments, and after a suite."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from loupe.cli.shared.output import as_json, print_data, say, tables
from loupe.cli.shared.run_paths import exit_with
from loupe.errors import RunError, word

if TYPE_CHECKING:
    from loupe.results.matrix import Matrix
    from loupe.runs.folder import RunFolder


def show_overview(
    root: Path, *, json: bool, plain: bool, with_published: bool = False, measure: str = "", to: str | None = None
) -> None:
    """Show the table of all runs below `root`, by `measure` if it has one; a damaged run is named and left out."""
    from loupe.benchmarks.published import published_rows
    from loupe.results.matrix import make_matrix
    from loupe.results.published import NOT_MEASURED, published_sections
    from loupe.runs.folder import find_runs

    found, damaged = find_runs(root)
    for error in damaged.values():
        say(f"left out: {error.message}")
    kept = readable(found)
    matrix = make_matrix(kept, measure)
    columns = {(column.benchmark, column.version): column for column in matrix.columns} if with_published else {}
    published = {key: rows for key in columns if (rows := published_rows(*key))}
    if json:
        document = msgspec.to_builtins(matrix)
        rows = [row for found in published.values() for row in found]
        as_json({**document, "published": rows} if with_published else document)
    elif matrix.rows and to:
        from loupe.results.comparing.paper_tables import table_of_matrix
        from loupe.results.tables.files import WRITERS

        print_data(WRITERS[to](table_of_matrix(matrix)).removesuffix("\n"))
    elif matrix.rows:
        show_matrix(matrix, plain=plain)
        for key, rows in published.items():
            measure = columns[key].measure
            title = f"{'@'.join(key)}, {NOT_MEASURED}"
            tables(published_sections(rows, {measure: columns[key].unit}, title=title), plain=plain)
        say(f"runs side by side with differences: loupe compare RUN RUN; pages and answers: loupe report {word(root)}")
    else:
        say(f"no run below {root}; to make some: loupe demo")
    exit_with(damaged or len(kept) < len(found))


def readable(folders: Iterable[RunFolder]) -> list[RunFolder]:
    """The runs whose result can be read or is not there yet; others are named."""
    kept = []
    for folder in folders:
        try:
            folder.stored_result()
        except RunError as error:
            say(f"left out: {error.message}")
            continue
        kept.append(folder)
    return kept


def show_matrix(matrix: Matrix, *, plain: bool) -> None:
    """The table on standard output."""
    from loupe.results.matrix import matrix_sections

    tables(matrix_sections(matrix), plain=plain)
