"""Calendar dates as documents write them, compared by the day that they name.

Source: the comparison rules of Loupe's model selection (docs/select.md); words of dates from the Unicode CLDR. Pure;
numbers in any digits, month names of 73 languages, Roman months, Chinese, Japanese and Korean dates, Japanese and
Taiwanese eras; years 1000 to 9999, of two digits 1970 to 2069.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date
from functools import cache
from itertools import pairwise
from typing import Literal, TypeAlias

from loupe.metrics.field_values import is_absent

DateOrder: TypeAlias = Literal["dmy", "mdy"]

#: Longer than any date with its weekday and time; what is longer is none.
LONGEST = 120
#: No document names an earlier year: "0008" is 2008 typed by halves, or misread.
_FIRST_YEAR = 1000
#: Years of the Buddhist era, as Thai documents count them.
_BUDDHIST, _THAI = range(2400, 2700), re.compile("[\u0e01-\u0e4e]")

_YEAR, _ONE = "([0-9]{4}|[0-9]{2})", "([0-9]{1,2})"
_YEAR_FIRST = re.compile(
    r"([0-9]{4}|'[0-9]{2})(?: ?- ?([0-9]{1,2}) ?- ?| ?/ ?([0-9]{1,2}) ?/ ?|\. ?([0-9]{1,2})\. ?)([0-9]{1,2})\.?"
)
_COMPACT = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})")
_DOTTED = re.compile(rf"{_ONE}\. ?{_ONE}\. ?{_YEAR}\.?")
_EITHER = re.compile(rf"{_ONE} ?(?:/ ?{_ONE} ?/|- ?{_ONE} ?-) ?{_YEAR}")
_CJK = re.compile(r"([0-9]{4}) ?(?:年|년) ?([0-9]{1,2}) ?(?:月|월) ?([0-9]{1,2}) ?(?:日|일|号|號)")
#: The year before the first of an era.
_ERAS = {
    **dict.fromkeys(("令和", "令", "r"), 2018),
    **dict.fromkeys(("平成", "平", "h"), 1988),
    **dict.fromkeys(("昭和", "昭", "s"), 1925),
    **dict.fromkeys(("大正", "大", "t"), 1911),
    **dict.fromkeys(("明治", "明", "m"), 1867),
    **dict.fromkeys(("中華民國", "中華民国", "中华民国", "民國", "民国", ""), 1911),
}
#: Without an era, a year of three digits is Taiwanese.
_OF_ERA = re.compile(
    rf"(?:({'|'.join(filter(None, _ERAS))})\.? ?(元|[0-9]{{1,3}})|()(1[0-9]{{2}}))"
    r"(?: ?年 ?([0-9]{1,2}) ?月 ?([0-9]{1,2}) ?日|([./-]) ?([0-9]{1,2})\7 ?([0-9]{1,2})\.?)"
)
#: The same year once more, 令和6年(2024年), and what only says how it is counted.
_YEAR_AGAIN = re.compile(r" ?\([^()]{1,8}年\)|\A(?:西暦|西元|公元|서기) ?")
_CJK_NUMBER = re.compile("[〇零一二三四五六七八九十百]+(?=[年月日号號])")
_ROMAN = dict(
    zip(("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii"), range(1, 13), strict=True)
)
#: Articles, ordinals, and words for day and year beside those of the CLDR.
_SMALL_WORDS = frozenset(
    (
        *("the", "of", "den", "le", "el", "il", "del", "st", "nd", "rd", "th", "er", "eme", "e", "o", "a", "day", "ad"),
        *("ce", "°", "ngay", "nam", "года", "год", "року", "рік", "година", "roku", "พ.ศ", "ค.ศ", "م", "ء"),
    )
)
_VIETNAMESE_MONTH = frozenset(("thang", "thg"))
_TOKEN = re.compile(r"[0-9]+|[^\s0-9,،、/()\[\]–-]+")
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
    >>> normalize_date("2024. 5. 6."), normalize_date("令和6年5月6日"), normalize_date("6 мая 2024 г.")
    ('2024-05-06', '2024-05-06', '2024-05-06')
    """
    if is_absent(value):
        return ""
    days = _days(value, order)
    return days[0] if days else None


def _days(value: str, order: DateOrder) -> tuple[str, ...]:
    """The days that a text may name, the likelier first: listopad is November in Polish and October in Croatian."""
    text = value.strip()
    if len(text) > LONGEST:
        return ()
    text = fold_date(text)
    bare = _without_time(text)
    # A month is looked for first: "mar" is March and a French or Spanish Tuesday.
    return (
        _parsed(bare, order)
        or _parsed(_without_weekday(bare), order)
        or _parsed(_without_time(_without_weekday(text)), order)
    )


def dates_match(prediction: str, reference: str, order: DateOrder = "dmy") -> bool:
    """True if both name the same day, or both say that there is none. A text without a readable date matches nothing.

    >>> dates_match("26.11.25", "2025-11-26"), dates_match("soon", "soon")
    (True, False)
    """
    if is_absent(prediction) or is_absent(reference):
        return is_absent(prediction) and is_absent(reference)
    return not set(_days(prediction, order)).isdisjoint(_days(reference, order))


