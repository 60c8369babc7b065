"""The official evaluator's search for the outermost of nested tables, in linear time.

Protocol: docs/protocols/omnidocbench.md#latex-tables and #html-tables.
"""

from __future__ import annotations

from bisect import bisect_left

#: How far behind a begin mark that is never closed the official search starts again: the length of its regex.
RESTART = 16


def outermost(begins: list[int], ends: list[int], *, step: int) -> list[tuple[int, int]]:
    """The spans from an outermost begin mark to `step` characters behind the start of its end mark, ascending.

    `begins` and `ends` are the sorted offsets of all marks. The official search goes on `step` characters behind the
    start of each mark, whatever its length, and so overlooks marks that start before; when a begin mark is never
    closed, all begins again RESTART characters behind the outermost of these.
    """
    marks = sorted([(begin, True) for begin in begins] + [(end, False) for end in ends])
    offsets = [offset for offset, _ in marks]
    following = [bisect_left(offsets, offset + step) for offset in offsets]
    closing = _closing_marks([begins for _, begins in marks], following)
    spans, mark = [], 0
    while mark < len(marks):
        offset, begins_here = marks[mark]
        if not begins_here:
            mark = following[mark]
        elif closing[mark] < 0:
            mark = bisect_left(offsets, offset + RESTART)
        else:
            end = closing[mark]
            spans.append((offset, offsets[end] + step))
            mark = following[end]
    return spans


def _closing_marks(begins: list[bool], following: list[int]) -> list[int]:
    """For each begin mark the end mark that closes it, or -1."""
    closing = [-1] * len(begins)
    first_unopened = [-1] * (len(begins) + 1)  # the first end mark from here on that nothing from here on opens
    for mark in reversed(range(len(begins))):
        if begins[mark]:
            closing[mark] = end = first_unopened[following[mark]]
            first_unopened[mark] = first_unopened[following[end]] if end >= 0 else -1
        else:
            first_unopened[mark] = mark
    return closing
