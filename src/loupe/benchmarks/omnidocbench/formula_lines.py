"""Split LaTeX formulas of several lines into lines, rows and cells, as OmniDocBench 1.6 does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final, NamedTuple

from loupe.benchmarks.omnidocbench.formula_normalization import without_delimiters, without_tags

_ALIGNED: Final = frozenset(("aligned", "align", "align*", "alignedat", "alignedat*"))
_PREFIX = re.compile(r"\\left\s*(?:\\\{|\.)\s*")
_SUFFIX = re.compile(r"\\right\s*(?:\.|\\\})\s*\Z")
_NESTED = re.compile(
    r"\\begin\{(?:array|aligned|align\*?|alignedat\*?|split|gathered|multline\*?|flalign\*?|eqnarray\*?|cases)\}"
)
LOGIC = re.compile(
    r"\\(?:Rightarrow|Leftrightarrow|Longrightarrow|Longleftrightarrow|longrightarrow|longleftrightarrow|implies|"
    r"therefore|because|uparrow|downarrow|Updownarrow|forall|exists)\b|单调|否定"
)
_CASE = re.compile(
    r"\(?\d|\\(?:Rightarrow|Leftrightarrow|Longrightarrow|Longleftrightarrow|implies|therefore|uparrow|downarrow|"
    r"Updownarrow|leftarrow|rightarrow)"
)
_TEXT = re.compile(r"\\(?:text|mathrm|operatorname)\s*\{")
_FIRST_GROUP = re.compile(r"\{([^{}]*)\}")
_INSERTED_COLUMNS = re.compile(r"[@!]\{[^{}]*\}")
_LABEL = re.compile(r"\\label\{[^{}]*\}")
_TAG = re.compile(r"\\tag\*?\{[^{}]*\}")
_SPACING_TOKEN = re.compile(r"\\(?:qquad|quad|[,;!>:])|~")
_SPACINGS: Final = (r"\qquad", r"\quad", *(rf"\{sign}" for sign in ",;!>:"), "~")
_WORD_OF_LETTERS = re.compile("[a-z]{1,3}")
_EQUATION_NUMBER = re.compile(r"[A-Za-z0-9.\-#]+|(?:\\[A-Za-z#]+)+")
_CACHED_LENGTH: Final = 2_000


class Lines(NamedTuple):
    """A formula of several lines: what they stand in, the lines, and the text behind, which is part of the last one."""

    body: str
    lines: Sequence[str]
    suffix: str = ""
    environment: str = ""


def lines_of(formula: str) -> Lines | None:
    r"""The lines of a formula; None where it has one, or belongs together.

    >>> lines_of(r"\[\begin{aligned} a &= b \\ &= c \end{aligned}\]").lines
    ['a &= b', '&= c']
    """
    if "\\\\" not in formula:
        return None
    return _lines_of_short(formula) if len(formula) <= _CACHED_LENGTH else _lines_of(formula)


def _lines_of(formula: str) -> Lines | None:
    formula = without_delimiters(formula)
    found = _environment_body(formula)
    if found is None:
        rows = rows_of(formula)
        found = (formula, rows, "", "") if len(rows) > 1 else None
    if found is None:
        return None
    body, rows, suffix, environment = found
    lines = [line for row in rows if (line := without_tags(row).strip())]
    if len(lines) < 2:
        return None
    if label := without_tags(suffix).strip():
        lines[-1] = f"{lines[-1]} {label}"
    return Lines(body, lines, suffix, environment)


_lines_of_short = lru_cache(maxsize=2048)(_lines_of)


def _environment_body(formula: str) -> tuple[str, list[str], str, str] | None:
    """Body, rows, the text behind, and the name of the environment that is the formula; None where it is kept whole."""
    prefix = _PREFIX.match(formula)
    rest = formula[prefix.end() :] if prefix else formula
    suffix = _SUFFIX.search(rest)
    rest = rest[: suffix.start()].rstrip() if suffix else rest
    environment = environment_at(rest, 0)
    if environment is None:
        return None
    body = rest[environment.body_start : environment.body_end]
    rows, following = rows_of(body), without_end_labels(rest[environment.end :])
    if not _stands_apart(environment, body, rows, is_wrapped=bool(prefix or suffix)) or len(rows_of(following)) > 1:
        return None
    return body, rows, following, environment.name


def _stands_apart(environment: Environment, body: str, rows: Sequence[str], *, is_wrapped: bool) -> bool:
    """True if the rows of an environment are formulas of their own, and not one case distinction, matrix or system."""
    later = [without_leading_markers(row) for row in rows[1:]]
    is_nested = bool(_NESTED.search(body))
    has_cases = any(_CASE.match(without_tags(row).strip()) for row in later)
    has_text = any(_TEXT.search(row) for row in later)
    if environment.name == "cases":
        if len(rows) <= 1 or not LOGIC.search(body) or any(len(cells_of(row)) > 1 for row in rows):
            return False
        return is_nested or has_text or any(LOGIC.search(row) for row in [rows[0], *later])
    if environment.name in _ALIGNED:
        if is_nested and has_cases:
            return False
        return not (is_wrapped and (is_nested or _is_system(rows) or has_text or has_cases))
    if environment.name == "array":
        columns = _columns(environment.groups)
        one_line_each = len(columns) == 1 or (len(columns) == 2 and ("l" in columns or "r" in columns))
        if not one_line_each or (is_nested and has_cases):
            return False
        return not (is_wrapped and set(columns) == {"l"} and len(rows) > 1)
    return True


def _is_system(rows: Sequence[str]) -> bool:
    """True if two rows have something before their first `&`, and something behind."""
    cells = map(cells_of, rows)
    return sum(len(row) > 1 and bool(without_tags(row[0]).strip()) for row in cells) >= 2


def _columns(groups: str) -> str:
    """The letters of an array's columns; "" where there are none, or others than l, c and r."""
    group = _FIRST_GROUP.match(groups)
    columns = "".join(group[1].split()).replace("|", "") if group else ""
    columns = _INSERTED_COLUMNS.sub("", columns)
    return columns if set(columns) <= set("lcr") else ""


