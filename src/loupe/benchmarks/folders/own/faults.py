"""The faults of form to look for in answers to a folder's pages: what no page of any kind has.

What an output adapter takes away is looked for besides.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Sequence

from loupe.types import Edit, FormatFault

#: Tasks whose answers are pages of text.
PAGES = frozenset({"text", "markdown", "table", "facts"})


def _mended_by(name: str) -> Callable[[str], Sequence[Edit]]:
    """The function that finds the edits; its module is imported when an answer is looked at, and not for each run."""

    def edits(text: str) -> Sequence[Edit]:
        found: Sequence[Edit] = getattr(importlib.import_module("loupe.benchmarks.omnidocbench.lint"), name)(text)
        return found

    return edits


FAULTS = (
    FormatFault(
        name="page-fence",
        meaning="marks of a code fence around the page",
        edits=_mended_by("page_fence"),
        adapter="unfence",
    ),
    FormatFault(name="image", meaning="images in the answer", edits=_mended_by("images")),
    FormatFault(name="repeated-block", meaning="repeated blocks", edits=_mended_by("repeated_blocks")),
)


def faults_of(tasks: Collection[str]) -> tuple[FormatFault, ...]:
    """The faults of answers to these tasks; values, labels and answers to questions have none that are known."""
    return FAULTS if PAGES & set(tasks) else ()
