"""From LaTeX to tokens with boxes, many formulas at once: colour, set in TeX, read the page, remember.

Two renderers: `layout` (default) computes boxes from what PDFium finds on the page, `ghostscript` draws the page as the
official programs do, which is exact and some thirty times slower. A failure has a name and is remembered like a box.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from loupe.metrics.cdm.boxes import PageInk, PixelBox
from loupe.metrics.cdm.braces import NotColouredError
from loupe.metrics.cdm.colouring import ColouredFormula, colour
from loupe.metrics.cdm.ghostscript import drawn_pages
from loupe.metrics.cdm.pairs import Renderer
from loupe.metrics.cdm.pdf_pages import PageReader
from loupe.metrics.cdm.profiles import PROFILES, CdmProfile
from loupe.metrics.cdm.render_cache import RenderCache
from loupe.metrics.cdm.tex_documents import Template, template_of
from loupe.metrics.cdm.tex_runs import PageSource, set_formulas
from loupe.metrics.cdm.tex_tools import cjk_font, tex_tools

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
    for (formula, each), page, ink in zip(coloured.items(), pages, _inks(pages, renderer), strict=True):
        yield formula, _rendering(each, page, ink)


def formula_pages(formulas: Sequence[ColouredFormula], profile: CdmProfile) -> list[PageSource]:
    """Set coloured formulas, those that share a document together. Needs the tools of the profile."""
    font = cjk_font() if profile.name == "omnidocbench" else ""
    documents: dict[Template, list[int]] = defaultdict(list)
    for index, formula in enumerate(formulas):
        documents[template_of(formula, profile, cjk_font=font)].append(index)
    found = [PageSource()] * len(formulas)
    for template, members in documents.items():
        unread = {place for place, member in enumerate(members) if not formulas[member].parsed}
        pages = set_formulas(template, [formulas[member].tex for member in members], doubtful=unread)
        for index, page in zip(members, pages, strict=True):
            found[index] = page
    return found


def _rendering(coloured: ColouredFormula, page: PageSource, ink: PageInk | str) -> Rendering:
    if page.failure:
        return Rendering(failure=page.failure)
    if isinstance(ink, str):
        return Rendering(failure=ink)
    # Colours and tokens are paired one by one; the shorter list ends it (section E).
    boxes = ink.boxes(coloured.colours[: len(coloured.tokens)])
    return Rendering(tokens=coloured.tokens[: len(boxes)], boxes=boxes, size=ink.size)


def _inks(pages: Sequence[PageSource], renderer: Renderer) -> list[PageInk | str]:
    """The ink of every page, or why there is none; each PDF opened once."""
    inks: list[PageInk | str] = ["not drawn"] * len(pages)
    by_pdf: dict[int, list[int]] = defaultdict(list)
    for index, page in enumerate(pages):
        if not page.failure:
            by_pdf[id(page.pdf)].append(index)
    for members in by_pdf.values():
        pdf, numbers = pages[members[0]].pdf, [pages[index].page for index in members]
        drawn: dict[int, PageInk | str]
        if renderer == "ghostscript":
            span = range(min(numbers), max(numbers) + 1)
            drawn = dict(zip(span, drawn_pages(pdf, span), strict=True))
        else:
            with PageReader(pdf) as reader:
                drawn = {number: reader.ink(number) for number in numbers}
        for index, number in zip(members, numbers, strict=True):
            inks[index] = drawn[number]
    return inks


def profile_named(name: str) -> CdmProfile:
    """The profile of this name. Raises ValueError, listing the names, for another."""
    if name not in PROFILES:
        raise ValueError(f"no CDM profile {name!r}; there are {', '.join(PROFILES)}")
    return PROFILES[name]
