"""Which label an answer is: the label itself, or the label and marks around it.

C++ is not C#, and A+ is not A-: marks at the ends are dropped only where they tell no two labels apart.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Collection, Iterator

from loupe.benchmarks.answer_text.fences import remove_fence

#: What models put around a word; never what tells labels apart, unless a label is written with it.
_AROUND = " \t.,;:!?\"'`*_()[]{}<>“”‘’„«»"
_PUNCTUATION = string.punctuation + _AROUND


def label_of(answer: str, labels: Collection[str]) -> str | None:
    """The label that an answer names, None for none of them.

    In this order: equal but for a fence, case and white space; equal without quotes, emphasis and full stops around the
    answer; equal without any punctuation at both ends, if that leaves something which one label alone has.

    >>> label_of("**c++**.", ["C++", "C#"]), label_of("C", ["C++", "C#"]), label_of("form", ["(Form)", "letter"])
    ('C++', None, '(Form)')
    """
    folded = [(fold_label(label), label) for label in labels]
    given = fold_label(remove_fence(answer))
    for spelling in (given, given.strip(_AROUND)):
        if spelling and (found := next((label for same, label in folded if same == spelling), None)) is not None:
            return found
    bare = given.strip(_PUNCTUATION)
    near = {same: label for same, label in folded if same.strip(_PUNCTUATION) == bare} if bare else {}
    return next(iter(near.values())) if len(near) == 1 else None


def fold_label(text: str) -> str:
    """A label as it is compared: NFC, without regard to case, needless white space dropped."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def label_mistakes(labels: Collection[str]) -> Iterator[str]:
    """Labels that no answer could be, or that no answer could tell apart."""
    seen: dict[str, str] = {}
    for label in labels:
        same = fold_label(label)
        if not same:
            yield f"label {label!r} is empty"
        elif same in seen:
            yield f"labels {seen[same]!r} and {label!r} are one label, as case and spaces do not count"
        seen.setdefault(same, label)
