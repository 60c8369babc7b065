r"""Whether LaTeX closes what it opens: what OmniDocBench 1.6 asks before it gives a formula to pylatexenc.

Protocol: docs/protocols/omnidocbench_v16.md#latex-to-text.
"""

from __future__ import annotations

import re

_BRACE = re.compile(r"\\[{}\[\]()]|[{}]")
_ENVIRONMENT = re.compile(r"\\(begin|end)\{([^{}]+)\}")
_LEFT, _RIGHT = re.compile(r"\\left\b"), re.compile(r"\\right\b")
_DOLLAR = re.compile(r"(?<!\\)\$")


def is_damaged(latex: str, *, longest: int, delimiters: bool = True) -> bool:
    r"""Whether it is too long or something in it does not close: braces, environments, `\left`, delimiters, dollars.

    Without `delimiters` the last three may be as they like.
    """
    if len(latex) > longest or not _braces_balance(latex) or not _environments_balance(latex):
        return True
    return delimiters and (
        len(_LEFT.findall(latex)) != len(_RIGHT.findall(latex))
        or latex.count("\\(") != latex.count("\\)")
        or latex.count("\\[") != latex.count("\\]")
        or len(_DOLLAR.findall(latex)) % 2 == 1
    )


def _braces_balance(latex: str) -> bool:
    depth = 0
    for brace in _BRACE.finditer(latex):
        if brace[0] in "{}":
            depth += 1 if brace[0] == "{" else -1
            if depth < 0:
                return False
    return depth == 0


def _environments_balance(latex: str) -> bool:
    opened: list[str] = []
    for mark in _ENVIRONMENT.finditer(latex) if "\\begin" in latex or "\\end" in latex else ():
        if mark[1] == "begin":
            opened.append(mark[2])
        elif not opened or opened.pop() != mark[2]:
            return False
    return not opened