def without_end_labels(text: str) -> str:
    r"""Return what follows an environment, without `\label`, `\tag` and numbers in brackets at its end."""
    text = _LABEL.sub("", text).rstrip()
    end, tag = len(text), _TAG.search(text)  # no cut goes through a tag, so the first one stays the first
    while (cut := tag.start() if tag and tag.end() == end else _start_of_end_number(text, end)) >= 0:
        end = end_without_spacing(text, _SPACINGS, cut)
    return text[:end]


def _start_of_end_number(text: str, end: int) -> int:
    """Return the start of the number in brackets that ends the text, up to `end`; -1 if none does."""
    opening = {")": "(", "]": "["}.get(text[end - 1 : end])
    start = text.rfind(opening, 0, end - 1) if opening else -1
    if start < 0:
        return -1
    label = text[start + 1 : end - 1].strip()
    before = text[max(0, start - 10) : start]
    stands_alone = not before or before[-1].isspace() or _SPACING_TOKEN.search(before)
    is_number = _EQUATION_NUMBER.fullmatch(label) and not _WORD_OF_LETTERS.fullmatch(label)
    return start if stands_alone and is_number else -1


_CONTEXT: Final = 200
#: How deep environments are looked into; what lies deeper is kept as it is.
_MAX_NESTING: Final = 30


def with_logic_braces(formula: str) -> str:
    r"""The formula with such environments rewritten.

    >>> with_logic_braces(r"\begin{cases} a \\ \Rightarrow b \end{cases}")
    '\\left\\{ \\begin{array}{l} a \\\\ \\Rightarrow b \\end{array} \\right.'
    """
    return _rewritten(formula, 0) if "\\begin{cases}" in formula else formula


def _rewritten(text: str, depth: int) -> str:
    parts: list[str] = []
    cursor = 0
    while (begin := text.find("\\begin{", cursor)) >= 0 and depth < _MAX_NESTING:
        environment = environment_at(text, begin)
        if environment is None:
            if begins_environment(text, begin):
                break
            end = begin + len("\\begin{")
            parts.append(text[cursor:end])
            cursor = end
            continue
        body = _rewritten(text[environment.body_start : environment.body_end], depth + 1)
        parts.append(text[cursor:begin])
        if environment.name == "cases" and _is_argument(body, text[environment.end : environment.end + _CONTEXT]):
            parts.append(f"\\left\\{{ \\begin{{array}}{{l}} {body.strip()} \\end{{array}} \\right.")
        else:
            parts += (text[begin : environment.body_start], body, text[environment.body_end : environment.end])
        cursor = environment.end
    return "".join([*parts, text[cursor:]])


def _is_argument(body: str, following: str) -> bool:
    rows = rows_of(body)
    if len(rows) <= 1 or any(len(cells_of(row)) > 1 for row in rows):
        return False
    following = following.lstrip()
    return bool(LOGIC.search(body) or LOGIC.search(following) or begins_environment(following, 0))


_STARRED: Final = ("align", "alignedat", "gather", "multline", "flalign", "eqnarray")
#: Environments whose rows are lines of their own.
ENVIRONMENTS: Final = frozenset(
    ("array", "aligned", "split", "gathered", "cases", *_STARRED, *(f"{name}*" for name in _STARRED))
)
_MARK = re.compile(r"\\(?:begin|end)\{|\\\\|[{}]")
_MARK_OR_CELL = re.compile(r"\\(?:begin|end)\{|&")
_SPACING = re.compile(r"\s*\*?")
_BEGIN = re.compile(r"\\begin\{([^{}]+)\}\s*+((?>(?:\{[^{}]*\}\s*+)*))")
_LEADING_MARKERS = re.compile(r"[\s&]+")


