"""`loupe.compare` and `loupe.report`: a run better than another one, or nobody can tell yet; runs as one HTML file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from loupe.api import display
from loupe.api.runs import Run, path_of
from loupe.errors import UsageError
from loupe.results.comparing.outcome import Outcome, outcome_of, outcome_sentence
from loupe.results.comparing.records import Compared
from loupe.results.comparing.runs import compare_runs
from loupe.stats.comparison import Difference


def report(
    runs: Sequence[Run | str | os.PathLike[str]] | Run | str | os.PathLike[str],
    output: str | os.PathLike[str] = "report.html",
    *,
    embed: bool = False,
    with_published: bool = False,
    measure: str = "",
) -> Path:
    """Write one HTML file with every number, page and answer of some runs, and return its path.

    `runs` are runs, or their folders. It opens from the disk, without a network. `embed` puts whole page images in;
    `with_published` adds what others have published. `measure` ranks the runs, instead of the headline of their
    benchmark. Raises LoupeError.

    >>> import loupe, tempfile
    >>> run = loupe.run("sample_pages", "pdf_text", limit=12, runs=None)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     loupe.report([run], f"{folder}/report.html").stat().st_size > 100_000
    True
    """
    from loupe.report.html import write_report

    if not isinstance(output, str | os.PathLike):
        raise UsageError(f"output is {type(output).__name__}", hint="write: loupe.report(runs, 'report.html')")
    listed = list(runs) if isinstance(runs, Sequence) and not isinstance(runs, str) else [runs]
    write_report([path_of(one) for one in listed], Path(output), embed=embed, published=with_published, measure=measure)
    return Path(output)


class Comparison:
    """Runs beside each other. What is said of one run is said of the last one against the first, the baseline."""

    def __init__(self, compared: Compared) -> None:
        self.details = compared
        self._pair = compared.pairs[-1]

    @property
    def baseline(self) -> str:
        """The name of the run that the others are compared with."""
        return next(row.name for row in self.details.runs if row.run == self.details.baseline)

    @property
    def name(self) -> str:
        """The name of the run that is compared with it."""
        return self._pair.name

    @property
    def headline(self) -> str:
        """The measure that decides."""
        return self.details.headline

    @property
    def headline_note(self) -> str:
        """The reason that another measure than the benchmark's headline decides, in one sentence; "" if none does."""
        return self.details.headline_note

    @property
    def differences(self) -> Mapping[str, Difference]:
        """The paired difference by measure, over the samples that both have read; corrected for several questions."""
        return self._pair.measures

    @property
    def difference(self) -> Difference:
        """That of the headline: `.difference`, `.low`, `.high`, `.p_holm`, and `.needed` pages to show it."""
        return self.differences.get(self.headline, Difference())

    @property
    def outcome(self) -> Outcome:
        """`better`, `worse` or `cannot tell yet`: what a paired test at the 5 % level says."""
        return outcome_of(self.difference, higher_is_better=self.details.directions.get(self.headline, True))

    @property
    def sentence(self) -> str:
        """The outcome with its numbers; where nobody can tell yet, how many pages would."""
        unit = self.details.units.get(self.headline, "fraction")
        return outcome_sentence((self.name, self.baseline), self.headline, self.difference, unit, self.outcome)

    def __str__(self) -> str:
        return self.sentence

    def __repr__(self) -> str:
        return f"<Comparison: {self.sentence}>"

    def _repr_html_(self) -> str:
        return display.comparison_html(self)


def compare(
    baseline: Run | str | os.PathLike[str], *runs: Run | str | os.PathLike[str], measure: str = ""
) -> Comparison:
    """Compare runs of one benchmark with the first of them, sample by sample.

    Each is a run, or its folder. `measure` decides; by default it is the headline of the benchmark, or the first
    measure that the runs have if that is not computed (`.headline_note` says so). Raises UsageError for runs of
    different benchmarks, versions or data, and for a measure that none of them has.

    >>> import loupe
    >>> before = loupe.score("sample_pages", {"prose": "A page"}, name="step-100")
    >>> after = loupe.score("sample_pages", {"prose": "A page of prose"}, name="step-200")
    >>> compare(before, after).outcome
    'cannot tell yet'
    """
    return Comparison(compare_runs([path_of(one) for one in (baseline, *runs)], measure=measure))
