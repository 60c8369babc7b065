"""What `loupe compress` read, as a report: each page beside its text and the ground truth, differences marked.

It is the report of a run of `fox` over these pages; the run lies in a temporary folder while the file is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from loupe.benchmarks import fox
from loupe.files.folder import Folder
from loupe.files.scratch import scratch_folder
from loupe.report.collect import collect
from loupe.report.html import write_groups
from loupe.runs.folder import PREDICTIONS, RESULT, RUN, SCORES
from loupe.runs.info import RunInfo
from loupe.studies.compress.precision import BENCHMARK, ReadPage
from loupe.typed import encode_json
from loupe.types import Result


def write_pages(pages: Sequence[ReadPage], result: Result, output: Path, *, engine: str, mode: str) -> None:
    """Write the report. Raises as `write_report` does."""
    info = RunInfo(
        benchmark=BENCHMARK,
        benchmark_id=BENCHMARK,
        version=fox.benchmark.version,
        engine=engine,
        profile={},
        options={"mode": mode},
        total=len(pages),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    with scratch_folder("loupe-compress-") as folder:
        run = Folder(folder)
        run.write(RUN, encode_json(info), sync=False)
        run.write(PREDICTIONS, _lines([page.answer for page in pages]), sync=False)
        run.write(SCORES, _lines([page.scores for page in pages]), sync=False)
        run.write(RESULT, encode_json(result), sync=False)
        groups = collect([run.path])
        for group in groups:
            group.samples = [page.sample for page in pages]
            group.benchmark = replace(fox.benchmark, title=f"Pages in mode {mode}")
            if not any(page.scores.scores for page in pages):
                group.note = "No ground truth was given, so precision is not measured: --ground-truth PATH"
        write_groups(groups, output)


def _lines(records: Sequence[object]) -> bytes:
    return b"".join(encode_json(record) + b"\n" for record in records)
