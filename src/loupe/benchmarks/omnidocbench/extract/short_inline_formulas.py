r"""Inline formulas that OmniDocBench 1.6 drops: single letters, numbers and names, which the text has anyway.

Protocol: docs/protocols/omnidocbench_v16.md#short-inline-formulas.
"""

from __future__ import annotations

import re
from typing import Final

from loupe.benchmarks.omnidocbench.records import Item
from loupe.benchmarks.omnidocbench.text.formula_delimiters import bare

_LONGEST: Final = 24
_ARROWS: Final = ("\\xrightarrow", "\\longrightarrow")
_STRUCTURE = re.compile(
    r"[=<>≤≥≈≠^+\-/]|\\(?:cdot|frac|sqrt|sum|int|times|div|approx|neq|leq|geq|xrightarrow|longrightarrow)"
)
_NAME = re.compile("[A-Za-z0-9._,-]+|[A-Za-z][A-Za-z0-9_.,-]*|[ΓγλμνxyzuvwMNOabcABC0-9._,-]+")


def is_dropped(item: Item) -> bool:
    """Whether an item is an inline formula that is not worth a match."""
    if item.fine_category != "equation_inline" or item.category != "equation_isolated":
        return False
    core = bare(item.content.strip())
    signs = "".join(core.split())
    if signs.startswith(_ARROWS):
        return True
    if not 0 < len(signs) <= _LONGEST or _STRUCTURE.search(core):
        return False
    return _NAME.fullmatch(signs) is not None
