"""`loupe pack`: a run as one file, from which anybody can score it again."""

from __future__ import annotations

from pathlib import Path

import click

from loupe.cli.shared.output import as_json, json_option, print_data, say
from loupe.cli.shared.run_paths import RunPath
from loupe.errors import word
from loupe.files.default_places import default_place
from loupe.quantities import counted, size


@click.command("pack")
@click.argument("run", metavar="RUN", type=RunPath())
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The archive. Default: ENGINE_BENCHMARK.tar.gz.",
)
@click.option(
    "--with-truth",
    is_flag=True,
    help="Also the folder of documents that was read, with references and pages; for folders of your own.",
)
@json_option
def command(run: Path, output: Path | None, with_truth: bool, json: bool) -> None:
    """Write a run as one archive, from which anybody can score it again.

    It holds the answers, run.json, scores and result: no key, no path of this machine, no address of a server. The same
    run always gives the same bytes. `loupe score FILE` scores it; `loupe unpack FILE` makes a run of it again.
    """
    from loupe.pipeline.packs import pack_name, write_pack
    from loupe.runs.opening import open_run

    folder = open_run(run)
    target = output or default_place(pack_name(folder.info))
    count = write_pack(folder, target, with_truth=with_truth)
    packed = target.stat().st_size
    if json:
        as_json({"file": str(target), "files": count, "bytes": packed})
        return
    print_data(target)
    say(f"{counted(count, 'file')}, {size(packed)}; to score it again: loupe score {word(target)}")
