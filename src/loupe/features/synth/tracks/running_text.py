"""Tracks of running text: plain, with ever less meaning, smaller and fainter, denser, damaged, in every language."""

from __future__ import annotations

import math
from dataclasses import replace

from loupe.features.synth.page import (
    HEIGHT,
    MARGIN,
    MM_PER_POINT,
    PITCH,
    PIXELS_PER_POINT,
    WIDTH,
    Column,
    Page,
    Piece,
    Setting,
    Truth,
    height_of,
    lines_piece,
    running,
    sheet,
)
from loupe.features.synth.texts import RUNGS, Prose, Text, language, like
from loupe.features.synth.typeset.typesetter import BOOK, FACES, Face, face_of

_PLAIN_GUTTER = 8.0
_TITLE = 22.0


def plain_pages(setting: Setting) -> list[Page]:
    """One page: a title, and text in one, two or three columns."""
    dice = setting.dice()
    face = FACES[setting.number % len(FACES)] if face_of(setting.code) is BOOK else face_of(setting.code)
    count = 1 + setting.number % 3
    size = float(dice.between(9, 14 if count == 1 else 11))
    width = (WIDTH - 2 * MARGIN - (count - 1) * _PLAIN_GUTTER) / count
    title = setting.prose.words(dice, 4)
    pieces: list[Piece] = [lines_piece([title], MARGIN, MARGIN, WIDTH - 2 * MARGIN, size=1.5 * size, weight=700)]
    text: list[list[Text]] = []
    for place in range(count):
        column = Column(
            x=MARGIN + place * (width + _PLAIN_GUTTER),
            y=MARGIN + _TITLE,
            width=width,
            height=HEIGHT - 2 * MARGIN - _TITLE,
            size=size,
            face=face,
        )
        filled = column.filled(setting.prose, dice)
        pieces += column.pieces(filled)
        text += filled
    words = f"{title}\n\n{running(text)}"
    return [
        Page(
            track="plain",
            base=setting.base,
            rung=str(count),
            rank=count,
            face=face.name,
            language=setting.code,
            layout=sheet(pieces, face, size, setting.code),
            truth=Truth(text=words, blocks=tuple(running([each]) for each in text)),
            x_height=size * face.x_height * PIXELS_PER_POINT,
            faces=(face.family,),
        )
    ]


_PRIOR_SIZE = 11.0
_PRIOR_LINES = 22


def prior_pages(setting: Setting) -> list[Page]:
    """One page for each rung, all with line ends at the same places."""
    face = face_of(setting.code)
    column = Column(
        x=MARGIN,
        y=MARGIN,
        width=WIDTH - 2 * MARGIN,
        height=height_of(_PRIOR_LINES, _PRIOR_SIZE) + 1,
        size=_PRIOR_SIZE,
        face=face,
    )
    paragraphs = column.filled(setting.prose, setting.dice())
    text = [token for lines in paragraphs for line in lines for token in line]
    found = []
    for rank, (rung, change) in enumerate(RUNGS.items()):
        changed = iter(
            like([line for lines in paragraphs for line in lines], change(text, setting.code, setting.dice(rung)))
        )
        rung_text = [[next(changed) for _ in lines] for lines in paragraphs]
        found.append(
            Page(
                track="prior",
                base=setting.base,
                rung=rung,
                rank=rank,
                language=setting.code,
                layout=sheet(
                    column.pieces(rung_text),
                    face,
                    _PRIOR_SIZE,
                    setting.code,
                    height=2 * MARGIN + height_of(_PRIOR_LINES, _PRIOR_SIZE),
                ),
                truth=Truth(text=running(rung_text)),
                x_height=_PRIOR_SIZE * face.x_height * PIXELS_PER_POINT,
                faces=(face.family,),
            )
        )
    return found


#: x-height in pixels at 150 dpi, and contrast of ink to paper as a share of black on white.
SIZES = (24, 16, 12, 10, 8, 7, 6, 5)
CONTRASTS = (1.0, 0.7, 0.5, 0.3, 0.2, 0.1)
_AT_CONTRAST = 16
_LEGIBILITY_LINES = 17


