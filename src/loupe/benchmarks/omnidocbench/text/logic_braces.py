r"""Steps of an argument in a `cases` environment, rewritten as one brace before an array, so that they can be lines.

Protocol: docs/protocols/omnidocbench_v16.md#logic-braces.
"""

from __future__ import annotations

from typing import Final

from loupe.benchmarks.omnidocbench.text.formula_lines import LOGIC
from loupe.benchmarks.omnidocbench.text.formula_rows import begins_environment, cells_of, environment_at, rows_of

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
