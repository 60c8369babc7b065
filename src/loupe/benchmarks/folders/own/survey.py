"""What a folder holds, from one quick pass over its lines: tasks, labels, and how much of its truth is verified."""

from __future__ import annotations

import functools
import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from loupe.benchmarks.folders.own.checking import missing_samples
from loupe.benchmarks.folders.own.class_labels import MOST_CLASSES
from loupe.benchmarks.folders.own.config import SAMPLES, FolderConfig, read_config
from loupe.benchmarks.folders.own.facts import FACTS, TASK, read_facts, state_of
from loupe.benchmarks.folders.own.rows import read_rows
from loupe.benchmarks.folders.own.scorers import TASKS
from loupe.benchmarks.folders.own.truth import truth_mistakes
from loupe.errors import UsageError, word
from loupe.files.folder import Folder
from loupe.files.json_lines import bounded_lines
from loupe.typed import encode_json, json_decoder

#: Nanoseconds: file systems count time in ticks, some of two seconds.
_SAFELY_OLD = 3_000_000_000


@dataclass(frozen=True, slots=True)
class Contents:
    """Tasks and labels that occur, and samples by the state of their truth.

    `states` counts "verified", "draft", "skipped", and, of the drafts, "without reference". `drafters` counts, for each
    engine, the unverified samples whose reference is its draft, alone or with others; `accepted` holds, for each
    engine, the ids of verified samples whose reference is its draft word for word.
    """

    tasks: tuple[str, ...]
    labels: tuple[str, ...]
    states: Mapping[str, int]
    drafters: Mapping[str, int]
    accepted: Mapping[str, set[str]]


def contents_of(folder: Path, config: FolderConfig) -> Contents:
    """What the folder holds now. Lines that cannot be read are left to `load`, which names them.

    A command opens its folder several times: files that nobody has touched in between are read once.
    """
    version = _version_of(folder)
    if version is None:
        return _read_contents(folder, config)
    return _contents_of_version(folder, encode_json(config), version)


def _version_of(folder: Path) -> tuple[tuple[int, int, int], ...] | None:
    """Identifies the files as they are; None where one is so new that a change right now could have the same time."""
    found = []
    for name in (SAMPLES, FACTS):
        try:
            facts = (folder / name).lstat()
        except OSError:
            continue
        if time.time_ns() - facts.st_mtime_ns < _SAFELY_OLD:
            return None
        found.append((facts.st_mtime_ns, facts.st_size, facts.st_ino))
    return tuple(found)


@functools.lru_cache(maxsize=4)
def _contents_of_version(folder: Path, config: bytes, version: tuple[tuple[int, int, int], ...]) -> Contents:
    return _read_contents(folder, json_decoder(FolderConfig).decode(config))


def _read_contents(folder: Path, config: FolderConfig) -> Contents:
    tasks: set[str] = set()
    labels: dict[str, None] = dict.fromkeys(config.labels)
    states: Counter[str] = Counter()
    drafters: Counter[str] = Counter()
    accepted: dict[str, set[str]] = {}
    facts = read_facts(folder)[0]
    with Folder(folder).open(SAMPLES) as file:
        for line in filter(bytes.strip, bounded_lines(file, folder / SAMPLES)):
            # Most folders have one task and never name it: their lines need no parsing here, unless names of keys may
            # stand in them as \uXXXX.
            if not (config.task in ("class", TASK) or b'"task"' in line or b'"truth"' in line or b"\\u" in line):
                tasks.add(config.task)
                states["verified"] += 1
                continue
            try:
                values = json.loads(line)
                task = values.get("task", config.task)
            except (ValueError, AttributeError, RecursionError):
                continue
            if not isinstance(values, dict):
                continue
            if task == TASK and not any(truth_mistakes(values)):
                state = state_of(values, config, facts)
                values = values | {"truth": msgspec.to_builtins(state)}
            _count_state(values, states)
            drafters.update(_drafters(values, whole=task != TASK))
            for engine in _accepted(values):
                accepted.setdefault(engine, set()).add(str(values.get("id")))
            if isinstance(task, str):
                tasks.add(task)
            if task == "class" and not config.labels and isinstance(values.get("reference"), str):
                labels.setdefault(values["reference"])
    if len(labels) > MOST_CLASSES:
        raise UsageError(
            f"{folder / SAMPLES}: {len(labels):,} different labels, more than {MOST_CLASSES:,}",
            hint='write task = "text" in loupe.toml if the references are no classes',
        )
    found = tuple(task for task in TASKS if task in tasks) or (config.task,)
    return Contents(found, tuple(labels) if config.labels else tuple(sorted(labels)), states, drafters, accepted)