def legibility_pages(setting: Setting) -> list[Page]:
    """The ladder of sizes, then that of contrasts at 16 px."""
    face = face_of(setting.code)
    text = _column(max(SIZES), face).filled(setting.prose, setting.dice(), _LEGIBILITY_LINES)
    sizes = [_legibility_page(setting, text, "size", str(pixels), pixels, 1.0) for pixels in SIZES]
    faint = [
        _legibility_page(setting, text, "contrast", f"{contrast:g}", _AT_CONTRAST, contrast) for contrast in CONTRASTS
    ]
    return [*sizes, *faint]


def _points(pixels: float, face: Face) -> float:
    return pixels / PIXELS_PER_POINT / face.x_height


def _column(pixels: float, face: Face) -> Column:
    size = _points(pixels, face)
    most = (WIDTH - 2 * MARGIN) * pixels / max(SIZES)
    return Column(x=MARGIN, y=MARGIN, width=most, height=height_of(_LEGIBILITY_LINES + 1, size), size=size, face=face)


def _legibility_page(
    setting: Setting, text: list[list[Text]], kind: str, rung: str, pixels: int, contrast: float
) -> Page:
    face = face_of(setting.code)
    level = round(255 * (1 - contrast))
    return Page(
        track="legibility",
        base=setting.base,
        kind=kind,
        rung=rung,
        rank=float(rung),
        language=setting.code,
        layout=sheet(
            _column(pixels, face).pieces(text),
            face,
            _points(pixels, face),
            setting.code,
            ink=f"#{level:02x}{level:02x}{level:02x}",
        ),
        truth=Truth(text=running(text)),
        x_height=float(pixels),
        faces=(face.family,),
    )


#: Tokens of text on a page, four characters each.
TOKENS = (300, 1_000, 3_000, 6_000, 12_000)
_CHARACTERS_PER_TOKEN = 4
_DENSITY_SIZE = 10.0
_COLUMN, _DENSITY_GUTTER = 72.0, 8.0
_SHAPE = math.sqrt(2)
#: Lines by which a column may be longer than the mean, so that no paragraph is split.
_SLACK = 6


def density_pages(setting: Setting) -> list[Page]:
    """The same text, more of it on a larger sheet each time."""
    paragraphs = _paragraphs(setting)
    found = []
    for tokens in TOKENS:
        taken, characters = [], 0
        for paragraph in paragraphs:
            if characters >= tokens * _CHARACTERS_PER_TOKEN:
                break
            taken.append(paragraph)
            characters += _length(paragraph)
        found.append(_density_page(setting, tokens, taken))
    return found


def _paragraphs(setting: Setting) -> list[list[Text]]:
    """Text enough for the last rung."""
    column = Column(x=0, y=0, width=_COLUMN, height=1_000, size=_DENSITY_SIZE, face=face_of(setting.code))
    dice, found, characters = setting.dice(), [], 0
    while characters < max(TOKENS) * _CHARACTERS_PER_TOKEN:
        found.append(column.filled(setting.prose, dice, 12)[0])
        characters += _length(found[-1])
    return found


def _length(paragraph: list[Text]) -> int:
    return sum(len(token.text) for line in paragraph for token in line)


