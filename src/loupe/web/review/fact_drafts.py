"""Facts drafted from the transcripts of a folder, written into `facts.jsonl`: what a person has looked at stays."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loupe.benchmarks.folders.own.config import SAMPLES, FolderConfig
from loupe.benchmarks.folders.own.facts import FACTS, TASK, Place, fact_lines, place_of, read_record
from loupe.benchmarks.folders.own.rows import Row, read_row
from loupe.benchmarks.olmocr_bench.drafting import (
    Record,
    Transcript,
    draft_tests,
    is_drafted,
    read_transcript,
    without_recurring,
)
from loupe.benchmarks.olmocr_bench.records import TestRecordError
from loupe.engines.adapters.areas import MOST, stored_regions
from loupe.engines.workers.worker import Loaded
from loupe.errors import EngineError, MissingToolError
from loupe.files.folder import Folder
from loupe.report.drawing_processes import drawers
from loupe.typed import encode_json
from loupe.types import Output
from loupe.web.review.line_file import LineFile

#: Labels of regions that are headers, footers and page numbers; and so many of them are taken from one page.
_MARGIN = re.compile(r"header|footer|page.?number|^number$", re.IGNORECASE)
_MOST_MARGINS = 10
#: A page of the usual kind takes less than a second, with equations a few.
_SECONDS_OF_PAGE = 60.0


@dataclass(slots=True)
class FactsWritten:
    """Facts drafted, by kind; pages that have theirs already, that give none, and on which drafting failed, with why;
    why equations are not among them."""

    drafted: Counter[str] = field(default_factory=Counter)
    kept: int = 0
    without: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    no_math: str = ""


def write_facts(folder: Path, config: FolderConfig, *, fresh: bool = False) -> FactsWritten:
    """Draft facts for every page with a transcript and without tests.

    With `fresh` also where all tests are drafts that nobody has marked: these are written anew.
    """
    written = FactsWritten(no_math=_why_no_math())
    by_page = _tests_by_page(line for _, line in fact_lines(folder))
    asked: list[_Page] = []
    for place, ident, transcript in _transcripts(folder, config):
        there = by_page.get(place, [])
        if there and not (fresh and _is_draft(there, ident)):
            written.kept += 1
            continue
        asked.append(_Page(place, ident, [line for line, _ in there], transcript))
    drafts: list[_PageDraft] = []
    try:
        for page, tests in _drafted(asked, written, math=not written.no_math):
            drafts.append(_PageDraft(page.place, page.before, tests))
            if not tests:
                written.without.append(page.ident)
    finally:
        # Also where somebody pressed Ctrl-C: what is drafted is kept.
        if any(draft.before or draft.tests for draft in drafts):
            done = _replace_tests(folder, drafts)
            written.kept += len(drafts) - len(done)
            written.drafted.update(test["type"] for draft in done for test in draft.tests)
    return written


@dataclass(frozen=True, slots=True)
class _Page:
    """A page that facts are drafted of, and the lines of its tests so far."""

    place: Place
    ident: str
    before: list[bytes]
    transcript: Transcript


def _drafted(pages: Sequence[_Page], written: FactsWritten, *, math: bool) -> Iterator[tuple[_Page, list[Record]]]:
    """The tests of every page, drafted in processes: a transcript that takes too long costs its own page."""
    if not pages:
        return
    with drawers("loupe.web.review.fact_drafts:load", max(1, min(os.cpu_count() or 1, len(pages)))) as pool:
        jobs = [
            pool.submit((page.transcript, page.place, page.ident, math), seconds=_SECONDS_OF_PAGE) for page in pages
        ]
        for page, job in zip(pages, jobs, strict=True):
            try:
                yield page, (job.result().response or {})["tests"]
            except EngineError as error:
                written.failed[page.ident] = error.message


def load() -> Loaded:
    """What drafts facts in a process."""
    return Loaded(read=_read)


def _read(job: tuple[Transcript, Place, str, bool]) -> Output:
    transcript, (pdf, number), ident, math = job
    return Output(text="", response={"tests": draft_tests(transcript, pdf=pdf, number=number, ident=ident, math=math)})


@dataclass(frozen=True, slots=True)
class _PageDraft:
    """New tests of a page, and the lines that stood there when they were begun."""

    place: Place
    before: list[bytes]
    tests: list[Record]


def _replace_tests(folder: Path, drafts: Sequence[_PageDraft]) -> list[_PageDraft]:
    """Write the drafts of pages whose tests are still what they were; those. Drafting takes long, and people mark."""
    done: list[_PageDraft] = []

    def change(lines: Sequence[bytes]) -> list[bytes]:
        now = _tests_by_page(lines)
        done[:] = [each for each in drafts if [line for line, _ in now.get(each.place, [])] == each.before]
        gone = {line for each in done for line in each.before}
        kept = [line.rstrip(b"\r\n") + b"\n" for line in lines if line.strip() and line not in gone]
        return kept + [encode_json(test) + b"\n" for each in done for test in each.tests]

    if not (folder / FACTS).exists():
        Folder(folder).write_new(FACTS, b"")
    LineFile(folder / FACTS).rewrite(change)
    return done


def lacks_transcripts(folder: Path, config: FolderConfig) -> bool:
    """Whether an engine has yet to read a page that facts are asked of."""
    return any(row.values.get("reference") is None for row in _fact_rows(folder, config))


def marked_margins(text: str, response: Mapping[str, Any] | None) -> str:
    """The transcript with the headers and footers that a layout model told beside it, in tags."""
    rows = [row for row in stored_regions(response or {})[:MOST] if isinstance(row, dict)]
    told = [
        " ".join(content.split())
        for row in rows
        if isinstance(content := row.get("content"), str)
        and _MARGIN.search(str(row.get("native_label") or row.get("label")))
    ]
    new = [each for each in dict.fromkeys(told) if each and "<" not in each and each not in text][:_MOST_MARGINS]
    return "\n".join([text, *(f"<header>{each}</header>" for each in new)])


def _why_no_math() -> str:
    from loupe.benchmarks.olmocr_bench.equations import check_tools

    try:
        check_tools()
    except MissingToolError as error:
        return f"{error.message} ({error.hint})" if error.hint else error.message
    return ""


def _tests_by_page(lines: Iterable[bytes]) -> dict[Place, list[tuple[bytes, Mapping[str, Any]]]]:
    """Lines of the file by page; those that cannot be read belong to none, and stay."""
    found: dict[Place, list[tuple[bytes, Mapping[str, Any]]]] = {}
    for line in lines:
        try:
            record = read_record(line)
        except TestRecordError:
            continue
        pdf, page = record.get("pdf"), record.get("page")
        if isinstance(pdf, str) and isinstance(page, int):
            found.setdefault((pdf, page), []).append((line, record))
    return found


def _is_draft(tests: list[tuple[bytes, Mapping[str, Any]]], ident: str) -> bool:
    return all(is_drafted(record, ident) and not record.get("checked") for _, record in tests)


def _fact_rows(folder: Path, config: FolderConfig) -> Iterator[Row]:
    for number, line in enumerate(LineFile(folder / SAMPLES).lines, 1):
        row = read_row(line, number, config) if line.strip() else None
        if row is not None and not row.wrong and row.values.get("task", config.task) == TASK:
            yield row


def _transcripts(folder: Path, config: FolderConfig) -> Iterator[tuple[Place, str, Transcript]]:
    """Every page with a transcript, by file, without the headers and footers that run through the file."""
    files: dict[str, list[tuple[Place, str, Transcript]]] = {}
    for row in _fact_rows(folder, config):
        place, text = place_of(row.values), row.values.get("reference")
        if place is not None and isinstance(text, str):
            files.setdefault(place[0], []).append((place, row.ident, read_transcript(text)))
    for pages in files.values():
        cleaned = without_recurring([(place[1], transcript) for place, _, transcript in pages])
        yield from ((place, ident, page) for (place, ident, _), page in zip(pages, cleaned, strict=True))
