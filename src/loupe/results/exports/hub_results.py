"""Results as `.eval_results/*.yaml`, which the model hub shows on a model's page and its benchmarks' leaderboards.

Source: https://huggingface.co/docs/hub/eval-results (2026); `huggingface_hub.parse_eval_result_entries` reads it. A
file goes into the repository of the model. Values are in percent, as on the leaderboards that take them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from loupe.benchmarks.registry import benchmark_of_run, data_set, name_of_run
from loupe.data.hub.manifest import read_manifest
from loupe.data.hub.origin import HUB, origin_of
from loupe.data.hub.store import default_root
from loupe.engines.registry import slug
from loupe.errors import LoupeError, UsageError, word
from loupe.files.folder import Folder
from loupe.results.exports.sample_tables import scored
from loupe.results.headline import why_nothing
from loupe.results.scored_here import NOT_HERE, marks, result_of
from loupe.results.sections import part_of_published, unread_count
from loupe.results.unverified import unverified
from loupe.runs.folder import RunFolder
from loupe.types import DataSet, Estimate, Result

#: Where the hub looks.
FOLDER = ".eval_results"


def write_hub_results(folder: RunFolder, root: Path) -> Path:
    """Write the results of one run below `root`, the model's repository.

    Raises UsageError for a run on data that is not on the hub, or on a part of it: both would stand beside others'.
    """
    result = result_of(scored(folder))
    assert result is not None
    found = data_set(folder.info.benchmark)
    if found is None:
        raise UsageError(
            f"{folder.path}: {folder.info.benchmark_id} is no data set of the hub",
            hint="list those that are: loupe data list",
        )
    if result.scored_here and (mark := marks(result, every=True)):
        raise UsageError(
            f"{folder.path}: {mark}, and the hub shows results on its own",
            hint=f"download it, then score the answers again: loupe data get {found.id}",
        )
    if _is_part(folder, result):
        raise UsageError(
            f"{folder.path} has read a part of {folder.info.benchmark_id}, and the hub shows whole results",
            hint="go on with the same command, without --limit and --sample",
        )
    if not result.scored_here:
        raise UsageError(
            f"{folder.path}: {NOT_HERE}, and the hub shows it as your result",
            hint=f"score it here: loupe score {word(folder.path)}",
        )
    tasks = {name: name for name in found.tasks} or {result.headline: "default"}
    benchmark = benchmark_of_run(folder.info.benchmark)
    units = {measure.name: measure.unit for measure in benchmark.measures}
    revision = _revision(folder, found)
    lines: list[str] = []
    for measure, task in tasks.items():
        value = result.measures.get(measure, Estimate(value=None)).value
        if value is not None:
            shown = round(100 * value, 2) if units.get(measure) == "fraction" else round(value, 3)
            lines += _entry({"id": found.repo, "task_id": task} | revision, shown, _facts(folder, result))
    if not lines:
        why = "; ".join(f"no {measure}: {why_nothing(result, measure)}" for measure in tasks)
        raise UsageError(
            f"{folder.path} has nothing to publish ({why})", hint=f"score it: loupe score {word(folder.path)}"
        )
    name = f"{slug(name_of_run(folder.info))}.yaml"
    Folder(root).write(f"{FOLDER}/{name}", "".join(f"{line}\n" for line in lines).encode())
    return root / FOLDER / name


def _is_part(folder: RunFolder, result: Result) -> bool:
    """True if samples were left out, are still unread, or have drafts as their truth."""
    info = folder.info
    asked = info.limit is not None or info.sample is not None or bool(part_of_published(result))
    return asked or bool(info.stopped or unread_count(result) or unverified(result))


def _facts(folder: RunFolder, result: Result) -> dict[str, str]:
    return {"date": folder.info.created, "notes": f"loupe: {result.signature}"}


def _entry(dataset: Mapping[str, str], value: float, facts: Mapping[str, str]) -> Iterator[str]:
    """One entry; a JSON string is a YAML string, too."""
    yield "- dataset:"
    yield from (f"    {key}: {json.dumps(text)}" for key, text in dataset.items())
    yield f"  value: {value}"
    yield from (f"  {key}: {json.dumps(text)}" for key, text in facts.items() if text)


def _revision(folder: RunFolder, found: DataSet) -> dict[str, str]:
    """The commit of the data, if it was fetched here."""
    root = Path(folder.info.data) if folder.info.data else default_root(found.place)
    try:
        commit = read_manifest(root).revision if origin_of(root) == HUB else ""
    except (LoupeError, OSError):
        commit = ""
    return {"revision": commit} if commit else {}
