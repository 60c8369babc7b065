"""Tests of olmOCR-Bench that runs failed, as JSON lines: a test file in the official layout, which can be run again.

As upstream's `--output_failed`: of several candidates those that none passed (docs/benchmarks/olmocr_bench.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from loupe.benchmarks.olmocr_bench.dataset import written_tests
from loupe.data.hub.store import default_root
from loupe.errors import RunError, UsageError, word
from loupe.files.folder import write_file
from loupe.results.scored_here import result_of
from loupe.runs.folder import RunFolder
from loupe.typed import convert

BENCHMARK = "olmocr_bench"


class _Fact(msgspec.Struct, frozen=True, kw_only=True):
    """The facts needed about a test as scored."""

    id: str
    passed: bool
    pdf: str = ""
    page: int = 1
    type: str = ""


class FailedTests(msgspec.Struct, frozen=True, kw_only=True):
    """The place of failed tests, their number, and the number of all."""

    file: str
    failed: int
    tests: int


def write_failed_tests(runs: Sequence[RunFolder], file: Path) -> FailedTests:
    """Write every test that no run passed, as its file has it; automatic ones as a record of the same meaning.

    Raises UsageError for runs of another benchmark, RunError for one without scores, DatasetError without the data.
    """
    facts: dict[str, _Fact] = {}
    passed: set[str] = set()
    for run in runs:
        for fact in _facts(run):
            facts.setdefault(fact.id, fact)
            passed |= {fact.id} if fact.passed else set()
    failed = {ident: fact for ident, fact in facts.items() if ident not in passed}
    data = runs[0].info.data
    written = written_tests(Path(data) if data else default_root(BENCHMARK))
    records = {ident: record for record in written if (ident := str(record.get("id"))) in failed}
    records |= {ident: _automatic(fact) for ident, fact in failed.items() if ident not in records}
    write_file(file, "".join(f"{json.dumps(record)}\n" for record in records.values()).encode())
    return FailedTests(file=str(file), failed=len(failed), tests=len(facts))


def _facts(run: RunFolder) -> Iterator[_Fact]:
    if run.info.benchmark_id != BENCHMARK:
        raise UsageError(
            f"{run.path} is a run of {run.info.benchmark_id}, not of {BENCHMARK}", hint="list your runs: loupe runs"
        )
    if result_of(run) is None:
        raise RunError(f"{run.path} has no scores yet", hint=f"score it: loupe score {word(run.path)}")
    for row in run.scores():
        try:
            yield from convert(row.details.get("tests", []), list[_Fact])
        except msgspec.ValidationError as error:
            raise RunError(
                f"{run.path}: the tests of {row.sample!r} are damaged ({error})",
                hint=f"score it: loupe score {word(run.path)}",
            ) from None


def _automatic(fact: _Fact) -> dict[str, Any]:
    """The baseline test of a document that has none of its own stands in no file."""
    return {"pdf": fact.pdf, "page": fact.page, "id": fact.id, "type": fact.type}
