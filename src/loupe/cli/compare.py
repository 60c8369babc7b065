"""`loupe compare`: runs of one benchmark side by side; a difference comes with its interval, or it is none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import msgspec

from loupe.benchmarks.registry import benchmark_of_run
from loupe.cli.comparable import differing_parts, refuse_strangers
from loupe.cli.compared_runs import Compared, Pair, RunRow
from loupe.cli.output import as_json, json_option, plain_option, say, tables
from loupe.cli.run_paths import exit_with, is_root, readable_runs
from loupe.cli.runs import open_run
from loupe.errors import RunError, UsageError, word
from loupe.report.group_titles import shown_version
from loupe.report.partial_runs import left_out_sentences, other_composites, without
from loupe.report.published import published_sections
from loupe.report.speed import speed_columns
from loupe.report.terminal import (
    Section,
    failed_count,
    format_margin,
    format_value,
    part_of_published,
)
from loupe.report.unverified import accepted_drafts, truth_cell, unverified, unverified_warning
from loupe.report.verdict import Contender, verdict
from loupe.report.visible_differences import DIFFERENCE_HEADER, difference_cells, no_ranks, visible_differences
from loupe.report.worst_samples import moved_section, movement
from loupe.runs.folder import RunFolder
from loupe.stats.comparison import scored_samples
from loupe.stats.ranks import Standings, standings
from loupe.types import Estimate, Result

#: Of a headline that is none of a run's measures.
_NO_VALUE = Estimate(value=None)


@click.command("compare")
@click.argument("runs", metavar="[RUN RUN...]", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--runs",
    "root",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    metavar="DIR",
    help="Root of the runs. Default: ./runs.",
)
@click.option("--with-published", is_flag=True, help="Below them what others have published, with its source.")
@json_option
@plain_option
def command(runs: tuple[Path, ...], root: Path, with_published: bool, json: bool, plain: bool) -> None:
    """Put runs of one benchmark side by side, with paired differences.

    The first RUN is what the others are compared with. Runs of different benchmarks, versions or data are refused;
    everything else that differs is named. Without any RUN, or with a folder of runs alone: every run there as one
    table, engines by benchmarks. A run that cannot be read is named and left out; the command then ends with 2.
    """
    if len(runs) == 1 and is_root(runs[0]):
        root, runs = runs[0], ()
    if not runs:
        from loupe.cli.overview import show_overview

        show_overview(root, json=json, plain=plain, with_published=with_published)
        return
    readable, left_out = readable_runs(runs, least=2, scored=True)
    compared = compare_runs(readable)
    if with_published:
        from loupe.cli.beside import published_of

        compared = msgspec.structs.replace(compared, published=published_of(compared.benchmark, compared.version))
    if json:
        as_json(msgspec.structs.replace(compared, left_out=left_out))
    else:
        tables(sections(compared), plain=plain)
        for part, values in compared.differing.items():
            say(f"the runs differ in {part}: {' | '.join(values)}")
    if str(runs[0]) in left_out:
        say(f"all others are compared with {readable[0]}")
    exit_with(left_out)


def compare_runs(paths: Sequence[Path]) -> Compared:
    """All of a comparison. Raises UsageError for runs that must not be compared, RunError for one without scores."""
    paths = list(dict.fromkeys(paths))
    folders = [open_run(path) for path in paths]
    if len(paths) < 2:
        raise UsageError("a comparison needs two different runs", hint="loupe runs lists them")
    refuse_strangers(folders)
    benchmark = benchmark_of_run(folders[0].info.benchmark)
    results = [_result(folder) for folder in folders]
    scores = [list(folder.scores()) for folder in folders]
    first = results[0]
    runs = {str(path): found for path, found in zip(paths, scores, strict=True)}
    measures = benchmark.measures_of(name for result in results for name in result.measures)
    apart = other_composites(results, measures, benchmark.summarize)
    results = [without(result, names) for result, names in zip(results, apart, strict=True)]
    found = standings(
        runs,
        measures,
        benchmark.headline_measure,
        summarize=benchmark.summarize,
        unranked={run for run, names in zip(runs, apart, strict=True) if benchmark.headline_measure in names},
    )
    headline = next((measure for measure in benchmark.measures if measure.name == first.headline), None)
    taking_part = [
        Contender(str(path), result.engine, result)
        for path, result, names in zip(paths, results, apart, strict=True)
        if first.headline not in names
    ]
    outcome = verdict(taking_part, headline, found, apart=any(apart))
    return Compared(
        benchmark=first.benchmark,
        version=first.version,
        headline=first.headline,
        baseline=str(paths[0]),
        units=first.units,
        directions=first.directions,
        differing=differing_parts(folders),
        runs=_ranked(paths, results, found),
        pairs=[
            Pair(
                run=str(path),
                engine=result.engine,
                samples=len(scored_samples(against) & scored_samples(scores[0])),
                shared=max((one.shared for one in found.pairs[str(path), str(paths[0])].values()), default=0),
                measures=found.pairs[str(path), str(paths[0])],
                moved=movement(benchmark, against, scores[0]),
            )
            for path, result, against in zip(paths[1:], results[1:], scores[1:], strict=True)
        ],
        notes=left_out_sentences([(one.engine, names) for one, names in zip(results, apart, strict=True)], measures),
        untold=found.untold,
        part=part_of_published(max(results, key=lambda result: result.total)),
        accepted=accepted_drafts(results),
        warning=unverified_warning(results),
        verdict=outcome.sentence,
        winner=outcome.winner,
    )


def _result(folder: RunFolder) -> Result:
    result = folder.result()
    if result is None:
        raise RunError(f"{folder.path} has no scores yet", hint=f"loupe score {word(folder.path)}")
    return result


def _ranked(paths: Sequence[Path], results: list[Result], compared: Standings) -> list[RunRow]:
    found = {str(path): result for path, result in zip(paths, results, strict=True)}
    return [
        RunRow(
            run=run,
            engine=found[run].engine,
            rank=rank,
            failed=failed_count(found[run]),
            total=found[run].total,
            signature=found[run].signature,
            measures=found[run].measures,
            speed=found[run].speed,
            currency=found[run].currency,
            unverified=unverified(found[run]),
            truth=truth_cell(found[run]),
        )
        for run, rank in compared.ranks.items()
    ]


def sections(compared: Compared) -> list[Section]:
    """The comparison as tables: who ranks where, then every difference with its interval."""
    unit = compared.units.get(compared.headline, "fraction")
    rows = []
    titles, figures = speed_columns([(item.speed, item.currency) for item in compared.runs])
    most = max(item.total for item in compared.runs)
    sized = any(item.total < most for item in compared.runs)
    for item, speed in zip(compared.runs, figures, strict=True):
        estimate = item.measures.get(compared.headline, _NO_VALUE)
        value, margin = format_value(estimate.value, unit), format_margin(estimate, unit)
        failed = f"{item.failed:,} of {item.total:,}" if item.failed else "–"
        truth = (item.truth,) if compared.warning else ()
        size = (f"{item.total:,} of {most:,}" if item.total < most else f"{most:,}",) if sized else ()
        rows.append((str(item.rank or "–"), item.engine, value, margin, *size, *truth, failed, *speed, item.run))
    column = ("truth",) if compared.warning else ()
    header = (
        "rank",
        "engine",
        compared.headline,
        "±",
        *(["samples"] if sized else []),
        *column,
        "failed",
        *titles,
        "run",
    )
    title = f"{compared.benchmark}@{shown_version(compared.version)}"
    winner = next((place for place, item in enumerate(compared.runs) if item.run == compared.winner), None)
    return [
        *([Section(title="", rows=[(compared.warning,)], alarm=True)] if compared.warning else []),
        Section(title=title, header=header, rows=rows, winner=winner),
        *_below_ranks(compared),
        *published_sections(compared.published, compared.units),
        *(section for pair in compared.pairs for section in _pair_sections(compared, pair)),
        *visible_sections(compared),
    ]


def _goodness(path: Path) -> float:
    """The stored headline, larger where it is better."""
    result = _result(open_run(path))
    value = result.measures.get(result.headline, _NO_VALUE).value
    if value is None:
        return -math.inf
    return value if result.directions.get(result.headline, True) else -value


def _below_ranks(compared: Compared) -> list[Section]:
    """The outcome in a sentence, and what else has to be said of these numbers."""
    said = [no_ranks(compared.headline)] if compared.untold else []
    said += [*compared.notes, *filter(None, [compared.part, compared.accepted])]
    outcome = [Section(title="", rows=[(compared.verdict,)])] if compared.verdict else []
    return [*outcome, *([Section(title="", rows=[(line,) for line in said])] if said else [])]


def visible_sections(compared: Compared) -> list[Section]:
    """What difference in the headline so few documents could have shown at all; nothing where they are many.

    Nor on drafts: more documents would show no better who is right.
    """
    if compared.warning:
        return []
    base = next(item.engine for item in compared.runs if item.run == compared.baseline)
    shared = [(pair.engine, pair.measures.get(compared.headline)) for pair in compared.pairs]
    pairs = [(f"{engine} minus {base}", found) for engine, found in shared if found is not None]
    return visible_differences(pairs, compared.headline, compared.units.get(compared.headline, "fraction"))


def ranking(paths: Sequence[Path]) -> list[Section]:
    """Who ranks where, and what could have been seen of the difference to the best; the best run comes first."""
    compared = compare_runs(sorted(paths, key=_goodness, reverse=True))
    ranks = sections(compared)[: 2 if compared.warning else 1]
    return [*ranks, *_below_ranks(compared), *visible_sections(compared)]


def _pair_sections(compared: Compared, pair: Pair) -> Iterator[Section]:
    base = next(item.engine for item in compared.runs if item.run == compared.baseline)
    yield _measured(compared, pair, base)
    unit = compared.units.get(pair.moved.measure, "fraction")
    if (moved := moved_section(pair.moved, unit, after=pair.engine, before=base)) is not None:
        yield moved


def _measured(compared: Compared, pair: Pair, base: str) -> Section:
    rows = []
    for name, found in pair.measures.items():
        if found.value_a is None and found.value_b is None:
            continue
        unit = compared.units.get(name, "fraction")
        cells = [name, format_value(found.value_a, unit), format_value(found.value_b, unit)]
        better = compared.directions.get(name, True)
        rows.append([*cells, *difference_cells(found, unit, higher_is_better=better)])
    count = f"{pair.samples:,} sample{'' if pair.samples == 1 else 's'}"
    grouped = f" in {pair.shared:,} groups" if pair.shared not in (0, pair.samples) else ""
    title = f"{pair.engine} minus {base}, on what both have read: {count}{grouped}"
    header = ("measure", pair.engine, base, *DIFFERENCE_HEADER)
    return Section(title=title, header=header, rows=rows)
