"""Upstage DP-Bench: 200 document pages, scored by their text in reading order (NID) and their tables (TEDS, TEDS-S).

Data and official evaluator: upstage/dp-bench (revisions b29fd1c and 6c2a241). Protocol: docs/benchmarks/dp_bench.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from loupe.benchmarks.dp_bench import evaluators, opendataloader
from loupe.benchmarks.dp_bench.evaluators import (
    Element,
    answer_of_elements,
    elements_in_answer,
    elements_of,
    opens_elements,
    text_of_page,
)
from loupe.benchmarks.shared.table_answers.html_conversion import TableScores
from loupe.benchmarks.shared.table_answers.html_grids import table_tools
from loupe.data.hub.store import default_root
from loupe.data.prepared import is_prepared, read
from loupe.errors import DatasetError, UsageError
from loupe.files.foreign import decode_text, read_data
from loupe.typed import convert, json_decoder
from loupe.types import (
    UNDECODABLE,
    Benchmark,
    DataSet,
    Measure,
    PageSource,
    ParityCases,
    PdfPage,
    Prediction,
    Sample,
    Score,
)

Variant: TypeAlias = Literal["official", "v1", "tolerant", "opendataloader", "best_table"]
Pairing: TypeAlias = Literal["all", "first"]

_LAYOUT = "dataset/reference.json with dataset/pdfs/, or reference.json with pdfs/, or the prepared form"
_FOLDERS = (".", "dataset", "ground-truth")
_MARKDOWN_FOLDERS = ("gt_markdown", "markdown")
_HINT = "download it: loupe data get dp_bench"


#: Where this differs from the official evaluator on purpose.
DEVIATIONS = (
    "a page without a prediction, on which the official evaluator stops, scores as an empty answer",
    "a page on whose tables the official evaluator raises scores 0.0 for them, with the name of the exception as a tag",
)


def load(root: Path | None, variant: Variant = "official", pairing: Pairing = "all") -> Iterator[Sample]:
    """Yield the pages in the order of the file; ids are the names of their PDFs.

    `variant` names the scoring rules; `pairing` says which ground-truth tables of a page the tolerant rules count.
    """
    if pairing != "all" and variant != "tolerant":
        raise UsageError(f"pairing={pairing} belongs to the tolerant variant", hint="-o variant=tolerant")
    tags = {name: value for name, value in (("variant", variant), ("pairing", pairing)) if value not in _DEFAULTS}
    folder = default_root("dp_bench") if root is None else root
    pages = _prepared(folder) if is_prepared(folder) else _published(folder, with_markdown=variant == "opendataloader")
    for ident, image, truth in pages:
        tables = sum(element["category"].lower() == "table" for element in truth["elements"])
        yield Sample(id=ident, images=(image,), truth=truth, tags={"table": "yes" if tables else "no", **tags})


_DEFAULTS = ("official", "all")


def _published(root: Path, *, with_markdown: bool) -> Iterator[tuple[str, PageSource, dict[str, Any]]]:
    file = _reference_file(root)
    try:
        pages = json_decoder(dict[str, dict[str, Any]]).decode(read_data(file))
    except (*UNDECODABLE, OSError) as error:
        raise DatasetError(f"{file}: not the ground truth of DP-Bench ({error})", hint=_HINT) from None
    pdfs = next((folder for folder in (file.parent / "pdfs", root / "pdfs") if folder.is_dir()), file.parent / "pdfs")
    for name, page in pages.items():
        if Path(name).name != name:
            raise DatasetError(f"{file}: the name {name!r} leaves the folder")
        truth = _truth(page, f"{file}, page {name!r}")
        if with_markdown:
            truth["markdown"] = _markdown(file, root, Path(name).stem)
        yield name, _page_source(pdfs, name), truth


def _reference_file(root: Path) -> Path:
    candidates = [root] if root.suffix == ".json" else [root / folder / "reference.json" for folder in _FOLDERS]
    found = next((file for file in candidates if file.is_file()), None)
    if found is None:
        raise DatasetError(f"{root}: no DP-Bench here; expected {_LAYOUT}", hint=_HINT)
    return found


def _page_source(pdfs: Path, name: str) -> PageSource:
    """The page's PDF, or its picture where a folder holds pictures; a missing page fails when it is read."""
    pictures = (pdfs.parent / "images" / f"{Path(name).stem}{suffix}" for suffix in (".png", ".jpg"))
    pdf = PdfPage(pdfs / name)
    return pdf if pdf.path.is_file() else next((picture for picture in pictures if picture.is_file()), pdf)


