"""Runs of OmniDocBench as its official evaluator files them: `predictions/<engine>/*.md` and `result/*.json`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from loupe.benchmarks.omnidocbench.figures import RECKONINGS
from loupe.benchmarks.omnidocbench.official_files import official_files
from loupe.benchmarks.omnidocbench.scored_pages import from_details
from loupe.engines.registry import slug
from loupe.errors import RunError, UsageError, word
from loupe.files.folder import Folder
from loupe.results.exports.answers_and_results import Exported, write_answers
from loupe.results.scored_here import result_of
from loupe.runs.folder import RunFolder

BENCHMARK = "omnidocbench"


def write_omnidocbench_layout(path: Path, output: Path | None = None, *, raw: bool = False) -> Exported:
    """Write answers and official files of one run, from its stored scores alone, to `output` or its `official` folder.

    Pages without a prediction have no file, and in version 1.5 are in none of the official ones. Raises UsageError for
    a run of another benchmark, RunError for one without scores.
    """
    folder = scored_run(path, BENCHMARK)
    root = Folder(output) if output else folder.files / "official"
    name = folder_name(folder)
    pages = [page for row in folder.scores() if (page := from_details(row)) is not None and page.answered]
    prefix = f"{name}_{_match_method(folder)}"
    reckoning = RECKONINGS.get(folder.info.version, RECKONINGS["1.5"])
    for file, text in official_files(pages, prefix, reckoning):
        root.write(f"result/{file}", text.encode("utf-8", "replace"))
    answers = write_answers(folder, root / f"predictions/{name}", raw=raw)
    return msgspec.structs.replace(answers, results=str(root.path / "result" / f"{prefix}_metric_result.json"))


def scored_run(path: Path, benchmark: str) -> RunFolder:
    """The run at `path`, if it is one of this benchmark and has scores. Raises UsageError or RunError where not."""
    folder = RunFolder.open(path)
    if folder.info.benchmark_id != benchmark:
        raise UsageError(
            f"{path} is a run of {folder.info.benchmark_id}, not of {benchmark}", hint="list your runs: loupe runs"
        )
    if result_of(folder) is None:
        raise RunError(f"{path} has no scores yet", hint=f"score it: loupe score {word(path)}")
    return folder


def folder_name(folder: RunFolder) -> str:
    """Return what upstream would call the folder of answers: its own name if there is one, else that of the engine."""
    info = folder.info
    if info.profile.get("kind") == "predictions" and info.engine.startswith("predictions-"):
        return slug(Path(str(info.profile.get("folder", ""))).name) or slug(info.engine)
    return slug(info.engine)


def _match_method(folder: RunFolder) -> str:
    """The official name, or one that upstream does not have: numbers of fixed mode must not pass for official ones."""
    return "quick_match" if folder.info.options.get("mode", "parity") == "parity" else "loupe_fixed"
