"""Everything that is wrong with a folder of documents, in the order of its lines; every page is opened and decoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from loupe.benchmarks.folders.own.config import CONFIG, SAMPLES, FolderConfig, read_config
from loupe.benchmarks.folders.own.facts import FACTS, TASK, place_of, read_facts
from loupe.benchmarks.folders.own.problems import Problem
from loupe.benchmarks.folders.own.rows import Row, file_name, page_source, paths_of, read_rows
from loupe.benchmarks.folders.own.scorers import TASKS
from loupe.benchmarks.folders.own.task_measures import measures_of
from loupe.benchmarks.folders.own.truth import is_skipped
from loupe.errors import PageError, did_you_mean, word
from loupe.files.file_names import same_form
from loupe.files.foreign import real_path, stored_file
from loupe.types import Measure, PageSource


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
    """What the files themselves hide; every page is decoded once, however many samples ask about it."""
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
