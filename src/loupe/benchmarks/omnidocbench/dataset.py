"""Load OmniDocBench: pages of `OmniDocBench.json` beside `images/`, one sample each.

Real5-OmniDocBench has the pages of OmniDocBench 1.5, printed and captured again under five conditions.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, TypeAlias

import msgspec

from loupe.benchmarks.omnidocbench.records import Mode
from loupe.benchmarks.omnidocbench.scored_pages import sample_id
from loupe.data.prepared import is_prepared, read
from loupe.errors import DatasetError, UsageError
from loupe.files.foreign import read_data
from loupe.typed import convert, decode_json, json_decoder
from loupe.types import UNDECODABLE, Sample

#: Entries of `special_issue` that every page is sliced by; a page without them has the value "no".
_ISSUES = ("colorful_backgroud", "fuzzy_scan", "watermark")
#: Values of an attribute that a message names.
_LISTED = 12
#: Elements that count for a page although nothing of it is scored (1.6).
_ELEMENTS = {"equation_isolated": "display_formula", "table": "table"}
#: Large parts of a layout element that no step reads.
_UNREAD = ("line_with_spans", "merge_list")

Selection = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataLayout:
    """The names in the data of a benchmark of this family: the ground truth, and the folder of images beside it."""

    benchmark: str
    title: str
    #: The name as published, and what other names the file may have.
    file: str
    files: str
    images: str

    @property
    def hint(self) -> str:
        """The hint where to get the data."""
        return f"loupe data get {self.benchmark}, or --data DIR with a copy that you have"


LAYOUT: Final = DataLayout(
    benchmark="omnidocbench",
    title="OmniDocBench",
    file="OmniDocBench.json",
    files="OmniDocBench*.json",
    images="images",
)


class _PageInfo(msgspec.Struct):
    image_path: str
    page_attribute: dict[str, Any]


class _Element(msgspec.Struct):
    category_type: str
    order: int | float | None = None
    anno_id: int | str | None = None
    attribute: dict[str, Any] | None = None
    fine_category_type: str | None = None


class _Cut(msgspec.Struct, tag_field="relation_type", tag="truncated"):
    source_anno_id: int | str
    target_anno_id: int | str


class _Extra(msgspec.Struct):
    relation: list[dict[str, Any]] | None = None


class _Page(msgspec.Struct):
    """The keys that a page must have; the rest is not looked at."""

    layout_dets: list[_Element]
    page_info: _PageInfo
    extra: _Extra | None = None


def read_pages(
    root: Path, *, selection: Selection, mode: Mode = "parity", layout: DataLayout = LAYOUT
) -> Iterator[Sample]:
    """The pages that `selection` leaves, in the order of the file, decoded one by one."""
    pages = _prepared(root, layout) if is_prepared(root) else _published(_ground_truth_file(root, layout), layout)
    for page, image, place in pages:
        info = page["page_info"]
        if _is_selected(info["page_attribute"], selection, place):
            yield Sample(
                id=sample_id(info["image_path"]),
                images=(image,),
                truth=_truth(page, mode),
                tags=_tags(info["page_attribute"]),
            )


def nothing_left(root: Path, selection: Selection, layout: DataLayout = LAYOUT) -> DatasetError:
    """Return the error that says why there is no page: none at all, or none that `selection` leaves; then with the
    values that there are.
    """
    every = read_pages(root, selection={}, layout=layout)
    attributes = [page.truth["page_info"]["page_attribute"] for page in every]
    if not attributes:
        return DatasetError(f"{root}: the ground truth has no page at all", hint=layout.hint)
    wanted = "; ".join(f"{name}={_written(value)}" for name, value in selection.items())
    there = []
    for name in selection:
        counts = Counter(_written(each[name]) for each in attributes)
        there.append(f"{name}: {', '.join(value for value, _ in counts.most_common(_LISTED))}")
    return DatasetError(f"{root}: none of {len(attributes):,} pages has {wanted} (filter)", hint="; ".join(there))


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def parse_selection(text: str) -> dict[str, Any]:
    """A filter as it is written: `language=english;layout=double_column`, values in JSON, or all of it a JSON object.

    >>> parse_selection('language=english;special_issue=["watermark"]')
    {'language': 'english', 'special_issue': ['watermark']}
    """
    hint = "-o 'filter=language=english;layout=double_column'"
    if text.lstrip().startswith("{"):
        try:
            return json_decoder(dict[str, Any]).decode(text)
        except UNDECODABLE as error:
            raise UsageError(f"filter is no JSON object: {error}", hint=hint) from None
    found = {}
    for part in filter(None, text.split(";")):
        name, sign, value = part.partition("=")
        if not sign or not name.strip():
            raise UsageError(f"filter: {part!r} is not attribute=value", hint=hint)
        found[name.strip()] = _json_or_text(value.strip())
    return found


def reference_markdown(page: Mapping[str, Any]) -> str:
    """All ground truth that has a place in the reading order: what diagnostics compare an answer with."""
    placed = [block for block in page["layout_dets"] if isinstance(block.get("order"), int | float)]
    placed.sort(key=lambda block: float(block["order"]))
    texts = (next((block[key] for key in ("text", "html", "latex") if block.get(key)), "") for block in placed)
    return "\n\n".join(str(text) for text in texts if text)


def annotated_elements(page: Mapping[str, Any]) -> tuple[str, ...]:
    """The scored elements of which the ground truth has any that is not to be ignored, by their official names."""
    there = {block["category_type"] for block in page["layout_dets"] if not block.get("ignore")}
    return tuple(element for category, element in _ELEMENTS.items() if category in there)


def _published(file: Path, layout: DataLayout) -> Iterator[tuple[dict[str, Any], Path, str]]:
    """Each page, its image, and what to call its place in messages."""
    try:
        pages = json_decoder(list[msgspec.Raw]).decode(read_data(file))
    except (*UNDECODABLE, OSError) as error:
        raise DatasetError(f"{file}: not the ground truth of {layout.title} ({error})", hint=layout.hint) from None
    for number, raw in enumerate(pages, 1):
        place = f"{file}, page {number}"
        try:
            page = decode_json(raw)
        except UNDECODABLE as error:
            raise DatasetError(f"{place}: {error}", hint=layout.hint) from None
        checked = _checked(page, place, layout)
        yield checked, _image(file.parent, page["page_info"]["image_path"], layout.images), place


def _prepared(root: Path, layout: DataLayout) -> Iterator[tuple[dict[str, Any], Path, str]]:
    for row in read(root):
        place = f"{root}, sample {row.sample_id!r}"
        yield _checked(row.ground_truth, place, layout), row.image, place


def _ground_truth_file(root: Path, layout: DataLayout) -> Path:
    if root.suffix == ".json" and root.is_file():
        return root
    if (root / layout.file).is_file():
        return root / layout.file
    others = sorted(root.glob(layout.files))
    if len(others) == 1:
        return others[0]
    if others:
        raise DatasetError(f"{root}: {len(others)} files could be the ground truth", hint=f"use --data {others[0]}")
    above = root.parent / layout.file
    hint = f"it stands one folder up: --data {shlex.quote(str(root.parent))}" if above.is_file() else layout.hint
    raise DatasetError(f"{root}: no {layout.title} here; expected {layout.file} with {layout.images}/", hint=hint)


def _image(folder: Path, image_path: str, images: str) -> Path:
    """Return the path of a page's image: in its folder, or as the ground truth says. A missing one fails when read."""
    named = PurePosixPath(image_path)
    inside = not named.is_absolute() and ".." not in named.parts
    candidates = [folder / images / named.name, *([folder / named, folder / images / named] if inside else [])]
    return next((path for path in candidates if path.is_file()), candidates[0])


