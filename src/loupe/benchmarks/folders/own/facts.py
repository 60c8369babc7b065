"""Facts about the pages of a folder: `facts.jsonl`, tests in olmOCR-Bench's form, scored by its code.

Format: docs/scoring-rules.md. `pdf` and `page` name the page as `samples.jsonl` does; `checked` says what a person
thinks of the test. Drafts of them are made from the transcripts that stand as references in `samples.jsonl`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from loupe.benchmarks.folders.own.config import FolderConfig, Problem
from loupe.benchmarks.folders.own.normalization import Comparison
from loupe.benchmarks.folders.own.rows import Status, TruthState, file_name, page_source, paths_of, truth_state
from loupe.benchmarks.olmocr_bench.dataset import PageTruth, PdfTests
from loupe.benchmarks.olmocr_bench.records import MathRule, PageTest, TestRecordError, read_test
from loupe.errors import MissingToolError
from loupe.explanation import Fact
from loupe.files.folder import Folder
from loupe.files.json_lines import bounded_lines
from loupe.types import DocumentPage, Prediction, Sample, SampleScores, Score, Scored

FACTS, TASK = "facts.jsonl", "facts"
#: What engines are asked for where facts are tested: the page, as for the task of this name.
ASKED_AS = "markdown"

#: A file below the folder and a page of it, which is 1 for images.
Place: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class PageFacts:
    """The tests of one page that were not rejected, and how many of all its tests have which mark."""

    tests: list[PageTest] = field(default_factory=list)
    marks: dict[str, int] = field(default_factory=dict)

    @property
    def status(self) -> Status:
        """`draft` while any test is not looked at, `skipped` where all were rejected."""
        if self.marks.get("", 0):
            return "draft"
        return "verified" if self.tests else "skipped"


def read_facts(folder: Path) -> tuple[dict[Place, PageFacts], list[Problem]]:
    """All tests by page, and what is wrong with the file; a folder without one has none."""
    found: dict[Place, PageFacts] = {}
    problems: list[Problem] = []
    lines: dict[str, int] = {}
    for number, line in fact_lines(folder):
        try:
            record = read_record(line)
            test = read_test(record, category=str(record.get("type")))
            if not isinstance(test.id, str) or not isinstance(test.pdf, str) or not _is_page(test.page):
                raise TestRecordError("`id` and `pdf` must be texts, `page` a number from 1")
            if lines.setdefault(test.id, number) != number:
                raise TestRecordError(f"the id {test.id!r} is that of line {lines[test.id]}")
        except TestRecordError as error:
            hint = "docs/scoring-rules.md#facts shows the form"
            problems.append(Problem(file=str(folder / FACTS), line=number, message=error.message, hint=hint))
            continue
        page = found.setdefault((test.pdf, test.page), PageFacts())
        mark = record.get("checked")
        mark = mark if mark in ("verified", "rejected") else ""
        page.marks[mark] = page.marks.get(mark, 0) + 1
        if mark != "rejected":
            page.tests.append(test)
    return found, problems


def _is_page(page: object) -> bool:
    return isinstance(page, int) and not isinstance(page, bool) and page >= 1


def fact_lines(folder: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of the file that are not empty, with their numbers; nothing where there is no file."""
    if not (folder / FACTS).is_file():
        return
    with Folder(folder).open(FACTS) as file:
        for number, line in enumerate(bounded_lines(file, folder / FACTS), 1):
            if line.strip():
                yield number, line


