"""The form in which texts are compared: both sides of every comparison are folded.

Protocol: docs/protocols/omni_parse_bench.md#folding. The order of the steps matters.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from loupe.benchmarks.omni_parse_bench.text.formula_text import with_formulas_as_text
from loupe.benchmarks.omni_parse_bench.text.view import CHECKED, UNCHECKED
from loupe.benchmarks.shared.combining_marks import with_sorted_marks

_LETTER = r"[^\W\d_]"
_LINE_HYPHEN = re.compile(rf"(?<={_LETTER})[-\u2010\u2011]\s+({_LETTER})")
_RAISED_DIGITS = re.compile(r"(?<=\d)([⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
_TEX_QUOTE = re.compile("″|‴|‘‘|’’|``|''")
_ACUTE_APOSTROPHE = re.compile(f"(?<={_LETTER})´(?={_LETTER})")
_ACCENTS = dict(zip("´¨˜ˆ˚¸˘ˇ˙˝", "\u0301\u0308\u0303\u0302\u030a\u0327\u0306\u030c\u0307\u030b", strict=True))
_SPACING_ACCENT = re.compile(f"(?<={_LETTER})[{''.join(_ACCENTS)}]")
_TICKED, _UNTICKED = re.compile(r"\[(?:[xX✓✗]|checked)\]", re.I), re.compile(r"\[ ?\]|\[unchecked\]", re.I)
_MARK = re.compile(r"\[\^\s*(\w{1,3})\s*\]|\[\s*(\d{1,3})\s*\]")
_BULLET = re.compile(r"(?m)^([ \t]*)[•‣◦▪▶∙●](?=\s|$)")
#: Signs that no step but the last one changes; three full stops are leaders.
_UNCHANGED = re.compile(r"[A-Za-z0-9 \n,.:;()/%+&#@!?\"<>]*")
_LEADERS = re.compile(r"(?:[.…·_\-–—=*]\s?){3,}")

#: Format characters (category Cf) that are seen: signs that stand around or under numbers.
_SEEN_FORMATS = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
_BOXES = str.maketrans(dict.fromkeys("☑☒■▣✓✔✗✘", CHECKED) | dict.fromkeys("☐□◻◼❏▢⬜", UNCHECKED))


def _span(first: int, last: int) -> str:
    return "".join(map(chr, range(first, last + 1)))


_TO_RIGHT = "↠↣↦↪↬↳⇀⇁⇉⇒⇛⇝⇢⇥⇨⇰⇾➔" + _span(0x2798, 0x27AF) + _span(0x27B1, 0x27BE) + "⟶⟹⟼⟾⭢⭬⭲⮊⮕⮩"
_FORMS = str.maketrans(
    dict.fromkeys(_span(0x2010, 0x2015) + "−", "-")
    | dict.fromkeys("‘’‚‛ʼ`´′", "'")
    | dict.fromkeys("“”„‟«»", '"')
    | dict.fromkeys("\u00a0\u202f\u205f\u3000" + _span(0x2000, 0x200A), " ")
    | dict.fromkeys(_TO_RIGHT, "→")
    | dict.fromkeys("↞↢↤↩↫↲↼↽⇇⇐⇚⇜⇠⇤⇦⇽⟵⟸⟻⟽⬅⭠⭪⭰⮈", "←")
    | dict.fromkeys("↟↥↾↿⇈⇑⇞⇡⇧⇪⬆⭡⭫⭱⮉", "↑")
    | dict.fromkeys("↡↧⇂⇃⇊⇓⇟⇣⇩⬇⭣⭭⭳⮋", "↓")
    | {"⁄": "/", "…": "..."}
    | dict(zip("。，．：；！？（）、％＝", ".,.:;!?(),%=", strict=True))
)


class _Unseen(dict[int, str | None]):
    """What is deleted: format characters and those of private use, each looked up once."""

    def __missing__(self, code: int) -> str | None:
        sign = chr(code)
        deleted = 0xE000 <= code <= 0xF8FF or (unicodedata.category(sign) == "Cf" and sign not in _SEEN_FORMATS)
        self[code] = None if deleted else sign
        return self[code]


_UNSEEN = _Unseen()


def fold(text: str) -> str:
    """The text as it is compared. Raises GradingError where the official program raises."""
    if _UNCHANGED.fullmatch(text) and text.count(".") < 3:
        return " ".join(text.split()).lower()
    text = with_formulas_as_text(text)
    if "-" in text or not text.isascii():
        text = _LINE_HYPHEN.sub(lambda hyphen: hyphen[1] if hyphen[1].islower() else hyphen[0], text)
    plain = text.isascii()
    if not plain:
        text = _RAISED_DIGITS.sub(r" \1", text)
    text = _unified(text, plain=plain)
    if "[" in text:
        text = _UNTICKED.sub(UNCHECKED, _TICKED.sub(CHECKED, text))
    if not plain:
        text = text.translate(_BOXES)
    if "[" in text:
        text = _MARK.sub(lambda mark: f" {mark[1] or mark[2]}", text)
    if not plain:
        text = _BULLET.sub(r"\1 ", text)
    text = _LEADERS.sub(" ", text)
    text = text.replace("`", "'") if plain else _unified(text, plain=False).translate(_FORMS)
    return " ".join(text.split()).lower()


def _unified(text: str, *, plain: bool) -> str:
    """Quotes of TeX, accents that stand for themselves, compatibility forms; without what cannot be seen."""
    if plain:
        return text.replace("``", '"').replace("''", '"') if "``" in text or "''" in text else text
    text = _TEX_QUOTE.sub('"', text)
    text = _SPACING_ACCENT.sub(lambda accent: _ACCENTS[accent[0]], _ACUTE_APOSTROPHE.sub("'", text))
    return unicodedata.normalize("NFKC", with_sorted_marks(text)).translate(_UNSEEN)


def squeeze(text: str) -> str:
    """The folded text without white space."""
    return "".join(fold(text).split())


def fold_short(text: str) -> str:
    """`fold`, remembered: for texts of tests and cells, which come again."""
    return _remembered(text) if len(text) <= _LONGEST_REMEMBERED else fold(text)


_LONGEST_REMEMBERED = 500
_remembered = lru_cache(maxsize=32_768)(fold)
