"""Render many formulas from LaTeX to tokens with boxes: colour, set in TeX, read the page, remember.

Boxes are computed from what PDFium finds on the page. Tests pass another function, which draws pages with Ghostscript
as the official programs do. A failure has a name and is remembered like a box.

Renderings are remembered by content: in memory for the samples at hand, in a file for the next engine. The key is
the formula, the profile, the function that draws, the release of TeX and the code of this package, so nothing stale is
ever found. The file is a cache: if it cannot be read or written, formulas are rendered again.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import msgspec
from msgspec.msgpack import Decoder

from loupe.metrics.blob_cache import BlobCache
from loupe.metrics.cdm.colouring import ColouredFormula, colour
from loupe.metrics.cdm.drawing.pdf_pages import PageInk, PageReader, PixelBox, stacked
from loupe.metrics.cdm.drawing.tex_runs import PageSource, set_formulas
from loupe.metrics.cdm.drawing.tex_setup import Template, cjk_font, on_larger_paper, template_of, tex_tools
from loupe.metrics.cdm.profiles import PROFILES, CdmProfile
from loupe.metrics.cdm.tokens import NotColouredError

#: Of one formula, where they are put below each other; upstream's rasteriser has 30 s for all.
MOST_PAGES: Final = 100
#: Draws pages of a PDF, which it gets with their numbers from 0: the ink of each, or why it has none.
Draw: TypeAlias = "Callable[[bytes, Sequence[int]], Iterator[PageInk | str]]"
#: Begins the failure of a formula whose program was ended from outside.
KILLED: Final = "killed"


class Rendering(msgspec.Struct, frozen=True, kw_only=True):
    """A drawn formula: its visible tokens, a box for each (empty without ink), the size of the drawing; in pixels.

    `failure` says why there is none: `not coloured` (the official text steps fail on it), `no page` (TeX gives up),
    `several pages`, `too slow`, `too large`, `too much output`, `refused` (a command that could reach outside),
    `crashed`; `killed`: ended from outside, which says nothing of the formula (see `is_known`). `detail` is for people.
    """

    tokens: tuple[str, ...] = ()
    boxes: tuple[PixelBox, ...] = ()
    size: tuple[int, int] = (0, 0)
    failure: str = ""
    detail: str = ""

    @property
    def is_known(self) -> bool:
        """True if another time it would come out the same."""
        return self.failure != KILLED

    @property
    def has_boxes(self) -> bool:
        """True if there is anything to compare."""
        return any(self.boxes)


_RENDERINGS: Final = msgspec.msgpack.Decoder(Rendering)


def layout(pdf: bytes, pages: Sequence[int]) -> Iterator[PageInk | str]:
    """Compute the ink of pages from what PDFium finds on them."""
    with PageReader(pdf) as reader:
        for number in pages:
            yield reader.ink(number)


def render(
    formulas: Sequence[str], *, profile: CdmProfile, cache: RenderCache | None = None, draw: Draw = layout
) -> list[Rendering]:
    """Render every formula as this profile does; equal ones once.

    Formulas of one call share TeX runs: predictions are for a call of their own, never with ground truths. Raises
    MissingTexError, naming what to install, where the programs that the profile needs are not there or do not work.
    """
    tools = tex_tools(profile)
    tools.check()
    cache = cache or RenderCache(None)
    kind = f"{profile.name} {draw.__name__} {tools.version}"
    wanted = list(dict.fromkeys(formulas))
    found = dict(zip(wanted, cache.get(kind, wanted, _RENDERINGS), strict=True))
    missing = [formula for formula, rendering in found.items() if rendering is None]
    fresh = dict(_rendered(missing, profile, draw))
    cache.put(kind, {formula: rendering for formula, rendering in fresh.items() if rendering.is_known})
    return [found[formula] or fresh[formula] for formula in formulas]


def _rendered(formulas: Sequence[str], profile: CdmProfile, draw: Draw) -> Iterator[tuple[str, Rendering]]:
    coloured: dict[str, ColouredFormula] = {}
    for formula in formulas:
        try:
            coloured[formula] = colour(formula, profile)
        except NotColouredError as error:
            yield formula, Rendering(failure="not coloured", detail=str(error))
    pages = formula_pages(list(coloured.values()), profile)
    inks = _inks(pages, profile, draw)
    for (formula, each), page, ink in zip(coloured.items(), pages, inks, strict=True):
        yield formula, _rendering(each, page, ink)


def formula_pages(formulas: Sequence[ColouredFormula], profile: CdmProfile) -> list[PageSource]:
    """Set coloured formulas, those that share a document together. Needs the tools of the profile."""
    font = cjk_font() if profile.program == "xelatex" else ""
    wanted: dict[int, Template] = {
        index: template_of(formula, profile, cjk_font=font) for index, formula in enumerate(formulas)
    }
    found = [PageSource()] * len(formulas)
    while wanted:
        documents: dict[Template, list[int]] = defaultdict(list)
        for index, template in wanted.items():
            documents[template].append(index)
        wanted = {}
        for template, members in documents.items():
            unread = {place for place, member in enumerate(members) if not formulas[member].parsed}
            pages = set_formulas(template, [formulas[member].tex for member in members], doubtful=unread)
            larger = on_larger_paper(template) if profile.enlarges_paper else None
            for index, page in zip(members, pages, strict=True):
                found[index] = page
                if page.overfull and larger:
                    wanted[index] = larger
    most = MOST_PAGES if profile.joins_pages else 1
    return [page if page.pages <= most else PageSource(failure="several pages") for page in found]


def _rendering(coloured: ColouredFormula, page: PageSource, ink: PageInk | str) -> Rendering:
    if page.failure:
        return Rendering(failure=page.failure)
    if isinstance(ink, str):
        return Rendering(failure=ink)
    # Colours and tokens are paired one by one; the shorter list ends it (docs/protocols/cdm.md#boxes).
    boxes = ink.boxes(coloured.colours[: len(coloured.tokens)])
    return Rendering(tokens=coloured.tokens[: len(boxes)], boxes=boxes, size=ink.size)


def _inks(pages: Sequence[PageSource], profile: CdmProfile, draw: Draw) -> list[PageInk | str]:
    """The ink of every formula, or why there is none; each PDF opened once."""
    inks: list[PageInk | str] = ["not drawn"] * len(pages)
    by_pdf: dict[int, list[int]] = defaultdict(list)
    for index, page in enumerate(pages):
        if not page.failure:
            by_pdf[id(page.pdf)].append(index)
    for members in by_pdf.values():
        pdf = pages[members[0]].pdf
        numbers = sorted({number for index in members for number in pages[index].numbers})
        drawn = dict(zip(numbers, draw(pdf, numbers), strict=True))
        for index in members:
            inks[index] = seen_ink([drawn[number] for number in pages[index].numbers], profile)
    return inks


def seen_ink(pages: Sequence[PageInk | str], profile: CdmProfile) -> PageInk | str:
    """The ink on the pages of one formula as this profile looks at it; or why one of them is not drawn."""
    inks = [page for page in pages if isinstance(page, PageInk)]
    if len(inks) < len(pages):
        return next(page for page in pages if isinstance(page, str))
    ink = inks[0] if len(inks) == 1 else stacked(inks)
    if profile.rounds_colours:
        ink = ink.with_rounded_colours()
    ink.crops_within_page = profile.crops_within_page
    return ink


def profile_named(name: str) -> CdmProfile:
    """The profile of this name. Raises ValueError, listing the names, for another."""
    if name not in PROFILES:
        raise ValueError(f"no CDM profile {name!r}; there are {', '.join(PROFILES)}")
    return PROFILES[name]


_IN_MEMORY: Final = 4096

Value = TypeVar("Value", bound=msgspec.Struct)


class RenderCache:
    """Safe for several processes on one folder."""

    def __init__(self, folder: Path | None) -> None:
        self._kept = BlobCache(folder / "cdm.sqlite") if folder else None
        self._memory: OrderedDict[bytes, bytes] = OrderedDict()

    def get(self, kind: str, formulas: Sequence[str], form: Decoder[Value]) -> list[Value | None]:
        """Return what is remembered of each formula, None if nothing is."""
        keys = [_key(kind, formula) for formula in formulas]
        known = {key: self._memory[key] for key in keys if key in self._memory}
        absent = [key for key in keys if key not in known]
        if absent and self._kept:
            for key, value in self._kept.find(absent).items():
                known[key] = value
                self._remember(key, value)
        return [_decoded(known.get(key), form) for key in keys]

    def put(self, kind: str, values: Mapping[str, msgspec.Struct]) -> None:
        """Remember these, failures too."""
        blobs = {_key(kind, formula): msgspec.msgpack.encode(value) for formula, value in values.items()}
        for key, value in blobs.items():
            self._remember(key, value)
        if blobs and self._kept:
            self._kept.keep(blobs)

    def close(self) -> None:
        """Let go of the file."""
        if self._kept:
            self._kept.close()

    def _remember(self, key: bytes, value: bytes) -> None:
        self._memory[key] = value
        self._memory.move_to_end(key)
        while len(self._memory) > _IN_MEMORY:
            self._memory.popitem(last=False)


def _decoded(value: bytes | None, form: Decoder[Value]) -> Value | None:
    if value is None:
        return None
    try:
        return form.decode(value)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None


def _key(kind: str, formula: str) -> bytes:
    text = f"{code_digest()}\n{kind}\n{formula}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Of CDM, and of what it reads LaTeX with: another rule is another rendering."""
    digest = hashlib.sha256()
    drawing = Path(__file__).parent
    cdm = drawing.parent
    for folder in (cdm, drawing, cdm.parent / "latex_nodes"):
        for file in sorted(folder.glob("*.py")):
            digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()
