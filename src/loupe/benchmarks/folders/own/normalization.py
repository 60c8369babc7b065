"""Normalise answers and references before they are compared: white space, case, LaTeX and Markdown spellings.

Two tables are compared by TEDS in one spelling.
Each function is applied to both sides. Definitions: docs/scoring-rules.md.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from loupe.benchmarks.folders.own.tables import read_rows, unify_tables
from loupe.benchmarks.shared.answer_texts import remove_fence
from loupe.benchmarks.shared.table_answers.spellings import cells_of_row
from loupe.metrics.teds import teds
from loupe.metrics.teds.table_tree import TableTooLargeError, TedsError
from loupe.types import Score

# Scripts written without spaces: a line break inside a sentence must not count as a character.
_CJK = "\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
_CJK_CHARACTER = re.compile(rf"([{_CJK}])")
_SPACE_AT_CJK = re.compile(rf"(?<=[{_CJK}])[ ]|[ ](?=[{_CJK}])")
_WHITESPACE = re.compile(r"\s+")
#: The same, where a single space is left alone: most are, and replacing each by itself takes time.
_NO_SINGLE_SPACE = re.compile(r" \s+|[^\S ]\s*")
_LATEX_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\S", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The rules by which a folder compares texts: `ignore_case` and `whitespace` of its loupe.toml."""

    ignore_case: bool = False
    whitespace: Literal["collapse", "keep", "ignore"] = "collapse"


def prepare_text(text: str, comparison: Comparison) -> str:
    """Unicode NFC and white space (and case) as the folder asks; the result is stripped.

    "collapse": every run of white space is one space, and none beside a CJK character. "ignore": no white space at all.
    "keep": as it is, except for the line ends of Windows.
    """
    text = unicodedata.normalize("NFC", text)
    if comparison.ignore_case:
        text = text.casefold()
    if comparison.whitespace == "keep":
        return text.replace("\r\n", "\n").strip()
    if comparison.whitespace == "ignore":
        return _WHITESPACE.sub("", text)
    text = _NO_SINGLE_SPACE.sub(" ", text).strip()
    return text if text.isascii() else _SPACE_AT_CJK.sub("", text)


def separate_words(text: str) -> str:
    """Spaces around every CJK character, which counts as a word of its own: these scripts do not mark words.

    >>> separate_words("ab 渡口")
    'ab  渡  口 '
    """
    return text if text.isascii() else _CJK_CHARACTER.sub(r" \1 ", text)


def prepare_formula(text: str) -> str:
    """LaTeX without fence, without `$` and the like around the whole, and only with white space that means something.

    >>> prepare_formula("$$ \\\\frac { a }{b} $$")
    '\\\\frac{a}{b}'
    """
    formula = remove_fence(text).strip()
    for start, end in (("$$", "$$"), ("$", "$"), ("\\[", "\\]"), ("\\(", "\\)")):
        if formula.startswith(start) and formula.endswith(end) and len(formula) >= len(start) + len(end):
            formula = formula[len(start) : len(formula) - len(end)]
            break
    tokens = _LATEX_TOKEN.findall(formula)
    joined: list[str] = []
    for token in tokens:
        # A space only where two tokens would become one: after a command word that a letter follows.
        if joined and token[0].isalpha() and joined[-1][0] == "\\" and joined[-1][-1].isalpha():
            joined.append(" ")
        joined.append(token)
    return "".join(joined)


def prepare_markdown(text: str) -> str:
    """One spelling for what Markdown spells in several ways; the words stay.

    In this order: no fence around the whole; NFC; tables in one spelling; `\\(…\\)` is `$…$` and `\\[…\\]` is `$$…$$`;
    bullets `*` and `+` are `-`; `__bold__` is `**bold**`; spaces and tabs in a run count as one, none at line ends or
    line starts; no white space inside the `|` of tables or next to HTML tags; no empty lines.
    """
    text = unify_tables(unicodedata.normalize("NFC", remove_fence(text)).replace("\r\n", "\n"))
    text = re.sub(r"\\[\[\]]", "$$", text)
    text = re.sub(r"\\[()]", "$", text)
    text = "\n$$\n".join(part.strip() for part in text.split("$$"))
    text = text.replace("__", "**")
    kept = (_prepare_line(line) for line in text.split("\n"))
    return "\n".join(line for line in kept if line)


def _prepare_line(line: str) -> str:
    line = re.sub(r"[ \t\u00a0]+", " ", line).strip()
    line = re.sub(r"^[*+] ", "- ", line)
    if line.startswith("|"):
        cells = [cell.replace("|", "\\|") for cell in cells_of_row(line)]
        line = f"|{'|'.join(cells)}|"
    return re.sub(r" ?(</?[A-Za-z][^<>]*>) ?", r"\1", line)


#: Up to here a page needs no parser of HTML.
LONGEST_PAGE = 1_000_000

#: What a page of plain markup cannot hold; both sides get the same stand-in, so that equal cells stay equal.
_MARKUP = str.maketrans({"&": "＆", "<": "＜", ">": "＞"})
_UNUSUAL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def score_teds(answer: str, reference: str, comparison: Comparison) -> Score:
    """TEDS of the first tables of both, 0 to 1. 0 without a table, and, named in a tag, for work beyond all bounds."""
    found, wanted = plain_page(answer, comparison), plain_page(reference, comparison)
    try:
        if len(found) > LONGEST_PAGE:
            raise TableTooLargeError(f"{len(found):,} characters")
        value = max(0.0, teds(found, wanted, variant="omnidocbench"))
    except TedsError as error:
        return Score(measure="teds", counts=(0.0, 1.0), tags={"teds_error": type(error).__name__})
    return Score(measure="teds", counts=(value, 1.0))


def plain_page(answer: str, comparison: Comparison) -> str:
    """A page with the first table of an answer and nothing else; "" without a table."""
    rows = read_rows(answer)
    if not any(rows):
        return ""
    lines = []
    for row in rows:
        cells = []
        for cell in row:
            spans = f' rowspan="{cell.rowspan}"' if cell.rowspan > 1 else ""
            spans += f' colspan="{cell.colspan}"' if cell.colspan > 1 else ""
            text = _UNUSUAL.sub("\ufffd", prepare_text(cell.text, comparison)).translate(_MARKUP)
            cells.append(f"<td{spans}>{text}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<html><body><table>{''.join(lines)}</table></body></html>"
