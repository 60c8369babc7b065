r"""Which formulas OmniDocBench 1.6 takes for several lines, and what these are.

Protocol: docs/protocols/omnidocbench_v16.md#splitting.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from loupe.benchmarks.omnidocbench.text.formula_delimiters import without_delimiters, without_tags
from loupe.benchmarks.omnidocbench.text.formula_rows import (
    Environment,
    cells_of,
    environment_at,
    rows_of,
    without_leading_markers,
)
from loupe.benchmarks.omnidocbench.text.spacing_commands import end_without_spacing

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
    """Whether the rows of an environment are formulas of their own, and not one case distinction, matrix or system."""
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
    """Whether two rows have something before their first `&`, and something behind."""
    cells = map(cells_of, rows)
    return sum(len(row) > 1 and bool(without_tags(row[0]).strip()) for row in cells) >= 2


def _columns(groups: str) -> str:
    """The letters of an array's columns; "" where there are none, or others than l, c and r."""
    group = _FIRST_GROUP.match(groups)
    columns = "".join(group[1].split()).replace("|", "") if group else ""
    columns = _INSERTED_COLUMNS.sub("", columns)
    return columns if set(columns) <= set("lcr") else ""


def without_end_labels(text: str) -> str:
    r"""What follows an environment without `\label`, `\tag` and numbers in brackets at its end."""
    text = _LABEL.sub("", text).rstrip()
    end, tag = len(text), _TAG.search(text)  # no cut goes through a tag, so the first one stays the first
    while (cut := tag.start() if tag and tag.end() == end else _start_of_end_number(text, end)) >= 0:
        end = end_without_spacing(text, _SPACINGS, cut)
    return text[:end]


def _start_of_end_number(text: str, end: int) -> int:
    """Where the number in brackets begins that the text ends with, up to `end`; -1 where it ends with none."""
    opening = {")": "(", "]": "["}.get(text[end - 1 : end])
    start = text.rfind(opening, 0, end - 1) if opening else -1
    if start < 0:
        return -1
    label = text[start + 1 : end - 1].strip()
    before = text[max(0, start - 10) : start]
    stands_alone = not before or before[-1].isspace() or _SPACING_TOKEN.search(before)
    is_number = _EQUATION_NUMBER.fullmatch(label) and not _WORD_OF_LETTERS.fullmatch(label)
    return start if stands_alone and is_number else -1
