"""The facts of a trap: whether each holds for an answer, by rules that forgive misread letters and nothing else."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Any

from loupe.explanation import Fact as ShownFact
from loupe.features.synth.page import Fact
from loupe.metrics import levenshtein_distance
from loupe.types import Prediction, Sample, SampleScores

#: An answer to an empty page may hold this many letters and digits: a speck is read as a dot or two by anybody.
_LETTERS_OF_NOTHING = 3
#: What is no text of a page: pictures and comments, as Markdown and HTML write them. None is looked for beyond
#: the beginning of the next: an answer may be a long row of beginnings.
_NO_TEXT = re.compile(r"!\[[^\]\[]*\]\([^)\[]*\)|<!--(?:(?!<!--).)*?-->|<img[^<>]*>", re.DOTALL)
_WORD = re.compile(r"\w+")
#: Words this long may have one wrong letter and still be told from others.
_LONG = 6


def judged(answer: str, facts: tuple[Fact, ...]) -> list[dict[str, Any]]:
    """Each fact with whether it holds, and what was found: `{"kind", "text", "held", "found"}`."""
    words = words_of(answer)
    found = []
    for fact in facts:
        held, seen = _RULES[fact.kind](answer, words, fact)
        found.append({"kind": fact.kind, "text": fact.text[:200], "held": held, "found": seen})
    return found


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, in order, without punctuation and markup."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold().replace("_", " "))


def _nothing(answer: str, words: list[str], fact: Fact) -> tuple[bool, str]:
    letters = sum(map(len, words_of(_NO_TEXT.sub("", answer))))
    return letters <= _LETTERS_OF_NOTHING, f"{letters} letters and digits"


def _absent(answer: str, words: list[str], fact: Fact) -> tuple[bool, str]:
    wanted = words_of(fact.text)
    places = range(len(words) - len(wanted) + 1)
    count = sum(words[place : place + len(wanted)] == wanted for place in places)
    return count == 0, "found once" if count == 1 else f"found {count} times"


def _read(answer: str, words: list[str], fact: Fact) -> tuple[bool, str]:
    """The share of the words of the text that the answer has, each as often as it stands there."""
    wanted = Counter(words_of(fact.text))
    there = (wanted & Counter(words)).total()
    share = there / wanted.total() if wanted else 1.0
    return share >= fact.least, f"{there} of {wanted.total()} words"


def _times(words: list[str], fact: Fact) -> int:
    wanted = words_of(fact.text)[0]
    return sum(_alike(word, wanted) for word in words)


def _alike(word: str, wanted: str) -> bool:
    if word == wanted or len(wanted) < _LONG or abs(len(word) - len(wanted)) > 1:
        return word == wanted
    return levenshtein_distance(word, wanted) <= 1


def _exactly(answer: str, words: list[str], fact: Fact) -> tuple[bool, str]:
    count = _times(words, fact)
    return count == fact.count, f"found {count} times, printed {fact.count} times"


def _at_most(answer: str, words: list[str], fact: Fact) -> tuple[bool, str]:
    count = _times(words, fact)
    return count <= fact.count, f"found {count} times, printed {fact.count} times"


_RULES = {"nothing": _nothing, "absent": _absent, "read": _read, "exactly": _exactly, "at most": _at_most}
_ASKED = {
    "nothing": "nothing is read",
    "absent": "not in the answer:",
    "read": "read, at least in part:",
    "exactly": "in every row, and no oftener:",
    "at most": "no oftener than printed:",
}


def shown_facts(sample: Sample, prediction: Prediction, scores: SampleScores) -> list[ShownFact]:
    """The facts of a trap for the page of a sample, each with what was found; none of other pages."""
    return [
        ShownFact(
            ident=f"{sample.id}-{number}",
            kind=fact["kind"],
            category=sample.tags.get("kind", ""),
            document=sample.id,
            passed=fact["held"] and not prediction.failed,
            words=(("", _ASKED[fact["kind"]]), *((("text", fact["text"]),) if fact["text"] else ())),
            why="" if fact["held"] else fact["found"],
        )
        for number, fact in enumerate(judged(prediction.text, sample.truth.facts), 1)
    ]
