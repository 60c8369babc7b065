"""Survey a folder of documents in one quick pass, and check everything in it, in the order of its lines.

A check opens and decodes every page.
"""

from __future__ import annotations

import functools
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from loupe.benchmarks.folders.own.config import CONFIG, MOST_CLASSES, SAMPLES, FolderConfig, Problem, read_config
from loupe.benchmarks.folders.own.facts import FACTS, TASK, place_of, read_facts, state_of, undrawn_math
from loupe.benchmarks.folders.own.rows import (
    Row,
    file_name,
    is_skipped,
    page_source,
    paths_of,
    read_rows,
    truth_mistakes,
)
from loupe.benchmarks.folders.own.scorers import TASKS, measures_of
from loupe.errors import PageError, UsageError, did_you_mean, word
from loupe.files.file_names import same_form
from loupe.files.folder import Folder
from loupe.files.foreign import real_path, stored_file
from loupe.files.json_lines import bounded_lines
from loupe.typed import encode_json, json_decoder
from loupe.types import Measure, PageSource

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
    """Survey what the folder contains now. Lines that cannot be read are left to `load`, which names them.

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
    """True if a reference is this draft; one with fields may be that of several engines, each with some of them."""
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
    """Say what is to be done about the truth of a folder, "" if all is verified. Raises DatasetError as
    `survey_folder`.
    """
    config, problems = read_config(path)
    if config is None:
        raise problems[0].error()
    contents = contents_of(path, config)
    if has_no_truth(contents):
        return f"{no_truth(contents)}: {draft_command(path)}"
    drafts = contents.states["draft"]
    return f"the ground truth of {drafts:,} samples is unverified: {review_command(path)}" if drafts else ""


def has_no_truth(contents: Contents) -> bool:
    """True if samples wait for truth and not one has any, not even a draft. Pages with facts may have it in tests."""
    states = contents.states
    return 0 < states["draft"] == states["without reference"] and not states["verified"] and TASK not in contents.tasks


def no_truth(contents: Contents) -> str:
    """The message for `has_no_truth`."""
    return f"none of {contents.states['draft']:,} samples has ground truth yet"


def draft_command(path: Path) -> str:
    """Return the command that drafts the truth of a folder."""
    return f"loupe draft {word(path)} -e ENGINE"


def review_command(path: Path) -> str:
    """Return the command to verify the truth of a folder: samples, or if facts alone are asked, their tests."""
    return f"loupe review tests {word(path / FACTS)}" if asks_facts_alone(path) else f"loupe review {word(path)}"


def asks_facts_alone(path: Path) -> bool:
    """True if all samples of a folder are of the task `facts`: then not they are verified, but their tests."""
    config, problems = read_config(path)
    if config is None:
        raise problems[0].error()
    if not (path / SAMPLES).is_file():
        raise missing_samples(path).error()
    return contents_of(path, config).tasks == (TASK,)


def survey_folder(path: Path) -> tuple[dict[str, int], list[str]]:
    """Count the samples of each task in a folder, and list the unusual settings of how it is scored, as `key = value`.

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


def check_folder(path: Path) -> list[Problem]:
    """Everything that is wrong with a folder, in the order of its lines; every page that a run needs is decoded."""
    folder = real_path(path)
    if not folder.is_dir():
        return [Problem(file=str(path), message="no such folder")]
    config, problems = read_config(path)
    if not (folder / SAMPLES).is_file():
        return [*problems, missing_samples(path)]
    seen: dict[str, tuple[int, str]] = {}
    pages: dict[PageSource, str] = {}
    tasks: set[str] = set()
    count = 0
    for row in read_rows(folder / SAMPLES, config or FolderConfig()):
        count += 1
        problems += row.problems(path / SAMPLES)
        problems += repeated(path, row, seen)
        problems += _page_problems(path, folder, row, pages)
        tasks.add(str(row.values.get("task", (config or FolderConfig()).task)))
    if not count:
        problems.append(no_samples(path))
    problems += _fact_problems(path, folder, config or FolderConfig())
    measures = measures_of(tuple(task for task in TASKS if task in tasks), config or FolderConfig())
    if config and config.headline and config.headline not in {measure.name for measure in measures}:
        problems.insert(0, unknown_headline(path, config, measures))
    return problems


