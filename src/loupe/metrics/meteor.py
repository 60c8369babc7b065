"""METEOR of two lists of words: NLTK's numbers, which Fox reports.

Paper: Banerjee & Lavie, "METEOR", ACL workshop 2005, with NLTK's settings (alpha 0.9, beta 3, gamma 0.5); protocol:
docs/benchmarks/fox.md. Needs the extra `fox` (nltk) and, for synonyms, the files of WordNet 3.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Protocol

from loupe.errors import MissingToolError
from loupe.metrics.meteor_wordnet import NoSynonyms, Synset, WordNet, find_wordnet


class Synonyms(Protocol):
    """What METEOR asks of a dictionary; NLTK's own corpus readers fit, too."""

    def synsets(self, word: str, /) -> Sequence[Synset]:
        """The groups of words with one meaning that hold `word`."""
        ...


def meteor(prediction: Sequence[str], reference: Sequence[str], *, synonyms: Synonyms | None = None) -> float:
    """METEOR, 0..1, higher is better, case ignored; no common word: 0.0.

    Time grows with the number of words, not with its square: NLTK 3.10.4 has an index of words (older ones not).
    Without `synonyms`, words match exactly or by their Porter stem. Raises MissingToolError if nltk is not installed.
    Oddity kept: synonyms are looked up for stems, not for words, as NLTK does, so that "automobile" and "car" differ.
    """
    try:
        from nltk.translate.meteor_score import meteor_score  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        raise MissingToolError("METEOR needs nltk, which is not installed", hint="pip install nltk") from None
    return float(meteor_score([list(reference)], list(prediction), wordnet=synonyms or NoSynonyms()))


@cache
def installed_wordnet() -> WordNet | None:
    """WordNet in one of NLTK's data folders or where the system has it; None: not installed, or NLTK is not.

    `python -m nltk.downloader wordnet` and `apt install wordnet-base` give the same numbers.
    """
    try:
        import nltk  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        return None
    return find_wordnet(nltk.data.path)
