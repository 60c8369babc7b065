"""Find formulas in an answer (docs/protocols/omnidocbench.md#formulas).

Version 1.6 also reads formulas in plain text and in table cells, drops short inline ones and those in descriptions of
pictures, and separates numbers and captions from a formula.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from loupe.benchmarks.omnidocbench.delimiters import Delimiters, Piece, blank, pieces, with_replacements
from loupe.benchmarks.omnidocbench.formula_lines import end_without_spacing
from loupe.benchmarks.omnidocbench.formula_normalization import bare, enveloped, latex_to_text, squeezed
from loupe.benchmarks.omnidocbench.records import Item
from loupe.benchmarks.shared.table_answers.html_grids import parse_html
from loupe.metrics.table_normalization import plain_texts_of
from loupe.metrics.teds.table_tree import TableTooLargeError, TedsError

if TYPE_CHECKING:
    from bs4 import Tag


_DOLLARS, _BRACKETS = Delimiters("$$", "$$"), Delimiters(r"\[", r"\]")
_DOLLAR, _PARENTHESES = Delimiters("$", "$"), Delimiters(r"\(", r"\)")
_ANY = (_DOLLARS, _BRACKETS, _DOLLAR, _PARENTHESES)
_WITHIN_BRACKETS = (_DOLLARS, _DOLLAR, _PARENTHESES)


def take_formulas(text: str) -> tuple[list[Item], str]:
    """All formulas, and the text with blanks where displayed ones stood; the text keeps the inline ones too.

    A dollar in prose makes an inline formula of everything up to the next one, even paragraphs away.
    """
    items = [_item(piece) for piece in pieces(text, _ANY)]
    return items, blank(text, [(item.start, item.end) for item in items if not item.fine_category])


def _item(piece: Piece) -> Item:
    content, displayed = f"\\[{piece.inside}\\]".replace("\n", " "), piece.kind == 0 and piece.inside != ""
    if _ANY[piece.kind] is _BRACKETS:
        content, displayed = formulas_within_brackets(content)
    fine_category = "" if displayed else "equation_inline"
    return Item(
        category="equation_isolated", content=content, start=piece.start, end=piece.end, fine_category=fine_category
    )


def formulas_within_brackets(formula: str) -> tuple[str, bool]:
    r"""Delimiters within a formula in `\[…\]` become brackets too, and the first of them says if it is a displayed one.

    After a first `$$…$$` only formulas of this kind keep their inside, after another one only the others: the official
    evaluator substitutes one group of its regex (#formulas).
    """
    found = list(pieces(formula, _WITHIN_BRACKETS))
    if not found:
        return formula, True
    displayed = found[0].kind == 0 and found[0].inside != ""
    kept = [each.inside if (each.kind == 0) == displayed else "" for each in found]
    return with_replacements(formula, found, [f"\\[{inside}\\]" for inside in kept]), displayed


_LONGEST_SHORT: Final = 24
_LONG_ARROWS: Final = ("\\xrightarrow", "\\longrightarrow")
_STRUCTURE = re.compile(
    r"[=<>≤≥≈≠^+\-/]|\\(?:cdot|frac|sqrt|sum|int|times|div|approx|neq|leq|geq|xrightarrow|longrightarrow)"
)
_NAME = re.compile("[A-Za-z0-9._,-]+|[A-Za-z][A-Za-z0-9_.,-]*|[ΓγλμνxyzuvwMNOabcABC0-9._,-]+")


def is_dropped(item: Item) -> bool:
    """True if an item is an inline formula that is not worth a match."""
    if item.fine_category != "equation_inline" or item.category != "equation_isolated":
        return False
    core = bare(item.content.strip())
    signs = "".join(core.split())
    if signs.startswith(_LONG_ARROWS):
        return True
    if not 0 < len(signs) <= _LONGEST_SHORT or _STRUCTURE.search(core):
        return False
    return _NAME.fullmatch(signs) is not None


_MAY_BEGIN = re.compile(r"(?:the\s+(?:image|figure|diagram)|qr\s+code)\s|diagram:|\[image:", re.IGNORECASE)
_BEGINNINGS: Final = ("the image ", "the figure ", "the diagram ", "diagram:", "[diagram:", "[image:", "qr code ")
_SHORTEST: Final = 24
_SEPARATOR = re.compile(r"(\n\s*\n)")
_INLINE_DELIMITERS: Final = (Delimiters(r"\(", r"\)"), Delimiters("$", "$"))


class Described(NamedTuple):
    """A text whose descriptions of pictures have no delimiters of formulas, and how many lost some."""

    text: str
    descriptions: int


def without_formulas_in_descriptions(text: str) -> Described:
    r"""Take the delimiters of inline formulas out of blocks that describe a picture."""
    if not _MAY_BEGIN.search(text):
        return Described(text, 0)
    blocks = _SEPARATOR.split(text)
    changed = [block if index % 2 else _without_delimiters(block) for index, block in enumerate(blocks)]
    return Described("".join(changed), sum(old != new for old, new in zip(blocks, changed, strict=True)))


def is_description(block: str) -> bool:
    """True if a block of text describes a picture."""
    text = squeezed(block).lower()
    return len(text) >= _SHORTEST and text.startswith(_BEGINNINGS)


def _without_delimiters(block: str) -> str:
    if is_description(block):
        for pair in _INLINE_DELIMITERS:
            found = list(pieces(block, [pair]))
            block = with_replacements(block, found, [piece.inside for piece in found])
    return block


RESCUED: Final = "formula_rescue"
_LONGEST_RESCUED: Final = 220
_OPERATOR = re.compile(
    r"\\(?:frac|sqrt|sum|int|prod|times|div|square|cdots|left|right|approx|xrightarrow|rightarrow|longrightarrow)"
    r"|[=<>≤≥≈÷×±∑∫√→^_□△…%/+\-]"
)
_DIGIT, _CJK, _WORD = re.compile(r"\d"), re.compile("[\u4e00-\u9fff]"), re.compile("[A-Za-z]{4,}")
_INLINE, _DISPLAYED = re.compile(r"\$.*?\$|\\\(.*?\\\)"), re.compile(r"\$\$.*?\$\$|\\\[.*?\\\]", re.DOTALL)
_NO_WORDS = re.compile(r"\\[A-Za-z]+|[=<>≤≥÷×±∑∫√^_□△…%/()+\-]|\d|\s")
_ARROWS: Final = ("\\xrightarrow", "\\longrightarrow", "→")
_WRITTEN: Final = (
    *(("……", r" \cdots \cdots "), ("…", r" \cdots "), ("×", r" \times "), ("÷", r" \div "), ("≤", r" \leq ")),
    *(("≥", r" \geq "), ("≠", r" \neq "), ("≈", r" \approx "), ("□", r" \square "), ("△", r" \triangle ")),
    *(("（", "("), ("）", ")"), ("［", "["), ("］", "]"), ("｛", "{"), ("｝", "}")),
)
_REACTION = re.compile(r"(.*?)\\xrightarrow\s*\{([^{}]*)\}(.*)")
_REDOX: Final = "氧化还原反应"
_UNESCAPED = re.compile(r"(?<!\\)([%&])")
_DELIMITED: Final = ("\\begin{", "$$", "\\[")


def rescue_candidate(text: str, *, start: int, end: int, fine_category: str) -> Item | None:
    """The formula that a text is, as an item; None where it looks like none. Reactions join the first match too."""
    if not looks_like_formula(text) or not (content := as_formula(text)):
        return None
    is_reaction = "\\xrightarrow" in content or "\\longrightarrow" in content
    category = "equation_isolated" if is_reaction else RESCUED
    return Item(category=category, content=content, start=start, end=end, fine_category=fine_category)


def looks_like_formula(text: str) -> bool:
    """True if a short text is more signs and digits than words."""
    text = squeezed(text)
    if not 0 < len(text) <= _LONGEST_RESCUED:
        return False
    formula = bare(text)
    operators = len(_OPERATOR.findall(formula))
    has_arrow = any(arrow in formula for arrow in _ARROWS)
    if operators == 0 and not has_arrow:
        return False
    length = len("".join(formula.split()))
    characters, words = len(_CJK.findall(formula)), len(_WORD.findall(formula))
    if ("□" in formula or "\\square" in formula) and operators >= 1 and words <= 1 and length <= 80:
        return True
    if has_arrow and characters <= 24 and length <= 120:
        return True
    if operators >= 2 and words <= 2 and characters <= 12 and length <= 100 and _DIGIT.search(formula):
        return True
    if operators >= 3 and words == 0 and characters <= 18 and length <= 80:
        return True
    is_marked = _INLINE.search(text) or _DISPLAYED.search(text)
    return bool(is_marked) and operators >= 1 and len(_NO_WORDS.sub("", formula)) <= 18


def as_formula(text: str) -> str:
    r"""The text as LaTeX between `\[` and `\]`; "" where nothing is left of it.

    >>> as_formula("2 × 3 ≈ 6")
    '\\[ 2 \\times 3 \\approx 6 \\]'
    """
    text = bare(squeezed(text.replace("\u3000", " ")))
    for sign, written in _WRITTEN if not text.isascii() else ():
        text = text.replace(sign, written)
    if "\\xrightarrow" in text and (reaction := _REACTION.search(text)):
        text = _as_reaction(*map(str.strip, reaction.groups()))
    text = squeezed(_UNESCAPED.sub(r"\\\1", text))
    return text if not text or text.startswith(_DELIMITED) else f"\\[ {text} \\]"


def _as_reaction(left: str, label: str, right: str) -> str:
    """Turn what is above the arrow into text; the word for redox reactions goes below it."""
    if label and "\\" not in label:
        label = f"\\text{{{label}}}"
    arrow = f"\\xrightarrow{{{label}}}"
    if right.endswith(_REDOX):
        arrow, right = f"\\underset{{{_REDOX}}}{{{arrow}}}", right.removesuffix(_REDOX).strip()
    return f"{left} {arrow} {right}".strip()


_LONGEST_IN_CELL: Final = 120
_RELATION = re.compile(r"[=+\-×÷/≈]|\\(?:times|div|approx)")


class _OpenCell:
    """A cell whose end has not come: its texts, and how many characters they have without blanks."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.length = 0


def formulas_in_cells(tables: Iterable[Item]) -> list[Item]:
    """The formulas among the cells, as items one behind the other from where their table starts."""
    return [item for table in tables for item in _formulas_of(table)]


def _formulas_of(table: Item) -> list[Item]:
    items: list[Item] = []
    start = max(table.start, 0)
    for text in cell_texts(table.content) if _RELATION.search(table.content) else ():
        if is_formula_cell(text) and (content := as_formula(text)):
            end = start + max(len(text), 1)
            items.append(
                Item(
                    category="equation_isolated",
                    content=content,
                    start=start,
                    end=end,
                    fine_category="table_formula_rescue",
                )
            )
            start = end + 1
    return items


def cell_texts(table: str) -> Sequence[str]:
    """The texts of all cells in the order of their tags, long ones up to where they are too long.

    There are none where the parser gives up.
    """
    texts = plain_texts_of(("td", "th"), table)
    if texts is None:
        try:
            texts = _texts_in_tree(parse_html(table))
        except (TedsError, TableTooLargeError):
            return []
    return [squeezed(text) for text in texts]


def _texts_in_tree(tree: Tag) -> list[str]:
    """One walk for all cells; those within one another share texts, until they are too long anyway."""
    from bs4.element import CData, NavigableString, Tag

    cells: list[list[str]] = []
    too_short: list[_OpenCell] = []
    pending: list[object] = list(reversed(tree.contents))
    while pending:
        node = pending.pop()
        if isinstance(node, _OpenCell):
            if too_short and too_short[-1] is node:
                too_short.pop()
        elif isinstance(node, Tag):
            if node.name in ("td", "th"):
                cell = _OpenCell()
                cells.append(cell.texts)
                too_short.append(cell)
                pending.append(cell)
            pending += reversed(node.contents)
        elif type(node) in (NavigableString, CData) and (text := str(node)).strip():
            length = len("".join(text.split()))
            for cell in too_short:
                cell.texts.append(text)
                cell.length += length
            too_short = [cell for cell in too_short if cell.length <= _LONGEST_IN_CELL]
    return [" ".join(texts) for texts in cells]


def is_formula_cell(text: str) -> bool:
    """True if a short text relates numbers."""
    if not 0 < len(text) <= _LONGEST_IN_CELL or not _RELATION.search(text) or not NUMBERS.search(text):
        return False
    return looks_like_formula(text)


_SPACE: Final = r"\\(?:qquad|quad|enspace|[,;:])"
_NUMBER: Final = r"\s*[0-9IVXivx]+\s*"
_LEADING_NUMBER = re.compile(rf"\s*(\\left\({_NUMBER}\\right\)|\({_NUMBER}\))\s*(?:{_SPACE}\s*)*")
_SPACES: Final = (r"\qquad", r"\quad", r"\enspace", r"\,", r"\;", r"\:")
#: Before the brace of a caption; formulas are squeezed, so this is all that may stand there.
_BEFORE_TEXT = re.compile(rf"({_SPACE})\s*(\\text\s*)\Z")
_LONGEST_BEFORE_TEXT: Final = 24
_BEFORE_PARENTHESIS = re.compile(rf"{_SPACE}\s*\(")
_LETTER = re.compile("[A-Za-z]")
_TWO_LETTERS = re.compile("[A-Za-z]{2,}")
_FORMULA_SIGN = re.compile(r"\\[A-Za-z]+|[=<>≤≥÷×±∑∫√_^{}]")
_ONLY_NUMBER = re.compile("[0-9IVXivx]+")

_SEGMENTS = re.compile(r"\s*\\q?quad\s*")
_LONGEST_SEGMENT: Final = 160
_NO_ARITHMETIC = re.compile(
    r"\\(?:begin\{|end\{|mathbf|left|right|cdot|lambda|Gamma|varGamma|text|matrix|pmatrix|bmatrix)"
)
_EQUATES = re.compile(r"[=≈≠≤≥]|\\(?:approx|neq|leq|geq)")
#: A fraction, a quotient or two digits: what arithmetic has.
NUMBERS = re.compile(r"\\frac|\d+\s*/\s*\d+|\d.*?\d")


class _Cut(NamedTuple):
    """The place where a caption is cut off, and the caption."""

    start: int
    caption: str


def with_margins_apart(formula: Item) -> list[Item]:
    """A formula without its number and captions, in parts if it is several sums, and then these texts as items."""
    content, texts = _split_off(formula)
    return [*_sums(replace(formula, content=content)), *texts]


def _split_off(formula: Item) -> tuple[str, list[Item]]:
    whole = enveloped(formula.content)
    number, cut = _LEADING_NUMBER.match(whole.inside), _trailing_caption(whole.inside)
    if not number and not cut:
        return formula.content, []
    texts, inside = list[Item](), whole.inside
    if number:
        end = min(formula.end, formula.start + max(len(number[1]), 1))
        texts.append(_caption_item(number[1], formula.start, end))
        inside = inside[number.end() :].strip()
    while cut := _trailing_caption(inside):
        start = max(formula.start, formula.end - max(len(cut.caption), 1))
        texts.append(_caption_item(cut.caption, start, formula.end))
        inside = inside[: cut.start].rstrip()
    inside = inside[: end_without_spacing(inside, _SPACES)].strip()
    if not inside:
        return squeezed(formula.content), []
    return whole.around(inside), [text for text in texts if text.content]


def _caption_item(latex: str, start: int, end: int) -> Item:
    content = plain_caption(latex)
    return Item(category="text_all", content=content, start=start, end=end, fine_category="equation_caption")


def plain_caption(latex: str) -> str:
    """A caption as text on one line."""
    return squeezed(latex_to_text(latex, latex).replace("\xa0", " "))


def _trailing_caption(formula: str) -> _Cut | None:
    """The caption that a squeezed formula ends with, behind a spacing command."""
    cut = _text_at_end(formula)
    if cut and is_caption(cut.caption):
        return cut
    cut = _parenthesis_at_end(formula)
    return cut if cut and is_caption(cut.caption) else None


def _text_at_end(formula: str) -> _Cut | None:
    r"""`\text{…}` at the end, maybe with a dot behind it."""
    closing = len(formula) - (2 if formula.endswith(".") else 1)
    if formula[closing : closing + 1] != "}":
        return None
    opening = max(formula.rfind("{", 0, closing), formula.rfind("}", 0, closing))
    if opening < 0 or formula[opening] != "{":
        return None
    window = max(0, opening - _LONGEST_BEFORE_TEXT)
    before = _BEFORE_TEXT.search(formula, window, opening)
    return _Cut(before.start(), formula[before.start(2) :]) if before else None


def _parenthesis_at_end(formula: str) -> _Cut | None:
    """Words in parentheses at the end, maybe with a dot behind them."""
    closing = len(formula) - (2 if formula.endswith(".") else 1)
    if formula[closing : closing + 1] != ")":
        return None
    before = _BEFORE_PARENTHESIS.search(formula, formula.rfind(")", 0, closing) + 1, closing)
    if not before or not _LETTER.search(formula, before.end(), closing):
        return None
    return _Cut(before.start(), formula[before.end() - 1 :])


def is_caption(latex: str) -> bool:
    """True if it is words rather than a formula or a number."""
    latex = latex.strip()
    text = plain_caption(latex)
    inside = text[1:-1] if text.startswith("(") and text.endswith(")") else text
    if not text or _ONLY_NUMBER.fullmatch(inside.strip().replace(" ", "")):
        return False
    letters, signs = len(_LETTER.findall(text)), len(_FORMULA_SIGN.findall(latex))
    if letters >= 10 and signs <= 6 and len(_TWO_LETTERS.findall(text)) >= 2:
        return True
    return letters >= 14 and signs <= 3 and not _DIGIT.search(text)


def _sums(formula: Item) -> Sequence[Item]:
    r"""The formula, or its sums between `\quad`: each has its share of the place."""
    if "\\quad" not in formula.content and "\\qquad" not in formula.content:
        return [formula]
    whole = enveloped(formula.content)
    segments = [segment for each in _SEGMENTS.split(whole.inside) if (segment := each.strip())]
    if len(segments) < 2 or not all(map(is_arithmetic, segments)):
        return [formula]
    share = max(max(formula.end - formula.start, len(segments)) // len(segments), 1)
    items = []
    for index, segment in enumerate(segments):
        start = formula.start + index * share
        end = min(formula.end, start + share) if index < len(segments) - 1 else formula.end
        items.append(replace(formula, content=whole.around(segment), start=start, end=end))
    return items


def is_arithmetic(segment: str) -> bool:
    """True if it equates numbers."""
    segment = squeezed(segment)
    if not 0 < len(segment) <= _LONGEST_SEGMENT or _NO_ARITHMETIC.search(segment):
        return False
    return bool(_EQUATES.search(segment) and NUMBERS.search(segment))
