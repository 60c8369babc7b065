"""Drafts of engines: answers in `samples.jsonl`, facts in `facts.jsonl`, and the boxes of lines that an engine saw.

Other keys and lines stay as they are, to the byte, and so does what a person has looked at.
"""

from __future__ import annotations

import os
import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from loupe.benchmarks.folders.own.config import SAMPLES, FolderConfig
from loupe.benchmarks.folders.own.draft_truth import differing, draft_of, is_to_draft, with_draft
from loupe.benchmarks.folders.own.facts import (
    FACTS,
    TASK,
    Place,
    drafting_state,
    fact_lines,
    place_of,
    read_facts,
    read_record,
    state_of,
)
from loupe.benchmarks.folders.own.rows import Row, TruthState, read_row, truth_state
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
from loupe.engines.adapters.steps import apply_adapters
from loupe.engines.shared.placed_text import PlacedLine
from loupe.errors import EngineError, MissingToolError, UnsafeFileError
from loupe.files.folder import Folder
from loupe.files.json_lines import RecordLog, read_lines
from loupe.runs.folder import RunFolder
from loupe.typed import convert, encode_json, json_decoder
from loupe.types import RETRIED, UNDECODABLE, Output, Prediction
from loupe.web.phrases import MOST_CHARACTERS, Box, page_text, places
from loupe.web.review.entries import Entry
from loupe.web.review.line_file import LineFile, with_values
from loupe.workers.child import Loaded
from loupe.workers.pool import threaded_pool

#: Below the folder of the documents.
PLACE, FILE = ".loupe", "boxes.jsonl"
#: Lines of a text that are looked for, and how long one may be.
_MOST_LINES, _SHORTEST, _LONGEST = 200, 4, 300
#: A larger file is no help of ours: 64 MB are the lines of some 20,000 pages. Nor is a page of more lines.
_LARGEST, _MOST_LINES_OF_PAGE = 64 * 2**20, 2_000
#: Engines whose lines are kept for one page: those that told last.
_MOST_ENGINES = 8


class PageLines(msgspec.Struct, frozen=True, kw_only=True):
    """The lines that one engine saw on the page of one sample."""

    sample: str
    engine: str
    lines: list[PlacedLine]


def text_lines(entry: Entry) -> list[tuple[str, str]]:
    """The lines of a text that is reviewed as a whole, by field: what of the page has no mark is not in them."""
    found = [
        (field.name, line.strip())
        for field in entry.fields
        if field.control in ("prose", "markdown") and isinstance(field.value, str)
        for line in field.value.splitlines()[:_MOST_LINES]
    ]
    return [(name, line) for name, line in found if _SHORTEST <= len(line) <= _LONGEST]


def keep_boxes(folder: Path, engine: str, run: RunFolder) -> None:
    """Keep the lines of every answer that tells where they stand; nothing is written where none does."""
    seen = []
    for sample, prediction in run.predictions().items():
        try:
            lines = convert((prediction.response or {}).get("lines"), list[PlacedLine])
        except msgspec.ValidationError:
            continue
        seen.append(PageLines(sample=sample, engine=engine, lines=lines))
    if not seen:
        return
    place = Folder(folder) / PLACE
    place.create()
    with RecordLog(place, FILE) as log:
        log.append(encode_json(page) for page in seen)