def _fact_problems(shown: Path, folder: Path, config: FolderConfig) -> Iterator[Problem]:
    """Tests that cannot be read, and tests of pages that no sample has: these would never be asked about."""
    facts, problems = read_facts(folder)
    for problem in problems:
        yield replace(problem, file=str(shown / FACTS))
    rows = read_rows(folder / SAMPLES, config)
    known = {place_of(row.values) for row in rows if not row.wrong and row.values.get("task", config.task) == TASK}
    for file, page in facts:
        if (file, page) not in known:
            message = f"no sample of the task facts has page {page} of {file!r}"
            hint = f"add it to {SAMPLES}, or remove its tests"
            yield Problem(file=str(shown / FACTS), message=message, hint=hint)
    for ident, why in undrawn_math(facts):
        message = f"{ident}: KaTeX does not draw its equation, so it would hold for every answer with one: {why}"
        yield Problem(file=str(shown / FACTS), message=message, hint="mend its `math`, or set `checked` to rejected")


def repeated(folder: Path, row: Row, seen: dict[str, tuple[int, str]]) -> Iterator[Problem]:
    """An id that was used before; ids name files, and some file systems do not tell large letters from small ones."""
    if not row.ident:
        return
    number, ident = seen.setdefault(same_form(row.ident).casefold(), (row.number, row.ident))
    if number != row.number:
        message = f"id {row.ident!r} was used in line {number}"
        if same_form(ident) == same_form(row.ident) and ident != row.ident:
            message = f"id {row.ident!a} differs from {ident!a} in line {number} only in its Unicode form"
        elif ident != row.ident:
            message = f"id {row.ident!r} differs from {ident!r} in line {number} only in upper and lower case"
        yield Problem(file=str(folder / SAMPLES), line=row.number, message=message, hint="every id once")


def missing_files(shown: Path, folder: Path, row: Row) -> Iterator[Problem]:
    """Pages that are not there, are empty, or lie outside the folder behind a link; nothing is opened."""
    if row.wrong:
        return
    for path in paths_of(row.values) or ():
        name = file_name(path)
        target = real_path(stored_file(folder, name))
        message, hint = "", ""
        if not target.is_relative_to(folder):
            message, hint = f"{name!r} leads out of the folder through a link", "copy the file into the folder"
        elif is_skipped(row.values):
            continue
        elif not target.is_file():
            near = "a folder, not a file" if target.is_dir() else f"no such file{_nearby(folder / name)}"
            message, hint = f"{name!r}: {near}", "paths are relative to the folder"
        elif target.stat().st_size == 0:
            message, hint = f"{name!r} is empty (0 bytes)", "copy the file again"
        if message:
            yield Problem(file=str(shown / SAMPLES), line=row.number, message=message, hint=hint)


def _nearby(path: Path) -> str:
    names = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    return did_you_mean(path.name, names)


def _page_problems(shown: Path, folder: Path, row: Row, pages: dict[PageSource, str]) -> Iterator[Problem]:
    """Yield the faults inside the files themselves; every page is decoded once, however many samples ask about it."""
    missing = list(missing_files(shown, folder, row))
    yield from missing
    if row.wrong or missing or is_skipped(row.values):
        return
    for path in paths_of(row.values) or ():
        source = page_source(folder, path)
        if source not in pages:
            pages[source] = _unreadable(source, path)
        if pages[source]:
            yield Problem(
                file=str(shown / SAMPLES),
                line=row.number,
                message=f"{path!r}: {pages[source]}",
                hint="fix or replace the file, or remove the line",
            )


def _unreadable(source: PageSource, path: str) -> str:
    from loupe.data.pages import has_pages, page_count, page_size, thumbnail

    file = source if isinstance(source, Path) else source.path
    try:
        if has_pages(path) and (count := page_count(file)) > 1:
            return f"has {count} pages; name one: {path}#page=1"
        page_size(source)
        thumbnail(source, 64)
    except PageError as error:
        reason = error.message.removeprefix(f"{file}: ").removeprefix(f"{file}")
        return f"{reason} ({error.hint})" if error.hint else reason
    return ""


def missing_samples(folder: Path) -> Problem:
    """A folder without `samples.jsonl`."""
    return Problem(
        file=str(folder / SAMPLES),
        message="not found",
        hint=f"write it as in docs/own-data.md, or for scans and PDF files: loupe init {word(folder)}",
    )


def no_samples(folder: Path) -> Problem:
    """A `samples.jsonl` without a line."""
    return Problem(file=str(folder / SAMPLES), message="no samples: the file is empty", hint="one JSON object per line")


def unknown_headline(folder: Path, config: FolderConfig, measures: Sequence[Measure]) -> Problem:
    """A headline that is no measure of the folder's tasks."""
    names = [measure.name for measure in measures]
    return Problem(
        file=str(folder / CONFIG),
        message=f"headline: no measure {config.headline!r} here{did_you_mean(config.headline, names)}",
        hint=f"measures of these tasks: {', '.join(names)}",
    )
