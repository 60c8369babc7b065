"""Find the subsets of CC-OCR: tables of the hub, the folders of the authors' repository, the prepared form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from loupe.benchmarks.cc_ocr.tracks import check_depth
from loupe.data.hub.store import default_root
from loupe.data.prepared import is_prepared, read
from loupe.data.tsv import tsv_rows
from loupe.errors import DatasetError
from loupe.files.foreign import data_lines, is_inside, read_data, real_path
from loupe.typed import json_decoder
from loupe.types import UNDECODABLE, PageSource, Sample

TRACKS = ("multi_scene_ocr", "multi_lan_ocr", "doc_parsing", "kie")
#: The published subsets; each has its number in the scores.
_SUBSETS = """
TotalText IC15 InverseText Hieragent zh_scene FUNSD CORD IAM zh_doc zh_handwriting ugc_laion zh_vertical zh_dense
Arabic French German Italian Japanese Korean Portuguese Russian Spanish Vietnamese
doc_photo_chn doc_photo_eng doc_scan_chn doc_scan_eng table_photo_chn table_photo_eng table_scan_chn table_scan_eng
molecular_handwriting formula_handwriting sroie2019_word EPHOIE_SCUT POIE COLD_SIBR COLD_CELL
"""
SUBSETS = tuple(_SUBSETS.split())
_COLUMNS = ("question", "answer", "category", "l2-category", "split", "image_name")
_LAYOUT = "tables (*.tsv) of the hub, index/*.json of the authors' repository, or the prepared form (metadata.jsonl)"


class _Subset(msgspec.Struct):
    """One entry of an index file."""

    dataset: str
    base_dir: str
    group: str
    op: str


class _Question(msgspec.Struct):
    """One line of qa.jsonl."""

    url: str
    prompt: str


def load_subsets(root: Path | None, tracks: frozenset[str]) -> Iterator[Sample]:
    """Yield the samples of these tracks, subset by subset. Raises DatasetError."""
    folder = default_root("cc_ocr") if root is None else root
    if is_prepared(folder):
        found = _prepared(folder)
    elif (folder / "index").is_dir():
        found = _repository(folder)
    elif tables := [folder] if folder.suffix == ".tsv" else sorted(folder.rglob("*.tsv")):
        found = (sample for table in tables for sample in _table(table))
    else:
        raise DatasetError(f"{folder}: no CC-OCR here; expected {_LAYOUT}", hint="download it: loupe data get cc_ocr")
    return (sample for sample in found if sample.tags["track"] in tracks)


def sample_of(image: PageSource, name: str, prompt: str, label: Any, facts: tuple[str, str, str]) -> Sample:
    """One sample. Raises DatasetError for the label of a record that is no JSON."""
    track, subset, op = facts
    label = _record(label, f"{track}/{subset}/{name}") if track == "kie" else label
    # Elsewhere the op says no more than the subset.
    tags = {"track": track, "subset": subset} | ({"op": op} if track == "doc_parsing" else {})
    # The same subset name may stand in two tracks.
    return Sample(id=f"{track}/{subset}/{name}", images=(image,), truth=label, prompt=prompt, tags=tags)


def _record(label: Any, place: str) -> Any:
    try:
        found = json.loads(label) if isinstance(label, str) else label
        check_depth(found)
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{place}: the label is no JSON ({error})") from None
    return found


def _table(path: Path) -> Iterator[Sample]:
    for row in tsv_rows(path, _COLUMNS):
        facts = row["category"], row["split"], row["l2-category"]
        yield sample_of(row.image(), Path(row["image_name"]).stem, row["question"], row["answer"], facts)


def _repository(root: Path) -> Iterator[Sample]:
    outermost = real_path(root)
    for index in sorted((root / "index").glob("*.json")):
        for subset in _read(index, list[_Subset]):
            folder = root / subset.base_dir
            if not is_inside(folder, outermost):
                raise DatasetError(f"{index}: base_dir {subset.base_dir!r} leaves the folder")
            labels = _read(folder / "label.json", dict[str, Any])
            for number, line in data_lines(folder / "qa.jsonl"):
                place = f"{folder / 'qa.jsonl'}, line {number}"
                try:
                    question = json_decoder(_Question).decode(line)
                except UNDECODABLE as error:
                    raise DatasetError(f"{place}: no object with url and prompt ({error})") from None
                image = folder / "images" / Path(question.url).name
                if not is_inside(image, outermost):
                    raise DatasetError(f"{place}: the image {image.name!r} leaves the folder")
                if image.stem not in labels:
                    raise DatasetError(f"{place}: label.json has no {image.stem!r}")
                facts = subset.group, subset.dataset, subset.op
                yield sample_of(image, image.stem, question.prompt, labels[image.stem], facts)


def _read(file: Path, kind: Any) -> Any:
    try:
        return json_decoder(kind).decode(read_data(file))
    except (*UNDECODABLE, OSError) as error:
        raise DatasetError(f"{file}: not as CC-OCR publishes it ({error})") from None


def _prepared(root: Path) -> Iterator[Sample]:
    for row in read(root):
        tags = row.metadata.get("tags") or row.metadata
        facts = [tags.get(name) if isinstance(tags, dict) else None for name in ("track", "subset", "op")]
        track, subset, op = (fact if isinstance(fact, str) else "" for fact in facts)
        if not (track and subset):
            raise DatasetError(
                f"{root}, sample {row.sample_id!r}: metadata has no track and subset",
                hint="they decide how it is scored",
            )
        prompt = str(row.metadata.get("prompt") or row.metadata.get("question") or "")
        made = sample_of(row.image, row.sample_id, prompt, row.ground_truth, (track, subset, op))
        yield replace(made, id=row.sample_id)
