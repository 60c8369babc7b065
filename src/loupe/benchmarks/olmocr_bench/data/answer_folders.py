"""Folders of answers in the official layout: `NAME_pg1_repeat1.md`, several repeats of one page.

Protocol: docs/protocols/olmocr_bench.md#data and #running.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePosixPath

_FILE = re.compile(r"(.+)_pg\d+_repeat\d+\.md", re.DOTALL)


def stem_of(pdf: str) -> str:
    """The path of a document without its extension, as its answers are called."""
    return pdf.removesuffix(".pdf")


def answer_name(pdf: str, page: int) -> str:
    """What the first answer to a page is called, without `.md`; samples are named so."""
    return f"{stem_of(pdf)}_pg{page}_repeat1"


class CandidateFiles:
    """The files of a candidate's folder by document."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_stem: dict[str, list[str]] = defaultdict(list)
        for name in sorted(names):
            match = _FILE.fullmatch(name)
            if match:
                self._by_stem[match[1]].append(name)

    def answers_to(self, pdf: str, page: int) -> list[str]:
        """The files that count as answers to a page."""
        return [name for name in self._by_stem.get(stem_of(pdf), ()) if belongs_like_official(name, page)]


def belongs_like_official(name: str, page: int) -> bool:
    """Whether `_pg1_` stands anywhere in the name: `x_pg1_pg2_repeat1.md` also answers page 1.

    Protocol: docs/protocols/olmocr_bench.md#page-number-in-a-name.
    """
    return f"_pg{page}_" in PurePosixPath(name).name
