r"""Commands that set space: taken off the end of a formula in time linear in it, from the end on."""

from __future__ import annotations

from collections.abc import Sequence


def end_without_spacing(text: str, commands: Sequence[str], end: int | None = None) -> int:
    r"""Where a text ends without the blanks and the spacing commands at its end (up to `end`).

    >>> end_without_spacing(r"x\, \quad ", (r"\,", r"\quad"))
    1
    """
    end = len(text) if end is None else end
    while end:
        if text[end - 1].isspace():
            end -= 1
        elif found := next((each for each in commands if text.endswith(each, 0, end)), ""):
            end -= len(found)
        else:
            break
    return end
