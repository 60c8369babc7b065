"""Records of what `loupe compare` finds: the runs by rank, and the difference of each to the first one."""

from __future__ import annotations

import msgspec

from loupe.results.sections import NOTHING_HERE
from loupe.results.worst_samples import Movement
from loupe.stats.comparison import Difference
from loupe.types import Estimate, Failure, PublishedRow


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a comparison, with its rank by the headline measure; runs that cannot be told apart share one.

    `name` is the engine's, with what tells runs of one engine apart.
    `refused` of the `failed` samples were refused by the engine. `not_computed` says why measures have no value.
    `unverified` samples are compared with drafts; `truth` says so in words, and whether the engine drafted them itself.
    `scored_here` is False if the scores came from elsewhere, which `name` says, too.
    """

    run: str
    engine: str
    name: str
    rank: int | None
    failed: int
    total: int
    signature: str
    measures: dict[str, Estimate]
    not_computed: dict[str, str] = {}
    speed: dict[str, float] = {}
    currency: str = ""
    unverified: int = 0
    truth: str = "verified"
    refused: int = 0
    scored_here: bool = True


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Run minus baseline over the `samples` scored in both, in `shared` groups (pages, or documents of pages).

    `failed` of these samples were not read by one of the two, and count as empty there.
    `unscored` samples of the baseline are in no number of the run: it has not come to them, or their scorer failed.
    `unanswered` are the samples that the baseline has answered and the run has not: each with how it ended.
    `moved` names the samples that make up most of the difference.
    """

    run: str
    engine: str
    name: str
    samples: int
    shared: int
    measures: dict[str, Difference]
    unscored: int = 0
    failed: int = 0
    unanswered: list[Failure] = []
    moved: Movement = Movement()


class Regression(msgspec.Struct, frozen=True, kw_only=True):
    """The loss of a run against the baseline: a measure, with how much and how sure that is, or answers ("")."""

    run: str
    name: str
    measure: str
    why: str


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of one benchmark, best first; the first one given is the baseline of all pairs.

    `headline` is the measure that ranks them, and `headline_note` says why it is not the benchmark's own headline.
    `notes` say which composites are left out, as fewer samples would make them of fewer measures. `untold`: no two runs
    can be told apart by the headline on so few pages, so there are no ranks. `part` says that they are not over the
    whole of the published set, `samples` which part of all samples the largest run has read. `published` holds figures
    of others, if they were asked for: unranked, and in no pair. `twice` names measures that tables leave out: they are
    the headline again.
    `warning` says what unverified truth makes of the numbers, `accepted` that verified truth is an engine's draft.
    `verdict` is the outcome in one sentence, `winner` the run that is clearly better than all others ("": none is).
    `regressions` are what got worse since the baseline; None where nobody asked.
    """

    benchmark: str
    version: str
    headline: str
    headline_note: str = ""
    baseline: str
    units: dict[str, str]
    directions: dict[str, bool]
    differing: dict[str, list[str]]
    runs: list[RunRow]
    pairs: list[Pair]
    left_out: dict[str, str] = {}
    notes: list[str] = []
    untold: bool = False
    part: str = ""
    samples: str = ""
    twice: list[str] = []
    accepted: str = ""
    warning: str = ""
    verdict: str = ""
    winner: str = ""
    published: list[PublishedRow] = []
    regressions: list[Regression] | None = None

    def why_nothing(self, run: str, measure: str) -> str:
        """Return why a run has no value of a measure: the reason that stands beside its dash."""
        row = next(row for row in self.runs if row.run == run)
        return row.not_computed.get(measure) or NOTHING_HERE
