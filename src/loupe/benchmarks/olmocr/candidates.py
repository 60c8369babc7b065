"""Folders of answers in the official layout: `NAME_pg1_repeat1.md`, and several repeats of one page as one answer.

Protocol: sections 1 and 12. A page that was read once is its text; several texts travel as a JSON list, and that it is
one is said beside the text: no answer can pretend to be several.
"""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

import msgspec

from loupe.typed import encode_json, json_decoder
from loupe.types import Prediction

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
    """Whether `_pg1_` stands anywhere in the name: `x_pg1_pg2_repeat1.md` also answers page 1 (section 17.10)."""
    return f"_pg{page}_" in PurePosixPath(name).name


def join_repeats(texts: Sequence[str | None]) -> str:
    """One text for all repeats; None stands for a file that cannot be read."""
    if not texts:
        raise ValueError("a page without an answer has no repeats to join")
    return encode_json(list(texts)).decode()


def repeats_of(prediction: Prediction) -> list[str | None]:
    """The answers to a page: those that `join_repeats` was given, else the text as it is, whatever stands in it."""
    if prediction.joined:
        # An adapter may have taken the list apart, and an answer that could not be scored is replaced by an empty one.
        with contextlib.suppress(msgspec.DecodeError):
            return json_decoder(list[str | None]).decode(prediction.text) or [prediction.text]
    return [prediction.text]
