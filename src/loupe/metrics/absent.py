"""Words with which engines and people say that there is no value: one rule for fields of all types.

Our own rule (docs/own-data.md#types-of-fields). Pure.
"""

from __future__ import annotations

import re

_ABSENT = re.compile(
    r"[-\u2010-\u2015\u2212\u2500]*"
    r"|(?:null|none|nil|na|n ?/ ?a|n\. ?a|unknown|not (?:available|applicable|found|present))\.?"
)


def is_absent(value: str) -> bool:
    """Return whether a value says that there is none: empty, dashes, `N/A`, `none.` and the like, in any case.

    >>> is_absent(" N / A "), is_absent("\u2013"), is_absent("None Ltd")
    (True, True, False)
    """
    return _ABSENT.fullmatch(" ".join(value.casefold().split())) is not None