class Mark(NamedTuple):
    """Something that structures a formula, and in how many environments."""

    sign: str
    start: int
    end: int
    depth: int


class Environment(NamedTuple):
    r"""An environment in a formula: `start` and `end` include its marks, the body stands between them.

    `groups` are the groups directly behind its name, such as the columns of an array.
    """

    name: str
    groups: str
    start: int
    body_start: int
    body_end: int
    end: int


def rows_of(formula: str, *, escapes: bool = True) -> list[str]:
    r"""The rows between the line breaks that stand in no brace and no environment; empty ones are left out.

    Without `escapes`, an escaped brace is one, too.

    >>> rows_of(r"a \\[2pt] b \\ {c \\ d}")
    ['a', 'b', '{c \\\\ d}']
    """
    if "\\\\" not in formula:
        return [row] if (row := formula.strip()) else []
    rows, start, braces = [], 0, 0
    marks = _Marks(formula, _MARK)
    for mark in marks:
        if mark.start < start:  # in the bracket of a line break
            continue
        if mark.sign == "\\\\":
            if braces == 0 and mark.depth == 0:
                rows.append(formula[start : mark.start].strip())
                start = _behind_line_break(formula, mark.end)
            else:  # the second of two backslashes may begin a mark
                marks.position = mark.start + 1
        elif not (escapes and is_escaped(formula, mark.start)):
            braces = braces + 1 if mark.sign == "{" else max(0, braces - 1)
    rows.append(formula[start:].strip())
    return [row for row in rows if row]


def cells_of(row: str) -> list[str]:
    """Return the texts between the `&` that stand in no environment, without blanks around it; one cell at least."""
    if "&" not in row:
        return [row.strip()]
    cells, start = [], 0
    for mark in _Marks(row, _MARK_OR_CELL):
        if mark.depth == 0 and not is_escaped(row, mark.start):
            cells.append(row[start : mark.start].strip())
            start = mark.end
    return [*cells, row[start:].strip()]


def without_leading_markers(row: str) -> str:
    """A row without the `&` that it begins with."""
    markers = _LEADING_MARKERS.match(row)
    return row[markers.end() :] if markers else row


def is_escaped(text: str, position: int) -> bool:
    """True if an odd number of backslashes stands before."""
    start = position
    while start > 0 and text[start - 1] == "\\":
        start -= 1
    return (position - start) % 2 == 1


def begins_environment(text: str, position: int) -> bool:
    """True if an environment of several lines begins here, even if it does not end."""
    begin = _BEGIN.match(text, position)
    return begin is not None and begin[1] in ENVIRONMENTS


def environment_at(text: str, position: int) -> Environment | None:
    """The environment of several lines that begins here; None where none does, or it does not end."""
    begin = _BEGIN.match(text, position)
    if begin is None or begin[1] not in ENVIRONMENTS:
        return None
    name, depth = begin[1], 1
    for mark in _marks_of(name).finditer(text, begin.end()):
        depth += 1 if mark[1] == "begin" else -1
        if depth == 0:
            return Environment(name, begin[2], begin.start(), begin.end(), mark.start(), mark.end())
    return None


@cache
def _marks_of(name: str) -> re.Pattern[str]:
    return re.compile(rf"\\(begin|end)\{{{re.escape(name)}\}}")


@dataclass(slots=True)
class _Marks:
    """The marks that structure a text; the marks of environments only count how deep the others lie.

    The search goes on at `position`, which its caller may set.
    """

    text: str
    pattern: re.Pattern[str]
    position: int = 0

    def __iter__(self) -> Iterator[Mark]:
        depth, last_brace = 0, self.text.rfind("}")
        while mark := self.pattern.search(self.text, self.position):
            self.position = mark.end()
            if not mark[0].endswith("{") or len(mark[0]) == 1:
                yield Mark(mark[0], mark.start(), mark.end(), depth)
            elif self.position > last_brace:
                self.position = mark.start() + 1
            else:
                depth = depth + 1 if mark[0] == "\\begin{" else max(0, depth - 1)
                self.position = self.text.index("}", self.position) + 1


def _behind_line_break(text: str, position: int) -> int:
    """Behind white space, a star, and a bracket that follows at once."""
    spacing = _SPACING.match(text, position)
    position = spacing.end() if spacing else position
    if text.startswith("[", position) and (end := text.find("]", position)) >= 0:
        return end + 1
    return position


def end_without_spacing(text: str, commands: Sequence[str], end: int | None = None) -> int:
    r"""Return the end of a text without the blanks and the spacing commands at its end (up to `end`).

    >>> end_without_spacing(r"x\, \quad ", (r"\,", r"\quad"))
    1
    """
    end = len(text) if end is None else end
    while end:
        if text[end - 1].isspace():
            end -= 1
        elif found := next((each for each in commands if text.endswith(each, 0, end)), ""):
            end -= len(found)
        else:
            break
    return end
