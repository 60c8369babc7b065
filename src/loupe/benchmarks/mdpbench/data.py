"""Load MDPBench: `MDPBench_public.json` beside `MDPBench_img_public/`, one sample for each image.

The name of a page says whether it is digital or photographed, and its language.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from loupe.benchmarks.omnidocbench.dataset import DataLayout, Selection, read_pages
from loupe.benchmarks.omnidocbench.records import MatchedSample, ReadingOrder
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
    """Return the pages that the answers to an image are compared with: one, but for `slim=on`."""
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
    """Return the tags that an image is sliced by, all from its name; the language is as the official table has it."""
    language = printed_language(prefix_of(ident))
    found = {
        "capture": "digital" if is_digital(ident) else "photographed",
        "language": language,
        "script": script_of(language),
        "document": kind_of(ident),
    }
    return {name: value for name, value in found.items() if value}


LATIN: Final = ("DE", "EN", "ES", "FR", "ID", "IT", "NL", "PT", "VI")
NON_LATIN: Final = ("AR", "HI", "JP", "KO", "RU", "TH", "ZH", "ZH-T")
#: Parts of the name of a digital page: language, kind of document, number.
_PARTS_OF_DIGITAL: Final = 3
_IMAGE_ENDINGS: Final = (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp")


def stem(file: str) -> str:
    """A file's name without what follows its last dot: the id of the page, of an image as of an answer.

    >>> stem("de_book_1.pdf_2.jpg")
    'de_book_1.pdf_2'
    """
    head, dot, _ = file.rpartition(".")
    return head if dot and head.strip(".") else file


def is_digital(page_id: str) -> bool:
    """True if it is the digital page of a document; photographs have their conditions behind the number.

    >>> is_digital("ar_newspaper_21"), is_digital("ar_newspaper_21_indoor_light_top")
    (True, False)
    """
    return len(_parts(page_id)) == _PARTS_OF_DIGITAL


def serves(digital: str, page_id: str) -> bool:
    """True if a page of the ground truth serves an image: its own, or one whose name goes on behind an underscore.

    >>> serves("ar_newspaper_2", "ar_newspaper_2_indoor_light_top"), serves("ar_newspaper_2", "ar_newspaper_21")
    (True, False)
    """
    return page_id == digital or page_id.startswith(f"{digital}_")


def document_of(page_id: str) -> str:
    """Return the part of the name that the digital page and the photographs of one document have in common."""
    return "_".join(_parts(page_id)[:_PARTS_OF_DIGITAL]) or page_id


def kind_of(page_id: str) -> str:
    """The kind of document ("newspaper"), "" where the name does not say it."""
    parts = _parts(page_id)
    return parts[1] if len(parts) >= _PARTS_OF_DIGITAL else ""


def prefix_of(page_id: str) -> str:
    """Return the part before the first underscore: the language."""
    return page_id.split("_", 1)[0] if "_" in page_id else "unknown"


def printed_language(prefix: str) -> str:
    """The language as the official table calls it.

    >>> printed_language("zh-CHT"), printed_language("en")
    ('ZH-T', 'EN')
    """
    return "ZH-T" if prefix.upper() == "ZH-CHT" else prefix.upper()


def script_of(language: str) -> str:
    """`Latin` or `Non-Latin`, "" for a language in neither average."""
    return "Latin" if language in LATIN else "Non-Latin" if language in NON_LATIN else ""


def edits_name(page_id: str, sample: MatchedSample | ReadingOrder) -> str:
    """The name under which the edits of a sample are filed: the page's, or one that is no page (suffix rule)."""
    name = without_image_ending(page_id)
    head, underscore, tail = name.rpartition("_")
    return head if underscore and _is_index_like_official(tail, sample) else name


def without_image_ending(page_id: str) -> str:
    """The name of a page without the ending of an image, should it have one."""
    return stem(PurePosixPath(page_id).name) if page_id.lower().endswith(_IMAGE_ENDINGS) else page_id


def _is_index_like_official(tail: str, sample: MatchedSample | ReadingOrder) -> bool:
    """True if the number at the end of a page's name is also an order, a place or an index of this sample.

    Protocol: docs/protocols/mdpbench.md#suffix-rule.
    """
    # `²` is a digit to `isdigit`, and no number to `int`.
    if not tail.isdecimal() or isinstance(sample, ReadingOrder):
        return False
    return int(tail) in _numbers(sample)


def _numbers(sample: MatchedSample) -> Iterator[int]:
    values: tuple[Any, ...] = (*sample.gt_position, *sample.gt_idx)
    if not sample.latex_zeroed:  # upstream has emptied these fields
        values = (*values, sample.pred_position, *sample.pred_idx)
    return (int(value) for value in values if value is not None)


def _parts(page_id: str) -> list[str]:
    return [part for part in page_id.split("_") if part]
