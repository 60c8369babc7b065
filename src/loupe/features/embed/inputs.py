"""Inputs of `loupe embed`: its options, the pages of a run with their texts and regions, and queries.

Protocol: docs/embedding.md. Regions come from the engine's answer (`response["regions"]`) or from a file beside it;
they are model output, so one without a usable box is left out and counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from loupe.engines.adapters.areas import stored_regions
from loupe.engines.adapters.steps import apply_adapters
from loupe.engines.registry import Profile
from loupe.errors import DatasetError, UsageError, did_you_mean
from loupe.files.folder import Folder
from loupe.files.foreign import data_lines
from loupe.pipeline import open_samples
from loupe.runs.folder import RunFolder
from loupe.typed import json_decoder
from loupe.types import UNDECODABLE, DocumentPage, PackedImage, PageSource, Prediction, Sample

_OWN_IDS = "--page-ids sample takes the ids of the samples, which differ"
#: How pages are called: after their document, or by their sample id.
PageIds: TypeAlias = Literal["document", "sample"]
Box: TypeAlias = tuple[float, float, float, float]
#: Boxes are in thousandths of the page.
WHOLE = 1000.0
#: No page has more regions; more is an answer gone wrong.
MOST_REGIONS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A region of a page as the layout step found it: `box` is left, top, right, bottom in 0..1000."""

    index: int
    label: str
    box: Box
    text: str = ""
    crop: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRecord:
    """A page: its id, text, image, and regions in reading order. `outcome` says how reading it ended."""

    page_id: str
    text: str
    image: PageSource | None = None
    regions: tuple[Region, ...] = ()
    outcome: str = "ok"
    error: str = ""
    regions_left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question, and the grades (from 1) of the pages that answer it."""

    query_id: str
    text: str
    relevant: Mapping[str, int]


class _RegionLine(msgspec.Struct):
    page_id: str
    regions: list[dict[str, Any]]


class _QueryLine(msgspec.Struct, forbid_unknown_fields=False):
    query_id: str
    text: str
    relevant: dict[str, int] = {}


def check_page_ids(run: RunFolder) -> None:
    """Raise DatasetError where two documents of a run have one name, before anything is written."""
    seen: set[str] = set()
    for sample in open_samples(run.info):
        if (name := document_page_id(sample)) in seen:
            raise DatasetError(f"{run.path}: two pages have the id {name!r}", hint=_OWN_IDS)
        seen.add(name)


def pages_of_run(
    run: RunFolder, *, page_ids: PageIds = "document", regions_file: Path | None = None
) -> Iterator[PageRecord]:
    """The pages of a run in its order, also those that were never read. Raises DatasetError for equal page ids."""
    given = _regions_of_file(regions_file) if regions_file else {}
    places = run.prediction_places()
    seen: set[str] = set()
    for sample in open_samples(run.info):
        name = sample.id if page_ids == "sample" else document_page_id(sample)
        if name in seen:
            raise DatasetError(f"{run.path}: two pages have the id {name!r}", hint=_OWN_IDS)
        seen.add(name)
        place = places.get(sample.id)
        prediction = run.read_prediction(place) if place else Prediction(outcome="error", error="never read")
        found = given.pop(name, None) or _regions_of_answer(prediction)
        # Of two regions with one index the first counts: rows, crops and metadata go by it.
        regions = {
            region.index: region for row in found[MOST_REGIONS - 1 :: -1] if (region := read_region(row)) is not None
        }
        yield PageRecord(
            page_id=name,
            text=apply_adapters(prediction.text, run.info.adapters),
            image=sample.images[0] if sample.images else None,
            regions=tuple(regions[index] for index in sorted(regions)),
            outcome=prediction.outcome,
            error=prediction.error,
            regions_left_out=len(found) - len(regions),
        )
    if given:
        unknown = next(iter(given))
        raise DatasetError(
            f"{regions_file}: no page {unknown!r} in {run.path}{did_you_mean(unknown, seen)}",
            hint="use --page-ids sample",
        )


def document_page_id(sample: Sample) -> str:
    """`<document stem>_p<page from 0>`; a sample without an image is its own document."""
    if not sample.images:
        return f"{sample.id}_p0"
    source = sample.images[0]
    if isinstance(source, DocumentPage):
        return f"{source.path.stem}_p{source.page - 1}"
    return f"{Path(source.member).stem if isinstance(source, PackedImage) else source.stem}_p0"


def _regions_of_answer(prediction: Prediction) -> list[Any]:
    """Regions as they stand beside an answer; what was read of a page that failed is no answer."""
    return [] if prediction.failed else stored_regions(prediction.response or {})


def _regions_of_file(path: Path) -> dict[str, list[Any]]:
    """Regions by page id. Raises DatasetError where a line is something else, or a page comes twice."""
    if not path.is_file():
        raise DatasetError(f"{path}: no such file", hint='lines of {"page_id": …, "regions": […]}')
    found: dict[str, list[Any]] = {}
    for number, line in data_lines(path):
        try:
            row = json_decoder(_RegionLine).decode(line)
        except UNDECODABLE as error:
            raise DatasetError(f"{path}:{number}: {error}", hint="docs/embedding.md shows the form") from None
        if row.page_id in found:
            raise DatasetError(f"{path}:{number}: page {row.page_id!r} comes twice", hint="one line for each page")
        found[row.page_id] = list(row.regions)
    return found


def read_region(row: Any) -> Region | None:
    """A region as detectors write it; None without a label or a box with an area on the page."""
    if not isinstance(row, dict):
        return None
    label, box, index = row.get("native_label") or row.get("label"), row.get("bbox_2d"), row.get("index")
    if not (isinstance(label, str) and isinstance(box, list) and len(box) == 4 and isinstance(index, int)):
        return None
    if not all(isinstance(side, (int, float)) and math.isfinite(side) for side in box):
        return None
    left, top, right, bottom = (min(max(float(side), 0.0), WHOLE) for side in box)
    if left >= right or top >= bottom or index < 0:
        return None
    text, crop = row.get("content"), row.get("crop_path") or row.get("image_path")
    return Region(
        index=index,
        label=label,
        box=(left, top, right, bottom),
        text=text if isinstance(text, str) else "",
        crop=crop if isinstance(crop, str) else "",
    )


def read_queries(path: Path) -> list[Query]:
    """Queries of a JSONL file, in its order. Raises DatasetError naming the line that is not one."""
    if not path.is_file():
        raise DatasetError(f"{path}: no such file", hint='lines of {"query_id": …, "text": …, "relevant": {page: 1}}')
    found: dict[str, Query] = {}
    for number, line in data_lines(path):
        try:
            row = json_decoder(_QueryLine).decode(line)
        except UNDECODABLE as error:
            raise DatasetError(f"{path}:{number}: {error}", hint="docs/embedding.md shows the form") from None
        trouble = _trouble(row, found)
        if trouble:
            raise DatasetError(f"{path}:{number}: {trouble}", hint="docs/embedding.md shows the form")
        found[row.query_id] = Query(query_id=row.query_id, text=row.text, relevant=row.relevant)
    if not found:
        raise DatasetError(f"{path}: no queries", hint='lines of {"query_id": …, "text": …, "relevant": {page: 1}}')
    return list(found.values())


def _trouble(row: _QueryLine, found: Mapping[str, Query]) -> str:
    if not row.text.strip():
        return f"query {row.query_id!r} has no text"
    if row.query_id in found:
        return f"two queries have the id {row.query_id!r}"
    low = next((page for page, grade in row.relevant.items() if grade < 1), None)
    return "" if low is None else f"grade {row.relevant[low]} of page {low!r}: grades begin at 1, absent pages have 0"


def check_relevant(queries: list[Query], page_ids: list[str], path: Path) -> None:
    """Raise UsageError where a query names a page that is not in the corpus: recall would be low for no reason."""
    known = set(page_ids)
    for query in queries:
        for page in query.relevant:
            if page not in known:
                raise UsageError(
                    f"{path}: query {query.query_id!r} names page {page!r}, which is not in the corpus"
                    f"{did_you_mean(page, page_ids)}",
                    hint=f"page ids look like {page_ids[0]!r}; --page-ids sample takes those of the benchmark"
                    if page_ids
                    else "the corpus is empty",
                )


Endpoint: TypeAlias = Literal["embeddings", "pooling"]
#: How a query carries its instruction: as system message (VL family), in front of it (text family), not at all.
QueryFormat: TypeAlias = Literal["system", "instruct", "plain"]

INSTRUCTION = "Retrieve images or text relevant to the user's query."
MAX_MODEL_LEN = 8192
#: What the model below gives; others give what their first vector has.
_DIMENSION = 2048
_MODEL_OF_THAT_DIMENSION = "qwen3-vl-embedding-2b"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The options of `loupe embed`. `query_format` "" goes by the name of the model; `model` "" is the served one.

    `served` describes a server that is to be started, in place of one at `base_urls`.
    """

    run: Path
    output: Path
    queries: Path | None = None
    base_urls: tuple[str, ...] = ()
    served: Profile | None = None
    model: str = ""
    endpoint: Endpoint = "embeddings"
    query_format: QueryFormat | Literal[""] = ""
    instruction: str = INSTRUCTION
    max_model_len: int = MAX_MODEL_LEN
    dimension: int | None = None
    text_batch: int = 32
    image_batch: int = 30
    timeout: float = 300.0
    page_ids: PageIds = "document"
    regions_file: Path | None = None
    with_regions: bool = True
    fresh: bool = False
    shared: bool = False

    @property
    def folder(self) -> Folder:
        """The place of the files: a folder in that of the run, which may be a stranger's, or one named by the user."""
        if self.output.is_relative_to(self.run) and ".." not in self.output.parts:
            return Folder(self.run) / str(self.output.relative_to(self.run))
        return Folder(self.output)


def query_format_of(model: str) -> QueryFormat:
    """Return how the family of a model takes instructions, by its name; no instruction for other models."""
    name = model.lower()
    if "qwen3-vl-embedding" in name:
        return "system"
    return "instruct" if "qwen3-embedding" in name else "plain"


def dimension_of(model: str) -> int | None:
    """The dimension of a model that we know."""
    return _DIMENSION if _MODEL_OF_THAT_DIMENSION in model.lower() else None


def query_messages(query: str, instruction: str) -> list[dict[str, Any]]:
    """A query as a conversation with the instruction as system message."""
    return [
        {"role": "system", "content": [{"type": "text", "text": instruction}]},
        {"role": "user", "content": [{"type": "text", "text": query}]},
    ]


def query_text(query: str, instruction: str, form: QueryFormat) -> str:
    """A query as a text, with its instruction in front or without any."""
    return f"Instruct: {instruction}\nQuery: {query}" if form == "instruct" else query


def figure_messages(url: str, caption: str) -> list[dict[str, Any]]:
    """A figure with its caption as a conversation; no text part where there is no caption."""
    content: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": url}}]
    return [{"role": "user", "content": [*content, *([{"type": "text", "text": caption}] if caption else [])]}]
