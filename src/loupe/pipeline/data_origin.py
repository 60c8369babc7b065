"""Whether the data of a run is the published set of its benchmark, as far as Loupe saw it come from the hub.

The benchmark is the installed one by the id of its runs alone (loupe.runs.installed); this is about its data.
"""

from __future__ import annotations

from pathlib import Path

from loupe.benchmarks.registry import data_set
from loupe.data.hub.manifest import read_manifest
from loupe.data.hub.origin import HUB, NAMED, UNKNOWN, is_named, origin_of
from loupe.data.hub.store import default_root
from loupe.runs.info import RunInfo
from loupe.types import DataSet


def unproven_origin(info: RunInfo) -> str:
    """Return where the data of a run came from if not from the benchmark's place on the hub.

    `pack`, `named` (the user named its place, or put it into the store) or `unknown`. "" if it came from the hub, and
    for what has no published set there: folders, Python files, generated pages.
    """
    found = data_set(info.benchmark)
    if found is None:
        return ""
    root = _root(info, found)
    origin = origin_of(root)
    if origin == UNKNOWN and (not info.data or is_named(info.data, info.data_seal)):
        return NAMED
    if origin != HUB:
        return origin
    published = {found.repo, *(source.repo for source in found.sources.values())}
    return "" if read_manifest(root).repo in published else UNKNOWN


def warnings_of_data(info: RunInfo) -> list[str]:
    """Return the warning of a run whose data is not proven to be the published set."""
    if not unproven_origin(info) or (found := data_set(info.benchmark)) is None:
        return []
    return [
        f"Loupe did not fetch the data in {_root(info, found)}, so it may not be the published set; "
        f"to fetch that: loupe data get {found.id}"
    ]


def _root(info: RunInfo, found: DataSet) -> Path:
    return Path(info.data) if info.data else default_root(found.place)