def _markdown(file: Path, root: Path, stem: str) -> str:
    """The page's ground truth as opendataloader-bench has converted it to Markdown."""
    places = [folder / name / f"{stem}.md" for folder in (file.parent, root) for name in _MARKDOWN_FOLDERS]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise DatasetError(
            f"{places[0]} not found: the variant opendataloader compares with ground truth in Markdown",
            hint="take ground-truth/ of opendataloader-project/opendataloader-bench, or another variant",
        )
    return decode_text(read_data(found))


def _prepared(root: Path) -> Iterator[tuple[str, PageSource, dict[str, Any]]]:
    for row in read(root):
        place = f"{root}, sample {row.sample_id!r}"
        truth = row.ground_truth
        if isinstance(truth, str):
            try:
                truth = json.loads(truth)
            except (ValueError, RecursionError):
                raise DatasetError(f"{place}: ground_truth holds no elements") from None
        kept = {"markdown": truth["markdown"]} if isinstance(truth, dict) and "markdown" in truth else {}
        yield row.sample_id, row.image, _truth(truth, place) | kept


def _truth(page: Any, place: str) -> dict[str, Any]:
    """Category and content of each element; where they stand on the page is never compared."""
    elements = page.get("elements") if isinstance(page, dict) else page
    try:
        return {"elements": msgspec.to_builtins(convert(elements, list[Element]))}
    except msgspec.ValidationError as error:
        raise DatasetError(
            f"{place}: {error}", hint='expected {"elements": [{"category": .., "content": {..}}]}'
        ) from None


def score(page: Sample, prediction: Prediction) -> list[Score]:
    """NID of the page, TEDS and TEDS-S of its tables. An answer is Markdown, or elements in the official JSON form."""
    reference = elements_of(page.truth["elements"])
    found = elements_in_answer(prediction.text)
    if found is None and opens_elements(prediction.text):
        # It is scored as the text that it is, but told apart from pages that were read badly.
        scores = _score(page, prediction.text, None, reference)
        return [replace(each, tags={**each.tags, "elements": "unread"}) for each in scores]
    return _score(page, prediction.text, found, reference)


def _score(page: Sample, answer: str, found: list[Element] | None, reference: Sequence[Element]) -> list[Score]:
    variant = page.tags.get("variant", "official")
    if variant in ("official", "v1"):
        elements = found if found is not None else _as_elements(answer)
        tables = evaluators.page_tables(elements, reference, v1=variant == "v1")
        return [_one("nid", evaluators.page_nid(elements, reference)), *_each([] if tables is None else [tables])]
    answer = answer if found is None else answer_of_elements(found)
    if variant == "opendataloader":
        return _score_markdown(answer, page.truth)
    if variant == "best_table":
        text = evaluators.stripped_page_nid(answer, reference)
        best = evaluators.best_tables(answer, reference)
        return [_one("nid", text), _official_nid(answer, reference), *_page_mean(best)]
    first_only = page.tags.get("pairing") == "first"
    paired = evaluators.tolerant_page_tables(answer, reference, first_only=first_only)
    return [
        _one("nid", evaluators.tolerant_page_nid(answer, reference)),
        _official_nid(answer, reference),
        *_each(paired),
    ]


def _as_elements(answer: str) -> list[Element]:
    """A Markdown answer as elements; no answer has none."""
    return evaluators.elements_of_markdown(answer) if answer.strip() else []


def _official_nid(answer: str, reference: Sequence[Element]) -> Score:
    """Score by the official rules the same words: they delete the line feeds of the ground truth."""
    return _one("nid_official", evaluators.page_nid(_as_elements(answer), reference))


def _score_markdown(answer: str, truth: dict[str, Any]) -> list[Score]:
    if "markdown" not in truth:
        raise DatasetError("the variant opendataloader needs ground truth in Markdown", hint="-o variant=tolerant")
    found = opendataloader.compare_pages(answer, truth["markdown"])
    texts = [_one(name, value) for name, value in (("nid", found.nid), ("nid_s", found.nid_s)) if value is not None]
    if found.teds is None or found.teds_struct is None:
        return texts
    return texts + _each([TableScores(found.teds, found.teds_struct, found.error)])


