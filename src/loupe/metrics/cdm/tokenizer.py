"""Rewrite a formula as CDM's tokenizers do: blanks between all tokens, one spelling for what has several.

Protocol: docs/protocols/cdm.md#tokeniser and #chinese. Upstream runs a shell, node and (for tables) perl; here one
function follows another. Loops of "300 times, the first match" are kept, and stop when nothing changes.

OmniDocBench 1.6 has a tokenizer of its own, built on pylatexenc 2.10: docs/protocols/omnidocbench_v16.md#cdm-tokeniser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from loupe.metrics.cdm.latex_conversion import OPERATOR_NAMES, arguments_of, converted
from loupe.metrics.cdm.parser import parse, printed, token_stream
from loupe.metrics.cdm.profiles import CdmProfile
from loupe.metrics.cdm.token_reader import NotTokenizedError
from loupe.metrics.latex_nodes import (
    BeyondLimitsError,
    Chars,
    Environment,
    Group,
    Macro,
    Math,
    Node,
    Special,
    UnreadableLatexError,
    is_damaged,
    read_latex,
)

PERCENT_WORD: Final = "<PERCENTAGETOKEN>"
_SPELLED_PERCENT_WORD: Final = " ".join(PERCENT_WORD)
_TIMES: Final = 300
_LINE_ENDS: Final = re.compile("[\n\r\u2028\u2029]")  # what no dot matches in JavaScript

_ALIGNED: Final = ("split", "align", "alignedat", "alignat", "eqnarray")
_BEGIN: Final[dict[tuple[str, ...], re.Pattern[str]]] = {
    names: re.compile(rf"\\begin\{{({'|'.join(names)})\*?\}}") for names in (_ALIGNED, ("smallmatrix",))
}
_END: Final = {name: re.compile(rf"\\end\{{{name}\*?\}}") for name in (*_ALIGNED, "smallmatrix")}
_HSKIP_UNIT: Final = re.compile("cm|in|pt|mm|em")

_CJK: Final = re.compile("[\u4e00-\u9fff]")
_CJK_RUN: Final = re.compile("[\u4e00-\u9fff\u3400-\u4dbf]+")
_CLOSED: Final = re.compile(r"\s*\}")
_UPRIGHT: Final = re.compile(r"\\mathrm\s*\{([^{}]*)\}")
_TEXT: Final = re.compile(r"\\text\s*\{([^{}]*)\}")

_OPERATOR_NAMES: Final = (
    "arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf injlim ker lg lim liminf limsup ln log "
    "max min Pr projlim sec sin sinh sup tan tanh"
)


@dataclass(frozen=True, slots=True)
class TokenizedFormula:
    """The text that goes on to the normaliser; `parsed` is false where it is the formula as it came."""

    text: str
    parsed: bool
    template: str


def tokenize(formula: str, profile: CdmProfile) -> TokenizedFormula:
    """The tokenised formula, or the formula itself where the tokenizer gives nothing."""
    is_table = "tabular" in formula
    template = "tabular" if is_table and profile.table_template else "formula"
    if profile.wraps_chinese and not is_table and _CJK.search(formula):
        template, formula = "formula_zh", wrap_chinese(formula, blanks=profile.reads_as_pylatexenc)
    source = formula.replace("\n", " ").replace("\\%", PERCENT_WORD)
    source_of_tokens = _table_line(source) if is_table else _with_known_environments(source)
    match is_table, profile.reads_as_pylatexenc:
        case True, True:
            tokens = table_tokens(source_of_tokens)
        case True, False:
            tokens = _tokens_of_table(source_of_tokens)
        case _, True:
            tokens = formula_tokens(source_of_tokens)
        case _:
            tokens = _tokens_of_formula(source_of_tokens)
    text = tokens or source
    if profile.wraps_chinese and _CJK.search(text):
        text = _spaced_chinese(text) if profile.reads_as_pylatexenc else text.replace("\\mathrm", "\\text")
    return TokenizedFormula(text.replace(_SPELLED_PERCENT_WORD, "\\%"), bool(tokens), template)


def wrap_chinese(formula: str, *, blanks: bool) -> str:
    """Put runs of Chinese characters into `\\text{}` unless they are just that already; `blanks`: with blanks, too."""
    formula = formula.replace("，", ", ").replace("：", ": ").replace("；", "; ")
    if blanks:
        formula = re.sub(r"\\text\s*\{", r"\\text{", formula)

    def wrapped(run: re.Match[str]) -> str:
        closing = _CLOSED.match(formula, run.end())
        is_closed = closing is not None and (blanks or len(closing[0]) == 1)
        is_wrapped = is_closed and formula.endswith("\\text{", 0, run.start())
        return run[0] if is_wrapped else f"\\text{{{run[0]}}}"

    return _CJK_RUN.sub(wrapped, formula)


def _tokens_of_formula(source: str) -> str:
    """The normalised formula; empty where the tokenizer fails."""
    line = _prepared_line(_last_line(source).removeprefix("%").partition("%")[0], dollars=True)
    if "\\rm" in line:
        line = _rm_as_mathrm(line)
    try:
        text = printed(parse(line + " "))
    except NotTokenizedError:
        return ""
    text = text.replace("SSSSSS", "$", _TIMES).replace(" S S S S S S", "$", _TIMES)
    text = " ".join(_without_label(text, "\\label { ", " }").split())
    if "\\operatorname {" in text:
        text = _named_operators(text)
    return text.replace("\\\\ \\end{array}", "\\end{array}")


def _tokens_of_table(line: str) -> str:
    """The tokens of a table as they were read; empty where the tokenizer fails."""
    try:
        text = token_stream(_prepared_line(line.removeprefix("%"), dollars=False) + " ")
    except NotTokenizedError:
        return ""
    return " ".join(_without_label(text, "\\label { ", " }").split())


def _with_known_environments(source: str) -> str:
    return _renamed(_renamed(source, _ALIGNED, "aligned"), ("smallmatrix",), "matrix")


def _table_line(source: str) -> str:
    """A table as one line up to the first `%`, with its end."""
    source = source.replace("\\\\%", "\\\\ %").partition("%")[0].replace("<PERCENTAGE_TOKEN>", "\\%")
    if "\\end{tabular}" not in source:
        source += "\\end{tabular}"
    return _hskip_as_hspace(source.replace("\r", " ").replace("\n", " "))


def _spaced_chinese(text: str) -> str:
    """Fonts around Chinese become `\\text`, with blanks inside that make each character a token of its own."""
    text = _UPRIGHT.sub(lambda found: f"\\text{{{found[1]}}}" if _CJK_RUN.search(found[1]) else found[0], text)
    return _TEXT.sub(_spaced_text, text)


def _spaced_text(found: re.Match[str]) -> str:
    return f"\\text {{ {found[1].strip()} }}" if _CJK_RUN.search(found[1]) else found[0]


def _last_line(source: str) -> str:
    """Each line is printed as a line, and only the last one printed is read back."""
    return source.removesuffix("\r").rpartition("\r")[2]


def _renamed(source: str, names: tuple[str, ...], name: str) -> str:
    """Environments under other names, with or without a star, under the one name the parser knows.

    As one regular expression this takes quadratic time on unclosed environments.
    """
    if "\\begin{" not in source:
        return source
    pieces, position, start, missing = [], 0, 0, set()
    while opening := _BEGIN[names].search(source, start):
        start = opening.end()
        if opening[1] in missing:
            continue
        closing = _END[opening[1]].search(source, opening.end() + 1)
        if closing is None:
            missing.add(opening[1])
            continue
        body = source[opening.end() : closing.start()]
        pieces += [source[position : opening.start()], f"\\begin{{{name}}}{body}\\end{{{name}}}"]
        position = start = closing.end()
    return "".join(pieces) + source[position:]


def _prepared_line(line: str, *, dollars: bool) -> str:
    """A line without dollars and labels; without environments, its line breaks are thin spaces."""
    line = line.replace("\\~", " ")
    for _ in range(_TIMES):
        before = line
        line = line.replace("\\>", " ", 1)
        if dollars:
            line = line.replace("$", " ", 1)
        line = _without_label(line, "\\label{", "}")
        if line == before:
            break
    if not any(word in line for word in ("matrix", "cases", "array", "begin")):
        line = line.replace("\\\\", "\\,", _TIMES)
    return line


def _rm_as_mathrm(line: str) -> str:
    for _ in range(_TIMES):
        before = line
        line = line.replace("{\\rm", "\\mathrm{", 1).replace("{ \\rm", "\\mathrm{", 1).replace("\\rm{", "\\mathrm{", 1)
        if line == before:
            break
    return line


def _without_label(text: str, opening: str, closing: str) -> str:
    """The text without its first label, which ends at the next closing mark in the same line."""
    start = text.find(opening)
    while start >= 0 and (end := text.find(closing, start + len(opening))) >= 0:
        line_end = _LINE_ENDS.search(text, start, end)
        if line_end is None:
            return text[:start] + text[end + len(closing) :]
        start = text.find(opening, line_end.end())
    return text


def _hskip_as_hspace(line: str) -> str:
    """`hskip 3pt` as `hspace{ 3pt}`: up to the next unit, wherever it is."""
    pieces, position = [], 0
    while (start := line.find("hskip", position)) >= 0 and (unit := _HSKIP_UNIT.search(line, start + 5)):
        pieces.append(f"{line[position:start]}hspace{{{line[start + 5 : unit.end()]}}}")
        position = unit.end()
    return "".join(pieces) + line[position:]


def _operator_pattern() -> re.Pattern[str]:
    """Operators by name, with blanks as the official pattern allows them.

    It allows one between all characters of its list of names, bars included: so also before and after each name, but
    not before the first and not after the last. As all names are printed with blanks around, `arccos` and `tanh` stay.
    """
    names = [r"\s?".join(name) for name in _OPERATOR_NAMES.split()]
    return re.compile(r"\\operatorname {(" + r"\s?|\s?".join(names) + ")}")


_OPERATOR: Final = _operator_pattern()


def _named_operators(text: str) -> str:
    return _OPERATOR.sub(lambda found: "\\" + found[1].replace(" ", ""), text)


_LONGEST: Final = 20_000
_COMMAND_BEFORE_CHINESE: Final = re.compile(r"(\\[A-Za-z]+)(?=[\u4e00-\u9fff])")
_NAMED: Final = re.compile(r"\\operatorname\s*\{([^{}]*)\}")
_SIDE: Final = re.compile(r"(?<!\S)(\\left|\\right) (\S+)")
_KEEP_ROWS: Final = ("matrix", "cases", "array", "begin")


def formula_tokens(source: str) -> str:
    """A formula with blanks between its tokens; empty where the tokenizer fails."""
    line = _COMMAND_BEFORE_CHINESE.sub(r"\1 ", source.removeprefix("%").partition("%")[0].replace("\\~", " "))
    line = _prepared(line)
    if is_damaged(line, longest=_LONGEST):
        return ""
    line = line.replace("$", " ")
    for spelling in ("{\\rm", "{ \\rm", "\\rm{"):
        line = line.replace(spelling, "\\mathrm{")
    try:
        text = printed(converted(read_latex(line)), whole_tokens=True)
    except (BeyondLimitsError, UnreadableLatexError):
        return ""
    text = text.replace("SSSSSS", "$").replace(" S S S S S S", "$")
    text = _without_labels(text, "\\label { ", " }").strip()
    if line.endswith("\\") and (text or line.strip() == "\\") and text.rpartition(" ")[2] != "\\":
        text = f"{text} \\".strip()
    text = _NAMED.sub(_by_name, " ".join(text.split()))
    return _SIDE.sub(r"\1\2", text).replace("\\\\ \\end{array}", "\\end{array}")


def table_tokens(source: str) -> str:
    """The tokens of a table as they were read; empty where the tokenizer fails."""
    line = _prepared(source.removeprefix("%").replace("\\~", " "))
    if is_damaged(line, longest=_LONGEST, delimiters=False):
        return ""
    try:
        nodes = read_latex(line)
    except (BeyondLimitsError, UnreadableLatexError):
        return ""
    return " ".join(" ".join(_stream(nodes)).split())


def _prepared(line: str) -> str:
    """A line without labels; without environments, its line breaks are thin spaces."""
    line = _without_labels(line.replace("\\>", " "), "\\label{", "}")
    return line if any(word in line for word in _KEEP_ROWS) else line.replace("\\\\", "\\,")


def _without_labels(text: str, opening: str, closing: str) -> str:
    """The text without its labels, of which each ends at the next closing mark."""
    kept, at = [], 0
    while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start + len(opening))) >= 0:
        kept.append(text[at:start])
        at = end + len(closing)
    return "".join(kept) + text[at:]


def _by_name(found: re.Match[str]) -> str:
    name = re.sub(r"\s", "", found[1])
    return "\\" + name if name in OPERATOR_NAMES else found[0]


def _stream(nodes: Sequence[Node]) -> Iterator[str]:
    """Yield the content of a list of nodes, piece by piece."""
    for node in nodes:
        match node:
            case Chars(text) | Special(text):
                yield from text
            case Group():
                yield node.opening
                yield from _stream(node.nodes)
                yield node.closing
            case Math():
                yield "$"
                yield from _stream(node.nodes)
                yield "$"
            case Macro():
                yield "\\" + node.name
                yield from _stream(arguments_of(node))
            case Environment(name, _, inner):
                yield from (
                    "\\begin",
                    f"{{{name}}}",
                    *_stream(arguments_of(node)),
                    *_stream(inner),
                    "\\end",
                    f"{{{name}}}",
                )
