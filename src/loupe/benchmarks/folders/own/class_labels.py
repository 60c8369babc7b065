"""Which label an answer is: the label itself, or the label with stops behind it and marks of layout around it.

C++ is neither C# nor C, and A- is not A: a mark that makes a name is never dropped.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache

from loupe.benchmarks.shared.fences import remove_fence

#: Labels of one folder: every question names all of them.
MOST_CLASSES = 10_000
_STOPS = frozenset(".,;:!?…。，、；：！？")
_QUOTES = "\"'“”„‟‘’‚«»‹›「」『』"
#: What may stand before a label, and what behind it then.
_PAIRS = (
    dict.fromkeys(_QUOTES, _QUOTES)
    | {mark: mark for mark in "*_`"}
    | {"(": ")", "[": "]", "{": "}", "<": ">", "（": "）", "【": "】"}
)
#: A list or a heading of Markdown that begins with the label.
_BULLET = re.compile(r"(?:[-*+•]|#{1,6}) ")


def label_of(answer: str, labels: Collection[str]) -> str | None:
    """The label that an answer names, None for none of them.

    A fence, case and white space never count. Then stops behind the answer, pairs of quotes, brackets and emphasis
    around it and the mark of a list or heading before it are taken off one by one, until a label is left. Labels lose
    theirs only where the answer is none so far, and what is left is that of one label alone.

    >>> label_of("**c++**.", ["C++", "C#"]), label_of("C", ["C++", "C#"]), label_of("form", ["(Form)", "letter"])
    ('C++', None, '(Form)')
    >>> label_of("c#", ["C"]), label_of("A-", ["A", "B"]), label_of("C", ["C++", "Java"])
    (None, None, None)
    """
    folded, cores, longest = _known(tuple(labels))
    bare = ""
    for bare in _taken_off(fold_label(remove_fence(answer)), longest):
        if bare and bare in folded:
            return folded[bare]
    return cores.get(bare) if bare else None


@lru_cache(maxsize=8)
def _known(labels: tuple[str, ...]) -> tuple[Mapping[str, str], Mapping[str, str | None], int]:
    """Return labels as they are compared, those that have lost what can be taken off, and the longest length.

    Of the second, what is left of several labels is None.
    """
    folded: dict[str, str] = {}
    for label in labels:
        folded.setdefault(fold_label(label), label)
    cores: dict[str, str | None] = {}
    for same, label in folded.items():
        core = _core(same)
        cores[core] = None if core in cores else label
    return folded, cores, max(map(len, folded), default=0)


def _taken_off(text: str, longest: int) -> Iterator[str]:
    """The text with ever fewer marks at its ends, as far as no mark or to ""; only forms of at most so many letters."""
    start, end = 0, len(text)
    while start < end:
        if end - start <= longest:
            yield text[start:end]
        first, last = text[start], text[end - 1]
        if bullet := _BULLET.match(text, start, end):
            start = bullet.end()
        elif start + 1 < end and last in _PAIRS.get(first, ""):
            start, end = start + 1, end - 1
        elif last in _STOPS:
            end -= 1
        else:
            return
        while start < end and text[start] == " ":
            start += 1
        while start < end and text[end - 1] == " ":
            end -= 1
    yield ""


def _core(label: str) -> str:
    """A label without all that can be taken off."""
    return list(_taken_off(label, len(label)))[-1]


def fold_label(text: str) -> str:
    """A label as it is compared: NFC, without regard to case, needless white space dropped."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def label_mistakes(labels: Collection[str]) -> Iterator[str]:
    """Labels that no answer could be, or that no answer could tell apart."""
    if len(labels) > MOST_CLASSES:
        yield f"{len(labels):,} labels, more than {MOST_CLASSES:,}"
        return
    seen: dict[str, str] = {}
    for label in labels:
        same = fold_label(label)
        if not same:
            yield f"label {label!r} is empty"
        elif same in seen:
            yield f"labels {seen[same]!r} and {label!r} are one label, as case and spaces do not count"
        seen.setdefault(same, label)
