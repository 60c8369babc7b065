"""What a run is scored against: the truth it was made on; or that under other options, where nothing else was asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from loupe.benchmarks import benchmark_of_run
from loupe.benchmarks.registry import changed_options
from loupe.data.hub.origin import seal_of_place
from loupe.errors import RunError, UsageError, word
from loupe.files.foreign import real_path
from loupe.pipeline.mended_truth import follow_references, is_folder, score_anyway
from loupe.pipeline.plan import Survey, asked_ids, asks_for_others, first_ids, open_samples, samples_of, survey
from loupe.runs.folder import RunFolder
from loupe.runs.info import RunInfo, signature
from loupe.types import Sample

#: What an engine gets to see of a sample.
_Question: TypeAlias = tuple[Any, ...]


def moved_to(info: RunInfo, data: Path) -> RunInfo:
    """The run with its data in another place; a folder of one's own is the benchmark and its data in one."""
    place = str(real_path(data))
    if is_folder(info):
        return msgspec.structs.replace(info, benchmark=place)
    return msgspec.structs.replace(info, data=place, data_seal=seal_of_place(place))


def check_truth(folder: RunFolder) -> Survey:
    """What the data of a run holds. Raises RunError if the ground truth is not the one that it was made on."""
    info = folder.info
    if is_folder(info) and not Path(info.benchmark).exists():
        raise RunError(
            f"{folder.path}: the folder {info.benchmark} of this run is missing",
            hint=f"name its current place: loupe score {word(folder.path)} --data DIR",
        )
    benchmark = benchmark_of_run(info.benchmark)
    if benchmark.version != info.version:
        other = f"version {benchmark.version}, the run was made on {info.version}"
    else:
        data = Path(info.data) if info.data else None
        found = survey(benchmark, info.benchmark, data, info.options, pages=False)
        same = found.truth_digest == info.truth_digest or not info.truth_digest
        if same and not asks_for_others(info, found.ids):
            return found
        ours, theirs = found.truth_digest[:8], info.truth_digest[:8]
        other = f"other samples or references ({ours}) than the run was made on ({theirs})"
        if same:
            other = f"other samples in its first {info.total:,} lines than the run was made on"
    raise RunError(
        f"{folder.path}: {info.benchmark} has {other}",
        hint=f"to score these answers on the current data: {score_anyway(folder.path, info)}",
    )


def truth_of_now(folder: RunFolder) -> tuple[Survey, str]:
    """The same for a claimed run, which goes on with mended references; and what is to be said of these, if any were.

    The data is read once where nothing has changed.
    """
    try:
        return check_truth(folder), ""
    except RunError:
        if not (changed := follow_references(folder)):
            raise
        return check_truth(folder), changed


def with_options(folder: RunFolder, options: Mapping[str, str]) -> RunInfo:
    """The run with these options beside its own, which they may set back to their defaults.

    Raises UsageError for options that the benchmark does not have, and where its engine would have been asked anything
    else: other samples, pages or questions. Then the answers at hand say nothing.
    """
    info = folder.info
    benchmark = benchmark_of_run(info.benchmark)
    chosen = changed_options(benchmark, {**info.options, **options})
    if chosen == info.options:
        return info
    data = Path(info.data) if info.data else None
    _check_questions(folder, {**info.options, **options}, samples_of(benchmark, data, chosen, info.limit, info.sample))
    before = survey(benchmark, info.benchmark, data, info.options)
    found = survey(benchmark, info.benchmark, data, chosen)
    # Pages that changed since they were read are not those of this run, whatever its options.
    same_pages = before.data_digest == info.data_digest
    info = msgspec.structs.replace(
        info,
        options=chosen,
        truth_digest=found.truth_digest,
        question_digest=found.question_digest,
        data_digest=found.data_digest if same_pages else info.data_digest,
        total=len(asked_ids(found.ids, info)),
        whole=len(found.ids),
    )
    info = msgspec.structs.replace(info, first=first_ids(found.ids, info) if info.first else "")
    return msgspec.structs.replace(info, signature=signature(info))


def _check_questions(folder: RunFolder, options: Mapping[str, str], wanted: Iterator[Sample]) -> None:
    info, answered = folder.info, folder.prediction_places()
    asked = {sample.id: _question(sample) for sample in open_samples(info)}
    # What was answered and is not asked for now was left out by an option since: other questions show in the rest.
    known = (sample for sample in wanted if sample.id in asked or sample.id not in answered)
    other = next((sample.id for sample in known if asked.get(sample.id) != _question(sample)), None)
    if other is None:
        return
    words = " ".join(f"-o {name}={value}" for name, value in options.items())
    what = "is asked otherwise" if other in asked else "was not asked for"
    if info.profile.get("kind") == "predictions":
        hint = f"run: loupe score {word(info.benchmark)} ANSWERS {words} --name NAME"
    else:
        hint = f"ask again: loupe run {word(info.benchmark)} {words} --name NAME, with the same engine"
    raise UsageError(f"{words}: not with the answers of this run, as {other} {what}", hint=hint)


def _question(sample: Sample) -> _Question:
    return sample.prompt, sample.text, sample.task, tuple(map(str, sample.images))
