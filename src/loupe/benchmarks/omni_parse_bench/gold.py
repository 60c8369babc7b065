"""The folder of omni_parse_bench: the manifest, pages, and gold files with their tests; or the prepared form.

Protocol: docs/protocols/omni_parse_bench.md#data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loupe.benchmarks.omni_parse_bench.equations import prepare_equations, read_equations
from loupe.benchmarks.omni_parse_bench.outcomes import GradingError
from loupe.benchmarks.omni_parse_bench.records import OUTPUT_TYPES, GoldError, LatexRule, PageTest, read_tests
from loupe.data.parquet import columns_of, rows
from loupe.data.prepared import is_prepared, read
from loupe.errors import DatasetError
from loupe.files.foreign import is_inside, read_data
from loupe.typed import json_decoder
from loupe.types import UNDECODABLE, PageSource, PdfPage

MANIFEST = "manifest.parquet"
_COLUMNS = ("page_id", "document", "suite", "doc_path", "gt_path", "outputs")
_NAMES = _COLUMNS[:-1]
_PAGE_FILE = re.compile(r"pages/(?P<id>.+)\.(?P<kind>pdf|png)", re.DOTALL)
_HINT = "download it: loupe data get omni_parse_bench"


@dataclass(frozen=True, slots=True)
class GoldPage:
    """One page with its tests, also as they are written; `document` is what it is a page of."""

    id: str
    document: str
    suite: str
    image: PageSource
    written: Sequence[Any]
    tests: tuple[PageTest, ...]


def read_pages(root: Path) -> list[GoldPage]:
    """All pages, in the order of the manifest, checked as officially but for equations.

    Raises GoldError that names page and test, DatasetError for another layout.
    """
    if is_prepared(root):
        pages = list(_prepared(root))
    elif (root / MANIFEST).is_file():
        pages = list(_official(root))
    else:
        raise DatasetError(f"{root}: no {MANIFEST} here, and no prepared form (metadata.jsonl)", hint=_HINT)
    _check_ids(pages, root)
    return pages


def _official(root: Path) -> Iterator[GoldPage]:
    manifest = root / MANIFEST
    there = columns_of(manifest)
    if "outputs" not in there:
        raise GoldError(f"{manifest}: has no column `outputs`: data of before commit 41131f2", hint=_HINT)
    if set(there) != set(_COLUMNS):
        raise GoldError(f"{manifest}: has the columns {', '.join(there)}; known are {', '.join(_COLUMNS)}", hint=_HINT)
    listed = [(_checked(row, f"{manifest}, row {row.number}"), row) for row in rows(manifest, _COLUMNS)]
    named = {row["gt_path"] for _, row in listed}
    if stray := sorted(path.name for path in (root / "gold").glob("*.json") if f"gold/{path.name}" not in named):
        raise GoldError(f"{root}: {len(stray):,} gold files have no row in {MANIFEST}, first {stray[0]}", hint=_HINT)
    for kind, row in listed:
        path = root / row["doc_path"]
        image: PageSource = PdfPage(path) if kind == "pdf" else path
        gold = _document(root / row["gt_path"], root)
        tests = read_tests(gold, row["gt_path"])
        _check_outputs(row["outputs"], tests, f"page {row['page_id']!r}")
        yield GoldPage(row["page_id"], row["document"], row["suite"], image, gold["tests"], tests)


def _checked(row: Mapping[str, Any], place: str) -> str:
    """Return the kind of file that the page of a row is."""
    if not all(isinstance(row[name], str) and row[name].strip() for name in _NAMES):
        raise GoldError(f"{place}: {', '.join(_NAMES)} must be texts that are not empty")
    file = _PAGE_FILE.fullmatch(row["doc_path"])
    ident = row["page_id"]
    if file is None or file["id"] != ident or row["gt_path"] != f"gold/{ident}.json":
        raise GoldError(f"{place}: the files of page {ident!r} must be pages/{ident}.pdf (or .png), gold/{ident}.json")
    outputs = row["outputs"]
    if not isinstance(outputs, list) or not outputs or sorted(set(outputs) & set(OUTPUT_TYPES)) != sorted(outputs):
        raise GoldError(f"{place}: `outputs` is {outputs!r}; it lists html, blocks or both")
    return file["kind"]


def _document(path: Path, root: Path) -> Any:
    if not is_inside(path, root):
        raise GoldError(f"{path}: leaves the folder")
    try:
        return json_decoder(Any).decode(read_data(path))
    except (*UNDECODABLE, OSError) as error:
        raise GoldError(f"{path}: cannot be read ({error})", hint=_HINT) from None


def _check_outputs(outputs: Sequence[str], tests: Sequence[PageTest], place: str) -> None:
    reads = {test.reads for test in tests}
    if set(outputs) != reads:
        said = ", ".join(sorted(outputs))
        raise GoldError(f"{place}: {MANIFEST} says {said}, and its tests read {', '.join(sorted(reads)) or 'nothing'}")


def _prepared(root: Path) -> Iterator[GoldPage]:
    for row in read(root):
        tests = read_tests(row.ground_truth, f"{root}, sample {row.sample_id!r}")
        tags = row.metadata.get("tags")
        suite = str(tags.get("suite", "")) if isinstance(tags, dict) else ""
        document = str(row.metadata.get("group") or row.sample_id)
        yield GoldPage(row.sample_id, document, suite, row.image, row.ground_truth["tests"], tests)


def _check_ids(pages: Sequence[GoldPage], root: Path) -> None:
    """Every page has tests, and no id is used twice."""
    for what, names in (
        ("page", [page.id for page in pages]),
        ("test", [test.id for page in pages for test in page.tests]),
    ):
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise GoldError(f"{root}: the {what} id {name!r} is there more than once", hint=_HINT)
            seen.add(name)
    if empty := [page.id for page in pages if not page.tests]:
        raise GoldError(f"{root}: {len(empty):,} pages have no tests, first {empty[0]!r}", hint=_HINT)


def check_equations(tests: Mapping[str, Iterable[PageTest]]) -> None:
    """Raise GoldError for an equation that KaTeX refuses, or of which nothing is seen; `tests` by page.

    Raises MissingToolError where KaTeX cannot run.
    """
    asked = [
        (place, test, test.rule.latex)
        for place, found in tests.items()
        for test in found
        if isinstance(test.rule, LatexRule)
    ]
    prepare_equations((latex, True) for _, _, latex in asked)
    for place, test, latex in asked:
        try:
            [symbols] = read_equations([(latex, True)])
        except GradingError as error:
            raise GoldError(f"{place}, test {test.id!r}: {error}") from None
        if not symbols:
            why = "is refused by KaTeX" if symbols is None else "shows nothing"
            raise GoldError(f"{place}, test {test.id!r}: the equation {latex[:80]!r} {why}")
