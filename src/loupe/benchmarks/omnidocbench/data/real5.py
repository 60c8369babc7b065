"""Real5-OmniDocBench: the pages of OmniDocBench 1.5 printed and captured again under five conditions.

Source: PaddleOCR-VL-1.5, arXiv 2601.21957, section "Real5-OmniDocBench"; data: PaddlePaddle/Real5-OmniDocBench. The
images of a condition lie in a folder of their own and are called as in OmniDocBench, whose ground truth is theirs.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from loupe.errors import DatasetError
from loupe.types import Sample

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
