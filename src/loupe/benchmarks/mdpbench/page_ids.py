"""What the name of a page says: digital or photographed, its language, and under which name its edits are filed.

Protocol: docs/protocols/mdpbench.md#files and #groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, Final

from loupe.benchmarks.omnidocbench.records import MatchedSample, ReadingOrder

LATIN: Final = ("DE", "EN", "ES", "FR", "ID", "IT", "NL", "PT", "VI")
NON_LATIN: Final = ("AR", "HI", "JP", "KO", "RU", "TH", "ZH", "ZH-T")
#: Parts of the name of a digital page: language, kind of document, number.
_PARTS_OF_DIGITAL: Final = 3
_IMAGES: Final = (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp")


def stem(file: str) -> str:
    """A file's name without what follows its last dot: the id of the page, of an image as of an answer.

    >>> stem("de_book_1.pdf_2.jpg")
    'de_book_1.pdf_2'
    """
    head, dot, _ = file.rpartition(".")
    return head if dot and head.strip(".") else file


def is_digital(page_id: str) -> bool:
    """Whether it is the digital page of a document; photographs have their conditions behind the number.

    >>> is_digital("ar_newspaper_21"), is_digital("ar_newspaper_21_indoor_light_top")
    (True, False)
    """
    return len(_parts(page_id)) == _PARTS_OF_DIGITAL


def serves(digital: str, page_id: str) -> bool:
    """Whether a page of the ground truth serves an image: its own, or one whose name goes on behind an underscore.

    >>> serves("ar_newspaper_2", "ar_newspaper_2_indoor_light_top"), serves("ar_newspaper_2", "ar_newspaper_21")
    (True, False)
    """
    return page_id == digital or page_id.startswith(f"{digital}_")


def document_of(page_id: str) -> str:
    """What the digital page and the photographs of one document have in common."""
    return "_".join(_parts(page_id)[:_PARTS_OF_DIGITAL]) or page_id


def kind_of(page_id: str) -> str:
    """The kind of document ("newspaper"), "" where the name does not say it."""
    parts = _parts(page_id)
    return parts[1] if len(parts) >= _PARTS_OF_DIGITAL else ""


def prefix_of(page_id: str) -> str:
    """What stands before the first underscore: the language."""
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
    return stem(PurePosixPath(page_id).name) if page_id.lower().endswith(_IMAGES) else page_id


def _is_index_like_official(tail: str, sample: MatchedSample | ReadingOrder) -> bool:
    """Whether the number at the end of a page's name is also an order, a place or an index of this sample.

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