def _each(tables: Sequence[TableScores]) -> list[Score]:
    """One unit per table."""
    scores = []
    for number, table in enumerate(tables):
        tags = {"teds_error": table.error} if table.error else {}
        for name, value in (("teds", table.teds), ("teds_struct", table.teds_struct)):
            scores.append(Score(measure=name, counts=(value, 1.0), unit=f"table {number + 1}", tags=tags))
    return scores


def _page_mean(tables: Sequence[TableScores]) -> list[Score]:
    """One unit per page: the variant `best_table` takes the mean over the pages that have a table."""
    if not tables:
        return []
    count = len(tables)
    return [
        _one("teds", sum(table.teds for table in tables) / count),
        _one("teds_struct", sum(table.teds_struct for table in tables) / count),
    ]


def _one(measure: str, value: float) -> Score:
    return Score(measure=measure, counts=(value, 1.0))


def _reference_text(page: Sample) -> str:
    return text_of_page(elements_of(page.truth["elements"]))


def verify_case(case: dict[str, Any]) -> list[tuple[float, float]]:
    """(ours, official) for one shipped parity case: whole sets of elements, or one page in Markdown."""
    given, expected = case["input"], case["expected"]
    if "gt_markdown" in given:
        found = opendataloader.compare_pages(given["pred_markdown"], given["gt_markdown"])
        ours = dict(zip(("nid", "nid_s", "teds", "teds_s"), found[:4], strict=True))
        # A page without anything to compare is null; -1 stands for it.
        pairs = ((ours[name], expected[name]) for name in ours)
        return [(-1.0 if got is None else got, -1.0 if wanted is None else wanted) for got, wanted in pairs]
    pages = [
        (elements_in_answer(json.dumps(given["pred"].get(name, []))) or [], elements_of(page["elements"]))
        for name, page in given["gt"].items()
    ]
    if "nid" in expected:
        ignored = given["ignore_classes"]
        return [(_mean([evaluators.page_nid(*page, ignored) for page in pages]), expected["nid"])]
    v1 = given.get("variant") == "v1"
    tables = [scores for page in pages if (scores := evaluators.page_tables(*page, v1=v1)) is not None]
    if "error" in expected:
        # Upstream stops at the first page that it raises on; here that page has the name of the exception.
        named = [table.error for table in tables if table.error and (table.teds, table.teds_struct) == (0.0, 0.0)]
        return [(float(named[:1] == [expected["error"]]), 1.0)]
    return [
        (_mean([table.teds for table in tables]), expected["teds"]),
        (_mean([table.teds_struct for table in tables]), expected["teds_s"]),
    ]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _oracle_tables(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield case | {"expected": case["expected_6c2a241"]}
    yield case | {"id": f"{case['id']}-v1", "input": case["input"] | {"variant": "v1"}}


benchmark = Benchmark(
    title="Upstage DP-Bench",
    version="2024-10-24",
    task="markdown",
    paper="https://huggingface.co/datasets/upstage/dp-bench",
    data=DataSet(
        repo="upstage/dp-bench",
        patterns=("dataset/reference.json", "dataset/pdfs/*.pdf"),
        licence="MIT",
        note="200 pages",
    ),
    parity=ParityCases(
        compare=verify_case,
        deviations=DEVIATIONS,
        oracles={
            "nid/dpbench_nid.jsonl": None,
            "nid/opendataloader_markdown.jsonl": None,
            **{f"dp_bench_tables/{name}.jsonl": _oracle_tables for name in ("tables", "revisions", "raises")},
        },
    ),
    published_total=200,
    prompt=(
        "Convert this page to Markdown in reading order. Write tables as HTML (<table>, <tr>, <td>, with colspan and "
        "rowspan where needed) and formulas as LaTeX. Output ONLY the page, no explanations."
    ),
    measures=(
        Measure(name="nid", title="text in reading order (NID)"),
        Measure(name="teds", title="tables (TEDS)"),
        Measure(name="teds_struct", title="table structure (TEDS-S)"),
        Measure(name="nid_s", title="text without tables (NID-S)"),
        Measure(name="nid_official", title="NID by the official rules"),
    ),
    load=load,
    score=score,
    tools=table_tools,
    reference=_reference_text,
    max_tokens=8192,
    suffix=".md",
)
