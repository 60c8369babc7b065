"""`loupe.score`: score answers that exist already; no engine is needed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Unpack

from loupe.api.blocking import Stops, finish
from loupe.api.options import DataOptions, checked, file_plan, named_benchmark, texts_of
from loupe.api.runs import Run
from loupe.benchmarks.registry import check_options, get_benchmark
from loupe.engines.registry import Profile, load_profile
from loupe.errors import RunError, UsageError
from loupe.files.folder import Folder
from loupe.files.foreign import real_path
from loupe.files.scratch import scratch_folder
from loupe.pipeline import Plan, file_answers, score_again
from loupe.typed import encode_json

_ANSWERS = "answers.jsonl"


def score(benchmark: str, answers: str | os.PathLike[str] | Mapping[str, str], **options: Unpack[DataOptions]) -> Run:
    """Score answers to a benchmark: a folder, a file, or a mapping from sample id to text. No engine is needed.

    A folder has one text file for each sample; a file is JSON lines with id and text, or JSON in the official layout of
    the benchmark. Samples without an answer count as failed. Nothing is left behind unless `runs` names a folder.
    Options are those of `loupe score`. Raises LoupeError.

    >>> run = score("sample_pages", {"prose": "A page of prose.", "blank": ""})
    >>> run["text_similarity"].n, len(run.failures)
    (12, 17)
    """
    given = checked({"runs": None, **options}, DataOptions)
    benchmark = named_benchmark(benchmark)
    found = get_benchmark(benchmark)
    of_benchmark = texts_of(given["option"])
    check_options(found, of_benchmark, called=benchmark)
    plan, kept = file_plan(benchmark, of_benchmark, _engine(answers, str(given.get("name", ""))), given)
    path = _file(plan, answers)

    stops = Stops()

    async def work() -> None:
        scoring = asyncio.ensure_future(score_again(path, jobs=given.get("jobs")))

        def stop() -> None:
            scoring.cancel()

        with stops.told(stop):
            await scoring

    try:
        finish(work, stops)
    except asyncio.CancelledError:
        raise KeyboardInterrupt("scoring was stopped; the same call begins again") from None
    return Run(path, kept)


def _engine(answers: str | os.PathLike[str] | Mapping[str, str], name: str) -> tuple[str, Profile]:
    """The name to file answers under, and where they are from."""
    if isinstance(answers, Mapping):
        return name or "answers", load_profile(f"predictions:{_ANSWERS}")[1]
    hint = "give a folder, a file, or a mapping from sample id to text"
    if not isinstance(answers, str | os.PathLike):
        raise UsageError(f"answers is {type(answers).__name__}", hint=hint)
    path = Path(answers)
    if not path.exists():
        raise RunError(f"no answers at {path}", hint=hint)
    label, profile = load_profile(f"predictions:{path}")
    return name or (path.stem if path.is_file() else real_path(path).name) or label, profile


def _file(plan: Plan, answers: str | os.PathLike[str] | Mapping[str, str]) -> Path:
    """File the answers as a run, and return its folder."""
    if not isinstance(answers, Mapping):
        return file_answers(plan, Path(answers))[0].path
    for ident, text in answers.items():
        if not isinstance(ident, str) or not isinstance(text, str):
            raise UsageError(
                f"answers[{ident!r}] is {type(text).__name__}", hint="give a mapping from sample id to text"
            )
    lines = [encode_json({"id": str.__str__(ident), "text": str.__str__(text)}) for ident, text in answers.items()]
    with scratch_folder("loupe-answers-") as folder:
        Folder(folder).write(_ANSWERS, b"".join(line + b"\n" for line in lines))
        return file_answers(plan, folder / _ANSWERS)[0].path
