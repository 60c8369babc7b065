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
    read_latex,
)

_LONGEST: Final = 20_000
_ESCAPED: Final = re.compile(r"\\[{}\[\]()]|[{}]")
_TURN: Final = re.compile(r"\\(begin|end)\{([^{}]*)\}")
_LEFT: Final = re.compile(r"\\left\b")
_RIGHT: Final = re.compile(r"\\right\b")
_DOLLAR: Final = re.compile(r"(?<!\\)\$")
_COMMAND_BEFORE_CHINESE: Final = re.compile(r"(\\[A-Za-z]+)(?=[\u4e00-\u9fff])")
_NAMED: Final = re.compile(r"\\operatorname\s*\{([^{}]*)\}")
_SIDE: Final = re.compile(r"(?<!\S)(\\left|\\right) (\S+)")
_KEEP_ROWS: Final = ("matrix", "cases", "array", "begin")


def formula_tokens(source: str) -> str:
    """A formula with blanks between its tokens; empty where the tokenizer fails."""
    line = _COMMAND_BEFORE_CHINESE.sub(r"\1 ", source.removeprefix("%").partition("%")[0].replace("\\~", " "))
    line = _prepared(line)
    if is_damaged(line):
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
    if is_damaged(line, delimiters=False):
        return ""
    try:
        nodes = read_latex(line)
    except (BeyondLimitsError, UnreadableLatexError):
        return ""
    return " ".join(" ".join(_stream(nodes)).split())


def is_damaged(text: str, *, delimiters: bool = True) -> bool:
    """Whether braces or environments do not match, or (`delimiters`) `\\left`s, dollars and the like; or it is long."""
    if len(text) > _LONGEST or not (_has_matching_braces(text) and _has_matching_environments(text)):
        return True
    return delimiters and (
        len(_LEFT.findall(text)) != len(_RIGHT.findall(text))
        or text.count("\\(") != text.count("\\)")
        or text.count("\\[") != text.count("\\]")
        or len(_DOLLAR.findall(text)) % 2 == 1
    )


def _has_matching_braces(text: str) -> bool:
    depth = 0
    for found in _ESCAPED.finditer(text):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if depth < 0:
            return False
    return depth == 0


def _has_matching_environments(text: str) -> bool:
    opened: list[str] = []
    for turn, name in _TURN.findall(text):
        if turn == "begin":
            opened.append(name)
        elif not opened or opened.pop() != name:
            return False
    return not opened


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
