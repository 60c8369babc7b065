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
from loupe.errors import RunError
from loupe.pipeline.plan import samples_of, survey
from loupe.runs.files import write_atomically
from loupe.runs.folder import RunFolder, claim
from loupe.runs.info import RunInfo, differences, digest_of, signature

_NAME = "asked.json"
#: Characters of a digest that are kept; this file only says what was changed, nobody can gain by a collision.
_KEPT = 16


class _Asked(msgspec.Struct, frozen=True):
    """For each sample of a run, in order, digests of what its engine was asked and of its reference."""

    questions: dict[str, str]
    references: dict[str, str]


def note_asked(folder: RunFolder) -> None:
    """Note what a run on a folder of one's own was asked, and the references that it is scored against."""
    if _is_own_folder(folder.info):
        noted = msgspec.json.encode(_asked(folder.info))
        file = folder.path / _NAME
        if not file.is_file() or file.read_bytes() != noted:
            write_atomically(file, noted)


def follow_references(folder: RunFolder) -> str:
    """Let a claimed run go on with the references as they are now, and say so; "" where nothing or more has changed.

    More: other samples, questions or pages, or a run that has not noted what it was asked. Those are left to others.
    """
    info = folder.info
    if not _is_own_folder(info):
        return ""
    benchmark = benchmark_of_run(info.benchmark)
    if benchmark.version == info.version:
        found = survey(benchmark, info.benchmark, None, info.options, pages=False)
        if found.truth_digest == info.truth_digest:
            return ""
    before, now = _noted(folder), _asked(info)
    if before is None or list(before.questions.items()) != list(now.questions.items()):
        return ""
    found = survey(benchmark, info.benchmark, None, info.options)
    if info.data_digest != digest_of([info.truth_digest, *found.page_digests]):
        return ""
    folder.drop_result()
    info = msgspec.structs.replace(
        info, version=benchmark.version, truth_digest=found.truth_digest, data_digest=found.data_digest
    )
    folder.write_info(msgspec.structs.replace(info, signature=signature(info)))
    note_asked(folder)
    changed = sum(before.references.get(ident) != reference for ident, reference in now.references.items())
    return (
        f"{folder.path}: {changed:,} of {len(now.references):,} references changed since it was scored; "
        "its answers are scored against those of now"
    )


def follow_before(path: Path, info: RunInfo) -> str:
    """The same for a run that is about to be continued, if nothing else about it is to change."""
    if not _is_own_folder(info) or not (path / "run.json").is_file():
        return ""
    old = RunFolder.open(path).info
    now = msgspec.structs.replace(
        old, version=info.version, truth_digest=info.truth_digest, data_digest=info.data_digest
    )
    if old.truth_digest == info.truth_digest or old.options != info.options or differences(now, info):
        return ""
    with claim(path, old) as folder:
        return follow_references(folder)


def score_anyway(path: Path, info: RunInfo) -> str:
    """The command that scores the answers of a run against the data as it is now, as a run of its own."""
    words = ["loupe", "score", info.benchmark, str(path / "predictions.jsonl"), "--name", "NAME"]
    words += ["--data", info.data] if info.data else []
    words += [word for name, value in info.options.items() for word in ("-o", f"{name}={value}")]
    return shlex.join(words)


def _is_own_folder(info: RunInfo) -> bool:
    """A benchmark of a run that is a folder stands there with its whole path; ids never do."""
    path = Path(info.benchmark)
    return path.is_absolute() and (path / CONFIG).is_file()


def _noted(folder: RunFolder) -> _Asked | None:
    try:
        return msgspec.json.decode((folder.path / _NAME).read_bytes(), type=_Asked)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise RunError(f"{folder.path / _NAME}: {error}", hint="remove this file") from None


def _asked(info: RunInfo) -> _Asked:
    questions, references = {}, {}
    for sample in samples_of(benchmark_of_run(info.benchmark), None, info.options, None):
        # Pages are compared by their content, all at once.
        asked = [sample.prompt, sample.text, sample.task, len(sample.images)]
        questions[sample.id] = digest_of([asked])[:_KEPT]
        references[sample.id] = digest_of([sample.truth])[:_KEPT]
    return _Asked(questions, references)
