"""Truth that was mended after answers were made: the answers that stay good, and the truth they are scored against.

A wrong reference is often found in the report of a run. What an engine was asked is then as it was, and its answers are
scored against the references as they are now; for published benchmarks other references are other data. If a page was
added, removed or replaced, every answer names the question and the pages that it is an answer to (`Prediction.asked`):
a new run takes it over and asks its engine for the other samples only.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from loupe.benchmarks import benchmark_of_run
from loupe.benchmarks.folders.own.config import CONFIG
from loupe.benchmarks.registry import changed_options
from loupe.data.hub.origin import seal_of_place
from loupe.engines.registry import slug
from loupe.errors import RunError, UsageError, word
from loupe.files.default_places import RUNS
from loupe.files.folder import Folder
from loupe.files.foreign import real_path
from loupe.pipeline.plan import Plan, Survey, asked_ids, asks_for_others, first_ids, open_samples, samples_of, survey
from loupe.runs.folder import KEEP_BOTH, RUN, RunFolder, check_same, claim
from loupe.runs.info import RunInfo, differences, digest_of, signature
from loupe.typed import encode_json
from loupe.types import RETRIED, Prediction, Sample

_ALLOWED = "allow_unverified"


def follow_references(folder: RunFolder) -> str:
    """Let a claimed run go on with the references as they are now, and say so; "" if nothing or more has changed.

    More: another version or other settings of scoring, other samples, questions or pages. Those are left to others.
    """
    info = folder.info
    if not own_folder_is_here(info):
        return ""
    benchmark = benchmark_of_run(info.benchmark)
    if benchmark.version != info.version:
        return ""
    found = survey(benchmark, info.benchmark, None, info.options, pages=False)
    if found.truth_digest == info.truth_digest or found.question_digest != info.question_digest:
        return ""
    found = survey(benchmark, info.benchmark, None, info.options)
    same_pages = info.data_digest == digest_of([info.truth_digest, *found.page_digests])
    if found.question_digest != info.question_digest or not same_pages:
        return ""
    folder.drop_result()
    info = msgspec.structs.replace(info, truth_digest=found.truth_digest, data_digest=found.data_digest)
    folder.write_info(msgspec.structs.replace(info, signature=signature(info)))
    return f"{folder.path}: references changed after the run; its answers are scored against the current ones"


def follow_before(files: Folder, info: RunInfo) -> str:
    """The same for a run that is about to be continued, if nothing else about it is to change."""
    if not own_folder_is_here(info) or RUN not in files.names():
        return ""
    old = RunFolder.open(files).info
    now = msgspec.structs.replace(old, truth_digest=info.truth_digest, data_digest=info.data_digest)
    if old.truth_digest == info.truth_digest or old.options != info.options or differences(now, info):
        return ""
    with claim(files, old) as folder:
        return follow_references(folder)


def keep_both(files: Folder, info: RunInfo) -> str:
    """Return the command that keeps the answers of a run on drafts for the truth that was verified since, or ""."""
    if own_folder_is_here(info) and RUN in files.names():
        old = RunFolder.open(files).info
        # Drafts were taken for truth, which has been verified since: the answers are as good as they were.
        asked = msgspec.structs.replace(old, options=info.options, truth_digest="", data_digest=info.data_digest)
        if _ALLOWED in old.options and _ALLOWED not in info.options and not differences(asked, info):
            return f"score its answers by the verified truth: loupe score {word(files.path)} -o {_ALLOWED}=false"
    return ""


def score_anyway(path: Path, info: RunInfo) -> str:
    """The command that scores the answers of a run against the data as it is now, as a run of its own."""
    words = ["loupe", "score", info.benchmark, str(path / "predictions.jsonl"), "--name", "NAME"]
    root = path.parent.parent
    words += ["--runs", str(root)] if len(path.parts) > 2 and (root != RUNS or root.is_symlink()) else []
    words += ["--data", info.data] if info.data else []
    words += [word for name, value in info.options.items() for word in ("-o", f"{name}={value}")]
    words += ["--limit", str(info.limit)] if info.limit else []
    if drawn := info.sample:
        part = ["--limit", str(drawn.count), "--sample", "stratified"] if drawn.ids else ["--sample", str(drawn.count)]
        words += [*part, "--seed", str(drawn.seed)]
    return shlex.join(words)


def own_folder_is_here(info: RunInfo) -> bool:
    """True if the benchmark of a run is a folder of one's own, and is here."""
    return is_folder(info) and (Path(info.benchmark) / CONFIG).is_file()


