"""Values that must be exact: numbers with and without a right check digit, look-alikes, amounts and dates."""

from __future__ import annotations

from loupe.features.synth.dice import Dice
from loupe.features.synth.page import PIXELS_PER_POINT, Field, Page, Truth
from loupe.features.synth.tracks.check_digits import NUMBERS, grouped, spoilt
from loupe.features.synth.tracks.layouts import MARGIN, WIDTH, Piece, height_of, lines_piece, sheet
from loupe.features.synth.tracks.setting import Setting
from loupe.features.synth.typeset.fonts import FACES

_SIZE = 11.0
#: Letters and digits that look alike; in a sans face some are the same but for a hair.
_ALIKE = ("O0", "l1I", "5S", "8B", "2Z", "G6", "rnm", "vvw", "cld")
_FACES = (FACES[0], FACES[1], FACES[4])
_WRONG = (True, False, True, False)


def pages(setting: Setting) -> list[Page]:
    """One page with a line for each value: its name, and the value."""
    dice = setting.dice()
    face = _FACES[setting.number % len(_FACES)]
    fields = [*_checked(dice), *_alike(dice), *_amounts(dice)]
    dice.shuffle(fields)
    pieces: list[Piece] = []
    for number, field in enumerate(fields):
        y = MARGIN + height_of(1, _SIZE) * 1.6 * number
        pieces.append(lines_piece([f"{field.name}: {field.value}"], MARGIN, y, WIDTH - 2 * MARGIN))
    return [
        Page(
            track="detail",
            base=setting.base,
            rung="page",
            rank=0,
            layout=sheet(pieces, face, _SIZE, "en", height=2 * MARGIN + height_of(1, _SIZE) * 1.6 * len(fields)),
            truth=Truth(text="\n".join(f"{field.name}: {field.value}" for field in fields), fields=tuple(fields)),
            x_height=_SIZE * face.x_height * PIXELS_PER_POINT,
            faces=(face.family,),
        )
    ]


def _checked(dice: Dice) -> list[Field]:
    found = []
    wrong = dice.shuffled(_WRONG)
    for (name, make), is_wrong in zip(NUMBERS.items(), wrong, strict=True):
        number = make(dice)
        printed, corrected = spoilt(number, dice) if is_wrong else (number, "")
        found.append(Field(name=name, value=grouped(printed), corrected=grouped(corrected) if corrected else ""))
    return found


def _alike(dice: Dice) -> list[Field]:
    """Serial and part numbers of letters that are taken for one another."""
    found = []
    for name in ("Serial", "Part"):
        groups = ["".join(dice.choice(_ALIKE[dice.below(6)]) for _ in range(4)) for _ in range(3)]
        found.append(Field(name=name, value="/".join(groups)))
    sets = dice.several(_ALIKE[6:], 2)
    found.append(Field(name="Code", value="".join(dice.choice((pair[:-1], pair[-1])) for pair in sets * 3)))
    return found


def _amounts(dice: Dice) -> list[Field]:
    day, month, year = dice.between(1, 28), dice.between(1, 12), dice.between(1951, 1999)
    amount = f"{dice.between(1, 98)},{dice.between(100, 999)}.{dice.below(100):02}"
    return [
        Field(name="Total", value=f"{amount} EUR"),
        Field(name="Tax", value=f"{dice.between(1, 99)}.{dice.below(100):02} EUR"),
        Field(name="Date", value=f"{day:02}.{month:02}.{year}"),
        Field(name="Weight", value=f"{dice.between(1, 9)}.{dice.between(100, 999)} kg"),
    ]
