"""What a folder holds, from one quick pass over its lines: tasks, labels, and how much of its truth is verified."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from loupe.benchmarks.own.checking import missing_samples
from loupe.benchmarks.own.config import SAMPLES, FolderConfig, read_config
from loupe.benchmarks.own.rows import read_rows
from loupe.benchmarks.own.scorers import TASKS
from loupe.files.folder import Folder
from loupe.files.records import bounded_lines

#: Tasks in which a draft that is right to the letter says something: there is one way to write a label or an amount.
_TEXTS = frozenset({"text", "markdown", "table", "formula"})


@dataclass(frozen=True, slots=True)
class Contents:
    """Tasks and labels that occur, and samples by the state of their truth.

    `states` counts "verified", "draft", "skipped", and, of the drafts, "without reference". `drafters` counts, for each
    engine, the unverified samples whose reference it has drafted, alone or with others; `accepted` holds, for each
    engine, the ids of verified texts that are its draft word for word.
    """

    tasks: tuple[str, ...]
    labels: tuple[str, ...]
    states: Mapping[str, int]
    drafters: Mapping[str, int]
    accepted: Mapping[str, set[str]]


def contents_of(folder: Path, config: FolderConfig) -> Contents:
    """Lines that cannot be read are left to `load`, which names them."""
    tasks: set[str] = set()
    labels: dict[str, None] = dict.fromkeys(config.labels)
    states: Counter[str] = Counter()
    drafters: Counter[str] = Counter()
    accepted: dict[str, set[str]] = {}
    with Folder(folder).open(SAMPLES) as file:
        for line in filter(bytes.strip, bounded_lines(file, folder / SAMPLES)):
            # Most folders have one task and never name it: their lines need no parsing here, unless names of keys may
            # stand in them as \uXXXX.
            if not (config.task == "class" or b'"task"' in line or b'"truth"' in line or b"\\u" in line):
                tasks.add(config.task)
                states["verified"] += 1
                continue
            try:
                values = json.loads(line)
                task = values.get("task", config.task)
            except (ValueError, AttributeError, RecursionError):
                continue
            _count_state(values, states)
            drafters.update(_drafters(values))
            for engine in _accepted(values) if isinstance(task, str) and task in _TEXTS else ():
                accepted.setdefault(engine, set()).add(str(values.get("id")))
            if isinstance(task, str):
                tasks.add(task)
            if task == "class" and not config.labels and isinstance(values.get("reference"), str):
                labels.setdefault(values["reference"])
    found = tuple(task for task in TASKS if task in tasks) or (config.task,)
    return Contents(found, tuple(labels) if config.labels else tuple(sorted(labels)), states, drafters, accepted)


def _count_state(values: dict[str, Any], states: Counter[str]) -> None:
    truth = values.get("truth", {"status": "verified"})
    status = truth.get("status") if isinstance(truth, dict) else None
    if isinstance(status, str):
        states[status] += 1
        states["without reference"] += status == "draft" and values.get("reference") is None


def _drafters(values: dict[str, Any]) -> list[str]:
    """The engines with a draft of a sample whose reference nobody has verified."""
    truth = values.get("truth")
    if not isinstance(truth, dict) or truth.get("status") != "draft" or values.get("reference") is None:
        return []
    drafts = truth.get("drafts")
    return [name for name, draft in drafts.items() if draft is not None] if isinstance(drafts, dict) else []


def _accepted(values: dict[str, Any]) -> list[str]:
    """The engines whose draft a person has verified as it was."""
    truth, reference = values.get("truth"), values.get("reference")
    if not isinstance(truth, dict) or truth.get("status") != "verified" or not reference:
        return []
    drafts = truth.get("drafts")
    return [name for name, draft in drafts.items() if draft == reference] if isinstance(drafts, dict) else []


def count_drafts(path: Path) -> int:
    """How many samples of a folder have a truth that nobody has verified. Raises DatasetError as `survey_folder`."""
    config, problems = read_config(path)
    if config is None:
        raise problems[0].error()
    return contents_of(path, config).states["draft"]


def survey_folder(path: Path) -> tuple[dict[str, int], list[str]]:
    """How many samples of each task a folder has, and the unusual settings of how it is scored, as `key = value`.

    Raises DatasetError for a folder without settings or samples; lines that are wrong are left to `check_folder`.
    """
    config, problems = read_config(path)
    if config is None:
        raise problems[0].error()
    if not (path / SAMPLES).is_file():
        raise missing_samples(path).error()
    counted = Counter(str(row.values.get("task", config.task)) for row in read_rows(path / SAMPLES, config))
    usual = msgspec.to_builtins(FolderConfig())
    facts = ("title", "version", "task", "prompt", "headline")
    given = msgspec.to_builtins(config)
    settings = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}"
        for key, value in given.items()
        if key not in facts and value != usual[key]
    ]
    return {task: counted[task] for task in TASKS if task in counted}, settings