def is_folder(info: RunInfo) -> bool:
    """A benchmark of a run that is a folder stands there with its whole path; ids never do."""
    path = Path(info.benchmark)
    return path.is_absolute() and path.suffix != ".py"


#: In a hint what the command line replaces by the command that was given.
AGAIN = "the same command with"


def take_over(folder: RunFolder, plan: Plan, asked: Mapping[str, str], wanted: Iterable[str]) -> str:
    """Copy what `plan.reuse` has for samples that have not changed into a claimed run; return what to say of it.

    Raises RunError for a run that was read otherwise, or that does not say what its answers are answers to.
    """
    if plan.reuse is None:
        return ""
    old = RunFolder.open(plan.reuse)
    check_same(old.path, _on_this_data(old.info, folder.info), folder.info, hint="leave out --reuse")
    there = folder.prediction_places()
    kept = [each for each in _still_good(old, asked, wanted) if each.sample not in there]
    if not kept and not there:
        raise RunError(f"{old.path}: no answer to a sample that is still the same", hint="leave out --reuse")
    # The engine has to say of itself what it said then.
    folder.write_info(msgspec.structs.replace(folder.info, facts=folder.info.facts or old.info.facts))
    if kept:
        folder.drop_result()
        with folder.predictions_log() as log:
            log.append(map(encode_json, kept))
    count = "1 answer is that" if len(kept) == 1 else f"{len(kept):,} answers are those"
    return f"{count} of {old.path}" if kept else ""


def check_first(plan: Plan, info: RunInfo, ids: Sequence[str]) -> None:
    """Raise RunError where the run that is to be continued has a limit, and lines of its folder were moved since."""
    if plan.fresh or info.limit is None or RUN not in plan.folder.names():
        return
    old = RunFolder.open(plan.folder).info
    if old.truth_digest == info.truth_digest and asks_for_others(old, ids):
        raise RunError(
            f"{plan.path}: the first {old.total:,} lines of {plan.benchmark} are other samples than this run asked for",
            hint=KEEP_BOTH,
        )


def keep_unchanged(plan: Plan, files: Folder, info: RunInfo, asked: Mapping[str, str], wanted: Sequence[str]) -> str:
    """Return the hint for a folder with a run on other samples: what keeps the answers that are still good."""
    if not asked or plan.fresh or RUN not in files.names():
        return KEEP_BOTH
    old = RunFolder.open(files)
    if not differences(old.info, info) or differences(_on_this_data(old.info, info), info):
        return KEEP_BOTH  # Nothing has changed, or more than the data.
    good = sum(1 for _ in _still_good(old, asked, wanted))
    if not good:
        return KEEP_BOTH
    answers = f"{good:,} answer" if good == 1 else f"{good:,} answers"
    left = len(wanted) - good
    rest = f"read only the other {left:,} samples" if left > 1 else "read only the other sample"
    first = plan.name or plan.label
    name = next(
        each
        for each in (f"{first}-{number}" for number in range(2, 1000))
        if RUN not in (plan.root / f"{slug(each)}/{files.path.name}").names()
    )
    how = AGAIN if plan.alone else f"run {word(plan.benchmark)} with {plan.label} alone, with"
    return (
        f"keep {answers} and {rest if left else 'read nothing'}, as another run: {how} --name {word(name)} "
        f"--reuse {word(files.path)}"
    )


def _still_good(run: RunFolder, asked: Mapping[str, str], wanted: Iterable[str]) -> Iterator[Prediction]:
    """Yield the answers of a run to samples that have not changed since."""
    places = run.prediction_places()
    good = [ident for ident in wanted if ident in places and places[ident].mark not in RETRIED]
    for prediction in run.read_predictions(places[ident] for ident in good):
        if prediction.asked and prediction.asked == asked.get(prediction.sample):
            yield prediction


def _on_this_data(old: RunInfo, new: RunInfo) -> RunInfo:
    """The settings of a run as if it had been made on the data of another one, by its rules of scoring."""
    names = ("data_digest", "truth_digest", "version", "options", "limit", "sample")
    return msgspec.structs.replace(old, **{name: getattr(new, name) for name in names})


#: What an engine gets to see of a sample.
_Question: TypeAlias = tuple[Any, ...]


def moved_to(info: RunInfo, data: Path) -> RunInfo:
    """The run with its data in another place; a folder of one's own is the benchmark and its data in one."""
    place = str(real_path(data))
    if is_folder(info):
        return msgspec.structs.replace(info, benchmark=place)
    return msgspec.structs.replace(info, data=place, data_seal=seal_of_place(place))


def check_truth(folder: RunFolder) -> Survey:
    """The content of a run's data. Raises RunError if the ground truth is not the one that it was made on."""
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
