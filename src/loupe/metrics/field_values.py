"""Compare the values of fields: amounts of money, names of companies and people, and values that are absent.

Amounts: 1.234,50 EUR and $1,234.50 are numbers, not texts; digits of any width, grouped by dot, comma, apostrophe or
space. Our own rules (docs/scoring-rules.md).

Names are compared without legal forms, titles, accents and slips of OCR, symmetrically. Source: the comparison rules of
Loupe's model selection (docs/select.md).

One rule for fields of all types (docs/scoring-rules.md#types-of-fields) decides which words mean that there is no
value.
"""

from __future__ import annotations

import json
import re
import unicodedata
from decimal import Decimal
from typing import Literal, NamedTuple, TypeAlias

from loupe.metrics.edit import normalized_edit_similarity

#: Longer than any amount with its currency; what is longer is none.
LONGEST_AMOUNT = 60

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
    if len(text) > LONGEST_AMOUNT:
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
    """True if both are the same amount, or both say that there is none. Currencies differ only where both name one.

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


NameKind: TypeAlias = Literal["company", "person"]
NameRule: TypeAlias = Literal["exact", "nospace", "tokens", "fuzzy"]

#: Similarity that an OCR slip leaves, and the length from which on one says something.
SLIP_SIMILARITY, SLIP_LENGTH = 0.90, 8
#: No name is longer: beyond it, only equal texts match, so that no answer costs time.
LONGEST_NAME = 2000

_LEGAL_FORMS = frozenset(
    tuple(form.split())
    for form in (
        *("gmbh", "mbh", "ag", "kg", "ohg", "gbr", "ug", "ek", "e k", "ev", "e v", "kgaa", "co", "und co", "and co"),
        *("inc", "incorporated", "llc", "llp", "ltd", "limited", "plc", "corp", "corporation", "company", "sa"),
        *("sarl", "sas", "srl", "spa", "bv", "nv", "ab", "as", "oy", "kk", "pty", "pte", "se", "haftungsbeschraenkt"),
    )
)
_TITLES = frozenset(
    (
        *("dr", "drs", "med", "dent", "vet", "rer", "nat", "phil", "prof", "professor", "priv", "doz", "pd", "dipl"),
        *("univ", "mudr", "doctor", "doktor", "herr", "frau", "mr", "mrs", "ms", "mag", "habil"),
    )
)
_POST_NOMINALS = frozenset(("md", "do", "phd", "mbbs", "facs", "dds"))
#: How initials with an umlaut look once it is folded away: "Ö." is one letter of a name, and so an initial.
_FOLDED_INITIALS = frozenset(("ae", "oe", "ue"))
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "_": " "})


def normalize_name(value: str, kind: NameKind) -> str:
    """A name as it is compared: folded to plain letters and digits, without legal form (company) or titles (person).

    A name that is nothing but these keeps them. "Last, First" of a person becomes "first last".

    >>> normalize_name("Autohaus_Hoffmann_e.K.", "company"), normalize_name("Weber, Dr. med. Anna", "person")
    ('autohaus hoffmann', 'anna weber')
    """
    if kind == "company":
        return " ".join(_without_legal_form(_tokens(value)))
    return " ".join(_without_titles(_tokens(_first_name_first(value))))


def names_match(prediction: str, reference: str, kind: NameKind) -> NameRule | None:
    """The rule by which two names are the same, or None.

    `exact`: equal when normalised. `nospace`: equal without spaces. `tokens` (people only): the same words in any
    order, or the same last name and given names that agree with initials. `fuzzy`: at most one character in ten
    differs, in names of 8 characters or more. A name without a letter or digit matches only its own text.

    >>> names_match("Dr. med. Anna Weber", "Weber, A.", "person")
    'tokens'
    >>> names_match("Autohaus Hofmann", "Autohaus Hoffmann AG", "company")
    'fuzzy'
    """
    if max(len(prediction), len(reference)) > LONGEST_NAME:
        return "exact" if prediction.strip() == reference.strip() else None
    a, b = normalize_name(prediction, kind), normalize_name(reference, kind)
    if not a or not b:
        return "exact" if prediction.strip() == reference.strip() else None
    if a == b:
        return "exact"
    if a.replace(" ", "") == b.replace(" ", ""):
        return "nospace"
    if kind == "person" and _same_person(a.split(), b.split()):
        return "tokens"
    if max(len(a), len(b)) >= SLIP_LENGTH and normalized_edit_similarity(a, b) >= SLIP_SIMILARITY:
        return "fuzzy"
    return None


def _tokens(value: str) -> list[str]:
    """The words of a name in plain letters: compatibility forms, case, umlauts and accents folded away."""
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", value).casefold()).translate(_UMLAUTS)
    bare = "".join(
        char for char in unicodedata.normalize("NFD", text) if not unicodedata.category(char).startswith("M")
    )
    plain = unicodedata.normalize("NFC", bare)
    return "".join(char if char.isalnum() else " " for char in plain).split()


def _without_legal_form(tokens: list[str]) -> list[str]:
    kept = list(tokens)
    while kept:
        # "und co" before "co".
        length = next((size for size in (2, 1) if tuple(kept[-size:]) in _LEGAL_FORMS), 0)
        if not length:
            return kept
        del kept[-length:]
    return tokens


def _without_titles(tokens: list[str]) -> list[str]:
    start, end = 0, len(tokens)
    while start < end and tokens[start] in _TITLES:
        start += 1
    while start < end and tokens[end - 1] in _POST_NOMINALS:
        end -= 1
    return tokens[start:end] or tokens


def _first_name_first(value: str) -> str:
    """ "Last, First" the other way round; what stands behind a comma after a whole name ("Anna Weber, MD") stays."""
    parts = value.split(",")
    while len(parts) > 1 and all(token in _POST_NOMINALS for token in _tokens(parts[-1])):
        parts.pop()
    return " ".join([*parts[1:], parts[0]])


def _same_person(a: list[str], b: list[str]) -> bool:
    if set(a) == set(b):
        return True
    return a[-1] == b[-1] and (_are_initials_of(a[:-1], b[:-1]) or _are_initials_of(b[:-1], a[:-1]))


def _are_initials_of(short: list[str], given: list[str]) -> bool:
    """True if given names are initials, each of the name in its place; "Weber" alone is nobody's initial."""
    if not 0 < len(short) <= len(given) or any(
        len(initial) > 1 and initial not in _FOLDED_INITIALS for initial in short
    ):
        return False
    return all(name.startswith(initial) for initial, name in zip(short, given, strict=False))


_ABSENT = re.compile(
    r"[-\u2010-\u2015\u2212\u2500]*"
    r"|(?:null|none|nil|na|n ?/ ?a|n\. ?a|unknown|not (?:available|applicable|found|present))\.?"
)


def is_absent(value: str) -> bool:
    """Return whether a value says that there is none: empty, dashes, `N/A`, `none.` and the like, in any case.

    A JSON list or object is none if it holds no value.

    >>> is_absent(" N / A "), is_absent("\u2013"), is_absent('[{"sum": null}]'), is_absent("None Ltd")
    (True, True, True, False)
    """
    value = " ".join(value.casefold().split())
    if not value.startswith(("[", "{")):
        return _ABSENT.fullmatch(value) is not None
    try:
        return _holds_none(json.loads(value))
    except (ValueError, RecursionError):
        return False


def _holds_none(value: object) -> bool:
    if isinstance(value, list | dict):
        return all(map(_holds_none, value.values() if isinstance(value, dict) else value))
    return value is None or (isinstance(value, str) and _ABSENT.fullmatch(" ".join(value.split())) is not None)
