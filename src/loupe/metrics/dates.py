"""Calendar dates as documents write them, compared by the day that they name.

Source: the comparison rules of Loupe's model selection (docs/select.md). Pure; English, German, French, Spanish and
Italian month names, Chinese, Japanese and Korean dates; years 1000 to 9999, of two digits 1970 to 2069.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from typing import Literal, TypeAlias

DateOrder: TypeAlias = Literal["dmy", "mdy"]

#: Longer than any date with its weekday and time; what is longer is none.
LONGEST = 120
#: No document names an earlier year: "0008" is 2008 typed by halves, or misread.
_FIRST_YEAR = 1000
_EMPTY = frozenset({"", "-", "null", "none", "n/a", "unknown"})

_MONTHS = (
    "january januar janvier enero gennaio janner janv",
    "february februar fevrier febrero febbraio fevr",
    "march marz maerz mars marzo mrz",
    "april avril abril aprile",
    "may mai mayo maggio",
    "june juni juin junio giugno",
    "july juli juillet julio luglio juil",
    "august aout agosto",
    "september septembre septiembre settembre setiembre sept",
    "october oktober octobre octubre ottobre",
    "november novembre noviembre",
    "december dezember decembre diciembre dicembre",
)
_WEEKDAYS = (
    "monday tuesday wednesday thursday friday saturday sunday mon tue tues wed weds thu thur thurs fri sat sun "
    "montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag mo di mi do fr sa so "
    "lundi mardi mercredi jeudi vendredi samedi dimanche lun mar mer jeu ven sam dim "
    "lunes martes miercoles jueves viernes sabado domingo mie jue vie sab dom "
    "lunedi martedi mercoledi giovedi venerdi domenica gio"
)

_YEAR, _ONE = "([0-9]{4}|[0-9]{2})", "([0-9]{1,2})"
_YEAR_FIRST = re.compile(r"([0-9]{4})(?:-([0-9]{1,2})-|/([0-9]{1,2})/|\.([0-9]{1,2})\.)([0-9]{1,2})")
_COMPACT = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})")
_DOTTED = re.compile(rf"{_ONE}\. ?{_ONE}\. ?{_YEAR}")
_EITHER = re.compile(rf"{_ONE} ?(?:/ ?{_ONE} ?/|- ?{_ONE} ?-) ?{_YEAR}")
_ORDINAL = r"(?:\.|°|st|nd|rd|th|er|eme|e|o|a)?"
_DAY_FIRST = re.compile(
    rf"(?:(?:den|the|le|el|il) )?{_ONE}{_ORDINAL}[ ,/-]*(?:(?:of|de|di) )?([a-z]+)\.?[ ,/-]*(?:(?:of|de|del) )?{_YEAR}"
)
_MONTH_FIRST = re.compile(rf"([a-z]+)\.?[ /-]*(?:the )?{_ONE}{_ORDINAL}(?:[ ,/-]+){_YEAR}")
_CJK = re.compile(r"([0-9]{4}) ?(?:年|년) ?([0-9]{1,2}) ?(?:月|월) ?([0-9]{1,2}) ?(?:日|일|号|號)")
_CLOCK = re.compile(
    r"(?:(?<=[0-9])t|[ ,]+(?:(?:um|at|a|alle|ore|a las) )?)"
    r"[0-9]{1,2}(?:[:h][0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?|\.[0-9]{2}(?= ?uhr)|(?= ?(?:uhr|[ap]\.?m)))"
    r"(?: ?(?:uhr|[ap]\.?m\.?|h))?(?: ?(?:z|utc|gmt|[+-][0-9]{2}:?[0-9]{2}))?"
)
#: Behind the day without a space, too.
_CJK_CLOCK = re.compile(
    r"(?:(?<=[日일号號)])| ) ?(?:(?:午前|午後|上午|下午|오전|오후) ?)?[0-9]{1,2} ?"
    r"(?:[時时点點시](?: ?[0-9]{1,2} ?[分분](?: ?[0-9]{1,2} ?[秒초])?)?|:[0-9]{2}(?::[0-9]{2})?)\Z"
)
#: Hyphens of typesetters, which models like; NFKC makes the one that breaks no line the plain one of Unicode.
_HYPHEN = "\N{HYPHEN}"
_CJK_WEEKDAY = re.compile(r" ?\(?(?:[月火水木金土日]曜日?|(?:星期|周|週)[一二三四五六日天]|[월화수목금토일]요일)\)?")
_CJK_SHORT = re.compile(r" ?\([月火水木金土日一二三四五六월화수목금토일]\)")


def normalize_date(value: str, order: DateOrder = "dmy") -> str | None:
    """The day that a text names, as `YYYY-MM-DD`; "" where it says that there is none; None for anything else.

    A weekday and a time are left aside. Day and month in numbers: a dot means day first; otherwise the one above 12 is
    the day, and `order` decides where neither is. Impossible days are None. A second time, nothing changes.

    >>> normalize_date("Mittwoch, 26. November 2025, 14:30 Uhr"), normalize_date("11/26/2025"), normalize_date("n/a")
    ('2025-11-26', '2025-11-26', '')
    """
    text = value.strip()
    if len(text) > LONGEST:
        return None
    text = _folded(text)
    if text in _EMPTY:
        return ""
    bare = _without_time(text)
    found = _parsed(bare, order)
    # A month is looked for first: "mar" is March and a French or Spanish Tuesday.
    return found or _parsed(_without_weekday(bare), order) or _parsed(_without_time(_without_weekday(text)), order)


def dates_match(prediction: str, reference: str, order: DateOrder = "dmy") -> bool:
    """Whether both name the same day, or both say that there is none. A text without a readable date matches nothing.

    >>> dates_match("26.11.25", "2025-11-26"), dates_match("soon", "soon")
    (True, False)
    """
    found = normalize_date(prediction, order)
    return found is not None and found == normalize_date(reference, order)


def _folded(text: str) -> str:
    """One spelling for full-width digits, accents, case and runs of white space; "日" and the like stay."""
    plain = unicodedata.normalize("NFKC", text).replace(_HYPHEN, "-")
    decomposed = unicodedata.normalize("NFD", plain.casefold())
    bare = "".join(char for char in decomposed if not unicodedata.combining(char))
    return " ".join(unicodedata.normalize("NFC", bare).split())


def _without_time(text: str) -> str:
    for clock in _CLOCK.finditer(text):
        if clock.end() == len(text):
            return text[: clock.start()].rstrip(" ,")
    found = _CJK_CLOCK.search(text)
    return text[: found.start()].rstrip(" ,") if found else text


def _without_weekday(text: str) -> str:
    """Without a weekday before or after the date, in brackets or with its dot and comma."""
    text = _CJK_SHORT.sub(" ", _CJK_WEEKDAY.sub(" ", text)).strip()
    first, _, rest = text.partition(" ")
    if first.strip("().,") in _WEEKDAY_NAMES:
        text = rest
    elif "," in first and first.partition(",")[0].strip(".") in _WEEKDAY_NAMES:
        text = text.partition(",")[2].lstrip()
    rest, _, last = text.rpartition(" ")
    return rest.rstrip(" ,") if last.strip("().,") in _WEEKDAY_NAMES else text


def _parsed(text: str, order: DateOrder) -> str | None:
    if found := _YEAR_FIRST.fullmatch(text) or _COMPACT.fullmatch(text) or _CJK.fullmatch(text):
        year, month, day = (part for part in found.groups() if part is not None)
        return _iso(year, int(month), int(day))
    if found := _DOTTED.fullmatch(text):
        return _iso(found[3], int(found[2]), int(found[1]))
    if found := _EITHER.fullmatch(text):
        first, second, year = (part for part in found.groups() if part is not None)
        return _iso(year, *_month_and_day(int(first), int(second), order))
    if found := _DAY_FIRST.fullmatch(text):
        return _iso(found[3], _MONTH_NUMBERS.get(found[2], 0), int(found[1]))
    if found := _MONTH_FIRST.fullmatch(text):
        return _iso(found[3], _MONTH_NUMBERS.get(found[1], 0), int(found[2]))
    return None


def _month_and_day(first: int, second: int, order: DateOrder) -> tuple[int, int]:
    """Which of two numbers is the month: not the one above 12; else as `order` has it."""
    if first > 12:
        return second, first
    if second > 12:
        return first, second
    return (second, first) if order == "dmy" else (first, second)


def _iso(year: str, month: int, day: int) -> str | None:
    number = int(year)
    if len(year) == 4 and number < _FIRST_YEAR:
        return None
    if len(year) == 2:
        number += 2000 if number < 70 else 1900
    try:
        return date(number, month, day).isoformat()
    except ValueError:
        return None


def _month_numbers() -> dict[str, int]:
    """Month names, full and cut to three letters; "jui" is June and July, and so neither."""
    numbers: dict[str, set[int]] = {}
    for number, names in enumerate(_MONTHS, 1):
        for name in names.split():
            for spelling in (name, name[:3]):
                numbers.setdefault(spelling, set()).add(number)
    return {name: found.pop() for name, found in numbers.items() if len(found) == 1}


_MONTH_NUMBERS = _month_numbers()
_WEEKDAY_NAMES = frozenset(_WEEKDAYS.split())
