"""Load PubTabNet in its published layouts, and score the answer to a table image, for `pubtabnet` and `teds_test`.

Layouts: the original JSON lines, IBM's JSON of the evaluation, parquet, and the prepared form.
"""

from __future__ import annotations

import ast
import html
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from loupe.benchmarks.shared.table_answers.html_conversion import (
    TableScores,
    score_normalized,
    score_pair,
    table_of_answer,
)
from loupe.data.parquet import columns_of, rows
from loupe.data.prepared import read
from loupe.errors import DatasetError
from loupe.files.foreign import data_lines, read_data
from loupe.typed import convert, json_decoder
from loupe.types import UNDECODABLE, Measure, PackedImage, PageSource, Prediction, Sample, Score

Escape: TypeAlias = Literal["raw", "escaped"]

#: Names of one split in the original data and on the hub.
SAME_SPLIT: dict[str, tuple[str, ...]] = {"val": ("val", "validation"), "train": ("train",), "test": ("test",)}
_SPANNING = re.compile(r"(?:col|row)span=[\"']?(?!1\b)\d")


class TableImage(NamedTuple):
    """One table: its name, picture, and ground truth as HTML."""

    ident: str
    image: PageSource
    html: str
    kind: str  # "simple", or "complex" with spanning cells


class _Cell(msgspec.Struct):
    tokens: list[str] = []


class _Structure(msgspec.Struct):
    tokens: list[str] = []


class Annotation(msgspec.Struct):
    """A table as tokens. The README of PubTabNet writes `cell`, its files have `cells`."""

    structure: _Structure = msgspec.field(default_factory=_Structure)
    cells: list[_Cell] | None = None
    cell: list[_Cell] | None = None


class _Line(msgspec.Struct):
    filename: str
    split: str = ""
    html: msgspec.Raw = msgspec.Raw(b"{}")


def html_of_tokens(annotation: Annotation, escape: Escape = "raw") -> str:
    """The table as HTML: each `</td>` closes over the tokens of the next cell. No structure: "".

    "raw" joins tokens as they are, so that a `<` of the text can look like a tag, as in upstream's own tool; "escaped"
    writes `&`, `<`, `>` and quotes as entities, as in its notebook. Cells beyond the structure are ignored.
    """
    structure = annotation.structure.tokens
    if not structure:
        return ""
    cells = iter(annotation.cells if annotation.cells is not None else annotation.cell or [])
    parts = ["<table>"]
    for token in structure:
        if token == "</td>":
            cell = next(cells, None)
            parts += _escaped(cell.tokens, escape) if cell else ()
        parts.append(token)
    return "".join([*parts, "</table>"])


def _escaped(tokens: Iterable[str], escape: Escape) -> Iterable[str]:
    if escape == "raw":
        return tokens
    return (html.escape(token) if len(token) == 1 else token for token in tokens)


def kind_of(table: str) -> str:
    """IBM's two kinds: "complex" has a cell that spans several rows or columns."""
    return "complex" if _SPANNING.search(table) else "simple"


def read_lines(file: Path, *, split: str, escape: Escape) -> Iterator[TableImage]:
    """The tables of one split in `PubTabNet_2.0.0.jsonl`, streamed; those without a structure are left out."""
    decoder, annotations = json_decoder(_Line), json_decoder(Annotation)
    found: set[str] = set()
    yielded = False
    for number, line in data_lines(file):
        try:
            row = decoder.decode(line)
            found.add(row.split)
            if row.split not in SAME_SPLIT[split]:
                continue
            table = _text(row.html) or html_of_tokens(annotations.decode(row.html), escape)
        except UNDECODABLE as error:
            raise DatasetError(f"{file}, line {number}: {error}", hint="expected filename, split, html") from None
        if table:
            yielded = True
            yield TableImage(row.filename, _picture(file.parent, row.split, row.filename), table, kind_of(table))
    if not yielded:
        there = ", ".join(sorted(found)) or "none"
        raise DatasetError(f"{file}: no tables of the split {split!r}; it has {there}", hint="-o split=NAME")


def _text(field: msgspec.Raw) -> str:
    """Return a JSON field that is HTML as text; "" for one with tokens."""
    text = json_decoder(str).decode(field) if memoryview(field)[:1].tobytes() == b'"' else ""
    return text if _is_html(text) else ""


def _is_html(text: str) -> bool:
    """Return whether a text is HTML itself, not tokens of it."""
    return text.lstrip("\ufeff \t\r\n").startswith("<")


def _picture(folder: Path, split: str, name: str) -> Path:
    if Path(name).name != name:
        raise DatasetError(f"{folder}: the name {name!r} leaves the folder")
    beside = folder / name
    return beside if beside.is_file() else folder / split / name


def read_ground_truth(file: Path) -> Iterator[TableImage]:
    """The tables of a ground-truth JSON of IBM's evaluation: file names, each with its `html` and `type`."""
    try:
        tables = json_decoder(dict[str, dict[str, Any]]).decode(read_data(file))
    except (*UNDECODABLE, OSError) as error:
        raise DatasetError(f"{file}: not a ground truth of PubTabNet ({error})") from None
    for name, table in tables.items():
        if not isinstance(table.get("html"), str):
            raise DatasetError(f"{file}: {name!r} has no html")
        kind = str(table.get("type") or kind_of(table["html"]))
        yield TableImage(name, _picture(file.parent, "", name), table["html"], kind)


