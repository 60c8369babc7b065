"""A folder with `loupe.toml` and `samples.jsonl` as a benchmark.

Format: docs/own-data.md. Opening reads the settings and the tasks; samples are read one by one when they are needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from loupe.benchmarks.own.checking import missing_files, missing_samples, no_samples, repeated, unknown_headline
from loupe.benchmarks.own.class_figures import FIGURE, class_details, class_figures, without_labels
from loupe.benchmarks.own.config import SAMPLES, FolderConfig, read_config
from loupe.benchmarks.own.drafts import is_to_draft
from loupe.benchmarks.own.faults import faults_of
from loupe.benchmarks.own.normalization import Comparison
from loupe.benchmarks.own.rows import Row, page_source, paths_of, read_rows
from loupe.benchmarks.own.survey import Contents, contents_of
from loupe.benchmarks.own.task_measures import mean_of_headlines, measures_of
from loupe.benchmarks.own.truth import TruthState, truth_state
from loupe.benchmarks.own.typed_fields import judge, scoring_of
from loupe.errors import UsageError, word
from loupe.explanation import JudgedField
from loupe.files.foreign import real_path
from loupe.types import Benchmark, Conclusion, Prediction, Sample, SampleScores, Score, Scored

#: In the figures of such a run: engine → unverified samples whose truth it drafted itself.
DRAFTERS = "drafted by"
#: In the same figures: engine → verified samples whose truth is its draft word for word.
ACCEPTED = "accepted drafts"
#: The tag of samples in a run that takes unverified truth, too: "verified" or "draft".
TRUTH_TAG = "truth"

_FIELDS_PROMPT = (
    "Extract the following fields from this document image.\n"
    "Return a JSON object with these keys: {fields}\n"
    "If a field is not found, use an empty string.\n"
    "Output ONLY the JSON, no explanations."
)
_CLASS_PROMPT = "Which of these labels fits this document best: {labels}?\nOutput ONLY the label, no explanations."


def open_folder(path: Path) -> Benchmark:
    """The benchmark that lies in a folder. Raises DatasetError for the first problem of its settings."""
    folder = real_path(path)
    config, problems = read_config(folder)
    if config is None:
        raise problems[0].error()
    if not (folder / SAMPLES).is_file():
        raise missing_samples(folder).error()
    contents = contents_of(folder, config)
    tasks = contents.tasks
    measures = measures_of(tasks, config)
    if config.headline and config.headline not in {measure.name for measure in measures}:
        raise unknown_headline(folder, config, measures).error()
    comparison = Comparison(config.ignore_case, config.whitespace)

    def load(
        root: Path | None = None, allow_unverified: bool = False, draft_for: str = "", draft_failed: bool = False
    ) -> Iterator[Sample]:
        """Yield the samples in file order; skipped ones are left out.

        `allow_unverified` takes drafts for truth, too. `draft_for` yields those that an engine of this name is yet to
        draft, without truth; `draft_failed` also those where its answer could not be used. Raises UsageError for a
        `root` (the folder is the data), and for drafts unless allowed.
        """
        if root is not None:
            raise UsageError(f"{folder.name}: a folder is its own data", hint="leave out --data")
        if draft_for:
            return _undrafted(folder, config, contents.labels, draft_for, failed=draft_failed)
        if contents.states["draft"] and not allow_unverified:
            raise unverified(path, contents)
        return _load(
            path, config, contents.labels, mixed=contents.states["draft"] > 0, allow_unverified=allow_unverified
        )

    def score(sample: Sample, prediction: Prediction) -> list[Score] | Scored:
        scores = scoring_of(sample.task, config, contents.labels).score(prediction.text, sample.truth, comparison)
        if sample.task != "class":
            return scores
        return Scored(scores=scores, details=class_details(prediction.text, sample.truth, contents.labels))

    def fields(sample: Sample, prediction: Prediction) -> list[JudgedField]:
        return judge(config, prediction.text, sample.truth, comparison) if sample.task == "fields" else []

    return Benchmark(
        title=config.title or folder.name,
        version=config.protocol(),
        task=tasks[0] if len(tasks) == 1 else config.task,
        prompt=config.prompt,
        measures=measures,
        headline=config.headline,
        load=load,
        score=score,
        fields=fields if "fields" in tasks else None,
        summarize=mean_of_headlines(tasks, config) if len(tasks) > 1 else None,
        reference=reference_text,
        max_tokens=config.max_tokens,
        suffix=".md" if {"markdown", "table"} & set(tasks) else ".txt",
        conclude=partial(conclusion, contents),
        faults=faults_of(tasks),
    )


def reference_text(sample: Sample) -> str:
    """The right answer as one text, to show beside a prediction and to diagnose it; "" where there is none yet."""
    if isinstance(sample.truth, dict):
        return json.dumps(sample.truth, ensure_ascii=False, indent=1)
    return str(sample.truth[0]) if isinstance(sample.truth, list) else str(sample.truth or "")


def conclusion(contents: Contents, rows: Sequence[SampleScores]) -> Conclusion:
    """Which labels were taken for which, and what part of the truth nobody has verified."""
    figures: dict[str, Any] = {}
    if classes := class_figures(rows, contents.labels):
        figures[FIGURE] = classes
    drafts = sum(row.tags.get(TRUTH_TAG) == "draft" for row in rows)
    if drafts or contents.states["draft"] or contents.states["skipped"]:
        figures[TRUTH_TAG] = {"samples": _truth_counts(contents, len(rows) - drafts, drafts)}
        if drafts:
            figures[TRUTH_TAG][DRAFTERS] = dict(contents.drafters)
    accepted = {name: sum(row.sample in ids for row in rows) for name, ids in contents.accepted.items()}
    if any(accepted.values()):
        figures.setdefault(TRUTH_TAG, {})[ACCEPTED] = {name: count for name, count in accepted.items() if count}
    warning = f"unverified truth: {drafts} of {len(rows)} samples are compared with drafts that nobody has checked"
    return Conclusion(figures=figures, warnings=[*([warning] if drafts else []), *without_labels(rows)])


def unverified(folder: Path, contents: Contents) -> UsageError:
    """What stops a run on truth that nobody has looked at."""
    drafts, total = contents.states["draft"], sum(contents.states[name] for name in ("draft", "verified", "skipped"))
    return UsageError(
        f"{folder}: the truth of {drafts} of {total} samples is an unverified draft",
        hint=f"check it with loupe review {word(folder)}, or take it as it is, with a mark, by --allow-unverified",
    )


def _truth_counts(contents: Contents, verified: int, drafts: int) -> Mapping[str, int]:
    """Samples by the state of their truth, as they were scored; zeros are left out."""
    counts = {
        "verified": verified,
        "unverified": drafts,
        "skipped": contents.states["skipped"],
        "without truth": contents.states["without reference"],
    }
    return {name: count for name, count in counts.items() if count}


def _load(
    shown: Path, config: FolderConfig, labels: tuple[str, ...], *, mixed: bool, allow_unverified: bool
) -> Iterator[Sample]:
    """The samples that can be scored; where verified truth and drafts are mixed, each is tagged with which it is.

    Every line is judged as it is now: truth that was verified when the folder was opened may be a draft again.
    """
    folder = real_path(shown)
    count = 0
    for row, state in _readable(folder, config):
        count += 1
        if state.status == "draft" and not allow_unverified:
            raise unverified(shown, contents_of(folder, config))
        if state.status != "skipped" and row.values["reference"] is not None:
            tags = {TRUTH_TAG: state.status} if mixed or state.status == "draft" else {}
            yield _sample(folder, row.values, config, labels, tags)
    if not count:
        raise no_samples(folder).error()


def _undrafted(
    folder: Path, config: FolderConfig, labels: tuple[str, ...], engine: str, *, failed: bool
) -> Iterator[Sample]:
    """Samples whose truth nobody has verified and this engine has not drafted; without truth, so that none can leak."""
    for row, state in _readable(folder, config):
        if is_to_draft(state, engine, failed=failed):
            yield _sample(folder, {**row.values, "reference": None}, config, labels, {})


def _readable(folder: Path, config: FolderConfig) -> Iterator[tuple[Row, TruthState]]:
    """Every line with its state. Raises DatasetError for the first one with a problem."""
    file = folder / SAMPLES
    seen: dict[str, tuple[int, str]] = {}
    for row in read_rows(file, config):
        for problem in (*row.problems(file), *repeated(folder, row, seen), *missing_files(folder, folder, row)):
            raise problem.error()
        yield row, truth_state(row.values)


def _sample(
    folder: Path, values: dict[str, Any], config: FolderConfig, labels: tuple[str, ...], more_tags: Mapping[str, str]
) -> Sample:
    task = values.get("task", config.task)
    return Sample(
        id=values["id"],
        images=tuple(page_source(folder, path) for path in paths_of(values) or ()),
        truth=values["reference"],
        prompt=values.get("prompt", "") or own_prompt(task, values["reference"], config, labels),
        task=task,
        group=values.get("group", ""),
        text=values.get("text", ""),
        tags={**values.get("tags", {}), **more_tags},
        # Which label an answer is depends on what other labels there are.
        scoring={"labels": json.dumps(labels)} if task == "class" else {},
    )


def own_prompt(task: str, reference: Any, config: FolderConfig, labels: tuple[str, ...]) -> str:
    """The question where it depends on the sample or the folder: which fields, which labels. Other tasks: ""."""
    if task == "fields":
        return (config.prompt or _FIELDS_PROMPT).replace("{fields}", ", ".join(config.fields or reference or ()))
    if task == "class":
        return (config.prompt or _CLASS_PROMPT).replace("{labels}", ", ".join(labels))
    return ""
