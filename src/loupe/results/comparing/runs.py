"""Runs of one benchmark compared: what `loupe compare` shows, and `loupe.compare` returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from loupe.benchmarks.registry import benchmark_of_run
from loupe.errors import RunError, UsageError, word
from loupe.results.comparing.comparable import differing_parts, refuse_strangers
from loupe.results.comparing.records import Compared, Pair, RunRow
from loupe.results.group_titles import run_names
from loupe.results.partial_runs import left_out_sentences, other_composites, without
from loupe.results.ranking import unranked_sentences
from loupe.results.sections import failed_count, part_of_published, says_twice
from loupe.results.unverified import accepted_drafts, review_of, truth_cell, unverified, unverified_warning
from loupe.results.verdict import Contender, verdict
from loupe.results.worst_samples import movement
from loupe.runs.folder import RunFolder
from loupe.runs.opening import open_run
from loupe.stats.analysis import Analysis
from loupe.stats.ranks import Standings, standings
from loupe.types import FAILED, Benchmark, Result


def compare_runs(paths: Sequence[Path], *, to_best: bool = False) -> Compared:
    """All of a comparison with the first run or the best. Raises UsageError for other benchmarks, RunError unscored."""
    paths = list(dict.fromkeys(paths))
    folders = [open_run(path) for path in paths]
    if len(paths) < 2:
        raise UsageError("a comparison needs two different runs", hint="loupe runs lists them")
    refuse_strangers(folders)
    benchmark = benchmark_of_run(folders[0].info.benchmark)
    results = [result_of(folder) for folder in folders]
    first = results[0]
    runs = {str(path): folder for path, folder in zip(paths, folders, strict=True)}
    measures = benchmark.measures_of(name for result in results for name in result.measures)
    apart = other_composites(results, measures, benchmark.summarize)
    results = [without(result, names) for result, names in zip(results, apart, strict=True)]
    found = standings(
        Analysis.of(benchmark, measures),
        {run: folder.scores() for run, folder in runs.items()},
        unranked={run for run, names in zip(runs, apart, strict=True) if benchmark.headline_measure in names},
    )
    largest = max(results, key=lambda result: result.total)
    headline = next((measure for measure in benchmark.measures if measure.name == first.headline), None)
    names = dict(zip(runs, run_names(folders), strict=True))
    baseline = next(iter(found.ranks)) if to_best else str(paths[0])
    taking_part = [
        Contender(str(path), names[str(path)], result)
        for path, result, left in zip(paths, results, apart, strict=True)
        if first.headline not in left
    ]
    outcome = verdict(taking_part, headline, found, apart=any(apart), review=review_of(folders[0].info))
    return Compared(
        benchmark=first.benchmark,
        version=first.version,
        headline=first.headline,
        baseline=baseline,
        units=first.units,
        directions=first.directions,
        differing=differing_parts(folders),
        runs=_ranked(names, results, found),
        pairs=_pairs(benchmark, runs, dict(zip(runs, results, strict=True)), names, baseline, found),
        notes=[
            *left_out_sentences(list(zip(names.values(), apart, strict=True)), measures),
            *unranked_sentences(
                {one.key: one.name for one in taking_part if one.value(first.headline) is not None}, found
            ),
        ],
        untold=found.untold,
        part=part_of_published(largest),
        samples=folders[results.index(largest)].info.part,
        twice=[measure.name for measure in measures if says_twice(results, measure.name)],
        accepted=accepted_drafts(results),
        warning=unverified_warning(results),
        verdict=outcome.sentence,
        winner=outcome.winner,
    )


def result_of(folder: RunFolder) -> Result:
    """The result of a run. Raises RunError where it has no scores yet."""
    result = folder.result()
    if result is None:
        raise RunError(f"{folder.path} has no scores yet", hint=f"loupe score {word(folder.path)}")
    return result


class _Read(NamedTuple):
    """The samples of a run that have scores, with them those in which its benchmark found nothing to score, and those
    whose page was not read."""

    scored: frozenset[str]
    looked_at: frozenset[str]
    failed: frozenset[str]

    @classmethod
    def of(cls, folder: RunFolder) -> _Read:
        looked_at = {item.sample: bool(item.scores) for item in folder.scores() if item.scores or not item.error}
        failed = (sample for sample, place in folder.prediction_places().items() if place.mark in FAILED)
        scored = frozenset(sample for sample, scored in looked_at.items() if scored)
        return cls(scored, frozenset(looked_at), frozenset(failed))


def _pairs(
    benchmark: Benchmark,
    runs: Mapping[str, RunFolder],
    results: Mapping[str, Result],
    names: Mapping[str, str],
    baseline: str,
    compared: Standings,
) -> list[Pair]:
    """Every other run against the baseline, over the samples that both have scored."""
    read = {run: _Read.of(folder) for run, folder in runs.items()}
    return [
        Pair(
            run=run,
            engine=results[run].engine,
            name=names[run],
            samples=len(shared := read[run].scored & read[baseline].scored),
            shared=max((one.shared for one in compared.minus(run, baseline).values()), default=0),
            measures=compared.minus(run, baseline),
            unscored=len(read[baseline].scored - read[run].looked_at),
            failed=len(shared & (read[run].failed | read[baseline].failed)),
            moved=movement(benchmark, folder.scores(), runs[baseline].scores(), shared),
        )
        for run, folder in runs.items()
        if run != baseline
    ]


def _ranked(names: Mapping[str, str], results: list[Result], compared: Standings) -> list[RunRow]:
    found = dict(zip(names, results, strict=True))
    return [
        RunRow(
            run=run,
            engine=found[run].engine,
            name=names[run],
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
