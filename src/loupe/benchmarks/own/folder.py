"""A folder with `loupe.toml` and `samples.jsonl` as a benchmark, and everything that can be wrong with one.

Format: docs/own-data.md. Opening reads the settings and the tasks; samples are read one by one when they are needed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from loupe.benchmarks.own.config import CONFIG, SAMPLES, Config, read_config
from loupe.benchmarks.own.normalization import Comparison
from loupe.benchmarks.own.problems import Problem
from loupe.benchmarks.own.rows import Row, file_name, page_source, paths_of, read_rows
from loupe.benchmarks.own.scorers import TASKS
from loupe.errors import PageError, UsageError, did_you_mean
from loupe.types import Benchmark, Measure, PageSource, PdfPage, Prediction, Sample, Score, Values

_FIELDS_PROMPT = (
    "Extract the following fields from this document image.\n"
    "Return a JSON object with these keys: {fields}\n"
    "If a field is not found, use an empty string.\n"
    "Output ONLY the JSON, no explanations."
)
_CLASS_PROMPT = "Which of these labels fits this document best: {labels}?\nOutput ONLY the label, no explanations."


def open_folder(path: Path) -> Benchmark:
    """The benchmark that lies in a folder. Raises DatasetError for the first problem of its settings."""
    folder = path.resolve()
    config, problems = read_config(folder)
    if config is None:
        raise problems[0].error()
    if not (folder / SAMPLES).is_file():
        raise _missing_samples(folder).error()
    tasks, labels = _survey(folder, config)
    measures = _measures(tasks)
    if config.headline and config.headline not in {measure.name for measure in measures}:
        raise _unknown_headline(folder, config, measures).error()
    comparison = Comparison(config.ignore_case, config.whitespace)

    def load(root: Path | None = None) -> Iterator[Sample]:
        """Yield the samples in file order. Raises UsageError for a `root`: the folder is the data."""
        if root is not None:
            raise UsageError(f"{folder.name}: a folder is its own data", hint="leave out --data")
        return _load(folder, config, labels)

    def score(sample: Sample, prediction: Prediction) -> list[Score]:
        return TASKS[sample.task].score(prediction.text, sample.truth, comparison)

    return Benchmark(
        title=config.title or folder.name,
        version=config.protocol(),
        task=tasks[0] if len(tasks) == 1 else config.task,
        prompt=config.prompt,
        measures=measures,
        headline=config.headline,
        load=load,
        score=score,
        summarize=_mean_of_headlines(tasks) if len(tasks) > 1 else None,
        reference=reference_text,
        max_tokens=config.max_tokens,
        suffix=".md" if {"markdown", "table"} & set(tasks) else ".txt",
    )


def check_folder(path: Path) -> list[Problem]:
    """Everything that is wrong with a folder, in the order of its lines; every page is opened and decoded."""
    folder = path.resolve()
    if not folder.is_dir():
        return [Problem(file=str(path), message="no such folder")]
    config, problems = read_config(path)
    if not (folder / SAMPLES).is_file():
        return [*problems, _missing_samples(path)]
    seen: dict[str, tuple[int, str]] = {}
    pages: dict[PageSource, str] = {}
    tasks: set[str] = set()
    count = 0
    for row in read_rows(folder / SAMPLES, config or Config()):
        count += 1
        problems += row.problems(path / SAMPLES)
        problems += _repeated(path, row, seen)
        problems += _page_problems(path, folder, row, pages)
        tasks.add(str(row.values.get("task", (config or Config()).task)))
    if not count:
        problems.append(_no_samples(path))
    measures = _measures(tuple(task for task in TASKS if task in tasks))
    if config and config.headline and config.headline not in {measure.name for measure in measures}:
        problems.insert(0, _unknown_headline(path, config, measures))
    return problems


def survey_folder(path: Path) -> tuple[dict[str, int], list[str]]:
    """How many samples of each task a folder has, and the unusual settings of how it is scored, as `key = value`.

    Raises DatasetError for a folder without settings or samples; lines that are wrong are left to `check_folder`.
    """
    config, problems = read_config(path)
    if config is None:
        raise problems[0].error()
    if not (path / SAMPLES).is_file():
        raise _missing_samples(path).error()
    counted = Counter(str(row.values.get("task", config.task)) for row in read_rows(path / SAMPLES, config))
    usual = msgspec.to_builtins(Config())
    facts = ("title", "version", "task", "prompt", "headline")
    given = msgspec.to_builtins(config)
    settings = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}"
        for key, value in given.items()
        if key not in facts and value != usual[key]
    ]
    return {task: counted[task] for task in TASKS if task in counted}, settings


def reference_text(sample: Sample) -> str:
    """The right answer as one text, to show beside a prediction and to diagnose it."""
    if isinstance(sample.truth, dict):
        return json.dumps(sample.truth, ensure_ascii=False, indent=1)
    return str(sample.truth[0]) if isinstance(sample.truth, list) else str(sample.truth)


def _load(folder: Path, config: Config, labels: tuple[str, ...]) -> Iterator[Sample]:
    file = folder / SAMPLES
    seen: dict[str, tuple[int, str]] = {}
    count = 0
    for row in read_rows(file, config):
        count += 1
        for problem in (*row.problems(file), *_repeated(folder, row, seen), *_missing_files(folder, folder, row)):
            raise problem.error()
        yield _sample(folder, row.values, config, labels)
    if not count:
        raise _no_samples(folder).error()


def _sample(folder: Path, values: dict[str, Any], config: Config, labels: tuple[str, ...]) -> Sample:
    task = values.get("task", config.task)
    return Sample(
        id=values["id"],
        images=tuple(page_source(folder, path) for path in paths_of(values) or ()),
        truth=values["reference"],
        prompt=values.get("prompt", "") or _own_prompt(task, values["reference"], config, labels),
        task=task,
        group=values.get("group", ""),
        text=values.get("text", ""),
        tags=values.get("tags", {}),
    )


def _own_prompt(task: str, reference: Any, config: Config, labels: tuple[str, ...]) -> str:
    """The question where it depends on the sample or the folder: which fields, which labels. Other tasks: ""."""
    if task == "fields":
        return (config.prompt or _FIELDS_PROMPT).replace("{fields}", ", ".join(reference))
    if task == "class":
        return (config.prompt or _CLASS_PROMPT).replace("{labels}", ", ".join(labels))
    return ""


def _survey(folder: Path, config: Config) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tasks and the labels that occur. Lines that cannot be read are left to `load`, which names them."""
    tasks: set[str] = set()
    labels: dict[str, None] = dict.fromkeys(config.labels)
    with (folder / SAMPLES).open("rb") as file:
        for line in file:
            # Most folders have one task and never name it: their lines need no parsing here.
            if not line.strip() or (b'"task"' not in line and config.task != "class"):
                tasks |= {config.task} if line.strip() else set()
                continue
            try:
                values = json.loads(line)
                task = values.get("task", config.task)
            except (ValueError, AttributeError, RecursionError):
                continue
            if isinstance(task, str):
                tasks.add(task)
            if task == "class" and not config.labels and isinstance(values.get("reference"), str):
                labels.setdefault(values["reference"])
    found = tuple(task for task in TASKS if task in tasks) or (config.task,)
    return found, tuple(labels) if config.labels else tuple(sorted(labels))


