"""A folder with `loupe.toml` and `samples.jsonl` as a benchmark.

Format: docs/own-data.md. Opening reads the settings and the tasks; samples are read one by one when they are needed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any

from loupe.benchmarks.folders.own.config import SAMPLES, FolderConfig, read_config
from loupe.benchmarks.folders.own.draft_truth import is_to_draft
from loupe.benchmarks.folders.own.facts import (
    TASK,
    PageFacts,
    Place,
    asked_as,
    checked_facts,
    drafting_state,
    fact_hooks,
    is_fact_sample,
    judge_facts,
    place_of,
    state_of,
    truth_of,
)
from loupe.benchmarks.folders.own.faults import faults_of
from loupe.benchmarks.folders.own.normalization import Comparison
from loupe.benchmarks.folders.own.rows import Row, page_source, paths_of, read_rows
from loupe.benchmarks.folders.own.scorers import (
    FIGURE,
    INVENTED,
    class_details,
    class_figures,
    judge,
    mean_of_headlines,
    measures_of,
    scoring_of,
    without_labels,
)
from loupe.benchmarks.folders.own.survey import (
    Contents,
    contents_of,
    draft_command,
    has_no_truth,
    missing_files,
    missing_samples,
    no_samples,
    no_truth,
    repeated,
    review_command,
    unknown_headline,
)
from loupe.errors import UsageError
from loupe.explanation import JudgedField
from loupe.files.foreign import real_path
from loupe.stats.estimates import is_share
from loupe.types import INTERNAL, Benchmark, Conclusion, Measure, Prediction, Sample, SampleScores, Score, Scored

#: In the figures of such a run: engine → unverified samples whose truth it drafted itself.
DRAFTERS = "drafted by"
#: In the same figures: engine → verified samples whose truth is its draft word for word.
ACCEPTED = "accepted drafts"
#: The tag of samples in a run that takes unverified truth, too: "verified" or "draft".
TRUTH_TAG = "truth"

#: What decided about the fields of a sample that failed.
NO_ANSWER = "no answer"
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
    judging = _Judging(config, contents.labels, measures, Comparison(config.ignore_case, config.whitespace))
    return Benchmark(
        title=config.title or folder.name,
        version=config.protocol(),
        task=asked_as(tasks[0] if len(tasks) == 1 else config.task),
        prompt=config.prompt,
        measures=measures,
        headline=config.headline,
        load=_loading(path, config, contents),
        score=judging.score,
        fields=judging.fields if "fields" in tasks else None,
        **(fact_hooks(folder) if TASK in tasks else {}),
        summarize=mean_of_headlines(tasks, config) if len(tasks) > 1 else None,
        reference=reference_text,
        max_tokens=config.max_tokens,
        suffix=".md" if {"markdown", "table", TASK} & set(tasks) else ".txt",
        conclude=partial(conclusion, contents),
        faults=faults_of(tasks),
    )


def _loading(shown: Path, config: FolderConfig, contents: Contents) -> Callable[..., Iterator[Sample]]:
    """The `load` of a folder."""
    folder = real_path(shown)

    def load(
        root: Path | None = None,
        allow_unverified: bool = False,
        draft_for: Annotated[str, INTERNAL] = "",
        draft_failed: Annotated[bool, INTERNAL] = False,
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
        mixed = contents.states["draft"] > 0
        if mixed and (not allow_unverified or has_no_truth(contents)):
            raise unverified(shown, contents)
        return _load(shown, config, contents.labels, mixed=mixed, allow_unverified=allow_unverified)

    return load


@dataclass(frozen=True, slots=True)
class _Judging:
    """The scoring rules of a folder's answers."""

    config: FolderConfig
    labels: tuple[str, ...]
    measures: tuple[Measure, ...]
    comparison: Comparison

    def score(self, sample: Sample, prediction: Prediction) -> list[Score] | Scored:
        """The scores of one answer, by the task of its sample."""
        if is_fact_sample(sample):
            return judge_facts(prediction, sample.truth)
        task = scoring_of(sample.task, self.config, self.labels)
        scores = task.score(prediction.text, sample.truth, self.comparison)
        if prediction.failed:
            # An engine that gives no answer invents nothing, and must not look better for it.
            scores = without_points([one for one in scores if one.measure != INVENTED.name], self.measures)
        if sample.task != "class":
            return scores
        return Scored(scores=scores, details=class_details(prediction.text, sample.truth, self.labels))

    def fields(self, sample: Sample, prediction: Prediction) -> list[JudgedField]:
        """The fields of one answer with the rules that decided; none earns anything without an answer."""
        if sample.task != "fields":
            return []
        found = judge(self.config, prediction.text, sample.truth, self.comparison)
        return [replace(each, value=0.0, rule=NO_ANSWER) for each in found] if prediction.failed else found


def without_points(scores: Sequence[Score], measures: Sequence[Measure]) -> list[Score]:
    """Scores of a sample without an answer: it earns nothing, also where nothing is the right answer (a blank page).

    Edits stay as they are for an empty answer: nothing is lost of a page with nothing on it.
    """
    earned = {measure.name for measure in measures if is_share(measure)}
    return [replace(one, counts=(0.0, *one.counts[1:])) if one.measure in earned else one for one in scores]


