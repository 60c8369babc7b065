"""A PDF page's own text and images with their positions, as olmOCR writes them into its prompts ("document anchoring").

Source: allenai/olmocr @ f7cfe4c, olmocr/prompts/anchor.py (`pdfreport`, 4,000 characters).
What stands on a page is found by pypdf and mended by ftfy, as there. Where it is too long, upstream draws at random and
without a seed; here the draw is seeded, so that a page has one anchor text: that of upstream after `random.seed(0)`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from loupe.data.pages import DEFAULT_DPI, page_size
from loupe.data.rasters import open_file
from loupe.errors import PageError
from loupe.types import PageSource, PdfPage

#: Where it stands in a prompt.
MARK = "{anchor_text}"
#: What finds and mends the text; their releases can change it.
PACKAGES = ("pypdf", "ftfy")
_LONGEST, _LONGEST_TEXT = 4000, 250
#: Images that are no further apart than this, in points, are one.
_GAP = 0.5
_SEED = 0
_ESCAPES = {"[": r"\[", "]": r"\]", "\n": r"\n", "\r": r"\r", "\t": r"\t"}

#: Left, bottom, right, top, in points.
Box: TypeAlias = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Text:
    """A run of text and where its first character stands, in points from the lower left corner."""

    text: str
    x: float
    y: float

    def line(self) -> str:
        """As it stands in the prompt."""
        from ftfy import fix_text

        mended = re.sub(r"[\[\]\n\r\t]", lambda found: _ESCAPES[found[0]], fix_text(self.text).strip())
        return f"[{self.x:.0f}x{self.y:.0f}]{_shortened(mended)}\n"


@dataclass(frozen=True, slots=True)
class Picture:
    """An image, or several that touch, by the names in the PDF; `x` and `y` are its lower left corner."""

    names: tuple[str, ...]
    box: Box

    @property
    def x(self) -> float:
        """Left end, in points."""
        return self.box[0]

    @property
    def y(self) -> float:
        """Lower end, in points."""
        return self.box[1]

    def line(self) -> str:
        """As it stands in the prompt."""
        left, bottom, right, top = self.box
        return f"[Image {left:.0f}x{bottom:.0f} to {right:.0f}x{top:.0f}]\n"


Element: TypeAlias = Picture | Text


def anchor_text(source: PageSource) -> str:
    """The anchor text of a page: its size, then a line for each image and run of text, about 4,000 characters at most.

    An image file, or a page that was turned or made worse, has nothing on it but one image. Raises PageError.
    """
    if isinstance(source, PdfPage) and not source.variant:
        corner, pictures, texts = _elements(source)
        return _report(corner, _merged(pictures), texts)
    width, height = (side * 72 / DEFAULT_DPI for side in page_size(source))
    return _report((width, height), [Picture(("",), (0.0, 0.0, width, height))], [])


def _elements(source: PdfPage) -> tuple[tuple[float, float], list[Picture], list[Text]]:
    """The upper right corner of the page, its images, and its runs of text in the order of the file."""
    import pypdf

    # pypdf would start a `jbig2dec` that it finds on the PATH with bytes of the file.
    with open_file(source.path) as file, pypdf.apply_configuration(jbig2dec_binary=None):
        try:
            page = pypdf.PdfReader(file).pages[source.page - 1]
            found = _Found(_images_of(page))
            page.extract_text(visitor_text=found.text, visitor_operand_before=found.operand)
            return (float(page.mediabox[2]), float(page.mediabox[3])), found.pictures, found.texts
        except Exception as error:  # noqa: BLE001 - pypdf raises whatever a broken file makes it stumble over
            said = f"{type(error).__name__}: {error}"[:200]
            raise PageError(f"{source.path}: the text of page {source.page} cannot be read ({said})") from None


def _images_of(page: Any) -> frozenset[str]:
    """Names of the images among what the page itself may draw."""
    resources = page.get("/Resources")
    drawable = resources.get_object().get("/XObject") if resources is not None else None
    named = drawable.get_object() if drawable is not None else {}
    return frozenset(name for name in named if named[name] and named[name]["/Subtype"] == "/Image")


class _Found:
    """The text that pypdf reports while it goes through a page."""

    def __init__(self, images: frozenset[str]) -> None:
        self._images = images
        self.pictures: list[Picture] = []
        self.texts: list[Text] = []

    def text(self, text: str, user: Sequence[float], matrix: Sequence[float], *_: object) -> None:
        """A run of text, with the matrix of the page's space and its own."""
        if text.strip():
            self.texts.append(Text(text, *_at(user, matrix[4], matrix[5])))

    def operand(self, operator: bytes, arguments: Sequence[Any], user: Sequence[float], *_: object) -> None:
        """An operator of the page; `Do` draws, an image over the unit square."""
        if operator == b"Do" and arguments[0] in self._images:
            (left, bottom), (right, top) = _at(user, 0, 0), _at(user, 1, 1)
            box = min(left, right), min(bottom, top), max(left, right), max(bottom, top)
            self.pictures.append(Picture((str(arguments[0]),), box))


