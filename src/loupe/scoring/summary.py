"""From scores of samples to the result of a run: estimates, slices, failures, diagnostics, and what a reader must know.

Method: docs/statistics.md. A failed sample is in every number as an empty answer (unless the benchmark says that
its official numbers leave it out), and is listed by name.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from loupe.stats.analysis import DRAWS, Analysis
from loupe.stats.clusters import Clustered, ScoreTable
from loupe.stats.estimates import FEWEST_OF_PART, estimate_clustered, is_share
from loupe.types import FAILED, Benchmark, Conclusion, Estimate, FailedAre, Failure, Result, SampleScores, Score

#: A tag with more values than this is a name, not a category.
LARGEST_SLICING = 50
#: With a larger share of failed samples the numbers say more about the run than about the engine.
TOO_MANY_FAILED = 0.05
_FLAGS = ("empty", "truncated", "only_reasoning", "loop", "text_on_blank", "script_mismatch", "failed")
_NAMED_IN_WARNING = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The origin of scores: benchmark (its id) and engine, how they were made, and of how many samples asked for.

    `part` says which of all samples these are ("": all).
    """

    benchmark: str
    engine: str
    signature: str
    total: int
    part: str = ""


def summarise(
    benchmark: Benchmark,
    rows: Iterable[SampleScores],
    origin: Origin,
    *,
    missing: Sequence[str] = (),
    speed: Mapping[str, float] | None = None,
    draws: int = DRAWS,
    conclusion: Conclusion | None = None,
) -> Result:
    """The result of a run from the scores of its samples; `missing` are the samples without a prediction.

    Without a `conclusion` the benchmark draws it from `rows`, which then are a sequence.
    Clusters are groups, or samples where a sample has none.
    """
    seen = _Seen()
    for row in rows:
        seen.add(row)

    measures = benchmark.measures_of(seen.scores.measures)
    shares = {measure.name for measure in measures if is_share(measure)}
    analysis = replace(Analysis.of(benchmark, measures), draws=draws)
    found = estimate_clustered(analysis, seen.scores.clustered(analysis.names))
    if conclusion is None and benchmark.conclude:
        assert isinstance(rows, Sequence)
        conclusion = benchmark.conclude(rows)
    conclusion = conclusion or Conclusion()
    return Result(
        benchmark=origin.benchmark,
        version=benchmark.version,
        engine=origin.engine,
        signature=origin.signature,
        headline=benchmark.headline_measure,
        measures={each.name: found.get(each.name, Estimate(value=None)) for each in measures},
        directions={each.name: each.higher_is_better for each in measures},
        units={each.name: each.unit for each in measures},
        slices=_slices(analysis, seen) | conclusion.slices,
        total=origin.total,
        part=origin.part,
        outcomes=dict(seen.outcomes + Counter(missing=len(missing))),
        failures=seen.failures,
        diagnostics=_diagnostics(seen),
        speed=dict(speed or {}),
        statistics=_statistics(analysis, seen),
        figures=conclusion.figures,
        failed_are=conclusion.failed_are,
        official=conclusion.official,
        not_computed=conclusion.not_computed,
        published_total=benchmark.published_total,
        warnings=[
            *_warnings(seen, origin.total, missing, conclusion.failed_are),
            *_earned_by_failing(seen, shares),
            *conclusion.warnings,
        ],
    )


class _Seen:
    """The facts kept about the rows: the numbers of their scores, the places of these per slice, and counts."""

    def __init__(self) -> None:
        self.rows = 0
        self.with_scores = 0
        self.scores = ScoreTable()
        self.slices: dict[str, dict[str, dict[str, array[int]]] | None] = {}
        self.outcomes: Counter[str] = Counter()
        self.failures: list[Failure] = []
        self.of_failed: list[tuple[str, Score]] = []
        self.unscored: list[str] = []
        self.diagnostics: dict[str, array[float]] = defaultdict(lambda: array("d"))
        self.empty_on_blank = 0

    def add(self, row: SampleScores) -> None:
        """Take one sample in."""
        self.rows += 1
        self.with_scores += bool(row.scores)
        self.outcomes[row.outcome] += 1
        if row.outcome in FAILED or row.error:
            outcome = row.outcome if row.outcome in FAILED else "scorer"
            self.failures.append(Failure(sample=row.sample, outcome=outcome, error=row.error))
            self.of_failed += [(row.sample, score) for score in row.scores]
        if row.error and not (row.scores or row.digest):
            self.unscored.append(row.sample)
        for name, value in row.diagnostics.items():
            self.diagnostics[name].append(value)
        # The mark is there only for pages with neither ink nor ground truth: to these, nothing is the right answer.
        self.empty_on_blank += row.outcome == "empty" and row.diagnostics.get("text_on_blank") == 0.0
        for score in row.scores:
            place = self.scores.add(row.group or row.sample, score)
            for tag, label in {**row.tags, **score.tags}.items():
                self._slice(tag, label, score.measure, place)

    def _slice(self, tag: str, value: str, measure: str, place: int) -> None:
        values = self.slices.setdefault(tag, {})
        if values is None:
            return
        if value not in values and len(values) == LARGEST_SLICING:
            self.slices[tag] = None
        else:
            values.setdefault(value, {}).setdefault(measure, array("I")).append(place)


