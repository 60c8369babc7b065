r"""The tables of a page's answer, in whatever way a model spells them: HTML, LaTeX tabulars, or Markdown.

Our own definition (`loupe-strip`): docs/protocols/dp_bench.md#loupe-strip. The first spelling that occurs is taken.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from loupe.benchmarks.shared.table_answers.pipe_tables import pipe_tables
from loupe.benchmarks.shared.table_answers.spans import environments, html_tables

_HEADER_CELL = re.compile(r"(</?)th\b", re.IGNORECASE)
_SECTION = re.compile(r"</?(?:thead|tbody)\b[^<>]*>", re.IGNORECASE)
_SPACE_IN_CELL = re.compile(r"(?<=>)\s+|\s+(?=<)")
_RULES = re.compile(r"\\(?:hline|toprule|midrule|bottomrule)\b|\\cline\{[^{}]*\}")
_ROW_END = re.compile(r"\\\\(?:\[[^\[\]]*\])?")
_CELL_END = re.compile(r"(?<!\\)&")
_BOLD = re.compile(r"\\textbf\{([^{}]*)\}|\*\*([^*]*)\*\*")
_ESCAPED = re.compile(r"\\([%&$#_])")


def tables_of_answer(answer: str) -> list[str]:
    """All tables of a page in order, as `<table>` of `tr` and `td`, without sections or space around cell texts."""
    for found in (_html_tables, _latex_tables, _pipe_tables):
        tables = [_uniform(table) for table in found(answer)]
        if tables:
            return tables
    return []


def _html_tables(text: str) -> Iterator[str]:
    return (text[span.start : span.end] for span in html_tables(text))


def _latex_tables(text: str) -> Iterator[str]:
    return (table_of_tabular(text[span.start : span.end]) for span in environments(text, "tabular"))


def _pipe_tables(text: str) -> Iterator[str]:
    return (table.html for table in pipe_tables(text))


def _uniform(table: str) -> str:
    return _SPACE_IN_CELL.sub("", _SECTION.sub("", _HEADER_CELL.sub(r"\1td", table)))


def table_of_tabular(source: str) -> str:
    r"""A `\begin{tabular}..\end{tabular}` as HTML, spans of `\multicolumn` and `\multirow` included."""
    inside = source.removeprefix("\\begin{tabular}").removesuffix("\\end{tabular}").lstrip()
    if inside.startswith("["):
        inside = inside.partition("]")[2].lstrip()
    _, inside = _arguments(inside, 1)
    rows = (_RULES.sub("", row) for row in _ROW_END.split(inside))
    cells = ("".join(map(_cell, _CELL_END.split(row))) for row in rows if row.strip())
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def _cell(text: str) -> str:
    spans = ""
    text = text.strip()
    for command, attribute in (("\\multicolumn", "colspan"), ("\\multirow", "rowspan")):
        if text.startswith(command):
            given, rest = _arguments(text[len(command) :], 3)
            if len(given) == 3 and given[0].strip().isdecimal():
                spans += f' {attribute}="{int(given[0][:6])}"'
                text = (given[2] + rest).strip()
    return f"<td{spans}>{html.escape(_plain(text), quote=False)}</td>"


def _plain(text: str) -> str:
    return _ESCAPED.sub(r"\1", _BOLD.sub(lambda bold: bold[1] or bold[2] or "", text)).strip()


def _arguments(text: str, count: int) -> tuple[list[str], str]:
    """Up to `count` brace groups at the start of a text, and what follows them; a group may hold groups."""
    found: list[str] = []
    position = 0
    while len(found) < count and text[position : position + 1] == "{":
        depth = 0
        for brace in re.finditer(r"\\.|[{}]", text[position:], re.DOTALL):
            depth += {"{": 1, "}": -1}.get(brace[0], 0)
            if depth == 0:
                break
        else:
            break
        end = position + brace.end()
        found.append(text[position + 1 : end - 1])
        position = end
    return found, text[position:]
