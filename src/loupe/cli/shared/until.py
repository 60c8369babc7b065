"""`--until`, `--until-difference` and `--max-pages`: generated pages are read until an interval is narrow enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from loupe.benchmarks.registry import full_name, get_benchmark, usable_benchmarks
from loupe.cli.shared.output import say
from loupe.errors import UsageError, did_you_mean, word

if TYPE_CHECKING:
    from loupe.cli.shared.flags import Flags
    from loupe.cli.shared.reading import Carried
    from loupe.pipeline import Plan
    from loupe.runs.folder import RunFolder
    from loupe.stats.stopping import Goal, Look
    from loupe.types import Benchmark

F = TypeVar("F", bound=Callable[..., Any])

#: Pages at most, unless the user says so.
MOST_PAGES = 2_000


def until_options(function: F) -> F:
    """The three options."""
    text = "Most pages that --until generates. Default: 2000."
    function = click.option("--max-pages", type=click.IntRange(min=1), metavar="N", help=text)(function)
    text = "With --until: the interval is that of the difference of these two engines."
    function = click.option("--until-difference", default="", metavar="A,B", help=text)(function)
    text = "Generated pages only: read on until ± is at most X (in points) for the headline or a measure."
    return click.option("--until", default="", metavar="[MEASURE=]X", help=text)(function)


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """The values of the three options. `half_width` is as it is shown: percent, if `scale` is 100."""

    measure: str
    half_width: float
    scale: float
    between: tuple[str, str] | None
    pages: int


def asked_until(benchmark: str, until: str, difference: str, pages: int | None) -> Until | None:
    """The goal, None where none is asked for. Raises UsageError for one that cannot be reached."""
    if not until:
        given = "--until-difference" if difference else "--max-pages" if pages else ""
        if given:
            raise UsageError(
                f"{given} goes with --until", hint="use --until 0.5 to read on until the headline is known to ± 0.5"
            )
        return None
    found = get_benchmark(full_name(benchmark))
    if found.draw is None:
        endless = [name for name, versions in usable_benchmarks() if versions[0].draw]
        hint = f"run: loupe run {endless[0]} --until 0.5" if endless else "leave out --until"
        raise UsageError(f"--until needs pages without end, which {benchmark} has not", hint=hint)
    measure, _, width = until.rpartition("=")
    unit = _unit(found, measure or found.headline_measure)
    try:
        half = float(width)
    except ValueError:
        half = 0.0
    if not 0 < half < 100:
        raise UsageError(
            f"--until {until}: not a width in points above 0",
            hint=f"use --until 0.5, or --until {found.measures[-1].name}=2",
        )
    names = tuple(name.strip() for name in difference.split(",") if name.strip())
    if difference and len(names) != 2:
        raise UsageError(
            f"--until-difference {difference}: not two engines", hint="use --until-difference rapidocr,tesseract"
        )
    return Until(
        measure=measure,
        half_width=half,
        scale=100.0 if unit == "fraction" else 1.0,
        between=(names[0], names[1]) if names else None,
        pages=pages or MOST_PAGES,
    )


def _unit(benchmark: Benchmark, name: str) -> str:
    for measure in benchmark.measures:
        if measure.name == name:
            return measure.unit
    names = [measure.name for measure in benchmark.measures]
    raise UsageError(f"--until: no measure {name!r}{did_you_mean(name, names)}", hint=f"measures: {', '.join(names)}")


def with_pages(reading: Flags, until: Until) -> Flags:
    """The flags, asking for as many pages as there may be; the engines that are compared are engines to ask."""
    if any(option.startswith("pages=") for option in reading.option):
        raise UsageError("--until says how many pages there are", hint="use --max-pages N instead of -o pages=N")
    if reading.limit is not None or reading.sample is not None:
        raise UsageError("--until says how many pages are read", hint="leave out --limit and --sample")
    asked = reading.engine if until.between is None or reading.engine else until.between
    return msgspec.structs.replace(reading, option=(*reading.option, f"pages={until.pages}"), engine=asked)


def read_until(plans: Sequence[Plan], until: Until, *, plain: bool) -> Carried[RunFolder]:
    """Read with every plan, look, and read on; the reason of the stop is said and stored. Raises as `read_all` does."""
    from loupe.cli.shared.reading import read_all
    from loupe.pipeline import run
    from loupe.stats.stopping import FEWEST, Goal

    sides = _sides(plans, until)
    ends = _ends(plans[0])
    goal = Goal(half_width=until.half_width / until.scale, most=len(ends), measure=until.measure, between=until.between)
    clusters = min(FEWEST, len(ends))
    while True:
        limited = [replace(plan, limit=ends[clusters - 1]) for plan in plans]
        carried = read_all(limited, run, plain=plain)
        if carried.code or len(carried.found) < len(plans):
            return carried
        found = _look(goal, [carried.results[plans.index(plan)] for plan in sides])
        if found.ended:
            note = _why(found, until, ends[clusters - 1])
            say(note)
            for folder in carried.results:
                _store(folder, note)
            return carried
        say(f"± {_shown(found, until)} after {ends[clusters - 1]:,} pages{_doubt(found, until)}: reading on")
        clusters = min(clusters + max(found.more, 1), len(ends))


def _sides(plans: Sequence[Plan], until: Until) -> list[Plan]:
    if until.between is None:
        if len(plans) > 1:
            raise UsageError("--until is for one engine", hint="two: --until X --until-difference A,B")
        return list(plans)
    by_name = {plan.name or plan.label: plan for plan in plans}
    lacking = [name for name in until.between if name not in by_name]
    if lacking:
        raise UsageError(f"--until-difference: no engine {lacking[0]!r} is asked", hint=f"-e {word(lacking[0])}")
    return [by_name[name] for name in until.between]


def _ends(plan: Plan) -> list[int]:
    """Count the pages up to the end of each cluster; clusters are whole, one after another."""
    from loupe.pipeline.plan import samples_of

    ends: list[int] = []
    last = ""
    for number, sample in enumerate(samples_of(get_benchmark(plan.benchmark), plan.data, plan.options), 1):
        if sample.group == last and ends:
            ends[-1] = number
        else:
            ends.append(number)
        last = sample.group
    return ends


def _look(goal: Goal, folders: Sequence[RunFolder]) -> Look:
    """Return what the scores so far say: of one run, or of two over the samples that both have."""
    from loupe.stats.analysis import Analysis
    from loupe.stats.scored_run import ScoredRun
    from loupe.stats.stopping import look

    analysis = Analysis.of(get_benchmark(folders[0].info.benchmark))
    runs = [ScoredRun(folder.counts()) for folder in folders]
    shared = frozenset.intersection(*(frozenset(run.scored) for run in runs))
    return look(goal, analysis, [run.clustered(analysis.names, shared) for run in runs])


def _why(found: Look, until: Until, pages: int) -> str:
    what = until.measure or "the headline"
    what = f"the difference of {until.between[0]} and {until.between[1]} in {what}" if until.between else what
    if found.ended == "width":
        return f"stopped by width: ± {_shown(found, until)} of {what} after {pages:,} pages"
    asked = _doubt(found, until) or f", ± {until.half_width:g} was asked for"
    return f"stopped at the most pages ({pages:,}): ± {_shown(found, until)} of {what}{asked}"


def _doubt(found: Look, until: Until) -> str:
    """Return why a width that is narrow enough is not believed; "" if it is not."""
    from loupe.stats.bounds_of_unread import ENOUGH
    from loupe.stats.stopping import FEWEST

    if found.half_width is None or found.half_width * until.scale > until.half_width:
        return ""
    if found.clusters < FEWEST:
        return f", narrow enough, but on fewer than {FEWEST} base pages"
    return f", narrow enough, but it rests on about {found.evidence:.0f} pages; {ENOUGH:.0f} are needed"


def _shown(found: Look, until: Until) -> str:
    return "unknown" if found.half_width is None else f"{found.half_width * until.scale:.3g}"


def _store(folder: RunFolder, note: str) -> None:
    """Beside the numbers of the run, in run.json and in its result."""
    if note not in folder.info.notes:
        folder.write_info(msgspec.structs.replace(folder.info, notes=[*folder.info.notes, note]))
    own = folder.sealed_result()
    if own is not None and note not in own[1].warnings:
        noted = msgspec.structs.replace(own[1], warnings=[*own[1].warnings, note])
        folder.write_result(noted, made_from=own[0])
