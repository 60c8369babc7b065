"""Load the folder of olmOCR-Bench: test files, PDFs, the tests of every page, and files of answers.

The official runners' questions are here by name, to the letter (docs/protocols/olmocr_bench.md#prompts).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeAlias

import msgspec

from loupe.benchmarks.olmocr_bench.records import RULES, BaselineRule, Kind, PageTest, TestRecordError, read_test
from loupe.data.prepared import read
from loupe.errors import DatasetError
from loupe.files.foreign import decode_text, read_data
from loupe.typed import convert

BASELINE = "baseline"
Missing: TypeAlias = Literal["empty", "official"]
_LAYOUT = "*.jsonl with tests and pdfs/ with the documents, or one .jsonl file beside pdfs/"
_HINT = "download it: loupe data get olmocr_bench"


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
                f"{place}: {test.pdf} is not in {file.parent / 'pdfs'}", hint=f"take its tests out, or {_HINT}"
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
    """Refuse what upstream takes as it comes, and what would name no page or lead out of the folder."""
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


_FILE = re.compile(r"(.+)_pg\d+_repeat\d+\.md", re.DOTALL)


def stem_of(pdf: str) -> str:
    """The path of a document without its extension, as its answers are called."""
    return pdf.removesuffix(".pdf")


def answer_name(pdf: str, page: int) -> str:
    """Return the name of the first answer to a page, without `.md`; samples are named so."""
    return f"{stem_of(pdf)}_pg{page}_repeat1"


class CandidateFiles:
    """The files of a candidate's folder by document."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_stem: dict[str, list[str]] = defaultdict(list)
        for name in sorted(names):
            match = _FILE.fullmatch(name)
            if match:
                self._by_stem[match[1]].append(name)

    def answers_to(self, pdf: str, page: int) -> list[str]:
        """The files that count as answers to a page."""
        return [name for name in self._by_stem.get(stem_of(pdf), ()) if belongs_like_official(name, page)]


def belongs_like_official(name: str, page: int) -> bool:
    """True if `_pg1_` stands anywhere in the name: `x_pg1_pg2_repeat1.md` also answers page 1.

    Protocol: docs/protocols/olmocr_bench.md#page-number-in-a-name.
    """
    return f"_pg{page}_" in PurePosixPath(name).name


PromptName: TypeAlias = Literal[
    "basic",
    "full",
    "full_no_document_anchoring",
    "finetune",
    "fullv3simple",
    "rolmocr",
    "yaml",
    "finetune_v4_yaml",
    "nanonets",
]

_NATURAL = "Just return the plain text representation of this document as if you were reading it naturally."
_END = (
    "This is likely one page out of several in the document, so be sure to preserve any sentences that come from the "
    "previous page, or continue onto the next page, exactly as they are.\n"
    "If there is no text at all that you think you should read, you can output null.\n"
    "Do not hallucinate."
)
_KEEP = "Remove the headers and footers, but keep references and footnotes.\nRead any natural handwriting.\n"
_FIGURES = (
    "If there are any figures or charts, label them with the following markdown syntax "
    "![Alt text describing the contents of the figure](page_startx_starty_width_height.png)"
)
_FRONT_MATTER = (
    "Return your output as markdown, with a front matter section on top specifying values for the primary_language, "
    "is_rotation_valid, rotation_correction, is_table, and is_diagram parameters."
)
_ATTACHED = f"Attached is one page of a document that you must process. {_NATURAL} "

BASIC = (
    "Please provide a natural, plain text representation of the document, formatted in Markdown. Skip any headers and "
    r"footers. For ALL mathematical expressions, use LaTeX notation with \( and \) for inline equations and \[ and \] "
    "for display equations. Convert any tables into Markdown format."
)

#: Blanks and line breaks that are missing after sentences are missing upstream.
_FULL_V3_SIMPLE = (
    f"Attached is the image of one page of a PDF document.{_NATURAL}\n"
    r"Turn equations and math symbols into a LaTeX representation, make sure to use \( and \) as a delimiter for "
    r"inline math, and \[ and \] for block math. Do NOT use ascii or unicode math symbols such as ∈ ∉ ⊂ ⊃ ⊆ ⊇ ∅ ∪ ∩ ∀ "
    r"∃ ¬, just use LaTeX syntax, ex  \( \in \) \( \notin \) etc. If you were going to surround a math expression in $ "
    r"symbols, surround it with \( \) instead."
    "\nConvert tables into HTML format. Keep the syntax simple, but use <th> for header rows, and use rowspan and "
    "colspans appropriately. Don't use <br> inside of table cells, just split that into new rows as needed. Do NOT use "
    "LaTeX or Markdown table syntax.\n"
    f"{_KEEP}{_FIGURES}{_END}\n"
    "Page width: {width}, Page height: {height}"
)

_RAW_TEXT = "RAW_TEXT_START\n{anchor_text}\nRAW_TEXT_END"
_EXTRACTED = "as well as some raw textual content that was previously extracted for it"
_FULL = f"Turn equations into a LaTeX representation, and tables into markdown format. {_KEEP}{_END}"

_PROMPTS: dict[PromptName, str] = {
    "basic": BASIC,
    "full": (
        f"Below is the image of one page of a PDF document, {_EXTRACTED} that includes position information for each "
        "image and block of text (The origin [0x0] of the coordinates is in the lower left corner of the image). "
        f"{_NATURAL}\n{_FULL}\n{_RAW_TEXT}"
    ),
    "full_no_document_anchoring": f"Below is the image of one page of a PDF document. {_NATURAL}\n{_FULL}",
    "finetune": (
        f"Below is the image of one page of a document, {_EXTRACTED}. {_NATURAL}\nDo not hallucinate.\n{_RAW_TEXT}"
    ),
    "fullv3simple": _FULL_V3_SIMPLE,
    "rolmocr": "Return the plain text representation of this document as if you were reading it naturally.\n",
    "yaml": f"{_ATTACHED}Convert equations to LateX and tables to markdown.\n{_FRONT_MATTER}",
    "finetune_v4_yaml": f"{_ATTACHED}Convert equations to LateX and tables to HTML.\n{_FIGURES}\n{_FRONT_MATTER}",
    "nanonets": (
        "Extract the text from the above document as if you were reading it naturally. Return the tables in html "
        "format. Return the equations in LaTeX representation. If there is an image in the document and image caption "
        "is not present, add a small description of the image inside the <img></img> tag; otherwise, add the image "
        "caption inside <img></img>. Watermarks should be wrapped in brackets. Ex: <watermark>OFFICIAL "
        "COPY</watermark>. Page numbers should be wrapped in brackets. Ex: <page_number>14</page_number> or "
        "<page_number>9/22</page_number>. Prefer using ☐ and ☑ for check boxes."
    ),
}


def names_size(name: PromptName) -> bool:
    """True if a prompt says how large the page image is."""
    return "{width}" in _PROMPTS[name]


def prompt_for(name: PromptName, *, width: int = 0, height: int = 0) -> str:
    """The prompt; the size of the page image in pixels only for those that name it."""
    return _PROMPTS[name].replace("{width}", str(width)).replace("{height}", str(height))
