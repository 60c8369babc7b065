"""The data of MDPBench: `MDPBench_public.json` beside `MDPBench_img_public/`, a sample for each image.

Protocol: docs/protocols/mdpbench.md#data and #files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from loupe.benchmarks.mdpbench.page_ids import (
    document_of,
    is_digital,
    kind_of,
    prefix_of,
    printed_language,
    script_of,
    serves,
    stem,
)
from loupe.benchmarks.omnidocbench.dataset import DataLayout, Selection, read_pages
from loupe.benchmarks.omnidocbench.scored_pages import image_name
from loupe.errors import DatasetError
from loupe.types import Sample

LAYOUT: Final = DataLayout(
    benchmark="mdpbench",
    title="MDPBench",
    file="MDPBench_public.json",
    files="MDPBench*.json",
    images="MDPBench_img_public",
)
_ANSWERS: Final = (".md", ".mmd")
_IMAGES: Final = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp"})
#: Key of a sample's ground truth: further pages of the ground truth that its answer is held against, too.
FURTHER: Final = "further_pages"


def read_images(root: Path, selection: Selection) -> Iterator[Sample]:
    """A sample for every image of the ground truth, in its order; its id is the image's name without the ending."""
    for page in read_pages(root, selection=selection, layout=LAYOUT):
        ident = page_id(page)
        yield replace(page, id=ident, group=document_of(ident), tags=_tags(ident))


def read_slim(root: Path, selection: Selection) -> Iterator[Sample]:
    """A sample for every image in the folder of images that the ground truth of a digital page serves.

    These are the images whose names are that of a page of the ground truth, or begin with it and an underscore. An
    image that fits several pages is scored against each, as upstream does. Raises DatasetError without any image.
    """
    truths = list(read_pages(root, selection=selection, layout=LAYOUT))
    folders = dict.fromkeys(source.parent for page in truths for source in page.images if isinstance(source, Path))
    images = sorted(file for folder in folders if folder.is_dir() for file in folder.iterdir() if _is_image(file))
    if truths and not images:
        raise DatasetError(
            f"{root}: no images, and only their names say which photographs there are (slim=on)",
            hint=f"put them into {LAYOUT.images}/, or leave -o slim=on out",
        )
    yield from slim_images(truths, images)


def slim_images(truths: Sequence[Sample], images: Iterable[Path]) -> Iterator[Sample]:
    """The images that the pages of the ground truth serve, as samples: page by page, an image with the first of its."""
    left = {stem(image.name): image for image in images}
    for first in truths:
        for ident in [ident for ident in left if serves(page_id(first), ident)]:
            fitting = [page.truth for page in truths if serves(page_id(page), ident)]
            truth = first.truth if len(fitting) == 1 else {**first.truth, FURTHER: fitting[1:]}
            image = left.pop(ident)
            yield replace(first, id=ident, group=document_of(ident), images=(image,), truth=truth, tags=_tags(ident))


def page_id(page: Sample) -> str:
    """The id of a page of the ground truth."""
    return stem(image_name(page.truth["page_info"]["image_path"]))


def ground_truths(page: Sample) -> Sequence[Mapping[str, Any]]:
    """What the answers to an image are held against: one page, but for `slim=on`."""
    return [page.truth, *page.truth.get(FURTHER, ())]


def answers_in_folder(samples: Iterable[Sample], names: Iterable[str]) -> dict[str, list[str]]:
    """The files that answer each image: its name with `.md` or `.mmd`, both if there are both, in order of name."""
    by_stem: dict[str, list[str]] = {}
    for name in sorted(names):
        if PurePosixPath(name).name == name and name.endswith(_ANSWERS):
            by_stem.setdefault(stem(name), []).append(name)
    return {sample.id: by_stem.get(sample.id, []) for sample in samples}


def _is_image(file: Path) -> bool:
    return file.suffix.lower() in _IMAGES and file.is_file()


def _tags(ident: str) -> dict[str, str]:
    """What an image is sliced by, all of it said by its name; the language is as the official table has it."""
    language = printed_language(prefix_of(ident))
    found = {
        "capture": "digital" if is_digital(ident) else "photographed",
        "language": language,
        "script": script_of(language),
        "document": kind_of(ident),
    }
    return {name: value for name, value in found.items() if value}
