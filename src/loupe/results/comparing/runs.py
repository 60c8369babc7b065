"""Runs of one benchmark compared: what `loupe compare` shows, and `loupe.compare` returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from loupe.benchmarks.registry import benchmark_of_run
from loupe.errors import RunError, UsageError, word
from loupe.results.comparing.comparable import differing_parts, refuse_strangers
from loupe.results.comparing.records import Compared, Pair, RunRow
from loupe.results.group_titles import run_names
from loupe.results.headline import check_measure, headline_of
from loupe.results.partial_runs import left_out_sentences, other_composites, without
from loupe.results.ranking import unranked_sentences
from loupe.results.scored_here import marked, result_of
from loupe.results.sections import carried_by_few, failed_count, part_of_published, says_twice
from loupe.results.unverified import accepted_drafts, review_of, truth_cell, unverified, unverified_warning
from loupe.results.verdict import Contender, verdict
from loupe.results.worst_samples import movement
from loupe.runs.folder import RunFolder
from loupe.runs.opening import open_run
from loupe.stats.analysis import Analysis
from loupe.stats.ranks import Standings, standings
from loupe.types import FAILED, Benchmark, Failure, Result


def compare_runs(paths: Sequence[Path], *, to_best: bool = False, measure: str = "") -> Compared:
    """Compare runs with the first one, or with the best, by `measure` or else the measure that ranks them.

    Raises UsageError for runs of other benchmarks and for a measure that no run has, RunError for a run without scores.
    """
    paths = list(dict.fromkeys(paths))
    folders = [open_run(path) for path in paths]
    if len(paths) < 2:
        raise UsageError("a comparison needs two different runs", hint="list your runs: loupe runs")
    refuse_strangers(folders)
    benchmark = benchmark_of_run(folders[0].info.benchmark)
    results = [_scored(folder) for folder in folders]
    first = results[0]
    runs = {str(path): folder for path, folder in zip(paths, folders, strict=True)}
    measures = benchmark.measures_of(name for result in results for name in result.measures)
    apart = other_composites(results, measures, benchmark.summarize)
    check_measure(measure, results)
    ranked = headline_of(results, measure)
    results = [without(result, names) for result, names in zip(results, apart, strict=True)]
    found = standings(
        replace(Analysis.of(benchmark, measures), headline=ranked.measure),
        {run: folder.counts() for run, folder in runs.items()},
        unranked={run for run, names in zip(runs, apart, strict=True) if ranked.measure in names},
    )
    largest = max(results, key=lambda result: result.total)
    headline = next((one for one in measures if one.name == ranked.measure), None)
    names = {run: marked(name, result) for run, name, result in zip(runs, run_names(folders), results, strict=True)}
    baseline = next(iter(found.ranks)) if to_best else str(paths[0])
    taking_part = [
        Contender(str(path), names[str(path)], result)
        for path, result, left in zip(paths, results, apart, strict=True)
        if ranked.measure not in left
    ]
    outcome = verdict(taking_part, headline, found, apart=any(apart), review=review_of(folders[0].info))
    return Compared(
        benchmark=first.benchmark,
        version=first.version,
        headline=ranked.measure,
        headline_note=ranked.note,
        baseline=baseline,
        units=first.units,
        directions=first.directions,
        differing=differing_parts(folders),
        runs=_ranked(names, results, found),
        pairs=_pairs(benchmark, runs, names, baseline, found, ranked.measure),
        notes=[
            *left_out_sentences(list(zip(names.values(), apart, strict=True)), measures),
            *unranked_sentences(
                {one.key: one.name for one in taking_part if one.value(ranked.measure) is not None}, found
            ),
            *(
                f"{name}: {said}"
                for name, each in zip(names.values(), results, strict=True)
                if (said := carried_by_few(each))
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


def _scored(folder: RunFolder) -> Result:
    """The result of a run. Raises RunError where it has no scores yet."""
    result = result_of(folder)
    if result is None:
        raise RunError(f"{folder.path} has no scores yet", hint=f"score it: loupe score {word(folder.path)}")
    return result


class _Read(NamedTuple):
    """The samples of a run: those with scores, those looked at, those answered, and how the others ended.

    A sample that was looked at may have nothing that its benchmark can score.
    """

    scored: frozenset[str]
    looked_at: frozenset[str]
    answered: dict[str, None]
    failed: dict[str, Failure]

    @classmethod
    def of(cls, folder: RunFolder) -> _Read:
        looked_at, answered, failed = dict[str, bool](), dict[str, None](), dict[str, Failure]()
        for item in folder.counts():
            if item.scores or not item.error:
                looked_at[item.sample] = bool(item.scores)
            if item.outcome in FAILED or item.error:
                outcome = item.outcome if item.outcome in FAILED else "scorer"
                failed[item.sample] = Failure(sample=item.sample, outcome=outcome, error=item.error)
            else:
                answered[item.sample] = None
        scored = frozenset(sample for sample, has_scores in looked_at.items() if has_scores)
        return cls(scored, frozenset(looked_at), answered, failed)

    def unanswered(self, baseline: _Read) -> list[Failure]:
        """List the samples that this run has not answered although the baseline has, or has at least scored them."""
        only_scored = sorted(baseline.scored & (baseline.failed.keys() - self.looked_at))
        return [
            self.failed.get(sample, Failure(sample=sample, outcome="missing"))
            for sample in (*baseline.answered, *only_scored)
            if sample not in self.answered
        ]


def _pairs(
    benchmark: Benchmark,
    runs: Mapping[str, RunFolder],
    names: Mapping[str, str],
    baseline: str,
    compared: Standings,
    headline: str,
) -> list[Pair]:
    """Every other run against the baseline, over the samples that both have scored."""
    read = {run: _Read.of(folder) for run, folder in runs.items()}
    return [
        Pair(
            run=run,
            engine=folder.info.engine,
            name=names[run],
            samples=len(shared := read[run].scored & read[baseline].scored),
            shared=max((one.shared for one in compared.minus(run, baseline).values()), default=0),
            measures=compared.minus(run, baseline),
            unscored=len(read[baseline].scored - read[run].looked_at),
            failed=len(shared & (read[run].failed.keys() | read[baseline].failed.keys())),
            unanswered=read[run].unanswered(read[baseline]),
            moved=movement(benchmark, folder.scores, runs[baseline].scores, shared, headline),
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
            refused=found[run].outcomes.get("refused", 0),
            total=found[run].total,
            signature=found[run].signature,
            measures=found[run].measures,
            not_computed=found[run].not_computed,
            speed=found[run].speed,
            currency=found[run].currency,
            unverified=unverified(found[run]),
            scored_here=found[run].scored_here,
            truth=truth_cell(found[run]),
        )
        for run, rank in compared.ranks.items()
    ]
