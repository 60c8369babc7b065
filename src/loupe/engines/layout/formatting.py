"""Regions that were read, put together to pages: Markdown and records (docs/engines/glm-ocr.md).

Source: `ResultFormatter` of the GLM-OCR SDK @ cef4d0ea. A word that a hyphen divides is judged by its letters alone,
as there without the package `wordfreq`: results must not depend on what is installed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loupe.engines.layout.filtering import WholeBox
from loupe.engines.layout.labels import IMAGE, category_of
from loupe.engines.layout.region_text import format_region

#: A bullet's neighbours stand in one line with it within so many thousandths of the page.
_ALIGNED = 10
_WORD = re.compile(r"[a-z][a-z'\-]{2,30}")
#: Longer pieces are no words, whatever they are made of.
_LONGEST_PIECE = 200
_FORMULA_END = "\n$$"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRegion:
    """A region with its answer; None: it was not read, or reading it failed."""

    index: int
    label: str
    content: str | None
    box: WholeBox | None = None
    skipped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRegion:
    """A region of a finished page. `label` is its category, `native_label` the detector's."""

    index: int
    label: str
    native_label: str
    content: str | None
    box: WholeBox | None
    image: bool = False
    image_path: str = ""

    def record(self) -> dict[str, Any]:
        """As the SDK writes it to JSON."""
        known: dict[str, Any] = {"index": self.index, "label": self.label, "content": self.content}
        known |= {"bbox_2d": list(self.box) if self.box else None, "native_label": self.native_label}
        return known | ({"image_path": self.image_path} if self.image_path else {})


@dataclass(frozen=True, slots=True)
class FormattedPages:
    """The finished pages of a document."""

    markdown: str
    pages: tuple[tuple[PageRegion, ...], ...]


def format_pages(
    pages: Sequence[Sequence[ReadRegion]], *, crops: Collection[tuple[int, WholeBox]] = frozenset()
) -> FormattedPages:
    """Put pages together. Images appear in the Markdown if their crop, named by page and box, is kept."""
    finished = [_with_image_paths(format_page(regions), number, crops) for number, regions in enumerate(pages)]
    texts = ("\n\n".join(text for region in page if (text := _markdown(region, n))) for n, page in enumerate(finished))
    return FormattedPages("\n\n".join(texts), tuple(map(tuple, finished)))


def format_page(regions: Sequence[ReadRegion]) -> list[PageRegion]:
    """One page: every region in form, then what takes several regions. Regions without an answer are left out."""
    found: list[PageRegion] = []
    for region in sorted(regions, key=lambda one: one.index):
        category = category_of(region.label)
        image = region.skipped or category == IMAGE
        content = None if region.content is None else format_region(region.content, region.label)
        if image or (content and content.strip()):
            found.append(
                PageRegion(
                    index=len(found),
                    label=category,
                    native_label=region.label,
                    content=content,
                    box=region.box,
                    image=image,
                )
            )
    return _with_bullets(_with_whole_words(_with_formula_numbers(found)))


def _with_formula_numbers(page: Sequence[PageRegion]) -> list[PageRegion]:
    """A number before or after a formula becomes its tag; one without a formula beside it is dropped."""
    merged: list[PageRegion] = []
    place = 0
    while place < len(page):
        region, following = page[place], page[place + 1] if place + 1 < len(page) else None
        place += 1
        if region.native_label == "formula_number":
            if following is not None and following.label == "formula":
                merged.append(_tagged(following, region))
                place += 1
        elif region.label == "formula" and following is not None and following.native_label == "formula_number":
            merged.append(_tagged(region, following))
            place += 1
        else:
            merged.append(region)
    return _numbered(merged)


def _tagged(formula: PageRegion, number: PageRegion) -> PageRegion:
    content, tag = formula.content or "", (number.content or "").strip()
    if (tag.startswith("(") and tag.endswith(")")) or (tag.startswith("（") and tag.endswith("）")):
        tag = tag[1:-1]
    if not content.endswith(_FORMULA_END):
        return formula
    return replace(formula, content=f"{content[: -len(_FORMULA_END)]} \\tag{{{tag}}}{_FORMULA_END}")


def _with_whole_words(page: Sequence[PageRegion]) -> list[PageRegion]:
    """A text that ends in a hyphen goes on with the next text in lower case, if the two pieces make a word.

    Kept from the SDK: what stands between the two comes after them then, and two hyphens before one continuation both
    get it.
    """
    merged: list[PageRegion] = []
    taken: set[int] = set()
    following = _next_in_lower_case(page)
    for place, region in enumerate(page):
        if place in taken:
            continue
        behind = following[place]
        whole = None
        if behind is not None and region.label == "text":
            whole = _joined(region.content or "", page[behind].content or "")
        if whole is not None and behind is not None:
            taken.add(behind)
        merged.append(region if whole is None else replace(region, content=whole))
    return _numbered(merged)


def _next_in_lower_case(page: Sequence[PageRegion]) -> list[int | None]:
    """For each place the next text after it that begins with a lower-case letter."""
    following: list[int | None] = []
    nearest: int | None = None
    for place in range(len(page) - 1, -1, -1):
        following.append(nearest)
        if page[place].label == "text" and (page[place].content or "").lstrip()[:1].islower():
            nearest = place
    return following[::-1]


def _joined(before: str, after: str) -> str | None:
    """The two texts as one without the hyphen between them; None if they do not make a word."""
    before, after = before.rstrip(), after.lstrip()
    if not (before.endswith("-") and after[:1].islower()):
        return None
    begun, rest = before[:-1].rsplit(None, 1), after.split(None, 1)
    return before[:-1] + after if begun and _is_word((begun[-1], rest[0])) else None


def _is_word(pieces: tuple[str, str]) -> bool:
    if sum(map(len, pieces)) > _LONGEST_PIECE:
        return False
    word = "".join(pieces).strip().lower()
    return bool(_WORD.fullmatch(word)) and "--" not in word and "''" not in word


def _with_bullets(page: list[PageRegion]) -> list[PageRegion]:
    """A text between two bullets, in one line with them on the left, is one, too."""
    page = list(page)
    for place in range(1, len(page) - 1):
        before, region, after = page[place - 1 : place + 2]
        if any(one.native_label != "text" or not one.box for one in (before, region, after)):
            continue
        content = region.content or ""
        listed = all((one.content or "").startswith("- ") for one in (before, after))
        if listed and not content.startswith("- ") and _aligned(before, region) and _aligned(after, region):
            page[place] = replace(region, content="- " + content)
    return page


def _aligned(one: PageRegion, other: PageRegion) -> bool:
    return one.box is not None and other.box is not None and abs(one.box[0] - other.box[0]) <= _ALIGNED


def _numbered(page: Sequence[PageRegion]) -> list[PageRegion]:
    return [replace(region, index=index) for index, region in enumerate(page)]


def _with_image_paths(
    page: Sequence[PageRegion], number: int, crops: Collection[tuple[int, WholeBox]]
) -> list[PageRegion]:
    """Images whose crop is kept, numbered on their page."""
    finished: list[PageRegion] = []
    images = 0
    for region in page:
        if region.image and region.box and (number, region.box) in crops:
            region = replace(region, image_path=f"imgs/cropped_page{number}_idx{images}.jpg")
            images += 1
        finished.append(region)
    return finished


def _markdown(region: PageRegion, page: int) -> str:
    if not region.image:
        return region.content or ""
    if not region.image_path:
        return ""
    image = region.image_path.rpartition("idx")[2].removesuffix(".jpg")
    return f"![Image {page}-{image}]({region.image_path})"
