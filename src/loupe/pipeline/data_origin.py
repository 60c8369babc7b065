"""Whether the data of a run is the published set of its benchmark, as far as Loupe saw it come from the hub.

The benchmark is the installed one by the id of its runs alone (loupe.runs.installed); this is about its data.
"""

from __future__ import annotations

from pathlib import Path

from loupe.benchmarks.registry import data_set
from loupe.data.hub.manifest import read_manifest
from loupe.data.hub.origin import HUB, UNKNOWN, origin_of
from loupe.data.hub.store import default_root
from loupe.runs.info import RunInfo


def unproven_origin(info: RunInfo) -> str:
    """Return where the data of a run came from if not from the benchmark's place on the hub: `pack` or `unknown`.

    "" if it did, and for what has no published set there: folders, Python files, generated pages.
    """
    found = data_set(info.benchmark)
    if found is None:
        return ""
    root = place_of_data(info)
    origin = origin_of(root)
    if origin != HUB:
        return origin
    published = {found.repo, *(source.repo for source in found.sources.values())}
    return "" if read_manifest(root).repo in published else UNKNOWN


def place_of_data(info: RunInfo) -> Path:
    """Return the folder of the data of a run on an installed benchmark."""
    found = data_set(info.benchmark)
    return Path(info.data) if info.data else default_root(found.place if found else info.benchmark_id)