def _measures(tasks: tuple[str, ...]) -> tuple[Measure, ...]:
    own = tuple(measure for task in tasks for measure in TASKS[task].measures)
    return (Measure(name="overall", title="mean of the tasks"), *own) if len(tasks) > 1 else own


def _mean_of_headlines(tasks: tuple[str, ...]) -> Any:
    names = [TASKS[task].measures[0].name for task in tasks]

    def summarize(values: Values) -> Values:
        """The mean over the tasks that occur (in a slice, or in a draw of the bootstrap): each task counts once."""
        import numpy as np

        present = [np.asarray(values[name], float) for name in names if values.get(name) is not None]
        if not present:
            return {}
        stacked = np.stack(np.broadcast_arrays(*present))
        known = ~np.isnan(stacked)
        count = known.sum(axis=0)
        total = np.where(known, stacked, 0.0).sum(axis=0)
        return {"overall": np.where(count > 0, total / np.maximum(count, 1), np.nan)[()]}

    return summarize


def _repeated(folder: Path, row: Row, seen: dict[str, tuple[int, str]]) -> Iterator[Problem]:
    """An id that was used before; ids name files, and some file systems do not tell large letters from small ones."""
    if not row.ident:
        return
    number, ident = seen.setdefault(row.ident.casefold(), (row.number, row.ident))
    if number != row.number:
        message = f"id {row.ident!r} was used in line {number}"
        if ident != row.ident:
            message = f"id {row.ident!r} differs from {ident!r} in line {number} only in upper and lower case"
        yield Problem(file=str(folder / SAMPLES), line=row.number, message=message, hint="every id once")


def _missing_files(shown: Path, folder: Path, row: Row) -> Iterator[Problem]:
    """Pages that are not there, are empty, or lie outside the folder behind a link; nothing is opened."""
    if row.wrong:
        return
    for path in paths_of(row.values) or ():
        name = file_name(path)
        target = (folder / name).resolve()
        message, hint = "", ""
        if not target.is_relative_to(folder):
            message, hint = f"{name!r} leads out of the folder through a link", "copy the file into the folder"
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
    missing = list(_missing_files(shown, folder, row))
    yield from missing
    if row.wrong or missing:
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
                hint="mend or replace the file, or take the line out",
            )


def _unreadable(source: PageSource, path: str) -> str:
    from loupe.data.pages import page_size, pdf_page_count, thumbnail

    try:
        if isinstance(source, PdfPage) and "#" not in path:
            count = pdf_page_count(source.path)
            if count > 1:
                return f"has {count} pages; name one: {path}#page=1"
        page_size(source)
        thumbnail(source, 64)
    except PageError as error:
        name = source.path if isinstance(source, PdfPage) else source
        return error.message.removeprefix(f"{name}: ").removeprefix(f"{name}")
    return ""


def _missing_samples(folder: Path) -> Problem:
    return Problem(
        file=str(folder / SAMPLES),
        message="not found",
        hint="one JSON object per line; docs/own-data.md has an example",
    )


def _no_samples(folder: Path) -> Problem:
    return Problem(file=str(folder / SAMPLES), message="no samples: the file is empty", hint="one JSON object per line")


def _unknown_headline(folder: Path, config: Config, measures: tuple[Measure, ...]) -> Problem:
    names = [measure.name for measure in measures]
    return Problem(
        file=str(folder / CONFIG),
        message=f"headline: no measure {config.headline!r} here{did_you_mean(config.headline, names)}",
        hint=f"measures of these tasks: {', '.join(names)}",
    )
