"""The compression-precision curve of runs that measure compression: a table, JSON, and a picture as a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from loupe.benchmarks.fox.compression import Binning
from loupe.cli.shared.output import as_json, say, tables
from loupe.errors import RunError, UsageError, word
from loupe.files.folder import write_file
from loupe.report.compression_curve import Curve, curve_svg, curves, run_name
from loupe.results.sections import Section, format_range, format_value
from loupe.types import Result

_HEADER = ("run", "bin", "pages", "compression", "precision", "95 % interval", "paper")
_NOTHING = "no pages with vision tokens and precision in these bins"


def show_curves(
    paths: Sequence[Path],
    by: Literal["gt_tokens", "compression_gt", "compression_output"],
    plot: Path | None,
    *,
    json: bool,
    plain: bool,
) -> None:
    """Show the curves of runs, and write the plot. Raises where a run is not scored, or measures no compression."""
    results = [_result(path) for path in paths]
    drawn = curves(results, by)
    missing = {name for name, _ in results} - {curve.name for curve in drawn}
    if missing:
        raise UsageError(f"{sorted(missing)[0]}: {_NOTHING}", hint="loupe run fox -e deepseek-ocr -o mode=gundam")
    if plot:
        write_plot(results, by, plot)
    if json:
        as_json({"by": by, "curves": drawn, "plot": str(plot) if plot else None})
        return
    tables([_section(drawn, by)], plain=plain)


def write_plot(results: Sequence[tuple[str, Result]], by: Binning, plot: Path) -> None:
    """Write the curve as SVG. Raises UsageError where there is nothing to draw or the file cannot be written."""
    if plot.suffix.lower() != ".svg":
        raise UsageError(f"--plot {plot}: the picture is SVG", hint=f"--plot {plot.with_suffix('.svg')}")
    picture = curve_svg(curves(results, by), background="#ffffff")
    if not picture:
        raise UsageError(f"no curve to draw: {_NOTHING}", hint="--by compression_gt, or --ground-truth PATH")
    write_file(plot, picture.encode())
    say(f"curve: {plot}")


def _result(path: Path) -> tuple[str, Result]:
    """A run's name for the legend, and its result."""
    from loupe.benchmarks.registry import benchmark_of_run, shown_options
    from loupe.results.scored_here import marked, result_of
    from loupe.runs.opening import open_run

    run = open_run(path)
    mode = run.info.options.get("mode", "none")
    if mode == "none" and "mode" in shown_options(benchmark_of_run(run.info.benchmark)):
        raise UsageError(
            f"{path}: was run without a mode, so vision tokens were not counted", hint="loupe run fox -o mode=small"
        )
    result = result_of(run)
    if result is None:
        raise RunError(f"{path}: not scored yet", hint=f"loupe score {word(path)}")
    if "compression_gt" not in result.measures:
        what = f"{run.info.benchmark_id} has no compression measure"
        raise UsageError(f"{path}: {what}", hint="loupe run fox -o mode=small")
    return marked(run_name(run.info.engine, mode), result), result


def _section(drawn: Sequence[Curve], by: str) -> Section:
    rows = []
    for curve in drawn:
        for point in curve.points:
            precision = point.precision
            rows.append(
                (
                    curve.name,
                    point.label,
                    f"{point.pages:,}",
                    f"{point.compression or 0:.2f}x",
                    format_value(precision.value, "fraction"),
                    format_range(precision.low, precision.high, "fraction"),
                    format_value(point.expected, "fraction"),
                )
            )
    return Section(title=f"precision by {by.replace('_', ' ')}", header=_HEADER, rows=rows)