def _at(matrix: Sequence[float], x: float, y: float) -> tuple[float, float]:
    """A point in the space that a matrix leads to."""
    return matrix[0] * x + matrix[2] * y + matrix[4], matrix[1] * x + matrix[3] * y + matrix[5]


def _merged(pictures: Sequence[Picture]) -> list[Picture]:
    """Images that overlap, or nearly touch, as one with the box around all of them; also over several steps."""
    group = list(range(len(pictures)))
    for i, one in enumerate(pictures):
        for j in range(i + 1, len(pictures)):
            if group[i] != group[j] and _near(one.box, pictures[j].box):
                first, other = sorted((group[i], group[j]))
                group = [first if number == other else number for number in group]
    members: dict[int, list[Picture]] = {}
    for number, picture in zip(group, pictures, strict=True):
        members.setdefault(number, []).append(picture)
    return [Picture(tuple(name for one in each for name in one.names), _around(each)) for each in members.values()]


def _near(one: Box, other: Box) -> bool:
    across = max(one[0], other[0]) - min(one[2], other[2])
    upward = max(one[1], other[1]) - min(one[3], other[3])
    return across <= _GAP and upward <= _GAP


def _around(pictures: Sequence[Picture]) -> Box:
    left, bottom, right, top = zip(*(picture.box for picture in pictures), strict=True)
    return min(left), min(bottom), max(right), max(top)


def _shortened(text: str) -> str:
    """The beginning and the end of a long text, cut between words."""
    if len(text) <= _LONGEST_TEXT:
        return text
    half = _LONGEST_TEXT // 2 - 3
    head, tail = text[:half], text[-half:]
    return f"{head.rsplit(' ', 1)[0] or head} ... {tail.split(' ', 1)[-1] or tail}"


def _report(corner: tuple[float, float], pictures: Sequence[Picture], texts: Sequence[Text]) -> str:
    """Everything in its order where that fits; else what lies outermost, and a draw of the rest, by position."""
    head = f"Page dimensions: {corner[0]:.1f}x{corner[1]:.1f}\n"
    elements: list[Element] = [*pictures, *texts]
    lines = [(element, element.line()) for element in elements]
    if len(head) + sum(len(line) for _, line in lines) > _LONGEST:
        lines = _drawn(lines, _outermost(pictures, texts), _LONGEST - len(head))
    return head + "".join(line for _, line in lines)


def _outermost(pictures: Sequence[Picture], texts: Sequence[Text]) -> set[Element]:
    found: set[Element] = set()
    if pictures:
        found |= {min(pictures, key=lambda one: one.box[side]) for side in (0, 1)}
        found |= {max(pictures, key=lambda one: one.box[side]) for side in (2, 3)}
    if texts:
        found |= {choose(texts, key=lambda one: one.x) for choose in (min, max)}
        found |= {choose(texts, key=lambda one: one.y) for choose in (min, max)}
    return found


def _drawn(lines: Sequence[tuple[Element, str]], certain: set[Element], room: int) -> list[tuple[Element, str]]:
    """The certain ones, however long, and others in random order up to the first that does not fit."""
    chosen = [each for each in lines if each[0] in certain]
    rest = [each for each in lines if each[0] not in certain]
    random.Random(_SEED).shuffle(rest)
    room -= sum(len(line) for _, line in chosen)
    for each in rest:
        if len(each[1]) > room:
            break
        chosen.append(each)
        room -= len(each[1])
    return sorted(chosen, key=lambda each: (each[0].x, each[0].y))
