"""Amounts of money as documents write them, compared by value: 1.234,50 EUR and $1,234.50 are numbers, not texts.

Our own rules (docs/scoring-rules.md). Pure; digits of any width, grouped by dot, comma, apostrophe or space.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from typing import NamedTuple

from loupe.metrics.absent import is_absent

#: Longer than any amount with its currency; what is longer is none.
LONGEST = 60

_DOLLARS = ("USD", "CAD", "AUD", "NZD", "HKD", "SGD", "TWD", "MXN", "ARS", "CLP", "COP", "UYU")
_RUPEES = ("INR", "PKR", "LKR")
_RIYALS = ("SAR", "QAR", "YER", "OMR", "IRR")
#: What may stand for a currency beside its code; "$" and "kr" are those of several countries.
_CURRENCIES: dict[str, tuple[str, ...]] = {
    "€": ("EUR",), "euro": ("EUR",), "euros": ("EUR",),
    "$": _DOLLARS, "us$": ("USD",), "usd$": ("USD",), "dollar": _DOLLARS, "dollars": _DOLLARS,
    "c$": ("CAD",), "ca$": ("CAD",), "a$": ("AUD",), "au$": ("AUD",), "nz$": ("NZD",), "hk$": ("HKD",), "s$": ("SGD",),
    "nt$": ("TWD",), "mx$": ("MXN",), "mex$": ("MXN",), "ar$": ("ARS",), "clp$": ("CLP",), "col$": ("COP",),
    "$u": ("UYU",), "u$s": ("USD",),
    "£": ("GBP",), "¥": ("JPY", "CNY"), "円": ("JPY",), "圓": ("CNY", "TWD"), "圆": ("CNY",), "元": ("CNY", "TWD"),
    "rmb": ("CNY",), "人民币": ("CNY",), "人民幣": ("CNY",), "台币": ("TWD",), "台幣": ("TWD",), "新台币": ("TWD",),
    "新台幣": ("TWD",), "新臺幣": ("TWD",), "港币": ("HKD",), "港幣": ("HKD",),
    "₩": ("KRW",), "원": ("KRW",), "₹": ("INR",), "rs": _RUPEES, "rs.": _RUPEES, "৳": ("BDT",), "tk": ("BDT",),
    "₽": ("RUB",), "руб": ("RUB",), "руб.": ("RUB",), "₺": ("TRY",), "tl": ("TRY",), "лв": ("BGN",), "лв.": ("BGN",),
    "rm": ("MYR",), "rp": ("IDR",), "rp.": ("IDR",), "฿": ("THB",), "baht": ("THB",), "บาท": ("THB",), "₱": ("PHP",),
    "r": ("ZAR",), "₦": ("NGN",), "ksh": ("KES",), "ksh.": ("KES",), "e£": ("EGP",), "₪": ("ILS",), "nis": ("ILS",),
    "lei": ("RON",), "leu": ("RON",), "dhs": ("AED",), "dhs.": ("AED",), "sr": ("SAR",), "s/": ("PEN",),
    "s/.": ("PEN",),
    "fr": ("CHF",), "fr.": ("CHF",), "sfr": ("CHF",), "sfr.": ("CHF",),
    "kr": ("SEK", "NOK", "DKK", "ISK"), "kr.": ("SEK", "NOK", "DKK", "ISK"),
    "ريال": _RIYALS, "ریال": ("IRR",), "تومان": ("IRR",), "درهم": ("AED", "MAD"), "جنيه": ("EGP",), "ج.م": ("EGP",),
    "ر.س": ("SAR",), "ر.س.": ("SAR",), "ر.ق": ("QAR",), "ر.ق.": ("QAR",), "د.إ": ("AED",), "د.إ.": ("AED",),
    "ج.م.": ("EGP",), "د.ك": ("KWD",), "د.ك.": ("KWD",), "د.م.": ("MAD",), "грн": ("UAH",), "грн.": ("UAH",),
    "₸": ("KZT",), "тг": ("KZT",), "₾": ("GEL",), "₼": ("AZN",), "дин": ("RSD",), "дин.": ("RSD",), "din": ("RSD",),
    "din.": ("RSD",), "ден": ("MKD",), "रु": _RUPEES, "रु.": _RUPEES,
    "zł": ("PLN",), "kč": ("CZK",), "ft": ("HUF",), "₫": ("VND",), "₴": ("UAH",), "r$": ("BRL",),
}  # fmt: skip
_CODES = frozenset(
    (
        *("EUR", "USD", "CAD", "AUD", "NZD", "HKD", "SGD", "TWD", "MXN", "GBP", "JPY", "CNY", "KRW", "INR", "RUB"),
        *("TRY", "CHF", "SEK", "NOK", "DKK", "ISK", "PLN", "CZK", "HUF", "VND", "UAH", "BRL", "RON", "BGN", "ILS"),
        *("AED", "SAR", "EGP", "ZAR", "NGN", "KES", "THB", "IDR", "MYR", "PHP", "PKR", "BDT", "LKR", "ARS", "CLP"),
        *("COP", "PEN", "UYU", "SAR", "QAR", "YER", "OMR", "IRR", "MAD", "KWD", "KZT", "GEL", "AZN", "RSD", "MKD"),
        *("BHD", "JOD", "LBP", "IQD", "TND", "DZD", "NPR", "MMK", "KHR", "LAK", "MNT", "UZS", "AMD", "BYN", "MDL"),
    )
)

_DECIMAL = "٫"
_SIGN = r"[-+]?"
_UNIT = r"[^\d\s.,'٫+()-][^\d\s,'٫+()-]{0,7}"
_NUMBER = r"[.,٫]?\d[\d.,'٫ ]*"
_AMOUNT = re.compile(
    rf"(?:(?P<outer>{_UNIT}) ?(?=\())?(?P<open>\(?) ?(?P<sign>{_SIGN}) ?(?P<before>(?:{_UNIT})?) ?(?P<inner>{_SIGN}) ?"
    rf"(?P<number>{_NUMBER}?)(?P<round>[.,]-{{1,2}})?(?: ?/(?:-{{1,2}}|=))? ?(?P<behind>-?) ?"
    rf"(?P<after>(?:{_UNIT})?) ?(?P<last>-?) ?(?P<close>\)?)(?:(?<=\)) ?(?P<outside>{_UNIT}))?"
)
#: A currency that stands in brackets of its own.
_BRACKETED = re.compile(rf"[(\[] ?({_UNIT}) ?[)\]]")
#: "Exactly", behind a number or its currency, in Chinese, Japanese, Korean and English.
_EXACTLY = re.compile(r"(?<=[\d元圆圓円원]) ?[整正也정]$| only$", re.IGNORECASE)
#: Signs that are written in several ways. U+066B parts decimals anywhere, and U+066C groups (Arabic, Persian).
_SAME = str.maketrans(
    {"٬": "'", "،": ",", "٫": _DECIMAL}
    | dict.fromkeys("\u2212\u2013\u2014\u2010\u2011", "-")
    | dict.fromkeys("\u2019`\u00b4\u02d9", "'")
)


class Amount(NamedTuple):
    """A number of money, and the currencies that its sign may stand for; none: nothing is said of the currency."""

    value: Decimal
    currencies: frozenset[str] = frozenset()


def read_amount(text: str) -> Amount | None:
    """The amount that a text is; None for anything else.

    Dot and comma: the last of the two is the decimal mark; one that occurs several times groups; one alone groups if
    exactly three digits follow and one to three precede, the first of them not 0. Apostrophes and spaces group.
    Negative: a minus before or behind, or brackets around the number. `,-` behind a number is `,00`, `.50` is half of
    one; `/-`, `/=`, `整` and `only` end a number.

    >>> read_amount("1.234,50 €").value, read_amount("USD 1,234.5").value, read_amount("(12)").value
    (Decimal('1234.50'), Decimal('1234.5'), Decimal('-12'))
    """
    text = " ".join(unicodedata.normalize("NFKC", text.translate(_SAME)).translate(_SAME).split())
    text = "".join(char for char in text if unicodedata.category(char) != "Cf")  # marks of direction
    if len(text) > LONGEST:
        return None
    found = _AMOUNT.fullmatch(_EXACTLY.sub("", " ".join(_BRACKETED.sub(r" \1 ", text).split())))
    if found is None or bool(found["open"]) != bool(found["close"]):
        return None
    before, number = found["before"], found["number"].strip()
    if before.endswith(".") and _currencies([before]) is None:
        # `$.99` is less than a dollar, `Rs.99` are rupees.
        before, number = before[:-1], f".{number}"
    currencies = _currencies([unit for unit in (found["outer"], before, found["after"], found["outside"]) if unit])
    value = _value(number, whole=bool(found["round"]))
    minus = [found[name] for name in ("sign", "inner", "behind", "last")].count("-") + bool(found["open"])
    if value is None or currencies is None or minus > 1:
        return None
    return Amount(-value if minus else value, currencies)


def amounts_match(prediction: str, reference: str) -> bool:
    """Whether both are the same amount, or both say that there is none. Currencies differ only where both name one.

    >>> amounts_match("1 234,50", "EUR 1.234,5"), amounts_match("12 EUR", "12 USD")
    (True, False)
    """
    if is_absent(prediction) or is_absent(reference):
        return is_absent(prediction) and is_absent(reference)
    found, wanted = read_amount(prediction), read_amount(reference)
    if found is None or wanted is None or found.value != wanted.value:
        return False
    return not (found.currencies and wanted.currencies) or bool(found.currencies & wanted.currencies)


def _currencies(units: list[str]) -> frozenset[str] | None:
    """The currencies that all units name; None where one is unknown, or two exclude each other."""
    kept: frozenset[str] | None = None
    for unit in units:
        code = unit.upper().rstrip(".")
        known = frozenset({code}) if code in _CODES else frozenset(_CURRENCIES.get(unit.casefold(), ()))
        kept = known if kept is None else kept & known
        if not kept:
            return None
    return kept if kept is not None else frozenset()


def _value(number: str, *, whole: bool) -> Decimal | None:
    """The value of digits with marks between them. `whole`: what follows is `,-`, so no mark in here is a decimal."""
    mark = "" if whole else _decimal_mark(number)
    integer, _, decimals = number.rpartition(mark) if mark else (number, "", "")
    digits = _ungrouped(integer) if integer or not mark else "0"
    if digits is None or (mark and not decimals.isdecimal()):
        return None
    return Decimal(f"{digits}.{decimals}")


def _decimal_mark(number: str) -> str:
    """`.` or `,` if it separates decimals, else nothing."""
    if _DECIMAL in number:
        return _DECIMAL
    marks = [char for char in number if char in ".,"]
    if not marks or (len(set(marks)) == 1 and len(marks) > 1):
        return ""
    last = marks[-1]
    if len(set(marks)) == 2:
        return last
    before, _, behind = number.partition(last)
    groups = len(behind) == 3 and before.isdecimal() and len(before) <= 3 and not before.startswith("0")
    return "" if groups else last


def _ungrouped(integer: str) -> str | None:
    """The digits of a whole number: groups of three by one kind of mark, or as in India (12,34,567); else None."""
    marks = {char for char in integer if not char.isdecimal()}
    if not marks:
        return integer or None
    if len(marks) > 1:
        return None
    first, *groups = integer.split(marks.pop())
    lengths = [len(group) for group in groups]
    usual = 1 <= len(first) <= 3 and all(length == 3 for length in lengths)
    indian = 1 <= len(first) <= 2 and lengths[-1] == 3 and all(length == 2 for length in lengths[:-1])
    return first + "".join(groups) if usual or indian else None
