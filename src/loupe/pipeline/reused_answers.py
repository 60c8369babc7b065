"""Answers of an earlier run on a folder of one's own: kept for the samples that are still the same.

A page was added, removed or replaced: every answer names the question and the pages that it is an answer to
(`Prediction.asked`), so a new run can take it over and ask its engine for the other samples only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from loupe.engines.registry import slug
from loupe.errors import RunError, word
from loupe.files.folder import Folder
from loupe.pipeline.plan import Plan, asks_for_others
from loupe.runs.folder import KEEP_BOTH, RUN, RunFolder, check_same
from loupe.runs.info import RunInfo, differences
from loupe.typed import encode_json
from loupe.types import RETRIED, Prediction

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