@dataclass(slots=True)
class Boxes:
    """The lines that are kept for a folder, read again when the file has changed. Of several engines the last to tell
    comes first."""

    folder: Path
    _known: tuple[int, int] = (0, 0)
    _pages: dict[str, dict[str, list[PlacedLine]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def marks(self, sample: str, phrases: Sequence[str]) -> list[list[list[Box]]]:
        """For each phrase its places on the page; none if no engine has seen it."""
        with self._lock:
            self._refresh()
            engines = [*self._pages.get(sample, {}).values()]
        found: list[list[list[Box]]] = [[] for _ in phrases]
        for lines in reversed(engines):
            if all(found):
                break
            text = page_text(_characters(lines))
            found = [there or places(text, phrase) for there, phrase in zip(found, phrases, strict=True)]
        return found

    def _refresh(self) -> None:
        place = Folder(self.folder) / PLACE
        try:
            state = (place.path / FILE).lstat()
            if (state.st_mtime_ns, state.st_size) == self._known:
                return
            self._known, self._pages = (state.st_mtime_ns, state.st_size), {}
            if state.st_size > _LARGEST:
                return
            pages: dict[str, dict[str, list[PlacedLine]]] = {}
            for _, _, line in read_lines(place, FILE):
                page = json_decoder(PageLines).decode(line)
                seen = pages.setdefault(page.sample, {})
                seen.pop(page.engine, None)
                seen[page.engine] = [
                    line._replace(text=line.text[:_LONGEST]) for line in page.lines[:_MOST_LINES_OF_PAGE]
                ]
                if len(seen) > _MOST_ENGINES:
                    del seen[next(iter(seen))]
            self._pages = pages
        except (OSError, UnsafeFileError, *UNDECODABLE):
            # Marks are a help; without them the page is still there.
            self._pages = {}


def _characters(lines: Sequence[PlacedLine]) -> list[tuple[str, Box]]:
    """Every character of the lines with its share of the line's box, which is held within the page."""
    found: list[tuple[str, Box]] = []
    for text, *box, _ in lines:
        left, top, right, bottom = (min(1.0, max(0.0, end)) for end in box)
        width = (right - left) / max(1, len(text))
        found += [
            (char, (left + width * at, top, left + width * (at + 1), bottom))
            for at, char in enumerate(text[: MOST_CHARACTERS - len(found)])
        ]
    return found


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
    with threaded_pool("loupe.web.review.drafts:load", max(1, min(os.cpu_count() or 1, len(pages)))) as pool:
        jobs = [
            pool.submit((page.transcript, page.place, page.ident, math), seconds=_SECONDS_OF_PAGE) for page in pages
        ]
        for page, job in zip(pages, jobs, strict=True):
            try:
                yield page, (job.result().response or {})["tests"]
            except EngineError as error:
                written.failed[page.ident] = error.message


def load() -> Loaded:
    """Make the function that drafts facts in a process."""
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
    """True if an engine has yet to read a page that facts are asked of."""
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


@dataclass(slots=True)
class Written:
    """The fate of an engine's answers: samples drafted, verified or changed meanwhile (left alone), and failed."""

    drafted: list[str] = field(default_factory=list)
    verified: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def write_drafts(folder: Path, config: FolderConfig, engine: str, run: RunFolder) -> Written:
    """Put every answer of the run into the line of its sample, in one write. Verified and skipped lines stay.

    Raises DatasetError if the file cannot be written, ConflictError where others keep changing it.
    """
    predictions = run.predictions()
    answers = {name: _text(prediction, run) for name, prediction in predictions.items()}
    file = LineFile(folder / SAMPLES)
    written = Written()
    changes: dict[int, tuple[bytes, bytes]] = {}
    places: dict[int, str] = {}
    for number, before in enumerate(file.lines, 1):
        row = read_row(before, number, config) if before.strip() else None
        if row is None or row.wrong or row.ident not in answers:
            continue
        text, why = answers[row.ident]
        task = str(row.values.get("task", config.task))
        text = marked_margins(text, predictions[row.ident].response) if task == TASK else text
        draft = draft_of(text, task, config)
        reference, why = (None, why) if why else (draft.reference, draft.why)
        answered = predictions[row.ident].outcome not in RETRIED
        new = with_draft(row.values, engine, reference, config, answered=answered)
        if new is None:
            written.verified.append(row.ident)
            continue
        changes[number] = before, with_values(before.decode("utf-8-sig"), new).encode()
        places[number] = row.ident
        if reference is None:
            written.failed[row.ident] = why
    left = file.replace_all(changes)
    written.changed = [places[number] for number in sorted(left)]
    written.drafted = [name for name in places.values() if name not in {*written.failed, *written.changed}]
    return written


def _text(prediction: Prediction, run: RunFolder) -> tuple[str, str]:
    """The answer as it would be scored, and why there is none."""
    if prediction.failed:
        return "", prediction.error or prediction.outcome
    return apply_adapters(prediction.text, run.info.adapters), ""


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of an engine: samples to ask it for, those whose answer was not usable, and how many it drafted."""

    wanted: tuple[str, ...]
    given_up: tuple[str, ...]
    drafted: int


def standing(folder: Path, config: FolderConfig, engine: str, *, failed: bool = False) -> Standing:
    """The samples left for an engine; with `failed` it is asked again if its answer could not be used."""
    wanted, given_up, drafted = [], [], 0
    facts = read_facts(folder)[0]
    for number, line in enumerate(LineFile(folder / SAMPLES).lines, 1):
        row = read_row(line, number, config) if line.strip() else None
        if row is None or row.wrong:
            continue
        state = drafting_state(row.values, config, facts)
        drafted += state.drafts.get(engine) is not None
        if is_to_draft(state, engine, failed=failed):
            wanted.append(row.ident)
        elif is_to_draft(state, engine, failed=True):
            given_up.append(row.ident)
    return Standing(tuple(wanted), tuple(given_up), drafted)


def count_states(folder: Path, config: FolderConfig) -> Mapping[str, int]:
    """Samples by what is to be done with them: drafts that agree, that differ, … and those that are done."""
    facts = read_facts(folder)[0]
    counts = dict.fromkeys(("agree", "differ", "one draft", "no draft", "verified", "skipped"), 0)
    for number, line in enumerate(LineFile(folder / SAMPLES).lines, 1):
        row = read_row(line, number, config) if line.strip() else None
        if row is not None and not row.wrong:
            counts[_state(row.values, state_of(row.values, config, facts))] += 1
    return counts


def _state(values: Mapping[str, object], state: TruthState) -> str:
    if state.status != "draft":
        return state.status
    if values.get("reference") is None:
        return "no draft"
    if sum(draft is not None for draft in state.drafts.values()) < 2:
        return "one draft"
    return "differ" if state.differs else "agree"


def verify(
    folder: Path, config: FolderConfig, known: Mapping[str, Mapping[str, str]], *, by: str, at: str
) -> tuple[int, int]:
    """Give drafts the truth that is known, marked as verified; how many, and how many of them were right already."""
    file = LineFile(folder / SAMPLES)
    changes: dict[int, tuple[bytes, bytes]] = {}
    right = 0
    for number, before in enumerate(file.lines, 1):
        row = read_row(before, number, config) if before.strip() else None
        if row is None or row.wrong or not known.get(row.ident):
            continue
        state = truth_state(row.values)
        if state.status == "draft":
            drafted, reference = row.values["reference"], dict(known[row.ident])
            right += drafted is not None and not differing([drafted, reference], "fields", config)
            new = msgspec.structs.replace(state, status="verified", by=by, at=at)
            truth = msgspec.to_builtins(new) | ({"differs": state.differs} if state.engines else {})
            after = with_values(before.decode("utf-8-sig"), {"reference": reference, "truth": truth})
            changes[number] = before, after.encode()
    return len(changes) - len(file.replace_all(changes)), right
