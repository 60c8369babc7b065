"""Values that must be exact: numbers with and without a right check digit, look-alikes, amounts and dates.

Rules of check digits: ISO 13616, ISO/IEC 7812, ISO 2108, GS1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from loupe.features.synth.dice import Dice
from loupe.features.synth.page import (
    MARGIN,
    PIXELS_PER_POINT,
    WIDTH,
    Field,
    Page,
    Piece,
    Setting,
    Truth,
    height_of,
    lines_piece,
    sheet,
)
from loupe.features.synth.typeset.typesetter import FACES


def iban(dice: Dice) -> str:
    """An account number of no bank (`XX`): letters are numbers from 10 on, and all modulo 97 is 1.

    >>> iban(Dice(1))[:2]
    'XX'
    """
    body = dice.digits(16)
    rest = int(f"{body}{int('X', 36)}{int('X', 36)}00") % 97
    return f"XX{98 - rest:02}{body}"


def card(dice: Dice) -> str:
    """A card number by Luhn, of an issuer that does not exist (9)."""
    return _with_digit(f"9{dice.digits(14)}", _luhn)


def isbn(dice: Dice) -> str:
    """A book number of thirteen digits."""
    return _with_digit(f"979{dice.digits(9)}", _weighted)


def article(dice: Dice) -> str:
    """An article number of thirteen digits, of a range for use inside shops (2)."""
    return _with_digit(f"2{dice.digits(11)}", _weighted)


#: By what stands before it on the page.
NUMBERS: Mapping[str, Callable[[Dice], str]] = {"Account": iban, "Card": card, "Book": isbn, "Article": article}


def spoilt(number: str, dice: Dice) -> tuple[str, str]:
    """The number with one digit wrong, so that its check fails, and the number that mends it: the right one.

    Only the last digit is wrong (of an account the last of its check digits): a reader who mends knows what to write.
    """
    place = 3 if number.startswith("XX") else len(number) - 1
    other = str((int(number[place]) + dice.between(1, 9)) % 10)
    return number[:place] + other + number[place + 1 :], number


def grouped(number: str) -> str:
    """As it is printed, in groups of four."""
    return " ".join(number[start : start + 4] for start in range(0, len(number), 4))


def _with_digit(body: str, check: Callable[[str], int]) -> str:
    return f"{body}{check(body)}"


def _luhn(body: str) -> int:
    total = 0
    for place, digit in enumerate(reversed(body)):
        doubled = int(digit) * (2 if place % 2 == 0 else 1)
        total += doubled - 9 if doubled > 9 else doubled
    return -total % 10


def _weighted(body: str) -> int:
    return -sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(body)) % 10


_SIZE = 11.0
#: Letters and digits that look alike; in a sans face some are the same but for a hair.
_ALIKE = ("O0", "l1I", "5S", "8B", "2Z", "G6", "rnm", "vvw", "cld")
_FACES = (FACES[0], FACES[1], FACES[4])
_WRONG = (True, False, True, False)


def detail_pages(setting: Setting) -> list[Page]:
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
