"""Handle the text of answers: code fences, several files for one sample, Python literals, combining characters."""

from __future__ import annotations

import ast
import contextlib
import re
import unicodedata
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import msgspec
from rapidfuzz import fuzz

from loupe.explanation import Comparison
from loupe.typed import encode_json, json_decoder
from loupe.types import Prediction


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


def join_answers(texts: Sequence[str | None]) -> str:
    """One text for all answers; None stands for a file that cannot be read."""
    if not texts:
        raise ValueError("a sample without an answer has none to join")
    return encode_json(list(texts)).decode()


def answers_of(prediction: Prediction) -> list[str | None]:
    """The answers to a sample: those that `join_answers` was given, else the text as it is, whatever stands in it."""
    if prediction.joined:
        # An adapter may have taken the list apart, and an answer that could not be scored is replaced by an empty one.
        with contextlib.suppress(msgspec.DecodeError):
            return json_decoder(list[str | None]).decode(prediction.text) or [prediction.text]
    return [prediction.text]


#: Characters shown on either side of the text that was found.
AROUND = 60


def nearest_text(label: str, wanted: str, where: str, enough: float | None) -> Comparison:
    """The part of `where` that is most similar, with what stands around it."""
    found = fuzz.partial_ratio_alignment(wanted, where)
    if found is None or not where:
        return Comparison(label=label, wanted=wanted, found="", similarity=0.0, enough=enough)
    start, end = found.dest_start, found.dest_end
    return Comparison(
        label=label,
        wanted=wanted,
        found=where[start:end],
        before=where[max(0, start - AROUND) : start],
        after=where[end : end + AROUND],
        similarity=found.score / 100,
        enough=enough,
    )


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


#: Combining characters all lie at or above U+0300; shorter runs of them cost Python little to sort.
_LONG_RUN = re.compile("[\u0300-\U0010ffff]{64,}")


def with_sorted_marks(text: str) -> str:
    """Canonically equivalent text: Python sorts long runs of marks in quadratic time unless they are sorted."""
    return _LONG_RUN.sub(lambda run: _sorted(run[0]), text)


def _sorted(run: str) -> str:
    # Characters of class 0 may decompose into combining ones, so these are taken apart one by one.
    parts = "".join(unicodedata.normalize("NFD", char) for char in run)
    grouped = groupby(parts, key=lambda char: unicodedata.combining(char) > 0)
    return "".join("".join(sorted(chars, key=unicodedata.combining) if marks else chars) for marks, chars in grouped)
