"""Tables beside results, if it is asked for: slices by any tag, and what others have published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from loupe.cli.shared.errors import USAGE, show_error
from loupe.cli.shared.output import say, tables
from loupe.errors import UsageError, did_you_mean, word

if TYPE_CHECKING:
    from loupe.pipeline import Plan
    from loupe.types import PublishedRow, Result

F = TypeVar("F", bound=Callable[..., Any])
#: Samples whose tags are looked at before a run.
_LOOKED_AT = 1000
#: Tags that no sample of a folder of one's own needs to have: scores of fields, facts and tables bring them.
_OF_SCORES = frozenset({"field", "answer", "type", "teds_error"})


def published_option(function: F) -> F:
    """`--with-published`."""
    text = "Also list published figures, with their source."
    return click.option("--with-published", is_flag=True, help=text)(function)


def by_option(function: F) -> F:
    """`--by`."""
    text = "Also every measure for each value of this tag (language, …)."
    return click.option("--by", default="", metavar="TAG", help=text)(function)


def by_measure_option(function: F) -> F:
    """`--by-measure`."""
    text = (
        "Measure that ranks the runs, as `loupe bench show` lists them. Default: the headline of the benchmark, or the "
        "first measure that the runs have if it is not computed."
    )
    return click.option("--by-measure", default="", metavar="NAME", help=text)(function)


def published_of(benchmark: str, version: str = "") -> list[PublishedRow]:
    """Return what others have published on a benchmark. Raises UsageError if none of it is in the package."""
    from loupe.benchmarks.published import published_rows

    rows = published_rows(benchmark, version)
    if not rows:
        named = f"{benchmark}@{version}" if version else benchmark
        raise UsageError(f"no published numbers for {named} here", hint="list all: loupe reproduce")
    return rows


def check_tag(tag: str, plan: Plan) -> None:
    """Say before a run where no sample has the tag of `--by`: scores may still bring it, but a slip costs hours.

    Raises UsageError in a folder of one's own, whose scores bring no others.
    """
    from itertools import islice

    from loupe.benchmarks.registry import get_benchmark, is_own_folder, opened_by_feature
    from loupe.pipeline.plan import samples_of

    own = tag not in _OF_SCORES and is_own_folder(plan.benchmark) and opened_by_feature(Path(plan.benchmark)) is None
    samples = samples_of(get_benchmark(plan.benchmark), plan.data, plan.options)
    known = sorted({name for sample in islice(samples, None if own else _LOOKED_AT) for name in sample.tags})
    if tag in known:
        return
    listed = f"they have {', '.join(known)}" if known else "they have none"
    said = f"--by {tag}: no sample has this tag; {listed}{did_you_mean(tag, known)}"
    if own:
        raise UsageError(said, hint=f"use --by {word(known[0])}" if known else "leave --by out")
    say(f"{said}; the table comes only if the scores have it")


def show_beside(
    results: Sequence[Result], published: Sequence[PublishedRow], by: str, *, plain: bool, measure: str = ""
) -> int:
    """Show the tables of both below those of the results, and return the exit code.

    A tag without slices is only said.
    """
    if results and published:
        from loupe.results.result_table import candidate_sections

        tables(candidate_sections(results, published, measure=measure), plain=plain)
    if by:
        from loupe.results.slices import slices_section

        try:
            tables([slices_section(result, by) for result in results], plain=plain)
        except UsageError as error:
            show_error(error.message, error.hint)
            return USAGE
    return 0
