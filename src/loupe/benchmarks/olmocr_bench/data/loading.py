"""The folder of olmOCR-Bench: test files, PDFs, and the tests of every page.

Protocol: docs/protocols/olmocr_bench.md#data, #baseline and #loading.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from loupe.benchmarks.olmocr_bench.data.records import (
    RULES,
    BaselineRule,
    Kind,
    PageTest,
    TestRecordError,
    read_test,
)
from loupe.data.prepared import read
from loupe.errors import DatasetError
from loupe.files.foreign import decode_text, read_data
from loupe.typed import convert

BASELINE = "baseline"
Missing: TypeAlias = Literal["empty", "official"]
_LAYOUT = "*.jsonl with tests and pdfs/ with the documents, or one .jsonl file beside pdfs/"
_HINT = "loupe data get olmocr_bench"


@dataclass(frozen=True, slots=True)
class PdfTests:
    """The tests of one page of a document; `pdf` is its path below `pdfs/`."""

    pdf: str
    page: int
    tests: tuple[PageTest, ...]


@dataclass(frozen=True, slots=True)
class PageTruth:
    """The tests of a page, the categories of the whole set, and what a missing answer means."""

    page: PdfTests
    categories: tuple[str, ...]
    missing: Missing = "empty"


@dataclass(frozen=True, slots=True)
class TestSet:
    """All pages with tests, by document and page; categories in the order of their files, automatic ones last."""

    __test__ = False  # no test of ours, whatever pytest makes of the name

    pdfs: Path
    categories: tuple[str, ...]
    pages: tuple[PdfTests, ...]


def read_test_set(root: Path, *, leave_out: frozenset[str] = frozenset()) -> TestSet:
    """Read and check every test below `root`, a folder or one of its test files; `leave_out` names types of tests.

    Raises DatasetError with file and line for a broken record, and where the layout is another one.
    """
    files = _test_files(root)
    pdfs = (files[0].parent if files else root) / "pdfs"
    if not files or not pdfs.is_dir():
        lacking = "no pdfs folder" if files else "no test files"
        raise DatasetError(f"{root}: {lacking}; expected {_LAYOUT}", hint=_HINT)
    documents = sorted(path.relative_to(pdfs).as_posix() for path in pdfs.rglob("*.pdf"))
    if not documents:
        raise DatasetError(f"{pdfs}: no PDF here", hint=_HINT)
    there = frozenset(documents)
    tests = last_category_counts_like_official([test for file in files for test in read_tests(file, there)])
    if not root.is_dir():
        mentioned = {test.pdf for test in tests}
        documents = [pdf for pdf in documents if pdf in mentioned]
    tests += automatic_tests(tests, documents)
    kept = [test for test in tests if test.kind not in leave_out]
    names = dict.fromkeys([*(file.stem for file in files), BASELINE])
    used = {test.category for test in kept}
    return TestSet(pdfs, tuple(name for name in names if name in used), tuple(_by_page(kept)))


class _PreparedTest(msgspec.Struct, frozen=True, kw_only=True):
    """A test as the prepared form has it: its texts are normalised."""

    id: str
    pdf: str
    page: int
    kind: Kind
    rule: dict[str, Any]
    max_diffs: int = 0
    category: str = ""


class _PreparedPage(msgspec.Struct, frozen=True, kw_only=True):
    pdf: str
    page: int
    tests: list[_PreparedTest]


class _PreparedTruth(msgspec.Struct, frozen=True, kw_only=True):
    page: _PreparedPage
    categories: tuple[str, ...]


def read_prepared(root: Path) -> Iterator[tuple[PdfTests, tuple[str, ...], Path]]:
    """Yield the tests of every page in the prepared form, all categories, and the image of the page.

    Raises DatasetError for ground truth of another benchmark.
    """
    for row in read(root):
        try:
            truth = convert(row.ground_truth, _PreparedTruth)
            tests = [
                PageTest(**msgspec.structs.asdict(test) | {"rule": convert(test.rule, RULES[test.kind])})
                for test in truth.page.tests
            ]
        except msgspec.ValidationError as error:
            raise DatasetError(f"{root}: sample {row.sample_id!r}: no tests of olmOCR-Bench ({error})") from None
        yield PdfTests(truth.page.pdf, truth.page.page, tuple(tests)), truth.categories, row.image


def _test_files(root: Path) -> list[Path]:
    """The test files of a folder, or of its `bench_data`, as the hub has them; else the file itself."""
    if not root.is_dir():
        return [root]
    return sorted(root.glob("*.jsonl")) or sorted((root / "bench_data").glob("*.jsonl"))


def written_tests(root: Path) -> Iterator[Mapping[str, Any]]:
    """Every test below `root` as its file has it. Raises DatasetError for a broken record, and where there is none."""
    files = _test_files(root)
    if not files:
        raise DatasetError(f"{root}: no test files; expected {_LAYOUT}", hint=_HINT)
    for file in files:
        for _, record in _records(file):
            yield record


def read_tests(file: Path, documents: Collection[str]) -> list[PageTest]:
    """The tests of one file, whose name is their category. Raises DatasetError with the line of a broken one, and of
    one whose document is not here: no answer could pass it, and upstream it voids the candidate
    (docs/protocols/olmocr_bench.md#running).
    """
    found: list[PageTest] = []
    lines: dict[str, int] = {}
    for number, record in _records(file):
        place = f"{file}, line {number}"
        try:
            test = read_test(record, category=file.stem)
        except TestRecordError as error:
            raise TestRecordError(f"{place}: {error.message}", official=error.official) from None
        _check_place(test, place)
        if test.pdf not in documents:
            raise DatasetError(
                f"{place}: {test.pdf} is not in {file.parent / 'pdfs'}", hint=f"get it, or take its tests out; {_HINT}"
            )
        if test.id in lines:
            raise DatasetError(f"{place}: the id {test.id!r} is that of line {lines[test.id]}", hint="ids must differ")
        lines[test.id] = number
        found.append(test)
    return found


def _records(file: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        text = decode_text(read_data(file))
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{file}: cannot be read ({error})", hint=_HINT) from None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DatasetError(f"{file}, line {number}: no JSON ({error})") from None
        if not isinstance(record, dict):
            raise DatasetError(f"{file}, line {number}: not an object")
        yield number, record


def _check_place(test: PageTest, place: str) -> None:
    """What upstream takes as it comes, and what would name no page or lead out of the folder."""
    if not isinstance(test.id, str) or not isinstance(test.pdf, str):
        raise DatasetError(f"{place}: `id` and `pdf` must be texts")
    if isinstance(test.page, bool) or not isinstance(test.page, int) or test.page < 1:
        raise DatasetError(f"{place}: `page` is {test.page!r}; pages count from 1")
    if not test.pdf.endswith(".pdf") or test.pdf.startswith("/") or ".." in test.pdf.split("/"):
        raise DatasetError(f"{place}: `pdf` is {test.pdf!r}, no path of a .pdf below pdfs/")


def last_category_counts_like_official(tests: Sequence[PageTest]) -> list[PageTest]:
    """Equal ids in several files are not noticed upstream: all tests of the id count in the last file.

    Protocol: docs/protocols/olmocr_bench.md#loading.
    """
    last = {test.id: test.category for test in tests}
    return [test if test.category == last[test.id] else replace(test, category=last[test.id]) for test in tests]


def automatic_tests(tests: Sequence[PageTest], documents: Sequence[str]) -> list[PageTest]:
    """A baseline test on page 1 of every document that has none of its own.

    Protocol: docs/protocols/olmocr_bench.md#baseline.
    """
    have = {test.pdf for test in tests if test.kind == "baseline"}
    return [
        PageTest(id=f"{pdf}_baseline", pdf=pdf, page=1, kind="baseline", rule=BaselineRule(), category=BASELINE)
        for pdf in documents
        if pdf not in have
    ]


def _by_page(tests: Sequence[PageTest]) -> Iterator[PdfTests]:
    pages: dict[tuple[str, int], list[PageTest]] = {}
    for test in tests:
        pages.setdefault((test.pdf, test.page), []).append(test)
    for (pdf, page), found in sorted(pages.items()):
        yield PdfTests(pdf, page, tuple(found))
