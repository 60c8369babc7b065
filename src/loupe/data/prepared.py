"""The prepared form of a data set: `metadata.jsonl` and `images/{idx:05d}.jpg`, read and written.

It is that of an unpublished evaluation system (docs/data.md). A line of `metadata.jsonl` holds `idx`, `sample_id`,
`ground_truth` and `metadata`. Images are JPEG, so pixels are not those of the original; further pages of a sample are
`images/{idx:05d}_{page}.jpg`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from loupe.errors import DatasetError, PageError, UsageError
from loupe.files.folder import Folder
from loupe.files.foreign import data_lines
from loupe.files.whole_folder import whole_folder
from loupe.types import Sample

if TYPE_CHECKING:
    from PIL.Image import Image

METADATA = "metadata.jsonl"


@dataclass(frozen=True, slots=True)
class PreparedRow:
    """One line of `metadata.jsonl`; unpacks as (sample_id, ground_truth, metadata, image)."""

    sample_id: str
    ground_truth: Any
    metadata: dict[str, Any] = field(default_factory=dict)
    image: Path = Path()

    def __iter__(self) -> Iterator[Any]:
        return iter((self.sample_id, self.ground_truth, self.metadata, self.image))


def is_prepared(root: Path) -> bool:
    """True if the folder is in the prepared form."""
    return (root / METADATA).is_file()


def read(root: Path) -> Iterator[PreparedRow]:
    """The samples in file order, streamed. Raises DatasetError that names the line for what is not in the form."""
    path = root / METADATA
    try:
        for number, line in data_lines(path):
            yield _row(root, line.decode(), f"{path}, line {number}")
    except UnicodeDecodeError:
        raise DatasetError(f"{path}: not UTF-8") from None
    except OSError:
        raise DatasetError(f"{path} not found", hint="make this form: loupe data prepare BENCH --to DIR") from None


def refuse_options(root: Path, **changed: bool) -> None:
    """Raise UsageError for the first option that is not at its default: this form is what was prepared, no more."""
    for name, is_changed in changed.items():
        if is_changed:
            raise UsageError(
                f"{root} is in the prepared form, in which the option {name} can no longer be chosen",
                hint=f"leave -o {name}=… out, or name the published data with --data",
            )


def image_name(idx: int, page: int = 1) -> str:
    """The path of an image below the folder; the first page of a sample has no page number."""
    return f"images/{idx:05d}.jpg" if page == 1 else f"images/{idx:05d}_{page}.jpg"


def _row(root: Path, line: str, place: str) -> PreparedRow:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        raise DatasetError(f"{place}: not JSON") from None
    if not isinstance(values, dict):
        raise DatasetError(f"{place}: not an object")
    missing = {"idx", "ground_truth"} - values.keys()
    if missing:
        raise DatasetError(f"{place}: no {sorted(missing)[0]!r}", hint="keys: idx, sample_id, ground_truth, metadata")
    idx, metadata = values["idx"], values.get("metadata")
    metadata = {} if metadata is None else metadata
    if not isinstance(idx, int) or isinstance(idx, bool) or idx < 0:
        raise DatasetError(f"{place}: idx is {idx!r}, not a number from 0")
    if not isinstance(metadata, dict):
        raise DatasetError(f"{place}: metadata is not an object")
    return PreparedRow(str(values.get("sample_id", idx)), values["ground_truth"], metadata, root / image_name(idx))


def write(samples: Iterable[Sample], root: Path, *, tell: Callable[[int], None] | None = None) -> int:
    """Write samples in the prepared form; how many. Images are the upright pages as JPEG, quality 95.

    `metadata` keeps the sample's question, task, group, tags and text. The folder must be new or empty, and appears
    whole or not at all; a page that cannot be read stops it, because a data set with holes is none.
    """
    if Folder(root).names():
        raise DatasetError(f"{root} is not empty", hint="name a new folder: --to DIR")
    with whole_folder(Folder(root)) as folder:
        (folder / "images").create()
        return _write(samples, folder, tell)


def _save(picture: Image, file: BinaryIO, place: str) -> None:
    """As JPEG. Raises PageError for a picture that is too large for one."""
    try:
        picture.save(file, "JPEG", quality=95, subsampling=0)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # It is the disk's.
        size = f"{picture.width:,} × {picture.height:,} pixels"
        raise PageError(f"{place}: {size} cannot be written as JPEG ({error})", hint="leave the page out") from None


def _write(samples: Iterable[Sample], folder: Folder, tell: Callable[[int], None] | None) -> int:
    from loupe.data.pages import load_page
    from loupe.typed import encode_json

    count = 0
    with folder.draft(METADATA) as lines:
        for count, sample in enumerate(samples, 1):
            for page, source in enumerate(sample.images, 1):
                with folder.draft(image_name(count - 1, page), sync=False) as image:
                    _save(load_page(source), image.file, f"sample {sample.id!r}, page {page}")
                    image.replace()
            row = {"idx": count - 1, "sample_id": sample.id, "ground_truth": sample.truth, "metadata": _facts(sample)}
            lines.file.write(encode_json(row, enc_hook=_plain) + b"\n")
            if tell:
                tell(count)
        lines.replace()
    return count


def _facts(sample: Sample) -> dict[str, Any]:
    facts = {"prompt": sample.prompt, "task": sample.task, "group": sample.group, "text": sample.text}
    pages = {"pages": len(sample.images)} if len(sample.images) != 1 else {}
    tags = {"tags": dict(sample.tags)} if sample.tags else {}
    return {key: value for key, value in facts.items() if value} | tags | pages


def _plain(value: object) -> object:
    """Convert what JSON has no word for: paths and the like as text."""
    return str(value)