def _count_state(values: dict[str, Any], states: Counter[str]) -> None:
    truth = values.get("truth", {"status": "verified"})
    status = truth.get("status") if isinstance(truth, dict) else None
    if isinstance(status, str):
        states[status] += 1
        states["without reference"] += status == "draft" and values.get("reference") is None


def _drafters(values: dict[str, Any], *, whole: bool) -> list[str]:
    """The engines whose draft is the reference of a sample that nobody has verified, in whole or in some of its fields.

    All that drafted where it is none of theirs: somebody changed what one of them had. Of facts, which are not
    drafted as a `whole`, those whose transcript it is.
    """
    truth = values.get("truth")
    if not isinstance(truth, dict) or truth.get("status") != "draft" or values.get("reference") is None:
        return []
    drafts = truth.get("drafts")
    known = {name: draft for name, draft in drafts.items() if draft is not None} if isinstance(drafts, dict) else {}
    if not whole:
        return [name for name, draft in known.items() if draft == values["reference"]]
    if not truth.get("differs"):  # the same, if in another spelling
        return list(known)
    return [name for name, draft in known.items() if _is_from(draft, values["reference"])] or list(known)


def _is_from(draft: object, reference: object) -> bool:
    """Whether a reference is this draft; one with fields may be that of several engines, each with some of them."""
    if isinstance(draft, dict) and isinstance(reference, dict):
        return any(value and draft.get(name) == value for name, value in reference.items()) or draft == reference
    return draft == reference


def _accepted(values: dict[str, Any]) -> list[str]:
    """The engines whose draft a person has verified as it was."""
    truth, reference = values.get("truth"), values.get("reference")
    if not isinstance(truth, dict) or truth.get("status") != "verified" or not reference:
        return []
    drafts = truth.get("drafts")
    wanted = _without_empty(reference)
    known = drafts.items() if isinstance(drafts, dict) else ()
    return [name for name, draft in known if draft is not None and _without_empty(draft) == wanted]


def _without_empty(reference: object) -> object:
    """Return the reference without its empty fields: a field that is left out is an empty one."""
    return {k: v for k, v in reference.items() if v not in ("", None)} if isinstance(reference, dict) else reference


def open_truth(path: Path) -> str:
    """What is to be done about the truth of a folder, "" if all is verified. Raises DatasetError as `survey_folder`."""
    config, problems = read_config(path)
    if config is None:
        raise problems[0].error()
    contents = contents_of(path, config)
    if has_no_truth(contents):
        return f"{no_truth(contents)}: {draft_command(path)}"
    drafts = contents.states["draft"]
    return f"the ground truth of {drafts:,} samples is unverified: {review_command(path)}" if drafts else ""


def has_no_truth(contents: Contents) -> bool:
    """Whether samples wait for truth and not one has any, not even a draft. Pages with facts may have it in tests."""
    states = contents.states
    return 0 < states["draft"] == states["without reference"] and not states["verified"] and TASK not in contents.tasks


def no_truth(contents: Contents) -> str:
    """How to say `has_no_truth`."""
    return f"none of {contents.states['draft']:,} samples has ground truth yet"


def draft_command(path: Path) -> str:
    """What is typed to have the truth of a folder drafted."""
    return f"loupe draft {word(path)} -e ENGINE"


def review_command(path: Path) -> str:
    """What is typed to verify the truth of a folder: samples, or where facts alone are asked, their tests."""
    return f"loupe review tests {word(path / FACTS)}" if asks_facts_alone(path) else f"loupe review {word(path)}"


def asks_facts_alone(path: Path) -> bool:
    """Whether all samples of a folder are of the task `facts`: then not they are verified, but their tests."""
    config, problems = read_config(path)
    if config is None:
        raise problems[0].error()
    if not (path / SAMPLES).is_file():
        raise missing_samples(path).error()
    return contents_of(path, config).tasks == (TASK,)


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