def reference_text(sample: Sample) -> str:
    """The right answer as one text, to show beside a prediction and to diagnose it; "" where there is none (facts)."""
    if is_fact_sample(sample):
        return ""
    if isinstance(sample.truth, dict):
        return json.dumps(sample.truth, ensure_ascii=False, indent=1)
    return str(sample.truth[0]) if isinstance(sample.truth, list) else str(sample.truth or "")


def conclusion(contents: Contents, rows: Sequence[SampleScores]) -> Conclusion:
    """Summarise which labels were taken for which, what part of the truth nobody has verified, and why nothing was
    invented.
    """
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
    whose = f", by {', '.join(contents.drafters)}" if contents.drafters else ""
    compared = f"{drafts} of {len(rows)} samples are scored against unreviewed drafts"
    warning = f"unverified truth: {compared}{whose}"
    warnings = [*([warning] if drafts else []), *without_labels(rows)]
    objects = [bool(score.counts[0]) for row in rows for score in row.scores if score.measure == "json_validity"]
    # Of answers that are objects it is computed wherever a field is empty: where none is, it is not worth a word.
    why = {INVENTED.name: "" if any(objects) else "no answer is a JSON object"} if objects else {}
    return Conclusion(figures=figures, warnings=warnings, not_computed=why)


def unverified(folder: Path, contents: Contents) -> UsageError:
    """Return the error that stops a run on truth that nobody has looked at, or that is not there at all."""
    if has_no_truth(contents):
        return UsageError(f"{folder}: {no_truth(contents)}", hint=f"draft it: {draft_command(folder)}")
    drafts, total = contents.states["draft"], sum(contents.states[name] for name in ("draft", "verified", "skipped"))
    return UsageError(
        f"{folder}: the truth of {drafts} of {total} samples is an unverified draft",
        hint=f"check it with {review_command(folder)}, or score against it with --allow-unverified",
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
    facts = checked_facts(folder)
    for row in _readable(folder, config):
        state = state_of(row.values, config, facts)
        count += 1
        if state.status == "draft" and not allow_unverified:
            raise unverified(shown, contents_of(folder, config))
        truth = _truth(row.values, config, facts)
        if state.status != "skipped" and truth is not None:
            tags = {TRUTH_TAG: state.status} if mixed or state.status == "draft" else {}
            yield _sample(folder, {**row.values, "reference": truth}, config, labels, tags)
    if not count:
        raise no_samples(folder).error()


def _undrafted(
    folder: Path, config: FolderConfig, labels: tuple[str, ...], engine: str, *, failed: bool
) -> Iterator[Sample]:
    """Samples whose truth nobody has verified and this engine has not drafted; without truth, so that none can leak."""
    facts = checked_facts(folder)
    for row in _readable(folder, config):
        if is_to_draft(drafting_state(row.values, config, facts), engine, failed=failed):
            yield _sample(folder, {**row.values, "reference": None}, config, labels, {})


def _truth(values: dict[str, Any], config: FolderConfig, facts: Mapping[Place, PageFacts]) -> Any:
    """Return the truth that a sample is scored with: its reference, or the tests of its page; None where there is
    none.
    """
    if values.get("task", config.task) != TASK:
        return values["reference"]
    place = place_of(values)
    page = facts.get(place) if place else None
    return truth_of(place, page.tests) if place and page and page.tests else None


def _readable(folder: Path, config: FolderConfig) -> Iterator[Row]:
    """Every line. Raises DatasetError for the first one with a problem."""
    file = folder / SAMPLES
    seen: dict[str, tuple[int, str]] = {}
    for row in read_rows(file, config):
        for problem in (*row.problems(file), *repeated(folder, row, seen), *missing_files(folder, folder, row)):
            raise problem.error()
        yield row


def _sample(
    folder: Path, values: dict[str, Any], config: FolderConfig, labels: tuple[str, ...], more_tags: Mapping[str, str]
) -> Sample:
    task = values.get("task", config.task)
    return Sample(
        id=values["id"],
        images=tuple(page_source(folder, path) for path in paths_of(values) or ()),
        truth=values["reference"],
        prompt=values.get("prompt", "") or own_prompt(task, values["reference"], config, labels),
        task=asked_as(task),
        group=values.get("group", ""),
        text=values.get("text", ""),
        tags={**values.get("tags", {}), **more_tags},
        # Which label an answer is depends on what other labels there are.
        scoring={"labels": _labels_as_json(labels)} if task == "class" else {},
    )


@lru_cache(maxsize=8)
def _labels_as_json(labels: tuple[str, ...]) -> str:
    return json.dumps(labels)


def own_prompt(task: str, reference: Any, config: FolderConfig, labels: tuple[str, ...]) -> str:
    """The question where it depends on the sample or the folder: which fields, which labels. Other tasks: ""."""
    if task == "fields":
        return (config.prompt or _FIELDS_PROMPT).replace("{fields}", ", ".join(config.fields or reference or ()))
    if task == "class":
        return (config.prompt or _CLASS_PROMPT).replace("{labels}", ", ".join(labels))
    return ""
