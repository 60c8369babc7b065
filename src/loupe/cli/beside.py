"""What stands beside results if it is asked for: slices by any tag, and what others have published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from loupe.cli.errors import USAGE, show_error
from loupe.cli.output import tables
from loupe.errors import UsageError

if TYPE_CHECKING:
    from loupe.types import PublishedRow, Result

F = TypeVar("F", bound=Callable[..., Any])


def published_option(function: F) -> F:
    """`--with-published`."""
    text = "Beside them what others have published, with its source."
    return click.option("--with-published", is_flag=True, help=text)(function)


def by_option(function: F) -> F:
    """`--by`."""
    text = "Also every measure for each value of this tag (language, …)."
    return click.option("--by", default="", metavar="TAG", help=text)(function)


def published_of(benchmark: str, version: str = "") -> list[PublishedRow]:
    """What others have published on a benchmark. Raises UsageError where none of it is in the package."""
    from loupe.benchmarks.published import published_rows

    rows = published_rows(benchmark, version)
    if not rows:
        named = f"{benchmark}@{version}" if version else benchmark
        raise UsageError(f"no published numbers for {named} here", hint="loupe reproduce lists all there are")
    return rows


def show_beside(results: Sequence[Result], published: Sequence[PublishedRow], by: str, *, plain: bool) -> int:
    """Tables of both, below those of the results; the exit code, as a tag without slices is only said."""
    if results and published:
        from loupe.report.candidates import candidate_sections

        tables(candidate_sections(results, published), plain=plain)
    if by:
        from loupe.report.slices import slices_section

        try:
            tables([slices_section(result, by) for result in results], plain=plain)
        except UsageError as error:
            show_error(error.message, error.hint)
            return USAGE
    return 0
