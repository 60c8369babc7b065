"""A generated page before it is drawn: what is to be typeset, and what therefore stands on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

#: What a fact says of an answer; `scores/facts.py` has the rules.
FactKind: TypeAlias = Literal["absent", "read", "nothing", "exactly", "at most"]
#: How the text layer of the typeset page is held against the truth: in order, or as a bag of characters where a
#: typesetter draws in another order than one reads (cells over several rows, formulas).
Layer: TypeAlias = Literal["ordered", "bag", "letters"]

#: Pages are drawn at this resolution; sizes in pixels mean it.
DPI = 150
PIXELS_PER_POINT = DPI / 72


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A question about an answer with yes or no for an answer. `least` is the share of the text that must be read."""

    kind: FactKind
    text: str = ""
    least: float = 0.0
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """An exact value on the page; `corrected` is what a reader who mends wrong check digits would make of it."""

    name: str
    value: str
    corrected: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The right answer. `text` in reading order, `html` of a table, `latex` of a formula, `blocks` in their order.

    `glue` is "" where white space means nothing. `layer` says how the text layer is compared with `drawn` ("": `text`).
    `recipe` is what the page is drawn from, `made_with` the digest of generator, typesetter and fonts.
    """

    text: str = ""
    html: str = ""
    latex: str = ""
    blocks: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()
    facts: tuple[Fact, ...] = ()
    glue: str = " "
    layer: Layer = "ordered"
    drawn: str | None = None
    markdown: str = ""
    recipe: dict[str, Any] = field(default_factory=dict)
    made_with: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a ladder. Pages of one `base` share layout, fonts and chance, and differ in one thing only.

    `rung` is that thing in words and `rank` as a number, `kind` which ladder of the track it stands on. `layout` is
    what `typeset/page.typ` reads. `damage` is a degradation with its severity. `x_height` is in pixels at DPI.
    """

    track: str
    base: str
    rung: str
    rank: float
    layout: dict[str, Any]
    truth: Truth
    kind: str = ""
    face: str = ""
    language: str = "en"
    task: str = "text"
    damage: tuple[str, int] | None = None
    x_height: float = 0.0
    faces: tuple[str, ...] = ()
    pdf: bool = False

    @property
    def ident(self) -> str:
        """The id of its sample: `degrade-0003-blur-4`."""
        parts = [self.base, *([self.kind] if self.kind else []), self.rung]
        return "-".join(part.replace(" ", "_").replace("/", "_") for part in parts)
