"""`loupe data`: bring the data of benchmarks to this machine, prove that it is whole, and carry it to another.

The only commands that use the network; every other one reads what is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loupe.cli.shared.lazy import SuggestingGroup
from loupe.cli.shared.output import (
    as_json,
    json_option,
    plain_option,
    print_data,
    print_line,
    resume_option,
    say,
    table,
)
from loupe.cli.shared.transfers import counting, fetch, show_survey
from loupe.errors import DatasetError, UsageError, word
from loupe.files.default_places import default_place
from loupe.files.foreign import real_path
from loupe.quantities import counted, size

if TYPE_CHECKING:
    from loupe.data.hub.download import Order
    from loupe.data.hub.manifest import Manifest
    from loupe.types import DataSet

_FOLDER = click.Path(file_okay=False, path_type=Path)
_to_option = click.option("--to", type=_FOLDER, metavar="DIR", help="Folder to use instead of the store.")
jobs_option = click.option(
    "-j", "--jobs", type=click.IntRange(1, 64), default=8, metavar="N", help="Files at once. Default: 8."
)


@click.group("data", cls=SuggestingGroup)
def command() -> None:
    """Fetch, check and pack the data of benchmarks, also for machines without network.

    Data lies in $LOUPE_DATA, by default ~/.cache/loupe/data, where runs find it. HF_ENDPOINT names a mirror of the hub,
    HF_TOKEN the token for data sets whose terms must be accepted.
    """


@command.command("list")
@json_option
@plain_option
def list_data(json: bool, plain: bool) -> None:
    """List data sets, their licences, and which are here."""
    from loupe.benchmarks.registry import data_sets
    from loupe.data.hub.store import store_root

    found = [_describe(dataset) for dataset in data_sets().values()]
    if json:
        as_json(found)
        return
    rows = [(item["id"], item["state"], item["size"], item["repo"], item["licence"], item["note"]) for item in found]
    table(("data set", "here", "size", "on the hub", "licence", "note"), rows, plain=plain)
    say(f"store: {store_root()} (LOUPE_DATA)")
    if any(item["state"] in _UNPROVEN.values() for item in found):
        say("not proven to be the published set: data from a pack or of unknown origin; see loupe data verify")


@command.command("where")
@click.argument("name", required=False)
@json_option
def where(name: str | None, json: bool) -> None:
    """Print the folder of data set NAME, or of the store.

    The folder need not exist.
    """
    from loupe.benchmarks.registry import find_data_set
    from loupe.data.hub.store import default_root, store_root

    folder = default_root(find_data_set(name).place) if name else store_root()
    if json:
        as_json({"folder": str(folder), "exists": folder.exists()})
    else:
        print_data(folder)


@command.command("get")
@click.argument("names", nargs=-1, required=True)
@_to_option
@click.option("--revision", default="", metavar="REV", help="Branch, tag or commit; its current commit is pinned.")
@click.option("--source", default="", metavar="NAME", help="Another source of the same data (docs/data.md).")
@click.option(
    "--include", multiple=True, metavar="GLOB", help="Fetch these files instead of the usual ones; repeatable."
)
@click.option("--dry-run", is_flag=True, help="Show what would be fetched, and its size.")
@jobs_option
@resume_option
@json_option
@plain_option
def get(
    names: tuple[str, ...],
    to: Path | None,
    revision: str,
    source: str,
    include: tuple[str, ...],
    dry_run: bool,
    jobs: int,
    json: bool,
    plain: bool,
) -> None:
    """Fetch the data sets NAMES from the hub.

    A branch is pinned to its current commit, and every file is checked against the hub's digests. The same command
    continues after a failure. Any data set of the hub can be named as OWNER/NAME.
    """
    from loupe.benchmarks.registry import find_data_set
    from loupe.data.hub.download import Order
    from loupe.data.hub.origin import origin_of
    from loupe.data.hub.store import default_root

    if to and len(names) > 1:
        raise UsageError("--to takes one data set at a time", hint="LOUPE_DATA=DIR loupe data get …")
    orders = []
    for name in names:
        dataset = find_data_set(name, source=source)
        root = to or default_root(dataset.place)
        orders.append(Order(dataset=dataset, root=root, revision=revision, include=include, jobs=jobs))
    if dry_run:
        show_survey(orders, json=json, plain=plain)
        return
    done = [fetch(order, plain=plain) for order in orders]
    for line in (line for order in orders for line in _remedy(order.root, origin_of(order.root))):
        say(line)
    if json:
        as_json([facts_of(order, manifest) for order, manifest in zip(orders, done, strict=True)])


@command.command("verify")
@click.argument("names", nargs=-1, metavar="[NAME|DIR]...")
@json_option
@plain_option
def verify(names: tuple[str, ...], json: bool, plain: bool) -> None:
    """Check every byte of data sets, and say where they came from.

    They are compared with their manifest. Only if `loupe data get` fetched it on this machine are its digests those of
    the hub. Default: all data sets on this machine.
    """
    from loupe.data.hub.manifest import check, read_manifest
    from loupe.data.hub.origin import origin_of
    from loupe.workers.limits import cores

    roots = [_root(name) for name in names] or _here()
    if not roots:
        raise DatasetError("no data sets found", hint="download it: loupe data get ocrbench")
    report, wrong = [], 0
    for root in roots:
        manifest = read_manifest(root)
        with counting(root.name, manifest.size, plain=plain) as tell:
            findings = list(check(root, manifest, tell=tell, jobs=cores()))
        bad = [item for item in findings if item.problem != "extra"]
        wrong += len(bad)
        origin, sizes = origin_of(root), _sizes(root, manifest)
        known = {"origin": origin, "sizes": sizes}
        report.append({"folder": str(root), "files": len(manifest.files), **known, "findings": findings})
        if not json:
            for item in findings:
                print_line(f"{root / item.path}: {item.problem}{f' ({item.detail})' if item.detail else ''}")
            right = f"{len(manifest.files) - len(bad):,} of {counted(len(manifest.files), 'file')}"
            say(f"{root}: {right} {_compared(origin, manifest)}")
            for line in sizes:
                say(f"{root}: {line}")
            for line in _remedy(root, origin):
                say(line)
    if json:
        as_json(report)
    if wrong:
        files = f"{wrong} file{'s are' if wrong > 1 else ' is'} missing or changed"
        raise DatasetError(files, hint="remove the changed files, then download them again: loupe data get NAME")


@command.command("pack")
@click.argument("name", metavar="NAME|DIR")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Default: NAME.tar."
)
@json_option
@plain_option
def pack(name: str, output: Path | None, json: bool, plain: bool) -> None:
    """Write a data set as one tar file.

    All digests go with it, for a machine without network; `loupe data unpack` checks them there.
    """
    from loupe.data.hub.archives import pack as write
    from loupe.data.hub.manifest import files_below, has_manifest, read_manifest

    root = _root(name)
    if not root.is_dir():
        raise DatasetError(f"{root}: no such folder", hint=f"download it: loupe data get {word(name)}")
    target = output or default_place(f"{real_path(root).name}.tar")
    known = has_manifest(root)
    most = read_manifest(root).size if known else sum((root / path).stat().st_size for path in files_below(root)) * 2
    with counting(str(target), most, plain=plain) as tell:
        manifest, digest = write(root, target, ident=real_path(root).name, tell=tell)
    if json:
        as_json({"file": str(target), "sha256": digest, "files": len(manifest.files), "bytes": manifest.size})
        return
    print_data(f"{digest}  {target}")
    say(f"{counted(len(manifest.files), 'file')}, {size(manifest.size)}; there: loupe data unpack {word(target.name)}")


@command.command("unpack")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_to_option
@json_option
@plain_option
def unpack(file: Path, to: Path | None, json: bool, plain: bool) -> None:
    """Unpack FILE, which `pack` wrote, into the store.

    Every digest is checked; the data set is unpacked whole or not at all.
    """
    from loupe.data.hub.archives import unpack as read
    from loupe.data.hub.store import default_root

    def root_of(manifest: Manifest) -> Path:
        if to is None and not _is_name(manifest.id):
            raise DatasetError(f"{file}: the store has no name for its data set", hint="use --to DIR")
        return to or default_root(manifest.id)

    with counting(str(file), file.stat().st_size, plain=plain) as tell:
        manifest, root = read(file, root_of, tell=tell)
    sizes = _sizes(root, manifest)
    if json:
        facts = {"id": manifest.id, "files": len(manifest.files), "bytes": manifest.size, "sizes": sizes}
        as_json({"folder": str(root), **facts})
    else:
        say(f"{root}: {counted(len(manifest.files), 'file')}, {size(manifest.size)}, all match the pack")
        for line in sizes:
            say(f"{root}: {line}")


@command.command("prepare")
@click.argument("benchmark")
@click.option("--to", type=_FOLDER, required=True, metavar="DIR", help="A new folder.")
@click.option(
    "--data", type=click.Path(exists=True, path_type=Path), metavar="DIR", help="Local copy, in the upstream's layout."
)
@click.option("-o", "--option", multiple=True, metavar="KEY=VALUE", help="Option of the benchmark (bench show).")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N samples.")
@json_option
@plain_option
def prepare(
    benchmark: str, to: Path, data: Path | None, option: tuple[str, ...], limit: int | None, json: bool, plain: bool
) -> None:
    """Write BENCHMARK as metadata.jsonl and JPEG images.

    Any script can read this form, and so can `loupe run BENCHMARK --data DIR`. The folder must be new.
    """
    from itertools import islice

    from loupe.benchmarks.registry import check_options, full_name, get_benchmark
    from loupe.cli.shared.options import parse_options
    from loupe.data.prepared import write

    benchmark = full_name(benchmark)
    found = get_benchmark(benchmark)
    samples = found.load(data, **check_options(found, parse_options(benchmark, option)))
    with counting("samples", 0, plain=plain, bytes=False) as tell:
        count = write(islice(samples, limit), to, tell=lambda _: tell(1))
    if json:
        as_json({"folder": str(to), "samples": count})
    else:
        say(f"{to}: {count:,} samples; loupe run {word(benchmark)} --data {word(to)}")


#: How data is listed that is here, but not proven to be the published set.
_UNPROVEN = {"pack": "from a pack", "unknown": "origin unknown"}


def _compared(origin: str, manifest: Manifest) -> str:
    """Say what the files match: the digests of the hub, or only those that came with the files."""
    from loupe.data.hub.origin import HUB, PACK

    if origin == HUB:
        return f"right, as fetched from {manifest.repo} at {manifest.revision[:12]}"
    came = "came with a pack" if origin == PACK else "is of unknown origin"
    return f"match the manifest beside them, which {came}: that does not show that this is the published set"


def _remedy(root: Path, origin: str) -> Iterator[str]:
    """Yield the commands that replace unproven data in the store by the published set."""
    from loupe.benchmarks.registry import data_sets
    from loupe.data.hub.store import default_root

    for dataset in data_sets().values():
        if origin in _UNPROVEN and default_root(dataset.place) == root:
            anew = f"mv {word(root)} {word(f'{root}.old')} && loupe data get {word(dataset.id)}"
            yield f"{root} is not proven to be the published set; to fetch that: {anew}"
            return


def _sizes(root: Path, manifest: Manifest) -> list[str]:
    """Say which benchmarks do not find in this data as many samples as are published, or cannot read it."""
    from loupe.benchmarks.registry import benchmark_names, check_options, data_set, get_benchmark
    from loupe.errors import LoupeError

    said = []
    for name in benchmark_names():
        found, benchmark = data_set(name), get_benchmark(name)
        if found is None or found.place not in (root.name, manifest.id) or not benchmark.published_total:
            continue
        try:
            count = sum(1 for _ in benchmark.load(root, **check_options(benchmark, {})))
        except LoupeError as error:
            said.append(f"{name} cannot read it: {error.message}")
            continue
        if count != benchmark.published_total:
            said.append(f"{count:,} samples, and the published {name} has {benchmark.published_total:,}")
    return said


def _describe(dataset: DataSet) -> dict[str, str]:
    from loupe.data.hub.manifest import has_manifest, read_manifest
    from loupe.data.hub.origin import origin_of
    from loupe.data.hub.store import default_root

    root = default_root(dataset.place)
    facts = {
        "id": dataset.id,
        "repo": dataset.repo,
        "licence": dataset.licence,
        "note": dataset.note,
        "folder": str(root),
    }
    if has_manifest(root):
        manifest = read_manifest(root)
        state = _UNPROVEN.get(origin_of(root), "yes")
        return facts | {"state": state, "size": size(manifest.size), "revision": manifest.revision}
    begun = root.with_name(f"{root.name}.partial").exists()
    state = "begun" if begun else "not made by Loupe" if root.exists() else "no"
    return facts | {"state": state, "size": "", "revision": ""}


def facts_of(order: Order, manifest: Manifest) -> dict[str, object]:
    """What was fetched, for programs."""
    facts = {"id": manifest.id, "repo": manifest.repo, "revision": manifest.revision, "licence": manifest.licence}
    return facts | {"folder": str(order.root), "files": len(manifest.files), "bytes": manifest.size}


def _root(name: str) -> Path:
    """Return the place of a data set, else a folder; the name of a data set wins over a folder of that name."""
    from loupe.benchmarks.registry import data_set, find_data_set
    from loupe.data.hub.store import default_root, store_root

    if _is_name(name) and (found := data_set(name)):
        return default_root(found.place)
    if _is_name(name) and (store_root() / name).is_dir():
        return store_root() / name
    return path if (path := Path(name)).is_dir() else default_root(find_data_set(name).place)


def _here() -> list[Path]:
    from loupe.data.hub.manifest import has_manifest
    from loupe.data.hub.store import store_root

    root = store_root()
    return sorted(path for path in root.iterdir() if has_manifest(path)) if root.is_dir() else []


def _is_name(text: str) -> bool:
    """Whether this can be the name of a folder in the store."""
    import re

    return re.fullmatch(r"[\w][\w.@-]*", text) is not None
