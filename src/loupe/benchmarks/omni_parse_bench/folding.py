"""Fold texts for comparison: both sides of every comparison are folded.

Formulas become the characters that they show: `$c_{\text{MC}}$` is cMC. Numbers are found digit for digit.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from loupe.benchmarks.omni_parse_bench.view import CHECKED, UNCHECKED, Held, Mark, between, replaced
from loupe.benchmarks.shared.answer_texts import with_sorted_marks
from loupe.benchmarks.shared.latex_characters_2_10 import convert

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
    """The characters that are deleted: format characters and those of private use, each looked up once."""

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


_BRACKET, _BRACKET_END = re.compile(r"\\\["), re.compile(r"\\\]")
_PARENTHESIS, _PARENTHESIS_END = re.compile(r"\\\("), re.compile(r"\\\)")
_DISPLAYED = re.compile(r"\$\$(.+?)\$\$", re.S)
_IN_LINE = re.compile(r"\$([^$\n]+?)\$")
_LETTERS = re.compile(r"[^\W\d_]{1,3}")
_SPACED_DIGITS = re.compile(r"\d[\d.,]*(?:\s+[\d.,]+)+")
_MARKUP = re.compile(r"[\\^_{}]")
_LEFT_OVER = re.compile(r"[_^{}\\]")
_TEXT_GROUP = re.compile(r"\\(?:text\w*|mbox|operatorname)\s*\{(?:[^{}]|\{[^{}]*\})*\}\s*")
_CONTROL_SPACE = re.compile(r"(?<!\\)\\\s+")
_SPACE_OF_COMMAND = re.compile(r"(\\[A-Za-z]+)\s+")
_BRACED = re.compile(r"\{[^{}]*\}")
_WORD = re.compile(r"(?<![\\\w&])[^\W\d_]{3,}")
#: pylatexenc 2.11, unlike 2.10, shows what stands in it, as in `\mathrm`.
_ENSUREMATH = re.compile(r"(?<!\\)((?:\\\\)*)\\ensuremath(?![^\W\d_])")
_LONGEST, _MOST_BLANKS, _PROSE_WORDS = 120, 4, 3


def with_formulas_as_text(text: str) -> str:
    """The text with its formulas as characters. Raises GradingError where the official program raises."""
    if "\\[" in text:
        found = between(text, _BRACKET, _BRACKET_END, least=1)
        text = replaced(text, found, _between_signs(text, "$$"))
    if "\\(" in text:
        found = between(text, _PARENTHESIS, _PARENTHESIS_END, least=1)
        text = replaced(text, found, _between_signs(text, "$"))
    if "$" not in text:
        return text
    text = _DISPLAYED.sub(lambda found: _shown(found[1], found[0], in_line=False), text)
    return _IN_LINE.sub(lambda found: _shown(found[1], found[0], in_line=True), text)


def _between_signs(text: str, sign: str) -> Callable[[Mark, Mark], str]:
    return lambda start, end: f"{sign}{text[start.end() : end.start()]}{sign}"


def _shown(body: str, written: str, *, in_line: bool) -> str:
    """Return what a formula shows, or the formula as it is written."""
    if _LETTERS.fullmatch(body.strip()):
        return body.strip()
    if len(body) > _LONGEST and "\ue000" not in body and not _SPACED_DIGITS.fullmatch(body):
        return written
    dense = _dense(body)
    if _SPACED_DIGITS.fullmatch(body):
        return dense
    if dense.count(" ") > _MOST_BLANKS or len(body) > _LONGEST or (in_line and _is_prose(body)):
        return written
    if not _MARKUP.search(body):
        return body if body == body.strip() else written
    text = _characters(dense)
    return _LEFT_OVER.sub("", (body if text is None else text).replace("∘", "°").replace("\\circ", "°"))


@lru_cache(maxsize=8_192)
def _characters(latex: str) -> str | None:
    return convert(_ENSUREMATH.sub(r"\1\\mathrm", latex)).text


def _dense(body: str) -> str:
    """Without white space that shows nothing: all but that in texts, behind commands and behind a backslash."""
    held = Held()
    body = held.hold(body, _TEXT_GROUP)
    body = _SPACE_OF_COMMAND.sub(lambda found: found[1] + "\0", _CONTROL_SPACE.sub("\0", body))
    return held.put_back("".join(body.split()).replace("\0", " "))


def _is_prose(body: str) -> bool:
    """True if words stand between the dollars, outside of all braces."""
    while (outside := _BRACED.sub(" ", body)) != body:
        body = outside
    return len(_WORD.findall(body)) >= _PROSE_WORDS


#: Blanks and dashes of numbers, in folded texts.
_SIGNS = str.maketrans({"\u00a0": " ", "\u202f": " ", "−": "-", "–": "-", "—": "-"})
_WRITTEN = re.compile(
    r"\(?(?P<sign>[-−–])?[$€£¥]?"
    r"(?P<digits>\d{1,3}(?:[,.\u202f ]\d{3})*(?:[.,]\d+)?|\d+(?:[.,]\d+)?)"
    r"(?P<percent>%)?\)?[.,;:]?"
)
_MARKS = re.compile("[.,]")


@dataclass(frozen=True, slots=True)
class PrintedNumber:
    """`digits` with a point before the decimals; `written` as it was, separators included."""

    digits: str
    negative: bool
    percent: bool
    written: str = ""


def read_number(text: str) -> PrintedNumber | None:
    """The number that a text is; None where it is none, or one that may be read in two ways."""
    # `$` of the official pattern also stands before a last newline, which stripping takes away.
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        return None
    digits = _with_point(found["digits"].replace(" ", "").replace("\u202f", ""))
    if digits is None:
        return None
    return PrintedNumber(digits, bool(found["sign"]), bool(found["percent"]), found["digits"])


def _with_point(digits: str) -> str | None:
    """Digits with a point before the decimals, without other separators; None if that cannot be told."""
    marks = _MARKS.findall(digits)
    if not marks:
        return digits
    last = max(digits.rfind("."), digits.rfind(","))
    whole, decimals = _MARKS.sub("", digits[:last]), digits[last + 1 :]
    if len(marks) > 1:
        is_point = marks[-1] not in marks[:-1] or len(decimals) in (1, 2)
        return f"{whole}.{decimals}" if is_point else whole + decimals
    if len(decimals) == 3 and whole != "0":
        return None if marks == ["."] else whole + decimals
    if marks == [","] and len(decimals) <= 2:
        return None
    return f"{whole}.{decimals}"


def number_in(number: PrintedNumber, folded: str) -> str:
    """ "" where the number stands in a folded text, else why not: `number_missing`, `sign` or `percent`."""
    hits = list(_pattern(number).finditer(folded.translate(_SIGNS)))
    if not hits:
        return "number_missing"
    signs = [(hit["before"] or "").strip() == "-" for hit in hits]
    same_sign = [hit for hit, negative in zip(hits, signs, strict=True) if negative == number.negative]
    if not same_sign:
        return "number_sign"
    return "" if not number.percent or any(hit["percent"] for hit in same_sign) else "number_percent"


@lru_cache(maxsize=8_192)
def _pattern(number: PrintedNumber) -> re.Pattern[str]:
    """The number with or without marks between thousands, or as it is written; no digit may touch it."""
    whole, _, decimals = number.digits.partition(".")
    first = len(whole) % 3 or 3
    groups = [whole[:first], *(whole[start : start + 3] for start in range(first, len(whole), 3))]
    digits = r"[,\.\u202f ]?".join(map(re.escape, groups))
    if number.written != number.digits:
        digits = f"(?:{digits}|{re.escape(number.written)})"
    end = r"[.,]" + re.escape(decimals) if decimals else r"(?![.,]\d)"
    return re.compile(
        r"(?<!\d)(?<!\d[.,])(?P<before>(?<!\w)-(?=[\d$€£¥])|\(\s?)?(?:[$€£¥]\s?)?"
        rf"{digits}{end}(?P<percent>\s?%)?\)?(?!\d)"
    )
