"""`loupe load`: throughput and latency of an engine by requests in flight, on the pages and prompts of a run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from loupe.benchmarks.registry import full_name
from loupe.cli.shared.errors import INTERRUPTED, MISSING
from loupe.cli.shared.flags import Flags
from loupe.cli.shared.lazy import GroupedCommand
from loupe.cli.shared.options import asking_options, make_plans
from loupe.cli.shared.output import as_json, json_file_option, plain_option, print_data, say, tables
from loupe.cli.shared.progress import supervise
from loupe.errors import UsageError
from loupe.quantities import percent
from loupe.typed import convert, encode_json

if TYPE_CHECKING:
    from loupe.features.load.measure import Level, LoadTest, Percentiles
    from loupe.results.tables.record import Table

_NOUNS = frozenset({"error", "timeout"})
_HEADER = ("in flight", "pages/s", "tokens/s", "first token", "p50 s", "p95 s", "p99 s", "errors", "requests", "")
_NOT_MEASURED = "not measured"


def _sweep(context: click.Context, option: click.Parameter, value: str) -> tuple[int, ...]:
    """Whole numbers from 1 on, parted by commas."""
    words = [word.strip() for word in value.split(",") if word.strip()]
    if not words or any(not word.isdecimal() or not 1 <= int(word) <= 4096 for word in words):
        raise click.BadParameter(f"{value!r} is no list of whole numbers such as 1,4,16,64", context, option)
    return tuple(sorted({int(word) for word in words}))


@click.command("load", cls=GroupedCommand)
@click.argument("benchmark")
@click.option(
    "--sweep",
    default="1,4,16,64",
    show_default=True,
    callback=_sweep,
    metavar="N,N,...",
    help="Numbers of requests in flight, measured one after the other.",
)
@click.option(
    "--requests",
    type=click.IntRange(min=2),
    metavar="N",
    help="Requests for each number; at least twice that number. Default: four times, at least 32.",
)
@click.option(
    "--no-stream",
    is_flag=True,
    help="Send requests as a run does, without streaming; time to first token is not measured.",
)
@asking_options
@json_file_option
@click.option(
    "--plot", type=click.Path(path_type=Path), metavar="FILE", help="Curves as .svg, or with the table as .html."
)
@plain_option
@click.pass_context
def command(
    context: click.Context,
    /,
    benchmark: str,
    sweep: tuple[int, ...],
    requests: int | None,
    no_stream: bool,
    json: Path | None,
    plot: Path | None,
    plain: bool,
    **flags: Any,
) -> None:
    """Measure throughput and latency of an engine by requests in flight.

    The pages and prompts of BENCHMARK are asked as in a run, with each number of --sweep in flight: pages and tokens
    per second, seconds to the first token and to the whole answer, errors, and the knee. No answer is stored or
    scored, and nothing is tried again.
    """
    if requests is not None and requests < 2 * max(sweep):
        raise UsageError(
            f"--requests {requests}: too few for {max(sweep)} in flight", hint=f"use --requests {2 * max(sweep)}"
        )
    if plot is not None and plot.suffix.lower() not in (".svg", ".html"):
        raise UsageError(f"--plot {plot}: the picture is SVG or HTML", hint=f"use --plot {plot.with_suffix('.svg')}")
    benchmark = full_name(benchmark)
    plans = make_plans(benchmark, convert(flags, Flags))
    if len(plans) != 1:
        raise UsageError("loupe load measures one engine at a time", hint="-e NAME once")
    from loupe.features.load.measure import measure
    from loupe.inference.progress import Progress
    from loupe.servers.keeper import Keeper

    progress = Progress()
    with Keeper(say=say) as keeper:
        work = measure(plans[0], sweep, progress, requests=requests, stream=not no_stream, keeper=keeper)
        test = asyncio.run(supervise(work, progress, plain=plain))
    _show(test, json=json, plot=plot, plain=plain)
    if progress.stopping:
        context.exit(INTERRUPTED)
    context.exit(MISSING if test.stopped or not any(level.answered for level in test.levels) else 0)


def _show(test: LoadTest, *, json: Path | None, plot: Path | None, plain: bool) -> None:
    section = table_of(test)
    if json is not None:
        if str(json) == "-":
            as_json(test)
        else:
            _write(json, msgspec.json.format(encode_json(test), indent=2) + b"\n")
    if json is None or str(json) != "-":
        tables([section], plain=plain)
        for note in notes_of(test):
            say(note)
    if plot is not None:
        from loupe.features.load.plot import load_page, load_svg

        whole = load_page(test, notes_of(test), section)
        _write(plot, (load_svg(test) if plot.suffix.lower() == ".svg" else whole).encode())


def _write(path: Path, data: bytes) -> None:
    from loupe.files.folder import write_file

    if str(path) == "-":
        print_data(data.decode().removesuffix("\n"))
    else:
        write_file(path, data)
        say(f"saved in {path}")


def table_of(test: LoadTest) -> Table:
    """One row for each number of requests in flight."""
    from loupe.results.tables.record import Table

    title = f"{test.engine} on {test.benchmark}@{test.version}, {test.pages:,} pages"
    return Table(title=title, header=_HEADER, rows=[_row(test, level) for level in test.levels])


def _row(test: LoadTest, level: Level) -> tuple[str, ...]:
    latency = level.latency
    failed = sum(level.errors.values())
    return (
        f"{level.in_flight:,}",
        _rate(level.pages_per_second),
        _rate(level.tokens_per_second),
        _p50(level.first_token),
        *((f"{value:.3g}" for value in (latency.p50, latency.p95, latency.p99)) if latency else ("–",) * 3),
        f"{failed:,} ({percent(level.error_share)})" if failed else "–",
        f"{level.requests:,}",
        "knee" if level.in_flight == test.knee and not test.still_growing else "",
    )


def _rate(value: float | None) -> str:
    return _NOT_MEASURED if value is None else f"{value:,.3g}" if value < 100 else f"{value:,.0f}"


def _p50(seconds: Percentiles | None) -> str:
    return _NOT_MEASURED if seconds is None else f"{seconds.p50:.3g}"


def notes_of(test: LoadTest) -> list[str]:
    """What a reader must know: the knee and its rule, and what makes the figures other than those of a run."""
    from loupe.engines.chat.endpoints import unlisted_model
    from loupe.inference.budget import money

    notes = []
    if test.knee is None:
        notes.append("no knee: no number of requests in flight with at most 1 % errors")
    elif test.still_growing:
        notes.append(
            f"no knee yet: {test.knee} in flight, the highest level tested, is still the fastest ({test.rule})"
        )
    else:
        notes.append(f"knee: {test.knee} in flight ({test.rule})")
    for level in test.levels:
        if level.errors:
            named = (
                (count, f"{name}s" if count > 1 and name in _NOUNS else name) for name, count in level.errors.items()
            )
            counts = ", ".join(f"{count:,} {name}" for count, name in named)
            notes.append(f"{level.in_flight} in flight: {counts}; the first: {level.first_error[:200]}")
    if test.repeated:
        notes.append(
            f"{test.pages:,} pages were sent more than once: a server that caches prompts is slower on new pages"
        )
    if unlisted := unlisted_model(test.facts):
        notes.append(unlisted)
    if not test.streamed:
        notes.append("the time to the first token was not measured: answers were not streamed")
    if test.cost:
        notes.append(f"cost {money(test.cost)} {test.currency}")
    if test.stopped:
        notes.append(f"stopped: {test.stopped}")
    return notes
