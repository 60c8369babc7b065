"""Runs of MDPBench as its official evaluator files them: `predictions/<engine>/*.md` and `result/<engine>_result/`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from loupe.benchmarks.mdpbench.conclusion import official_files
from loupe.benchmarks.mdpbench.final_score import from_details, image_attributes
from loupe.files.folder import Folder
from loupe.results.exports.answers_and_results import Exported, write_answers
from loupe.results.exports.omnidocbench import folder_name, scored_run

BENCHMARK = "mdpbench"


def write_mdpbench_layout(path: Path, output: Path | None = None, *, raw: bool = False) -> Exported:
    """Write answers and official files of one run, from its stored scores alone, to `output` or its `official` folder.

    Images without an answer have no file, and are in none of the official ones. Raises UsageError for a run of another
    benchmark, RunError for one without scores.
    """
    folder = scored_run(path, BENCHMARK)
    root = Folder(output) if output else folder.files / "official"
    name = folder_name(folder)
    images = list(map(from_details, folder.scores()))
    answered = [page for pages in images for page in pages if page.answered]
    prefix = f"{name}_result"
    for file, text in official_files(answered, prefix, image_attributes(images)):
        root.write(f"result/{prefix}/{file}", text.encode("utf-8", "replace"))
    answers = write_answers(folder, root / f"predictions/{name}", raw=raw)
    return msgspec.structs.replace(answers, results=str(root.path / "result" / prefix / f"{prefix}_metric_result.json"))
