"""From LaTeX to tokens with boxes, many formulas at once: colour, set in TeX, read the page, remember.

Two renderers: `layout` (default) computes boxes from what PDFium finds on the page, `ghostscript` draws the page as the
official programs do, which is exact and some thirty times slower. A failure has a name and is remembered like a box.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from loupe.metrics.cdm.braces import NotColouredError
from loupe.metrics.cdm.colouring import ColouredFormula, colour
from loupe.metrics.cdm.drawing.boxes import PageInk, PixelBox, stacked
from loupe.metrics.cdm.drawing.ghostscript import drawn_pages
from loupe.metrics.cdm.drawing.pdf_pages import PageReader
from loupe.metrics.cdm.drawing.render_cache import RenderCache
from loupe.metrics.cdm.drawing.tex_documents import Template, on_larger_paper, template_of
from loupe.metrics.cdm.drawing.tex_runs import PageSource, set_formulas
from loupe.metrics.cdm.drawing.tex_tools import cjk_font, tex_tools
from loupe.metrics.cdm.profiles import PROFILES, CdmProfile, Renderer

#: Of one formula, where they are put below each other; upstream's rasteriser has 30 s for all.
MOST_PAGES: Final = 100
#: Begins the failure of a formula whose program was ended from outside.
KILLED: Final = "killed"


class Rendering(msgspec.Struct, frozen=True, kw_only=True):
    """A drawn formula: its visible tokens, a box for each (empty without ink), the size of the drawing; in pixels.

    `failure` says why there is none: `not coloured` (the official text steps fail on it), `no page` (TeX gives up),
    `several pages`, `too slow`, `too large`, `too much output`, `refused` (a command that could reach outside),
    `crashed`, `not drawn` (Ghostscript fails); `killed`: ended from outside, which says nothing of the formula (see
    `is_known`). `detail` is for people.
    """

    tokens: tuple[str, ...] = ()
    boxes: tuple[PixelBox, ...] = ()
    size: tuple[int, int] = (0, 0)
    failure: str = ""
    detail: str = ""

    @property
    def is_known(self) -> bool:
        """Whether another time it would come out the same."""
        return self.failure != KILLED

    @property
    def has_boxes(self) -> bool:
        """Whether there is anything to compare."""
        return any(self.boxes)


_RENDERINGS: Final = msgspec.msgpack.Decoder(Rendering)


def render(
    formulas: Sequence[str], *, profile: CdmProfile, renderer: Renderer = "layout", cache: RenderCache | None = None
) -> list[Rendering]:
    """Render every formula as this profile does; equal ones once.

    Formulas of one call share TeX runs: predictions are for a call of their own, never with ground truths. Raises
    MissingTexError, naming what to install, where the programs that the profile needs are not there or do not work.
    """
    tools = tex_tools(profile, renderer)
    tools.check()
    cache = cache or RenderCache(None)
    kind = f"{profile.name} {renderer} {tools.version}"
    wanted = list(dict.fromkeys(formulas))
    found = dict(zip(wanted, cache.get(kind, wanted, _RENDERINGS), strict=True))
    missing = [formula for formula, rendering in found.items() if rendering is None]
    fresh = dict(_rendered(missing, profile, renderer))
    cache.put(kind, {formula: rendering for formula, rendering in fresh.items() if rendering.is_known})
    return [found[formula] or fresh[formula] for formula in formulas]


def _rendered(formulas: Sequence[str], profile: CdmProfile, renderer: Renderer) -> Iterator[tuple[str, Rendering]]:
    coloured: dict[str, ColouredFormula] = {}
    for formula in formulas:
        try:
            coloured[formula] = colour(formula, profile)
        except NotColouredError as error:
            yield formula, Rendering(failure="not coloured", detail=str(error))
    pages = formula_pages(list(coloured.values()), profile)
    inks = _inks(pages, profile, renderer)
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


def _inks(pages: Sequence[PageSource], profile: CdmProfile, renderer: Renderer) -> list[PageInk | str]:
    """The ink of every formula, or why there is none; each PDF opened once."""
    inks: list[PageInk | str] = ["not drawn"] * len(pages)
    by_pdf: dict[int, list[int]] = defaultdict(list)
    for index, page in enumerate(pages):
        if not page.failure:
            by_pdf[id(page.pdf)].append(index)
    for members in by_pdf.values():
        pdf = pages[members[0]].pdf
        numbers = sorted({number for index in members for number in pages[index].numbers})
        drawn: dict[int, PageInk | str]
        if renderer == "ghostscript":
            span = range(numbers[0], numbers[-1] + 1)
            drawn = dict(zip(span, drawn_pages(pdf, span), strict=True))
        else:
            with PageReader(pdf) as reader:
                drawn = {number: reader.ink(number) for number in numbers}
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
