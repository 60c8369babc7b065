"""The code fence that general models put around a whole answer."""

from __future__ import annotations


def remove_fence(text: str) -> str:
    """The inside of a code fence around the whole answer, else the text as it is."""
    stripped = text.strip()
    mark = stripped[:3]
    if mark not in ("```", "~~~") or not stripped.endswith(mark) or "\n" not in stripped:
        return text
    first, _, rest = stripped.partition("\n")
    inside = rest.rstrip(mark[0])
    # A second fence inside means that the outer marks belong to two blocks.
    return text if mark in inside or mark[0] in first.lstrip(mark[0]) else inside.removesuffix("\n")
