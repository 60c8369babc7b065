"""`loupe report`: one HTML file with everything there is to see of some runs."""

from __future__ import annotations

from pathlib import Path

import click

from loupe.cli.shared.beside import by_measure_option
from loupe.cli.shared.output import as_json, json_option, print_data, say
from loupe.cli.shared.run_paths import RunPath, exit_with, readable_runs
from loupe.files.default_places import default_place
from loupe.quantities import counted, size


@click.command("report")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=RunPath())
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=default_place("report.html"),
    metavar="FILE",
    help="File to write.",
)
@click.option("--embed", is_flag=True, help="Put whole page images into the file, not thumbnails and links.")
@click.option("--with-published", is_flag=True, help="Add published figures to the leaderboards, with their source.")
@by_measure_option
@json_option
def command(
    runs: tuple[Path, ...], output: Path, embed: bool, with_published: bool, by_measure: str, json: bool
) -> None:
    """Write one HTML file with every number, page and answer of some runs.

    It opens from the disk, without a network. RUN is a run folder, or a folder of runs such as `runs` for all below it.
    A run that cannot be read is named and left out; the command then ends with 2.
    """
    found, left_out = readable_runs(runs)
    from loupe.report.html import write_report

    write_report(found, output, embed=embed, published=with_published, measure=by_measure)
    written = output.stat().st_size
    if json:
        shown = {"report": str(output), "runs": [str(path) for path in found], "bytes": written}
        as_json(shown | ({"left_out": left_out} if left_out else {}))
    else:
        print_data(output)
        say(f"{counted(len(found), 'run')}, {size(written)}")
    exit_with(left_out)
