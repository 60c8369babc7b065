"""How engines and people say that there is no value, in words or as empty JSON: one rule for fields of all types.

Our own rule (docs/scoring-rules.md#types-of-fields). Pure.
"""

from __future__ import annotations

import json
import re

_ABSENT = re.compile(
    r"[-\u2010-\u2015\u2212\u2500]*"
    r"|(?:null|none|nil|na|n ?/ ?a|n\. ?a|unknown|not (?:available|applicable|found|present))\.?"
)


def is_absent(value: str) -> bool:
    """Return whether a value says that there is none: empty, dashes, `N/A`, `none.` and the like, in any case.

    A JSON list or object is none if it holds no value.

    >>> is_absent(" N / A "), is_absent("\u2013"), is_absent('[{"sum": null}]'), is_absent("None Ltd")
    (True, True, True, False)
    """
    value = " ".join(value.casefold().split())
    if not value.startswith(("[", "{")):
        return _ABSENT.fullmatch(value) is not None
    try:
        return _holds_none(json.loads(value))
    except (ValueError, RecursionError):
        return False


def _holds_none(value: object) -> bool:
    if isinstance(value, list | dict):
        return all(map(_holds_none, value.values() if isinstance(value, dict) else value))
    return value is None or (isinstance(value, str) and _ABSENT.fullmatch(" ".join(value.split())) is not None)
