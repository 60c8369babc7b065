"""`loupe compress`: vision tokens, compression and precision of pages in DeepSeek-OCR's resolution modes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loupe.cli.shared.api_key import API_KEY, API_KEY_FILE
from loupe.cli.shared.engine_settings import prompt_options
from loupe.cli.shared.errors import SOME_FAILED
from loupe.cli.shared.exit_verdict import strict_option
from loupe.cli.shared.lazy import GroupedCommand
from loupe.cli.shared.options import YES
from loupe.cli.shared.output import as_json, differences, json_option, plain_option, print_line, say, tables
from loupe.cli.shared.run_paths import RunPath
from loupe.cli.shared.server_options import (
    SERVER_OVERRIDES,
    check_serve,
    check_server_settings,
    check_variables,
    server_options,
    sized,
)
from loupe.errors import DatasetError, EngineError, UsageError
from loupe.metrics.vision_tokens import MAX_TILES, MODES
from loupe.runs.installed import is_installed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loupe.engines.registry import Profile
    from loupe.features.compress.measure import CompressionPage, PageCompression, Reading

#: Who reads where nobody is named; its address comes from --base-url or is found on this machine.
DEFAULT_ENGINE = "deepseek-ocr"
#: Failed pages that are named.
LISTED = 5
_PATH = click.Path(path_type=Path)


class _RunOrBenchmark(RunPath):
    """A run, or a benchmark: a path with a slash is a folder, also if a benchmark is called like it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; of a folder the whole one, as a path drops the `./` in front of a name."""
        found = super().convert(value, param, ctx)
        return found.absolute() if "/" in str(value) and is_installed(str(found)) else found


@click.command("compress", cls=GroupedCommand)
@click.argument("runs", metavar="[RUN... | BENCHMARK]", nargs=-1, type=_RunOrBenchmark())
@click.option("--image", type=_PATH, metavar="PATH", help="A page image, or a folder of them.")
@click.option("--mode", type=click.Choice(list(MODES)), help="Resolution mode. Dry run without one: all of them.")
@click.option("--ground-truth", type=_PATH, metavar="PATH", help="Text of the page; folder of texts; Fox's JSON.")
@click.option("--gt-tokens", type=click.IntRange(min=1), metavar="N", help="Tokens of the ground truth, if known.")
@click.option("--data", type=_PATH, metavar="DIR", help="Local copy of the BENCHMARK's data, for its dry run.")
@click.option("-o", "--option", multiple=True, metavar="KEY=VALUE", help="Option of the BENCHMARK (bench show).")
@click.option("--dry-run", is_flag=True, help="Count tokens only: no model, no server, no GPU.")
@click.option(
    "--max-tiles",
    type=click.IntRange(1, 100),
    default=MAX_TILES,
    show_default=True,
    metavar="N",
    help="Maximum tiles in mode gundam: 9 in Transformers' infer(), 6 in vLLM.",
)
@click.option("-e", "--engine", metavar="NAME", help=f"Engine to use. Default: {DEFAULT_ENGINE}.")
@click.option("--base-url", multiple=True, metavar="URL", help="OpenAI-compatible server; again for several.")
@API_KEY_FILE
@API_KEY
@click.option("--model", metavar="ID", help="Model name at the server, if it differs.")
@server_options
@prompt_options
@click.option("-n", "--concurrency", type=click.IntRange(min=1), metavar="N", help="Requests in flight at once.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="S", help="Seconds per request.")
@click.option(
    "--by",
    type=click.Choice(["gt_tokens", "compression_gt", "compression_output"]),
    default="gt_tokens",
    show_default=True,
    help="Bins of the curve.",
)
@click.option("--plot", type=_PATH, metavar="FILE.svg", help="Write the compression-precision curve there.")
@click.option("--report", type=_PATH, metavar="FILE.html", help="Write pages, texts and their differences there.")
@YES
@strict_option
@json_option
@plain_option
@click.pass_context
def command(context: click.Context, /, runs: tuple[Path, ...], json: bool, plain: bool, **flags: Any) -> None:
    """Count what pages cost in vision tokens, and measure how much of them is read at that compression.

    With --image, pages of your own: counted (--dry-run), or read by an engine and compared with --ground-truth. With
    RUNs of the benchmark `fox` (-o mode=...), the compression-precision curve of each. A dry run takes a BENCHMARK too.
    The paper's values are shown for orientation only.
    """
    image: Path | None = flags["image"]
    if (image is None) == (not runs):
        raise UsageError("give --image PATH, or RUNs of fox", hint="run: loupe compress --image page.png --dry-run")
    if flags["report"] and (image is None or flags["dry_run"]):
        raise UsageError(
            "--report shows what an engine reads now",
            hint="use --image PATH and --mode MODE; of runs: loupe report RUN",
        )
    if image is None and not flags["dry_run"]:
        from loupe.features.compress.tables import show_curves

        show_curves(runs, flags["by"], flags["plot"], json=json, plain=plain)
        return
    from loupe.features.compress.measure import find_pages, measure, pages_of_benchmark

    if image is None:
        from loupe.benchmarks.registry import full_name
        from loupe.cli.shared.options import parse_options

        if len(runs) > 1 or flags["ground_truth"] or flags["gt_tokens"]:
            raise UsageError(
                "a dry run takes one benchmark and uses its own texts", hint="run: loupe compress fox --dry-run"
            )
        benchmark = full_name(str(runs[0]))
        pages = pages_of_benchmark(benchmark, flags["data"], parse_options(benchmark, flags["option"]))
    else:
        pages = find_pages(image, flags["ground_truth"], tokens=flags["gt_tokens"])
    most = flags["max_tiles"]
    if flags["dry_run"]:
        if flags["plot"]:
            raise UsageError("--plot needs answers, a dry run has none", hint="leave --dry-run out")
        rows = measure(pages, [flags["mode"]] if flags["mode"] else list(MODES), max_tiles=most)
        _refuse_failed_page(image, rows)
        context.exit(_show(pages, rows, flags, None, json=json, plain=plain))
    if flags["mode"] is None:
        raise UsageError(
            "--mode is missing: name the mode that the server uses; Loupe cannot set it",
            hint="use --mode gundam, that of vLLM and SGLang; --dry-run shows all",
        )
    label, profile = _engine(flags)
    reading = _read(pages, label, profile, plain=plain)
    rows = measure(pages, [flags["mode"]], max_tiles=most, reading=reading)
    _refuse_failed_page(image, rows)
    context.exit(_show(pages, rows, flags, reading, json=json, plain=plain))


def _engine(flags: dict[str, Any]) -> tuple[str, Profile]:
    """The engine that reads, in the mode asked for where it has such a setting."""
    from loupe.cli.shared.chosen_engines import agree_to_send, configure, override_table
    from loupe.cli.shared.engine_settings import caution, settings_of
    from loupe.cli.shared.flags import Flags

    keys = ("base_url", "model", "prompt", "prompt_file", "concurrency", "timeout", *SERVER_OVERRIDES)
    overrides = override_table(Flags(**{key: flags[key] for key in keys}))
    check_serve(overrides)
    label, profile = configure(flags["engine"] or DEFAULT_ENGINE, overrides)
    if "mode" in settings_of(flags["engine"] or DEFAULT_ENGINE) and "mode" not in overrides:
        label, profile = configure(flags["engine"] or DEFAULT_ENGINE, overrides | {"mode": flags["mode"]})
    check_server_settings(overrides, [(label, profile)])
    check_variables([(label, profile)])
    agree_to_send([profile], yes=flags["yes"])
    ((label, profile),) = sized([(label, profile)], flags["size"], overrides)
    if unproven := caution(profile):
        say(f"{label}: {unproven}")
    return label, profile


def _read(pages: Sequence[CompressionPage], label: str, profile: Profile, *, plain: bool) -> Reading:
    from loupe.cli.shared.progress import supervise
    from loupe.features.compress.measure import read_pages
    from loupe.inference.progress import Progress
    from loupe.servers.keeper import Keeper

    progress = Progress(engine=label, benchmark="compress")
    try:
        with Keeper(say=say) as keeper:
            work = read_pages(pages, profile, progress, keeper)
            reading = asyncio.run(supervise(work, progress, plain=plain))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    if progress.stopping:
        raise KeyboardInterrupt
    return reading


def _show(
    pages: Sequence[CompressionPage],
    rows: Sequence[PageCompression],
    flags: dict[str, Any],
    reading: Reading | None,
    *,
    json: bool,
    plain: bool,
) -> int:
    """Print rows, means and doubts, and write the plot; returns the exit code."""
    from loupe.features.compress.measure import doubts, pages_read, result_of
    from loupe.features.compress.tables import document, sections

    label = reading.engine if reading else ""
    read = pages_read(pages, rows, reading, max_tiles=flags["max_tiles"]) if reading else []
    whole = result_of(read, engine=label)
    result = whole if any(row.precision is not None for row in rows) else None
    warnings = list(doubts(rows, reading)) if reading else []
    if flags["plot"]:
        from loupe.features.compress.tables import write_plot

        if result is None:
            raise UsageError("the curve needs precision", hint="use --ground-truth PATH")
        write_plot([(label, result)], flags["by"], flags["plot"])
    if flags["report"] and whole is not None:
        from loupe.features.compress.tables import write_pages

        write_pages(read, whole, flags["report"], engine=label, mode=flags["mode"])
    if json:
        as_json(document(rows, result, warnings, reading))
    else:
        tables(sections(rows, result), plain=plain)
        _show_text(rows, wanted=reading is not None and not flags["report"])
        for warning in warnings:
            say(f"note: {warning}")
    failed = [row for row in rows if row.error]
    for row in [] if json else failed[:LISTED]:
        say(f"failed: {row.page}: {row.error}")
    return SOME_FAILED if failed and (flags["strict"] or len(failed) == len(rows)) else 0


def _show_text(rows: Sequence[PageCompression], *, wanted: bool) -> None:
    """The text that was read of a single page, marked where it differs from the ground truth; of several, its place."""
    if not wanted:
        return
    if len(rows) > 1:
        say("to see the text beside each page: --report FILE.html")
    elif rows:
        against = ", against the ground truth: [-missing-] {+not there+}" if rows[0].reference else ""
        print_line(f"what was read{against}")
        differences(rows[0].text.strip(), rows[0].reference.strip())


def _refuse_failed_page(image: Path | None, rows: Sequence[PageCompression]) -> None:
    """Of a single page that cannot be opened or read there is nothing to show but why."""
    if image is None or image.is_dir() or not rows or not rows[0].error:
        return
    if rows[0].outcome == "unreadable":
        raise DatasetError(rows[0].error, hint="give --image a page as PNG, JPEG, WebP, GIF or TIFF")
    raise EngineError(
        f"{image}: {rows[0].outcome}: {rows[0].error}", hint="use --timeout S, or look at the server's log"
    )