def fold_date(text: str) -> str:
    """One spelling for digits of all scripts, accents, case, marks of direction and white space; "日" and such stay.

    >>> fold_date("６ Mayıs\u200f 2024"), fold_date("令和六年五月二十一日")
    ('6 mayis 2024', '令和6年5月21日')
    """
    plain = unicodedata.normalize("NFKC", text).replace(_HYPHEN, "-").replace("’", "'")
    decomposed = unicodedata.normalize("NFD", plain.casefold().replace("ı", "i"))
    kept = (char for char in decomposed if not unicodedata.combining(char) and unicodedata.category(char) != "Cf")
    digits = (str(unicodedata.decimal(char, char)) for char in kept)
    joined = " ".join(unicodedata.normalize("NFC", "".join(digits)).split())
    return joined if joined.isascii() else _CJK_NUMBER.sub(_in_digits, joined)


def _in_digits(number: re.Match[str]) -> str:
    """Chinese numerals as digits: 二〇二四 is 2024, 二十一 is 21."""
    values = [int(unicodedata.numeric(char)) for char in number[0]]
    if max(values) < 10:
        return "".join(map(str, values))
    total = open_ = 0
    for value in values:
        if value < 10:
            open_ = value
        else:
            total, open_ = total + (open_ or 1) * value, 0
    return str(total + open_)


def words_of(text: str) -> list[str]:
    """The words and numbers of a folded date; dots at the ends of words go."""
    found = (token.strip(".'·") for token in _TOKEN.findall(text))
    return [word for word in found if word]


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
    if first.strip("().,") in _other_words():
        text = rest
    elif "," in first and first.partition(",")[0].strip(".") in _other_words():
        text = text.partition(",")[2].lstrip()
    rest, _, last = text.rpartition(" ")
    return rest.rstrip(" ,") if last.strip("().,") in _other_words() else text


def _parsed(text: str, order: DateOrder) -> tuple[str, ...]:
    if not text.isascii():
        text = _YEAR_AGAIN.sub("", text)
    if found := _YEAR_FIRST.fullmatch(text) or _COMPACT.fullmatch(text) or _CJK.fullmatch(text):
        year, month, day = (part for part in found.groups() if part is not None)
        return _iso(year.lstrip("'"), [int(month)], int(day))
    if found := _OF_ERA.fullmatch(text):
        era, year = found[1] or "", found[2] or found[4]
        month, day = found[5] or found[8], found[6] or found[9]
        return _iso(str(_ERAS[era] + (1 if year == "元" else int(year))), [int(month)], int(day))
    if found := _DOTTED.fullmatch(text):
        return _iso(found[3], [int(found[2])], int(found[1]))
    if found := _EITHER.fullmatch(text):
        first, second, year = (part for part in found.groups() if part is not None)
        month, day = _month_and_day(int(first), int(second), order)
        return _iso(year, [month], day)
    return _in_words(text)


def _in_words(text: str) -> tuple[str, ...]:
    """A date with a month in letters, in any order; other words must be such as stand in dates."""
    words = words_of(text)
    numbers = [word for word in words if word.isdigit()]
    names = [word for word in words if not word.isdigit()]
    months: tuple[int, ...]
    counted = [number for word, number in pairwise(words) if word in _VIETNAMESE_MONTH and number.isdigit()]
    if counted:
        months = (int(counted[0][:2]),)
        numbers.remove(counted[0])
        names = [name for name in names if name not in _VIETNAMESE_MONTH]
    else:
        months = _take_month(names)
    if not months or len(numbers) != 2 or not _other_words().issuperset(names):
        return ()
    (day, year) = numbers[::-1] if len(numbers[0]) == 4 else numbers
    if len(day) > 2 or len(year) not in (2, 4):
        return ()
    if _THAI.search(text) and int(year) in _BUDDHIST:
        year = str(int(year) - 543)
    return _iso(year, months, int(day))


def _take_month(names: list[str]) -> tuple[int, ...]:
    """The months that one of the words means; the word is taken out. A weekday may be spelled as a month, too."""
    for first, second in pairwise(names):
        if months := _month_names().get(f"{first}_{second}"):
            names.remove(first)
            names.remove(second)
            return months
    for known in (_month_names(), {name: (month,) for name, month in _ROMAN.items()}):
        found = [name for name in names if name in known]
        if len(found) > 1:
            found = [name for name in found if name not in _other_words()]
        if found:
            names.remove(found[0])
            return known[found[0]]
    return ()


@cache
def _month_names() -> Mapping[str, tuple[int, ...]]:
    """Month names of all languages; the month that is meant more often comes first."""
    from loupe.metrics.date_words import AMBIGUOUS, MONTHS

    found: dict[str, tuple[int, ...]] = {}
    for month, names in enumerate(MONTHS, 1):
        for name in names.split():
            others = found.get(name, ())
            found[name] = (month, *others) if AMBIGUOUS.get(name) == month else (*others, month)
    return found


@cache
def _other_words() -> frozenset[str]:
    from loupe.metrics.date_words import OTHERS

    return frozenset(OTHERS.split()) | _SMALL_WORDS


def _month_and_day(first: int, second: int, order: DateOrder) -> tuple[int, int]:
    """Decide which of two numbers is the month: not the one above 12; else as `order` has it."""
    if first > 12:
        return second, first
    if second > 12:
        return first, second
    return (second, first) if order == "dmy" else (first, second)


def _iso(year: str, months: Iterable[int], day: int) -> tuple[str, ...]:
    number = int(year)
    if len(year) == 4 and number < _FIRST_YEAR:
        return ()
    if len(year) == 2:
        number += 2000 if number < 70 else 1900
    found = []
    for month in months:
        with suppress(ValueError):
            found.append(date(number, month, day).isoformat())
    return tuple(found)
