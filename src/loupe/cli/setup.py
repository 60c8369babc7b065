"""`loupe setup`: the data of all benchmarks, in one go; `loupe setup math`: what draws equations."""

from __future__ import annotations

import click

from loupe.cli.data import facts_of, jobs_option
from loupe.cli.shared.output import as_json, json_option, plain_option, resume_option, say
from loupe.cli.shared.transfers import fetch, show_survey
from loupe.errors import DatasetError, WriteError


@click.command("setup")
@click.argument("what", required=False, type=click.Choice(["data", "math"]), default="data")
@click.option("--only", multiple=True, metavar="NAME", help="Only these data sets; repeatable.")
@click.option("--dry-run", is_flag=True, help="Show what would be fetched, and its size.")
@jobs_option
@resume_option
@json_option
@plain_option
def command(what: str, only: tuple[str, ...], dry_run: bool, jobs: int, json: bool, plain: bool) -> None:
    """Get the data of all benchmarks, as `loupe data get` does; or, with `math`, KaTeX for math tests.

    If a data set cannot be fetched (its terms must be accepted, the disk is full), the others still are; it is named at
    the end, and the exit code is that of the failures, or 2 if they differ. The same command continues.

    KaTeX comes in the releases that olmOCR-Bench and omni_parse_bench score with: two files each of an npm package,
    checked by their digests, and fonts for `loupe review`.
    """
    if what == "math":
        _get_katex(dry_run=dry_run, json=json)
        return
    from loupe.benchmarks.registry import data_sets, find_data_set
    from loupe.data.hub.download import Order
    from loupe.data.hub.store import default_root

    named = [find_data_set(name) for name in only] if only else list(data_sets().values())
    # A copy with a folder of its own is read beside the published files (`-o source=…`); others would replace them.
    copies = [
        find_data_set(item.id, source=each) for item in named for each, copy in item.sources.items() if copy.folder
    ]
    wanted = [*named, *copies]
    orders = [
        Order(dataset=item, root=default_root(place), jobs=jobs)
        for place, item in {item.place: item for item in wanted}.items()
    ]
    if dry_run:
        show_survey(orders, json=json, plain=plain)
        return
    failed: dict[str, int] = {}
    done = []
    for order in orders:
        try:
            done.append(facts_of(order, fetch(order, plain=plain)))
        except (DatasetError, WriteError) as error:
            failed[order.dataset.id] = error.exit_code
            say(f"{order.dataset.id}: {error.message}; {error.hint}")
    if json:
        as_json(done)
    if failed:
        told = DatasetError(f"not fetched: {', '.join(failed)}", hint=f"download it: loupe data get {' '.join(failed)}")
        if len(codes := set(failed.values())) == 1:
            told.exit_code = codes.pop()
        raise told


def _get_katex(*, dry_run: bool, json: bool) -> None:
    from loupe.data.hub.katex import RELEASES, fetch_katex, is_complete, katex_folder

    names = " and ".join(release.version for release in RELEASES)
    there = is_complete()
    if not dry_run and not there:
        say(f"fetching KaTeX {names}, 3 MB, by npm or from its registry; a slow one may take a minute …")
    if not dry_run:
        for release in RELEASES:
            fetch_katex(release)
    if json:
        as_json([{"katex": release.version, "folder": str(katex_folder(release))} for release in RELEASES])
    folders = " and ".join(str(katex_folder(release)) for release in RELEASES)
    if dry_run:
        say(f"KaTeX {names}, 3 MB, would go to {folders}")
    else:
        say(f"KaTeX {names}: {folders}; loupe doctor says what else math tests need")