def read_parquet(
    shards: Sequence[Path], *, name: str, escape: Escape, first: int = 0, count: int | None = None
) -> Iterator[TableImage]:
    """The tables of one split on the hub, in stored order; a table is called `name_row`, the row counted from 0.

    Rows without a structure count, but are left out.
    """
    there = columns_of(shards)
    column = next((each for each in ("html_table", "html") if each in there), None)
    if column is None or "image" not in there:
        raise DatasetError(
            f"{shards[0]}: expected the columns image and html_table (or html)", hint=f"its columns: {', '.join(there)}"
        )
    end = None if count is None else first + count
    for number, row in islice(enumerate(rows(shards, (column,))), first, end):
        place = f"{row.path}, row {row.number}"
        table = row[column]
        if column == "html" and not (isinstance(table, str) and _is_html(table)):
            table = html_of_tokens(_literal(table, place), escape)
        if not isinstance(table, str):
            raise DatasetError(f"{place}: {column} is no text")
        if table:
            yield TableImage(f"{name}_{number}", row.image(), table, kind_of(table))


def published_names(samples: Iterable[Sample]) -> dict[str, str]:
    """Sample ids by the file names that IBM's JSON of predictions has, where the parquet form says them.

    They stand in the column `filename`, else beside the bytes of the image. A name that comes twice is left out.
    """
    wanted: dict[Path, dict[int, str]] = {}
    for sample in samples:
        for image in sample.images:
            if isinstance(image, PackedImage):
                wanted.setdefault(image.path, {})[int(image.member.partition("/")[0])] = sample.id
    names: dict[str, list[str]] = {}
    for file, idents in wanted.items():
        column = "filename" if "filename" in columns_of(file) else "image.path"
        for row in rows(file, (column,)):
            name = row["filename"] if column == "filename" else _path_of(row.get("image"))
            if name and row.number in idents:
                names.setdefault(str(name), []).append(idents[row.number])
    return {name: idents[0] for name, idents in names.items() if len(idents) == 1}


def _path_of(image: Any) -> Any:
    return image.get("path") if isinstance(image, dict) else None


def _literal(value: Any, place: str) -> Annotation:
    """Tokens from the `html` column: a dictionary written as Python writes it, or as JSON, or a struct."""
    try:
        if isinstance(value, str):
            value = json.loads(value) if value.lstrip().startswith('{"') else ast.literal_eval(value)
        return convert(value, Annotation)
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise DatasetError(f"{place}: html holds no structure and cells ({error})") from None


def read_prepared(root: Path) -> Iterator[TableImage]:
    """The tables of the prepared form, whose ground truth is HTML."""
    for row in read(root):
        if not isinstance(row.ground_truth, str):
            raise DatasetError(f"{root}, sample {row.sample_id!r}: ground_truth is no HTML text")
        yield TableImage(row.sample_id, row.image, row.ground_truth, kind_of(row.ground_truth))


PROMPT = (
    "Convert this table image to HTML. Rules:\n"
    "- Use <table>, <thead>, <tbody>, <tr>, <th>, <td> tags\n"
    "- Include colspan and rowspan attributes where needed\n"
    "- Output ONLY the HTML table, no explanations"
)

MEASURES = (
    Measure(name="teds", title="TEDS, normalised"),
    Measure(name="teds_struct", title="TEDS-S, normalised"),
    Measure(name="teds_official", title="TEDS, official core"),
    Measure(name="teds_struct_official", title="TEDS-S, official core"),
)

#: Where the numbers differ from the official evaluator on purpose.
DEVIATIONS = (
    "bare tables are wrapped in a page, on both sides: officially they score 0.0",
    "a pair on which the official TEDS raises scores 0.0, with the name of the exception as a tag",
)

_FULL_PAGE = re.compile(r"\s*<(?:html|!doctype)", re.IGNORECASE)


def sample_of(table: TableImage) -> Sample:
    """The sample of a table; the ground truth is HTML."""
    return Sample(id=table.ident, images=(table.image,), truth=table.html, tags={"type": table.kind})


def score(sample: Sample, prediction: Prediction) -> list[Score]:
    """Four numbers per table, 0.0 each without an answer. Raises TableTooLargeError for work beyond all bounds."""
    if not prediction.text.strip():
        return _scores(TableScores(0.0, 0.0), "") + _scores(TableScores(0.0, 0.0), "_official")
    normalized = score_normalized(table_of_answer(prediction.text), sample.truth)
    official = score_pair(wrap_page(prediction.text), wrap_page(sample.truth), variant="omnidocbench")
    return _scores(normalized, "") + _scores(official, "_official")


def _scores(table: TableScores, suffix: str) -> list[Score]:
    tags = {"teds_error": table.error} if table.error else {}
    return [
        Score(measure=f"teds{suffix}", counts=(table.teds, 1.0), tags=tags),
        Score(measure=f"teds_struct{suffix}", counts=(table.teds_struct, 1.0), tags=tags),
    ]


def wrap_page(html: str) -> str:
    """The string as a page: TEDS finds a table only as a child of `body`, and a bare one scores 0.0.

    >>> wrap_page("<table></table>")
    '<html><body><table></table></body></html>'
    """
    return html if _FULL_PAGE.match(html) else f"<html><body>{html}</body></html>"


def verify_case(case: dict[str, Any]) -> list[tuple[float, float]]:
    """(ours, official) for one shipped parity case: TEDS and TEDS-S of IBM's evaluator on the strings as they are."""
    found = score_pair(case["input"]["pred_html"], case["input"]["gt_html"], variant="ibm")
    expected = case["expected"]["ibm"]
    return [(found.teds, expected["teds"]), (found.teds_struct, expected["teds_struct"])]


def oracle_case(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The official case, unless IBM's evaluator stopped on it."""
    if not any(isinstance(value, dict) for value in case["expected"]["ibm"].values()):
        yield case
