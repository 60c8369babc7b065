"""`loupe compare`: runs of one benchmark side by side; a difference comes with its interval, or it is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from loupe.cli.shared.beside import by_measure_option
from loupe.cli.shared.gate import Gate, gate_options
from loupe.cli.shared.output import as_json, json_option, plain_option, print_data, runs_option, say, tables
from loupe.cli.shared.run_paths import RunPath, exit_with, is_root, readable_runs
from loupe.cli.shared.summaries import Summaries, summary_options
from loupe.errors import UsageError, word
from loupe.quantities import counted
from loupe.results.comparing.records import Compared, Pair
from loupe.results.comparing.runs import compare_runs
from loupe.results.group_titles import shown_version
from loupe.results.published import published_sections
from loupe.results.sections import FEW, failed_cell, format_estimate, format_margin, format_value, margin_heading
from loupe.results.speed import speed_columns
from loupe.results.tables.record import Table
from loupe.results.visible_differences import DIFFERENCE_HEADER, difference_cells, no_ranks, visible_differences
from loupe.results.worst_samples import moved_section
from loupe.types import Estimate

#: Of a headline that is none of a run's measures.
_NO_VALUE = Estimate(value=None)


@click.command("compare")
@click.argument("runs", metavar="[RUN RUN...]", nargs=-1, type=RunPath())
@partial(runs_option, name="root")
@gate_options
@by_measure_option
@summary_options
@click.option(
    "--to",
    type=click.Choice(["latex", "markdown", "csv"]),
    help=(
        "Print one table for a paper or a script instead: engines by measures, without RUNs by benchmarks. Best values "
        "and clear differences are marked; latex needs booktabs; csv has a line for each value, fractions from 0 to 1."
    ),
)
@click.option("--with-published", is_flag=True, help="Also list published figures, with their source.")
@json_option
@plain_option
@click.pass_context
def command(
    context: click.Context,
    /,
    runs: tuple[Path, ...],
    root: Path,
    baseline: Path | None,
    by_measure: str,
    to: str | None,
    with_published: bool,
    json: bool,
    plain: bool,
    junit: Path | None,
    markdown: Path | None,
    **gate: Any,
) -> None:
    """Put runs of one benchmark side by side, with paired differences.

    The others are compared with the first RUN; with folders of runs, with the best run. Runs of different benchmarks,
    versions or data are refused; everything else that differs is named. Without any RUN, or with a folder of runs
    alone: every run there as one table, engines by benchmarks. A run that cannot be read is named and left out; the
    command then ends with 2.
    """
    if to and (json or with_published):
        raise UsageError("--to does not go with --json or --with-published", hint="leave one of them out")
    wanted, summaries = Gate(**gate), Summaries(junit=junit, markdown=markdown)
    if baseline is None and len(runs) == 1 and is_root(runs[0]):
        root, runs = runs[0], ()
    if not runs:
        from loupe.cli.shared.overview import show_overview

        wanted.refuse(baseline)
        summaries.refuse()
        show_overview(root, json=json, plain=plain, with_published=with_published, measure=by_measure, to=to)
        return
    if baseline is not None:  # It is what the job is about: without it nothing is compared.
        runs = (_only_run(baseline), *runs)
    readable, left_out = readable_runs(runs, least=2, scored=True)
    to_best = baseline is None and any(map(is_root, runs))
    compared = wanted.judged(compare_runs(readable, to_best=to_best, measure=by_measure), by_measure)
    summaries.of_comparison(compared)
    if with_published:
        from loupe.cli.shared.beside import published_of

        compared = msgspec.structs.replace(compared, published=published_of(compared.benchmark, compared.version))
    if to:
        from loupe.results.comparing.paper_tables import table_of_comparison
        from loupe.results.tables.files import WRITERS

        print_data(WRITERS[to](table_of_comparison(compared)).removesuffix("\n"))
    elif json:
        as_json(msgspec.structs.replace(compared, left_out=left_out))
    else:
        tables(sections(compared), plain=plain)
        for part, values in compared.differing.items():
            say(f"the runs differ in {part}: {' | '.join(values)}")
    if str(runs[0]) in left_out:
        say(f"all others are compared with {compared.baseline}")
    exit_with(left_out)
    context.exit(wanted.code(compared))


def _only_run(baseline: Path) -> Path:
    """The run that `--baseline` names. Raises UsageError for a folder of several: none of them is meant more."""
    found, left_out = readable_runs([baseline], scored=True)
    if len(found) + len(left_out) > 1:
        raise UsageError(
            f"--baseline {baseline} is a folder of {len(found) + len(left_out):,} runs",
            hint=f"name one of them: --baseline {word(found[0])}",
        )
    return found[0]


def sections(compared: Compared) -> list[Table]:
    """The comparison as tables: who ranks where, then every difference with its interval."""
    unit = compared.units.get(compared.headline, "fraction")
    rows = []
    titles, figures = speed_columns([(item.speed, item.currency) for item in compared.runs])
    most = max(item.total for item in compared.runs)
    sized = any(item.total < most for item in compared.runs)
    for item, speed in zip(compared.runs, figures, strict=True):
        estimate = item.measures.get(compared.headline, _NO_VALUE)
        margin = format_margin(estimate, unit)
        value = format_estimate(estimate, unit)
        if estimate.value is None:
            value += f" ({compared.why_nothing(item.run, compared.headline)})"
        failed = failed_cell(item.failed, item.total, item.refused) if item.failed else "–"
        truth = (item.truth,) if compared.warning else ()
        size = (f"{item.total:,} of {most:,}" if item.total < most else f"{most:,}",) if sized else ()
        rows.append((str(item.rank or "–"), item.name, value, margin, *size, *truth, failed, *speed, item.run))
    column = ("truth",) if compared.warning else ()
    header = (
        "rank",
        "engine",
        compared.headline,
        margin_heading(row[3] for row in rows),
        *(["samples"] if sized else []),
        *column,
        "failed",
        *titles,
        "run",
    )
    title = ", ".join(filter(None, [f"{compared.benchmark}@{shown_version(compared.version)}", compared.samples]))
    winner = next((place for place, item in enumerate(compared.runs) if item.run == compared.winner), None)
    return [
        *([Table(title="", rows=[(compared.warning,)], alarm=True)] if compared.warning else []),
        Table(title=title, header=header, rows=rows, winner=winner, keys=2),
        *_below_ranks(compared),
        *published_sections(compared.published, compared.units),
        *(section for pair in compared.pairs for section in _pair_sections(compared, pair)),
        *visible_sections(compared),
    ]


def _below_ranks(compared: Compared) -> list[Table]:
    """The outcome in a sentence, and what else has to be said of these numbers."""
    said = [compared.headline_note] if compared.headline_note else []
    said += [no_ranks(compared.headline)] if compared.untold else []
    ranking = [item.measures.get(compared.headline, _NO_VALUE) for item in compared.runs]
    bare = any(one.value is not None and one.low is None for one in ranking)
    said += [f"{compared.headline} without ± or bounds has no interval: {FEW}"] if bare else []
    said += [*compared.notes, *filter(None, [compared.part, compared.accepted])]
    outcome = [Table(title="", rows=[(compared.verdict,)])] if compared.verdict else []
    return [*outcome, *([Table(title="", rows=[(line,) for line in said])] if said else [])]


def visible_sections(compared: Compared) -> list[Table]:
    """What difference in the headline so few documents could have shown at all; nothing where they are many.

    Nor on drafts: more documents would show no better who is right.
    """
    if compared.warning:
        return []
    base = next(item.name for item in compared.runs if item.run == compared.baseline)
    shared = [(pair.name, pair.measures.get(compared.headline)) for pair in compared.pairs]
    pairs = [(f"{engine} minus {base}", found) for engine, found in shared if found is not None]
    return visible_differences(pairs, compared.headline, compared.units.get(compared.headline, "fraction"))


def ranking(paths: Sequence[Path], measure: str = "") -> list[Table]:
    """Rank runs, the best first, with what could have been seen of the difference to it."""
    compared = compare_runs(paths, to_best=True, measure=measure)
    ranks = sections(compared)[: 2 if compared.warning else 1]
    return [*ranks, *_below_ranks(compared), *visible_sections(compared)]


def _pair_sections(compared: Compared, pair: Pair) -> Iterator[Table]:
    base = next(item.name for item in compared.runs if item.run == compared.baseline)
    yield _measured(compared, pair, base)
    unit = compared.units.get(pair.moved.measure, "fraction")
    if (moved := moved_section(pair.moved, unit, after=pair.name, before=base)) is not None:
        yield moved


def _measured(compared: Compared, pair: Pair, base: str) -> Table:
    rows = []
    for name, found in pair.measures.items():
        if (found.value_a is None and found.value_b is None) or name in compared.twice:
            continue
        unit = compared.units.get(name, "fraction")
        values = [
            format_value(value, unit, of=pair.samples)
            + (f" ({compared.why_nothing(run, name)})" if value is None else "")
            for run, value in ((pair.run, found.value_a), (compared.baseline, found.value_b))
        ]
        cells = [name, *values]
        better = compared.directions.get(name, True)
        rows.append([*cells, *difference_cells(found, unit, higher_is_better=better)])
    read = pair.samples - pair.failed
    count = counted(read, "sample")
    failed = (
        f", and {pair.failed:,} that failed and count{'s' if pair.failed == 1 else ''} as empty" if pair.failed else ""
    )
    grouped = f", in {pair.shared:,} groups" if pair.shared not in (0, pair.samples) else ""
    title = f"{pair.name} minus {base}, on samples read by both: {count}{failed}{grouped}"
    header = ("measure", pair.name, base, *DIFFERENCE_HEADER)
    return Table(title=title, header=header, rows=rows)
