"""Folders of one's own: answers that were made stay good while the references beside them are mended.

A wrong reference is often found in the report of a run. What an engine was asked is then as it was, and its answers are
scored against the references as they are now; for published benchmarks other references are other data.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec

from loupe.benchmarks import benchmark_of_run
from loupe.benchmarks.own.config import CONFIG
from loupe.files.folder import Folder
from loupe.pipeline.plan import survey
from loupe.runs.folder import RUN, RunFolder, claim
from loupe.runs.info import RunInfo, differences, digest_of, signature


def follow_references(folder: RunFolder) -> str:
    """Let a claimed run go on with the references as they are now, and say so; "" where nothing or more has changed.

    More: another version or other settings of scoring, other samples, questions or pages. Those are left to others.
    """
    info = folder.info
    if not is_own_folder(info):
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
    return f"{folder.path}: references changed since they were read; its answers are scored against those of now"


def follow_before(files: Folder, info: RunInfo) -> str:
    """The same for a run that is about to be continued, if nothing else about it is to change."""
    if not is_own_folder(info) or RUN not in files.names():
        return ""
    old = RunFolder.open(files).info
    now = msgspec.structs.replace(old, truth_digest=info.truth_digest, data_digest=info.data_digest)
    if old.truth_digest == info.truth_digest or old.options != info.options or differences(now, info):
        return ""
    with claim(files, old) as folder:
        return follow_references(folder)


def score_anyway(path: Path, info: RunInfo) -> str:
    """The command that scores the answers of a run against the data as it is now, as a run of its own."""
    words = ["loupe", "score", info.benchmark, str(path / "predictions.jsonl"), "--name", "NAME"]
    words += ["--data", info.data] if info.data else []
    words += [word for name, value in info.options.items() for word in ("-o", f"{name}={value}")]
    words += ["--limit", str(info.limit)] if info.limit else []
    words += ["--sample", str(info.sample.count), "--seed", str(info.sample.seed)] if info.sample else []
    return shlex.join(words)


def is_own_folder(info: RunInfo) -> bool:
    """A benchmark of a run that is a folder stands there with its whole path; ids never do."""
    path = Path(info.benchmark)
    return path.is_absolute() and (path / CONFIG).is_file()
