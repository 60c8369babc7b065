"""`loupe export`: the answers of a run as files in the layout that official evaluators read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from loupe.cli.output import as_json, json_option, say


@click.command("export")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--raw", is_flag=True, help="Exactly what the engine gave, without the output adapters of the run.")
@json_option
def command(run: Path, raw: bool, json: bool) -> None:
    """Write the answers of a run as files, for the official evaluators.

    One file per sample in RUN/predictions; samples without an answer get none.
    """
    from loupe.benchmarks.registry import get_benchmark
    from loupe.runs.folder import RunFolder
    from loupe.scoring.adapters import apply_adapters

    folder = RunFolder.open(run)
    adapters = [] if raw else folder.info.adapters
    suffix = get_benchmark(folder.info.benchmark).suffix
    failed = 0

    def texts() -> Iterator[tuple[str, str]]:
        nonlocal failed
        for sample, place in folder.prediction_places().items():
            prediction = folder.read_prediction(place)
            failed += prediction.failed
            if not prediction.failed:
                yield sample, apply_adapters(prediction.text, adapters)

    count = folder.export_predictions(texts(), suffix)
    target = run / "predictions"
    if json:
        as_json({"folder": str(target), "written": count, "failed": failed})
        return
    click.echo(str(target))
    say(f"{count:,} answers written, {failed:,} samples have none")
