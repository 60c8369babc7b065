"""`loupe unpack`: an archive of `loupe pack` as a run again."""

from __future__ import annotations

from pathlib import Path

import click

from loupe.cli.shared.output import as_json, json_option, print_data
from loupe.files.default_places import default_place

UNPACKED = default_place("runs", "runs")


@click.command("unpack")
@click.argument("pack", metavar="PACK", type=click.Path(path_type=Path))
@click.argument("target", metavar="[DIR]", type=click.Path(path_type=Path, file_okay=False), default=UNPACKED)
@json_option
def command(pack: Path, target: Path, json: bool) -> None:
    """Turn an archive that `loupe pack` wrote back into a run.

    The run goes into DIR/ENGINE/BENCHMARK (default DIR: runs), which must not hold a run yet. Nothing in the archive is
    executed. Any archive that `loupe pack` could not have written is refused as a whole.
    """
    from loupe.pipeline.packs import unpack

    folder = unpack(pack, target)
    if json:
        as_json({"run": str(folder.path)})
        return
    print_data(folder.path)
