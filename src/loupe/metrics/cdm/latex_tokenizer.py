r"""The tokenizer of OmniDocBench 1.6, which is built on pylatexenc 2.10.

Protocol: docs/protocols/omnidocbench_v16.md#cdm-tokeniser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from loupe.metrics.cdm.latex_conversion import OPERATOR_NAMES, arguments_of, converted
from loupe.metrics.cdm.printer import printed
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
    """What stands in a list of nodes, piece by piece."""
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
