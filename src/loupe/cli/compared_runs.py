"""What `loupe compare` finds: the runs by rank, and the difference of each to the first one."""

from __future__ import annotations

import msgspec

from loupe.report.worst_samples import Movement
from loupe.stats.comparison import Difference
from loupe.types import Estimate, PublishedRow


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a comparison, with its rank by the headline measure; runs that cannot be told apart share one.

    `unverified` samples are compared with drafts; `truth` says so in words, and whether the engine drafted them itself.
    """

    run: str
    engine: str
    rank: int | None
    failed: int
    total: int
    signature: str
    measures: dict[str, Estimate]
    speed: dict[str, float] = {}
    currency: str = ""
    unverified: int = 0
    truth: str = "verified"


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Run minus baseline over the `samples` that both have read, in `shared` groups (pages, or documents of pages).

    `moved` names the samples that make up most of the difference.
    """

    run: str
    engine: str
    samples: int
    shared: int
    measures: dict[str, Difference]
    moved: Movement = Movement()


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of one benchmark, best first; the first one given is the baseline of all pairs.

    `notes` say which composites are left out, as fewer samples would make them of fewer measures. `untold`: no two runs
    can be told apart by the headline on so few pages, so there are no ranks. `part` says that they are not over the
    whole of the published set. `published` holds figures of others, if they were asked for: unranked, and in no pair.
    `warning` says what unverified truth makes of the numbers, `accepted` that verified truth is an engine's draft.
    `verdict` is the outcome in one sentence, `winner` the run that is clearly better than all others ("": none is).
    """

    benchmark: str
    version: str
    headline: str
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
    accepted: str = ""
    warning: str = ""
    verdict: str = ""
    winner: str = ""
    published: list[PublishedRow] = []
