"""Numbers with a check digit, right and wrong on purpose. Rules: ISO 13616, ISO/IEC 7812, ISO 2108, GS1."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from loupe.features.synth.dice import Dice


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