def _density_page(setting: Setting, tokens: int, paragraphs: list[list[Text]]) -> Page:
    """These paragraphs in as many columns as make a sheet of the usual shape."""
    face, pitch = face_of(setting.code), _DENSITY_SIZE * PITCH * MM_PER_POINT
    lines = sum(len(paragraph) + 1 for paragraph in paragraphs)
    columns = max(1, round(math.sqrt(lines * pitch / (_SHAPE * (_COLUMN + _DENSITY_GUTTER)))))
    each = math.ceil(lines / columns)
    pieces: list[Piece] = []
    place, used = 0, 0
    for paragraph in paragraphs:
        if used and used + len(paragraph) > each + _SLACK:
            place, used = place + 1, 0
        x, y = MARGIN + place * (_COLUMN + _DENSITY_GUTTER), MARGIN + used * pitch
        pieces += Column(x=x, y=y, width=_COLUMN, height=1, size=_DENSITY_SIZE, face=face).pieces([paragraph])
        used += len(paragraph) + 1
    width = 2 * MARGIN + (place + 1) * (_COLUMN + _DENSITY_GUTTER) - _DENSITY_GUTTER
    height = 2 * MARGIN + (each + _SLACK + 1) * pitch
    return Page(
        track="density",
        base=setting.base,
        rung=str(tokens),
        rank=tokens,
        language=setting.code,
        layout=sheet(pieces, face, _DENSITY_SIZE, setting.code, width=width, height=height),
        truth=Truth(text=running(paragraphs)),
        x_height=_DENSITY_SIZE * face.x_height * PIXELS_PER_POINT,
        faces=(face.family,),
    )


CLEAN = "clean"
#: Its five positions have no order: no figure is read off its curve.
UNORDERED = "quarter_turns"
_DAMAGED_SIZE = 12.0
_DAMAGED_LINES = 16
#: A base page has every fourth degradation, so that many base pages stand behind the track, and four make a round.
ROUND = 4
#: A base page comes back until it has all severities: four rounds have the first set before any page has the next.
_TURNS = ((3, 5), (1, 4), (2,))
_BASES = 4 * ROUND


def place(ladder: int) -> tuple[int, int]:
    """The base page of a ladder, and the number of times that page came before."""
    again, number = divmod(ladder, _BASES)
    later, visit = divmod(again, len(_TURNS))
    return later * _BASES + number, visit


def damaged_pages(setting: Setting) -> list[Page]:
    """A quarter of the degradations at some severities; the same text comes back at the others, and clean at first."""
    from loupe.features.synth.degradations import DEGRADATIONS

    clean = _clean(setting)
    worse = [
        replace(clean, kind=name, rung=str(severity), rank=severity, damage=(name, severity))
        for name in list(DEGRADATIONS)[setting.number % ROUND :: ROUND]
        for severity in _TURNS[setting.visit]
    ]
    return worse if setting.visit else [clean, *worse]


def _clean(setting: Setting) -> Page:
    face = face_of(setting.code)
    height = height_of(_DAMAGED_LINES, _DAMAGED_SIZE) + 1
    column = Column(x=MARGIN, y=MARGIN, width=WIDTH - 2 * MARGIN, height=height, size=_DAMAGED_SIZE, face=face)
    text = column.filled(setting.prose, setting.dice())
    return Page(
        track="degrade",
        base=setting.base,
        kind=CLEAN,
        rung="0",
        rank=0,
        language=setting.code,
        layout=sheet(column.pieces(text), face, _DAMAGED_SIZE, setting.code, height=2 * MARGIN + height),
        truth=Truth(text=running(text)),
        x_height=_DAMAGED_SIZE * face.x_height * PIXELS_PER_POINT,
        faces=(face.family,),
    )


_LANGUAGE_SIZE = 12.0
_LANGUAGE_LINES = 18


def language_pages(setting: Setting) -> list[Page]:
    """A page for each of the languages."""
    return [_language_page(setting, code) for code in setting.codes]


def _language_page(setting: Setting, code: str) -> Page:
    face = face_of(code)
    height = height_of(_LANGUAGE_LINES, _LANGUAGE_SIZE) + 1
    column = Column(x=MARGIN, y=MARGIN, width=WIDTH - 2 * MARGIN, height=height, size=_LANGUAGE_SIZE, face=face)
    text = column.filled(Prose.of(code), setting.dice(code))
    return Page(
        track="languages",
        base=setting.base,
        kind=code,
        rung="page",
        rank=0,
        language=code,
        layout=sheet(column.pieces(text), face, _LANGUAGE_SIZE, code, height=2 * MARGIN + height),
        truth=Truth(text=running(text), glue=language(code).glue),
        x_height=_LANGUAGE_SIZE * face.x_height * PIXELS_PER_POINT,
        faces=(face.family,),
    )