def _slices(analysis: Analysis, seen: _Seen) -> dict[str, dict[str, dict[str, Estimate]]]:
    """By tag and value: every measure that the scores with it have a value of."""
    return {
        tag: {
            value: _slice(analysis, seen.scores.clustered(analysis.names, places))
            for value, places in sorted(values.items())
        }
        for tag, values in sorted(seen.slices.items())
        if values is not None
    }


def _slice(analysis: Analysis, scores: Clustered) -> dict[str, Estimate]:
    found = estimate_clustered(analysis, scores, fewest=FEWEST_OF_PART)
    return {name: one for name, one in found.items() if one.value is not None}


def _statistics(analysis: Analysis, seen: _Seen) -> dict[str, str | int | float]:
    return {
        "method": "bootstrap over clusters, accelerated percentiles",
        "draws": analysis.draws,
        "seed": analysis.seed,
        "level": 0.95,
        "clusters": seen.scores.clusters,
        "samples": seen.with_scores,
    }


def _diagnostics(seen: _Seen) -> dict[str, float]:
    """Flags as a count and a share, other numbers as a mean; each over the samples that have it."""
    found: dict[str, float] = {}
    for name, values in sorted(seen.diagnostics.items()):
        mean = sum(values) / len(values)
        found |= {name: sum(values), f"{name}_share": mean} if name in _FLAGS else {name: mean}
    broken = sum(failure.outcome == "scorer" for failure in seen.failures)
    found |= {"empty_on_blank": float(seen.empty_on_blank)} if seen.empty_on_blank else {}
    return found | ({"scorer_errors": float(broken)} if broken else {})


def _warnings(seen: _Seen, total: int, missing: Sequence[str], failed_are: FailedAre) -> list[str]:
    failed = len(seen.failures)
    broken = [failure.sample for failure in seen.failures if failure.outcome == "scorer"]
    found = []
    if missing:
        found.append(f"scored {seen.rows} of {total}: {len(missing)} without a prediction ({_some(missing)})")
    if failed > TOO_MANY_FAILED * total:
        some = "some of them" if failed_are == "partly left out" else "them"
        counts = "each counts as an empty answer" if failed_are == "empty" else f"the official numbers leave {some} out"
        found.append(f"{failed} of {total} samples failed, more than 5 %; {counts}")
    if broken:
        found.append(f"the scorer failed on {len(broken)} of {total} samples ({_some(broken)}); see the failures")
    if seen.unscored:
        found.append(f"{len(seen.unscored)} of these could not even be scored as empty ({_some(seen.unscored)})")
    if only := seen.diagnostics.get("only_reasoning"):
        found += _only_reasoning(int(sum(only)), seen.rows)
    found += [
        f"tag {tag!r} has more than {LARGEST_SLICING} values: no slices of it"
        for tag, values in sorted(seen.slices.items())
        if values is None
    ]
    return found


def _only_reasoning(count: int, answers: int) -> list[str]:
    """Say how many answers are filed as reasoning, and, if most are, what to do about it."""
    if not count:
        return []
    said = f"{count:,} of {answers:,} answers have reasoning and no content"
    if 2 * count < answers:
        return [said]
    return [
        f"{said}: the server's reasoning parser or the chat template takes the answer for thinking; start the server "
        "without its reasoning parser, or score the reasoning: add -o answer_from=reasoning --fresh"
    ]


def _earned_by_failing(seen: _Seen, shares: Set[str]) -> list[str]:
    """That samples without an answer have points, as official rules take nothing for right where nothing is wanted."""
    found = dict.fromkeys(sample for sample, score in seen.of_failed if score.measure in shares and score.counts[0] > 0)
    if not found:
        return []
    samples = "1 failed sample" if len(found) == 1 else f"{len(found)} failed samples"
    why = "the official rule counts no answer as right where none is wanted"
    return [f"{samples} earned points ({_some(list(found))}): {why}"]


def _some(samples: Sequence[str]) -> str:
    named = ", ".join(samples[:_NAMED_IN_WARNING])
    return f"{named}, …" if len(samples) > _NAMED_IN_WARNING else named