def _checked(page: Any, place: str, layout: DataLayout) -> dict[str, Any]:
    """The page as it is, if it has all that scoring needs."""
    try:
        checked = convert(page, _Page)
        for relation in (checked.extra and checked.extra.relation) or ():
            if relation.get("relation_type") == "truncated":
                convert(relation, _Cut)
    except msgspec.ValidationError as error:
        raise DatasetError(f"{place}: {error}", hint=layout.hint) from None
    if not PurePosixPath(checked.page_info.image_path).name:
        raise DatasetError(f"{place}: no image_path", hint=layout.hint)
    return dict(page)


def _is_selected(attributes: Mapping[str, Any], selection: Selection, place: str) -> bool:
    """All must hold, compared as a whole: one entry of a list attribute is not enough.

    Protocol: docs/protocols/omnidocbench.md#files.
    """
    for name, wanted in selection.items():
        if name not in attributes:
            raise DatasetError(f"{place}: no attribute {name!r} to filter by", hint=f"it has: {', '.join(attributes)}")
        if attributes[name] != wanted:
            return False
    return True


def _truth(page: dict[str, Any], mode: Mode) -> dict[str, Any]:
    """The page without what nobody reads. The mode stands in it, so that runs of different modes never meet."""
    kept = [{key: value for key, value in block.items() if key not in _UNREAD} for block in page["layout_dets"]]
    relations = {"extra": {"relation": (page.get("extra") or {}).get("relation", [])}}
    return {**page, "layout_dets": kept, **relations, **({} if mode == "parity" else {"mode": mode})}


def _tags(attributes: Mapping[str, Any]) -> dict[str, str]:
    """Page attributes to slice by; every entry of a list is a slice, but for those about tables (#aggregation)."""
    tags = {name: str(value) for name, value in attributes.items() if not isinstance(value, list)}
    entries = {str(entry) for value in attributes.values() if isinstance(value, list) for entry in value}
    issues = {issue: "yes" if issue in entries else "no" for issue in _ISSUES}
    return tags | issues | {entry: "yes" for entry in sorted(entries) if "table" not in entry and entry != "None"}


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


Condition: TypeAlias = Literal["none", "scanning", "warping", "screen-photography", "illumination", "skew"]

_ENDINGS = (".jpg", ".png", ".jpeg", ".JPG", ".PNG", ".JPEG")


def condition_folder(root: Path, condition: Condition) -> Path:
    """The folder of a condition's images beside the ground truth, such as `Real5-OmniDocBench-Scanning`.

    Its name ends with that of the condition; capitals and hyphens do not matter. Raises DatasetError where none does,
    or several do.
    """
    beside = root if root.is_dir() else root.parent
    folders = sorted(path for path in beside.glob("*") if path.is_dir())
    found = [path for path in folders if _bare(path.name).endswith(_bare(condition))]
    if len(found) == 1:
        return found[0]
    there = f"{len(found)} folders" if found else "no folder"
    raise DatasetError(
        f"{beside}: {there} of images under the condition {condition!r}",
        hint=f"put Real5-OmniDocBench-{condition.title()} of Real5-OmniDocBench beside OmniDocBench.json",
    )


def under_condition(page: Sample, folder: Path, condition: Condition) -> Sample:
    """The page with its image from this folder; where that is missing, the page cannot be read."""
    image = folder / PurePosixPath(page.truth["page_info"]["image_path"]).name
    others = (image.with_suffix(ending) for ending in _ENDINGS)
    there = next((path for path in (image, *others) if path.is_file()), image)
    return replace(page, images=(there,), tags={**page.tags, "condition": condition})


def _bare(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())