def read_record(line: bytes) -> Mapping[str, Any]:
    """The object in a line. Raises TestRecordError where there is none."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise TestRecordError("not JSON: one object per line") from None
    if not isinstance(record, dict):
        raise TestRecordError("not an object")
    return record


def place_of(values: dict[str, Any]) -> Place | None:
    """The page of a line of samples.jsonl, as its tests name it; None unless it is one page."""
    paths = paths_of(values) or ()
    if len(paths) != 1:
        return None
    source = page_source(Path(), paths[0])
    return file_name(paths[0]), source.page if isinstance(source, DocumentPage) else 1


def state_of(values: dict[str, Any], config: FolderConfig, facts: Mapping[Place, PageFacts]) -> TruthState:
    """The state of a line: for facts that of its tests, whatever became of the transcript that they were drafted from.

    A page with a transcript and without tests has nothing to be tested, and is skipped.
    """
    state = truth_state(values)
    if values.get("task", config.task) != TASK:
        return state
    place = place_of(values)
    page = facts.get(place) if place else None
    if page is not None:
        return msgspec.structs.replace(state, status=page.status)
    waits = values.get("reference") is None and state.status == "draft"
    return msgspec.structs.replace(state, status="draft" if waits else "skipped")


def drafting_state(values: dict[str, Any], config: FolderConfig, facts: Mapping[Place, PageFacts]) -> TruthState:
    """The state of a line for engines that draft: of a page whose tests a person has looked at, theirs."""
    state = truth_state(values)
    place = place_of(values) if values.get("task", config.task) == TASK else None
    page = facts.get(place) if place else None
    return state if page is None else msgspec.structs.replace(state, status=page.status)


def truth_of(place: Place, tests: Sequence[PageTest]) -> PageTruth:
    """The tests of a page as olmOCR-Bench's scorer takes them; each kind is a category."""
    kinds = tuple(dict.fromkeys(test.category for test in tests))
    return PageTruth(PdfTests(place[0], place[1], tuple(tests)), kinds)


def is_fact_sample(sample: Sample) -> bool:
    """True if a sample of a folder has tests for truth."""
    return isinstance(sample.truth, PageTruth)


def score_facts(answer: str, truth: PageTruth, comparison: Comparison) -> list[Score]:
    """A score for each test, by olmOCR-Bench's scorer. How a folder compares texts plays no part in it."""
    return judge_facts(Prediction(text=answer), truth).scores


def judge_facts(prediction: Prediction, truth: PageTruth) -> Scored:
    """The same, and as `details` why those failed that did. Raises MissingToolError where equations are not drawn.

    Without an answer every test fails, `absent` ones too.
    """
    from loupe.benchmarks.olmocr_bench import score

    scored = score(Sample(id="", truth=replace(truth, missing="official")), prediction)
    scores = [
        Score(measure=TASK, unit=each.unit, counts=each.counts, tags={"type": each.tags["type"]})
        for each in scored.scores
        if each.unit
    ]
    return Scored(scores=scores, details={"tests": scored.details["tests"]})


def checked_facts(folder: Path) -> dict[Place, PageFacts]:
    """All tests by page. Raises DatasetError for the first that cannot be read, MissingToolError where equations are
    tested and nothing draws them.
    """
    facts, problems = read_facts(folder)
    for problem in problems:
        raise problem.error()
    if _have_math(facts):
        from loupe.benchmarks.olmocr_bench.equations import check_tools

        check_tools()
    return facts


def fact_hooks(folder: Path) -> dict[str, Any]:
    """Return what a benchmark with facts takes from olmOCR-Bench: how they are shown, and equations drawn many at a
    time.
    """
    from loupe.benchmarks import olmocr_bench
    from loupe.benchmarks.olmocr_bench.equations import renderer_versions

    def facts(sample: Sample, prediction: Prediction, scores: SampleScores) -> list[Fact]:
        return olmocr_bench.facts(sample, prediction, scores) if is_fact_sample(sample) else []

    def prepare(pairs: Sequence[tuple[Sample, Prediction]]) -> None:
        olmocr_bench.prepare([pair for pair in pairs if is_fact_sample(pair[0])])

    drawn = {"prepare": prepare, "tools": renderer_versions} if _have_math(read_facts(folder)[0]) else {}
    return {"facts": facts, **drawn}


def asked_as(task: str) -> str:
    """Return the task that engines are asked for: pages, if facts about them are tested."""
    return ASKED_AS if task == TASK else task


def undrawn_math(facts: Mapping[Place, PageFacts]) -> Iterator[tuple[str, str]]:
    """Yield the ids of math tests that any equation passes, with the reason; none where nothing draws equations."""
    from loupe.benchmarks.olmocr_bench.equations import in_anything

    rules = {test.id: test.rule for page in facts.values() for test in page.tests}
    sought = {ident: rule.math for ident, rule in rules.items() if isinstance(rule, MathRule)}
    with suppress(MissingToolError):
        reasons = in_anything(sought.values())
        yield from ((ident, reasons[math]) for ident, math in sought.items() if math in reasons)


def _have_math(facts: Mapping[Place, PageFacts]) -> bool:
    return any(test.kind == "math" for page in facts.values() for test in page.tests)
