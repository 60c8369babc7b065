"""`loupe report`: one HTML file with everything there is to see of some runs."""

from __future__ import annotations

from pathlib import Path

import click

from loupe.cli.output import as_json, json_option, say
from loupe.errors import UsageError


@click.command("report")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=Path("report.html"), metavar="FILE", help="Where to."
)
@click.option("--embed", is_flag=True, help="Put whole page images into the file, not thumbnails and links.")
@click.option("--with-published", is_flag=True, help="In the leaderboards what others have published, with its source.")
@json_option
def command(runs: tuple[Path, ...], output: Path, embed: bool, with_published: bool, json: bool) -> None:
    """Write one HTML file with every number, page and answer of some runs.

    It opens from the disk, without a network. RUN is a run folder, or a root such as `runs` for all runs below it.
    """
    found = expand(runs)
    from loupe.report.html import write_report

    write_report(found, output, embed=embed, published=with_published)
    size = output.stat().st_size
    if json:
        as_json({"report": str(output), "runs": [str(path) for path in found], "bytes": size})
        return
    click.echo(str(output))
    say(f"{len(found)} run{'s' if len(found) > 1 else ''}, {size / 1e6:.1f} MB")


def expand(paths: tuple[Path, ...]) -> list[Path]:
    """Run folders as given, and all runs below a path that is the root of some. Raises for a path that is neither."""
    from loupe.cli.runs import open_run
    from loupe.runs.folder import find_runs

    found: list[Path] = []
    for path in paths:
        below, damaged = ([], {}) if (path / "run.json").exists() else find_runs(path)
        for error in damaged.values():
            say(f"left out: {error.message}")
        found += [folder.path for folder in below] or [open_run(path).path]
    if not found:
        raise UsageError("no run to report on", hint="loupe runs lists them")
    return list(dict.fromkeys(found))
