"""Folders of one's own: answers that were made stay good while the references beside them are mended.

A wrong reference is often found in the report of a run. What an engine was asked is then as it was, and its answers are
scored against the references as they are now; for published benchmarks other references are other data.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec

from loupe.benchmarks import benchmark_of_run
from loupe.benchmarks.folders.own.config import CONFIG
from loupe.errors import word
from loupe.files.default_places import RUNS
from loupe.files.folder import Folder
from loupe.pipeline.plan import survey
from loupe.runs.folder import RUN, RunFolder, claim
from loupe.runs.info import RunInfo, differences, digest_of, signature

_ALLOWED = "allow_unverified"


def follow_references(folder: RunFolder) -> str:
    """Let a claimed run go on with the references as they are now, and say so; "" where nothing or more has changed.

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
    """Whether the benchmark of a run is a folder of one's own, and is here."""
    return is_folder(info) and (Path(info.benchmark) / CONFIG).is_file()


def is_folder(info: RunInfo) -> bool:
    """A benchmark of a run that is a folder stands there with its whole path; ids never do."""
    path = Path(info.benchmark)
    return path.is_absolute() and path.suffix != ".py"
