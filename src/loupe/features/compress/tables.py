"""Tables and files of `loupe compress`: rows and means of pages, the curve of runs, and the report of pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from loupe.cli.shared.output import as_json, say, tables
from loupe.errors import RunError, UsageError, word
from loupe.features.compress.fox import Binning
from loupe.features.compress.picture import Curve, curve_svg, curves, run_name
from loupe.files.folder import Folder, write_file
from loupe.quantities import percent
from loupe.results.sections import format_margin, format_range, format_value, margin_heading
from loupe.results.tables.record import Table
from loupe.typed import encode_json
from loupe.types import Result

if TYPE_CHECKING:
    from loupe.features.compress.measure import PageCompression, Reading, ReadPage

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
        raise UsageError(f"{sorted(missing)[0]}: {_NOTHING}", hint="run: loupe run fox -e deepseek-ocr -o mode=gundam")
    if plot:
        write_plot(results, by, plot)
    if json:
        as_json({"by": by, "curves": drawn, "plot": str(plot) if plot else None})
        return
    tables([_section(drawn, by)], plain=plain)


def write_plot(results: Sequence[tuple[str, Result]], by: Binning, plot: Path) -> None:
    """Write the curve as SVG. Raises UsageError where there is nothing to draw or the file cannot be written."""
    if plot.suffix.lower() != ".svg":
        raise UsageError(f"--plot {plot}: the picture is SVG", hint=f"use --plot {plot.with_suffix('.svg')}")
    picture = curve_svg(curves(results, by), background="#ffffff")
    if not picture:
        raise UsageError(f"no curve to draw: {_NOTHING}", hint="use --by compression_gt, or --ground-truth PATH")
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
            f"{path}: was run without a mode, so vision tokens were not counted",
            hint="run: loupe run fox -o mode=small",
        )
    result = result_of(run)
    if result is None:
        raise RunError(f"{path}: not scored yet", hint=f"score it: loupe score {word(path)}")
    if "compression_gt" not in result.measures:
        what = f"{run.info.benchmark_id} has no compression measure"
        raise UsageError(f"{path}: {what}", hint="run: loupe run fox -o mode=small")
    return marked(run_name(run.info.engine, mode), result), result


def _section(drawn: Sequence[Curve], by: str) -> Table:
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
    return Table(title=f"precision by {by.replace('_', ' ')}", header=_HEADER, rows=rows)


_MEANS = ("precision", "compression_gt", "compression_output", "vision_tokens", "vision_tokens_nominal")


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _ratio(value: float | None) -> str:
    """A compression; nothing where there are fewer text tokens than vision tokens, as the page carries no text."""
    return "" if value is None or value < 1 else f"{value:,.2f}x"


def _percent(value: float | None) -> str:
    return "" if value is None else percent(value, 2)


def _counted(tokens: int | None, source: str) -> str:
    """A number of tokens; `~` before an estimate."""
    return f"{'~' if source.startswith('estimate') else ''}{_number(tokens)}"


#: Heading of a column → its cell; columns that no row fills are left out.
_COLUMNS: Mapping[str, Callable[[PageCompression], str]] = {
    "page": lambda row: row.page,
    "mode": lambda row: row.mode,
    "size": lambda row: f"{row.width}x{row.height}" if row.width else "",
    "tiles": lambda row: f"{row.tiles[0]}x{row.tiles[1]}" if row.tiles else "",
    "valid": lambda row: _number(row.vision_tokens),
    "nominal": lambda row: _number(row.vision_tokens_nominal),
    "sequence": lambda row: _number(row.vision_tokens_sequence),
    "gt": lambda row: _counted(row.gt_tokens, row.gt_tokens_source),
    "gt/nominal": lambda row: _ratio(row.compression_gt),
    "output": lambda row: _counted(row.output_tokens, row.output_tokens_source),
    "output/valid": lambda row: _ratio(row.compression_output),
    "edits": lambda row: _number(row.edits),
    "precision": lambda row: _percent(row.precision),
    "paper": lambda row: _percent(row.expected),
}


def sections(rows: Sequence[PageCompression], result: Result | None) -> list[Table]:
    """The tables."""
    if len(rows) == 1:
        return [_one(rows[0])]
    names = [name for name, cell in _COLUMNS.items() if any(cell(row) for row in rows)]
    cells = [tuple(_COLUMNS[name](row) or "–" for name in names) for row in rows]
    found = [Table(title="vision tokens, and text tokens for each of them", header=names, rows=cells)]
    if result is not None and len(rows) > 1:
        found.append(_means(result))
    if any(row.gt_tokens_source.startswith("estimate") for row in rows):
        found.append(Table(title="~ estimate: 0.3 tokens a character, 0.6 a Chinese one", rows=[]))
    return found


def _means(result: Result) -> Table:
    rows = []
    for name in _MEANS:
        one, unit = result.measures[name], result.units[name]
        if one.value is not None:
            rows.append((name, format_value(one.value, unit), format_margin(one, unit), f"{one.n:,}"))
    header = ("measure", "value", margin_heading(row[2] for row in rows), "n")
    return Table(title="means over the pages", header=header, rows=rows)


def _one(row: PageCompression) -> Table:
    """One page in one mode, in words."""
    tiles = f"{row.tiles[0]} x {row.tiles[1]} tiles and the whole page" if row.tiles else ""
    edits = "" if row.edits is None else f"{row.edits:,} edits"
    gt = f"{row.gt_tokens:,} tokens ({row.gt_tokens_source})" if row.gt_tokens is not None else ""
    output = f"{row.output_tokens:,} tokens ({row.output_tokens_source})" if row.output_tokens is not None else ""
    ended = row.outcome if row.outcome != "ok" else ""
    lines = [
        ("size", f"{row.width} x {row.height}"),
        ("cut into", tiles),
        ("vision tokens, valid", _number(row.vision_tokens)),
        ("vision tokens, nominal", _number(row.vision_tokens_nominal)),
        ("places in the prompt", _number(row.vision_tokens_sequence)),
        ("ground truth", gt),
        ("compression, ground truth / nominal", _ratio(row.compression_gt)),
        ("output", output),
        ("compression, output / valid", _ratio(row.compression_output)),
        ("edit distance", edits),
        ("precision", _percent(row.precision)),
        ("the paper's precision", f"{_percent(row.expected)} ({row.expected_for})" if row.expected else ""),
        ("answer", ended),
    ]
    return Table(title=f"{row.page}, {row.mode}", rows=[line for line in lines if line[1]])


def document(
    rows: Sequence[PageCompression], result: Result | None, warnings: Sequence[str], reading: Reading | None
) -> dict[str, Any]:
    """The same for programs: fractions as fractions, what was not measured as null."""
    found: dict[str, Any] = {"pages": [msgspec.to_builtins(row) for row in rows], "warnings": list(warnings)}
    if reading is not None:
        found |= {"engine": reading.engine, "facts": dict(reading.facts)}
    if result is not None:
        found["means"] = {name: msgspec.to_builtins(result.measures[name]) for name in _MEANS}
    return found


def write_pages(pages: Sequence[ReadPage], result: Result, output: Path, *, engine: str, mode: str) -> None:
    """Write what was read as a report: each page next to its text and the ground truth, differences marked.

    It is the report of a run of `fox` over these pages; the run lies in a temporary folder meanwhile. Raises as
    `write_report` does.
    """
    from loupe.features.compress import fox
    from loupe.features.compress.measure import BENCHMARK
    from loupe.files.scratch import scratch_folder
    from loupe.report.collect import collect
    from loupe.report.html import write_groups
    from loupe.runs.folder import PREDICTIONS, RESULT, RUN, SCORES
    from loupe.runs.info import RunInfo

    info = RunInfo(
        benchmark=BENCHMARK,
        benchmark_id=BENCHMARK,
        version=fox.benchmark.version,
        engine=engine,
        profile={},
        options={"mode": mode},
        total=len(pages),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    with scratch_folder("loupe-compress-") as folder:
        run = Folder(folder)
        run.write(RUN, encode_json(info), sync=False)
        run.write(PREDICTIONS, _lines([page.answer for page in pages]), sync=False)
        run.write(SCORES, _lines([page.scores for page in pages]), sync=False)
        run.write(RESULT, encode_json(result), sync=False)
        groups = collect([run.path])
        for group in groups:
            group.samples = [page.sample for page in pages]
            group.benchmark = replace(fox.benchmark, title=f"Pages in mode {mode}")
            if not any(page.scores.scores for page in pages):
                group.note = "No ground truth was given, so precision is not measured: --ground-truth PATH"
        write_groups(groups, output)


def _lines(records: Sequence[object]) -> bytes:
    return b"".join(encode_json(record) + b"\n" for record in records)
