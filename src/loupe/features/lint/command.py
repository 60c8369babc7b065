"""`loupe lint`: faults of form in answers, what each costs, and what the answers would be worth without them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from loupe.cli.shared.errors import BELOW
from loupe.cli.shared.options import allow_unverified
from loupe.cli.shared.output import as_json, json_option, plain_option, say, tables
from loupe.cli.shared.run_paths import RunPath
from loupe.errors import UsageError, word
from loupe.features.lint.suggestions import adapters_option
from loupe.quantities import counted, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from loupe.features.lint.measure import FaultSum, Lint, PageLint
    from loupe.results.tables.record import Table

#: Lines named for one fault of a page; --json has them all.
LINES = 4


@click.command("lint")
@click.argument("answers", metavar="RUN | ANSWERS", type=RunPath())
@click.option(
    "--for", "benchmark", default="", metavar="BENCHMARK", help="Benchmark of the answers; not needed for a run."
)
@click.option(
    "--data", type=click.Path(exists=True, path_type=Path), metavar="DIR", help="Local copy of the benchmark's data."
)
@click.option("-o", "--option", multiple=True, metavar="KEY=VALUE", help="Option of the benchmark (bench show).")
@allow_unverified
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N samples.")
@click.option("--top", type=click.IntRange(min=1), default=10, metavar="N", help="Pages shown. Default: 10.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Processes. Default: one per core.")
@click.option("--fail-on-faults", is_flag=True, help="Exit with 1 if any fault is found.")
@json_option
@plain_option
@click.pass_context
def command(
    context: click.Context,
    /,
    answers: Path,
    benchmark: str,
    data: Path | None,
    option: tuple[str, ...],
    allow_unverified: bool,
    limit: int | None,
    top: int,
    jobs: int | None,
    fail_on_faults: bool,
    json: bool,
    plain: bool,
) -> None:
    """Find formatting faults that cost points, page by page, and show the score without them.

    For benchmarks whose answers are pages, lines or tables, questions with short answers (DocVQA and the like), and
    folders of your own with text, markdown or table pages. Each answer is scored as it is, with each fault fixed
    alone, and with all fixed; files and results of runs stay unchanged. Output adapters that fix a fault are named
    beside it. Without ground truth the faults are found, but their costs stay unknown.
    """
    from loupe.benchmarks.registry import full_name
    from loupe.cli.shared.options import parse_options, unverified_option
    from loupe.features.lint.measure import lint

    for flag, given in (("--option", option), ("--allow-unverified", allow_unverified)):
        if given and not benchmark:
            raise UsageError(f"{flag} is for answers, not for a run", hint=f"run: loupe lint {word(answers)}")
    benchmark = full_name(benchmark)
    options = parse_options(benchmark, option) if benchmark else {}
    options |= unverified_option(benchmark, allowed=allow_unverified)
    found = lint(answers, benchmark, data=data, options=options, limit=limit, jobs=jobs)
    if json:
        as_json(found)
    else:
        tables(sections(found, top), plain=plain)
        for line in remarks(found):
            say(line)
    context.exit(BELOW if fail_on_faults and any(fault.places for fault in found.faults) else 0)


def sections(found: Lint, top: int) -> Iterator[Table]:
    """The whole set, the faults, and the pages changed by the fix most; without ground truth no costs."""
    from loupe.results.tables.record import Table

    measures = moved(found)
    header = tuple(_heading(found, name) for name in measures)
    if found.official:
        title = f"{found.answers} for {found.benchmark}@{found.version}, {counted(found.read, 'page')}"
        yield Table(title=title, header=("measure", "official", "with all faults fixed", "change"), rows=_whole(found))
    faults = [_fault_row(found, fault, measures) for fault in found.faults if fault.places]
    if faults:
        title = "change with only this fault fixed" if found.official else "formatting faults"
        yield Table(title=title, header=("fault", "places", "pages", *header, "meaning"), rows=faults)
    faulty = [page for page in found.pages if page.faults and (not found.official or _moves(page))]
    if faulty:
        kind = "pages changed by the fix" if found.official else "pages"
        title = f"{kind} ({min(top, len(faulty)):,} of {len(faulty):,})"
        rows = [row for page in faulty[:top] for row in _page_rows(found, page, measures)]
        yield Table(title=title, header=("page, fault", "places", "lines", *header), rows=rows)


def _whole(found: Lint) -> list[tuple[str, ...]]:
    return [
        (
            _heading(found, name),
            _value(found, name, found.official),
            _value(found, name, found.mended),
            _change(found, name, found.official, found.mended),
        )
        for name in found.official
    ]


def _fault_row(found: Lint, fault: FaultSum, measures: list[str]) -> tuple[str, ...]:
    changes = [_change(found, name, found.official, fault.mended) for name in measures]
    meaning = f"{fault.meaning} (adapter {fault.adapter})" if fault.adapter else fault.meaning
    return fault.name, f"{fault.places:,}", f"{fault.pages:,}", *changes, meaning


def moved(found: Lint) -> list[str]:
    """The measures that mending changes anywhere: the others need no column."""
    versions = [found.mended, *(fault.mended for fault in found.faults)]
    return [
        name
        for name in found.official
        if any(_is_other(found.official[name], version.get(name)) for version in versions)
        or any(_is_other(page.official.get(name), page.mended.get(name)) for page in found.pages if page.mended)
    ]


def remarks(found: Lint) -> Iterator[str]:
    """What stands beside the tables."""
    from loupe.features.lint.adapter_faults import FOREIGN

    if found.no_truth:
        yield f"costs are unknown without ground truth: {found.no_truth} (--data DIR)"
    if not any(fault.places for fault in found.faults):
        yield f"no formatting fault in {counted(found.read, 'page')}"
    elif found.official:
        yield "scores with fixes are estimates: only `official` is a result of the benchmark"
    if adapters := list(dict.fromkeys(fault.adapter for fault in found.faults if fault.adapter)):
        yield f"fixed by {', '.join(adapters)}, with run and score alike: {adapters_option(found.adapters)}"
    if found.official and moved(found):
        yield "·: no change; –: not on this page, or not known"
    unknown = [page for page in found.pages if FOREIGN.name in page.faults]
    free = [page for page in found.pages if page.faults and FOREIGN.name not in page.faults and not _moves(page)]
    if found.official and unknown:
        why = "the cost is not known (docs/scoring-rules.md#formats-of-answers)"
        yield f"{counted(len(unknown), 'page')} in a foreign format: {why}"
    if found.official and free:
        yield f"{counted(len(free), 'page')} with faults at no cost: --json lists them"
    if found.missing:
        yield f"{counted(found.missing, 'page')} without an answer, counted as in the benchmark"


def _page_rows(found: Lint, page: PageLint, measures: list[str]) -> Iterator[tuple[str, ...]]:
    total = [_change(found, name, page.official, page.mended) for name in measures]
    yield page.page, f"{sum(map(len, page.faults.values())):,}", "", *total
    for name, lines in page.faults.items():
        changes = [_change(found, each, page.official, page.alone.get(name, {})) for each in measures]
        yield f"  {name}", f"{len(lines):,}", _lines(lines), *changes


def _moves(page: PageLint) -> bool:
    """True if mending, of one fault or of all, changes any number of the page."""
    versions = [page.mended, *page.alone.values()]
    return any(_is_other(value, version.get(name)) for name, value in page.official.items() for version in versions)


def _heading(found: Lint, name: str) -> str:
    return f"{name} {'↑' if found.directions[name] else '↓'}"


def _lines(lines: list[int]) -> str:
    some = list(dict.fromkeys(lines))
    return ", ".join(map(str, some[:LINES])) + (" …" if len(some) > LINES else "")


def _is_other(before: float | None, after: float | None) -> bool:
    return before is not None and after is not None and abs(after - before) > 5e-7


def _value(found: Lint, name: str, values: Mapping[str, float]) -> str:
    value = values.get(name)
    if value is None:
        return "–"
    return percent(value, 2) if found.units[name] == "fraction" else f"{value:.4f}"


def _change(found: Lint, name: str, before: Mapping[str, float], after: Mapping[str, float]) -> str:
    """After minus before, with its sign; a dot for none, a dash where there is nothing to change."""
    if name not in before or name not in after:
        return "–"
    change = after[name] - before[name]
    percent = found.units[name] == "fraction"
    text = f"{100 * change:+.2f}" if percent else f"{change:+.4f}"
    return text.replace("-", "−") if float(text) else "·"
