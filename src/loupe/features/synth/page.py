"""A generated page before it is drawn: its sheet and columns, and what therefore stands on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from loupe.features.synth.dice import Dice
from loupe.features.synth.texts import Prose, Text, language, strings
from loupe.features.synth.typeset.typesetter import Face

#: What a fact says of an answer; `scoring.py` has the rules.
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


Piece: TypeAlias = dict[str, Any]
#: A line of text; or its parts in order, each a text and its style ("" for none).
Line: TypeAlias = str | Sequence[Sequence[str]]

#: A4 and its margin, in millimetres.
WIDTH, HEIGHT, MARGIN = 210.0, 297.0, 20.0
MM_PER_POINT = 25.4 / 72
#: From one line to the next, in em: as `page.typ` sets it.
PITCH = 1.35


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A box for text: upper left corner, width and height in millimetres, size in points."""

    x: float
    y: float
    width: float
    height: float
    size: float
    face: Face

    @property
    def lines(self) -> int:
        """The number of lines that fit."""
        return int(self.height / (self.size * PITCH * MM_PER_POINT))

    @property
    def most(self) -> float:
        """The em of text that a line takes."""
        return self.width / (self.size * MM_PER_POINT * self.face.wide)

    def filled(self, prose: Prose, dice: Dice, lines: int = 0) -> list[list[Text]]:
        """Paragraphs that fill it, or so many lines of it."""
        return prose.paragraphs(dice, min(lines or self.lines, self.lines), self.most)

    def pieces(self, paragraphs: Sequence[Sequence[Text]], **style: Any) -> list[Piece]:
        """These paragraphs one below another, an empty line between them."""
        found, line = [], 0
        for paragraph in paragraphs:
            y = self.y + line * self.size * PITCH * MM_PER_POINT
            found.append(lines_piece(strings(paragraph), self.x, y, self.width, size=self.size, **style))
            line += len(paragraph) + 1
        return found


def lines_piece(lines: Sequence[Line], x: float, y: float, width: float, **style: Any) -> Piece:
    """Lines of text at a place, in millimetres; `style` as in `page.typ`."""
    return {"lines": list(lines), "x": round(x, 3), "y": round(y, 3), "width": round(width, 3), **_rounded(style)}


def shape(kind: str, x: float, y: float, width: float, height: float = 0.0, **style: Any) -> Piece:
    """A box, disc or line at a place, in millimetres."""
    place = {"x": round(x, 3), "y": round(y, 3), "width": round(width, 3), "height": round(height, 3)}
    return {"shape": kind, **place, **_rounded(style)}


def sheet(
    pieces: Sequence[Piece],
    face: Face,
    size: float,
    code: str,
    *,
    width: float = WIDTH,
    height: float = HEIGHT,
    **more: Any,
) -> dict[str, Any]:
    """The layout of a page."""
    about = {"width": round(width, 3), "height": round(height, 3), "size": round(size, 3), "lang": code}
    return {**about, "rtl": language(code).rtl, **face.layout(), "pieces": list(pieces), **more}


def height_of(lines: int, size: float) -> float:
    """So many lines, in millimetres."""
    return lines * size * PITCH * MM_PER_POINT


def running(paragraphs: Sequence[Sequence[Text]]) -> str:
    """Paragraphs as the truth has them: lines end as they are typeset, and an empty line between paragraphs."""
    return "\n\n".join("\n".join(strings(lines)) for lines in paragraphs)


def _rounded(style: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in style.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Base page `number` (from 0) of a track; `codes` are the languages to choose from, `prose` is its text.

    `visit` is how often the base page came before, for a track whose ladders come in parts.
    """

    track: str
    seed: int
    number: int
    visit: int = 0
    codes: tuple[str, ...]
    prose: Prose

    @property
    def base(self) -> str:
        """The name of the base page, which is the group of its samples."""
        return f"{self.track}-{self.number:04}"

    @property
    def code(self) -> str:
        """The language of the text."""
        return self.prose.code

    def dice(self, *names: object) -> Dice:
        """Chance of its own for whatever has these names."""
        return Dice(self.seed, self.track, self.number, *names)
