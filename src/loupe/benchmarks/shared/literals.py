"""Python literals in other people's texts, read with a bound."""

from __future__ import annotations

import ast
from typing import Any

#: A literal longer than this is read as no literal: Python's parser takes a hundred times its memory.
_LONGEST = 200_000
_NOT_LITERAL = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)


def literal(text: Any) -> Any:
    """A Python literal. Raises ValueError for anything else, and for one that is too long to be read safely."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise ValueError("no literal")
    try:
        return ast.literal_eval(text)
    except _NOT_LITERAL:
        raise ValueError("no literal") from None
