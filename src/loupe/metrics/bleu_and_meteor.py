"""Compute BLEU as counts that add up over a corpus, and METEOR as NLTK does, which Fox reports.

Paper: Papineni et al., "BLEU", ACL 2002. `corpus_bleu` gives the numbers of "bleu" in Hugging Face `evaluate`
(its 13a tokenizer, `compute_bleu` of tensorflow/nmt), which UniMERNet and OmniDocBench report
(docs/benchmarks/unimer_test.md); `sentence_bleu` those of NLTK, which Fox reports (docs/benchmarks/fox.md).

Paper: Banerjee & Lavie, "METEOR", ACL workshop 2005, with NLTK's settings (alpha 0.9, beta 3, gamma 0.5); protocol:
docs/benchmarks/fox.md. Needs the extra `fox` (nltk) and, for synonyms, the files of WordNet 3.0.

Synonyms are read from those files in place, with the answers of NLTK's reader (`synsets(word)`, the names of their
lemmas), which needs seconds and 100 MB to start, and a file that Debian's package lacks. Format: wndb(5WN) and
morphy(7WN) of WordNet 3.0.
"""

from __future__ import annotations

import math
import mmap
import re
import string
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast

from loupe.errors import MissingToolError
from loupe.metrics.arguments import (
    accepted_references,
    check_texts,
    is_several,
    list_of_texts,
    words_of,
    wrong_type,
)

#: Matches for n = 1..N, possible matches for n = 1..N, prediction tokens, reference tokens.
BleuCounts: TypeAlias = tuple[int, ...]
#: One reference, or several of which the best counts.
References: TypeAlias = str | Sequence[str]
#: A text, or a list of words.
Words: TypeAlias = str | Sequence[str]
Tokenizer: TypeAlias = Callable[[str], list[str]]

_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
#: All ASCII punctuation except ' , - and the full stop, each a token of its own.
_PUNCTUATION = str.maketrans({sign: f" {sign} " for sign in string.punctuation if sign not in "',-."})
_STOP_AFTER_NONDIGIT = re.compile(r"([^0-9])([.,])")
_STOP_BEFORE_NONDIGIT = re.compile(r"([.,])([^0-9])")
_DASH_AFTER_DIGIT = re.compile(r"([0-9])(-)")


def tokenize_13a(text: str) -> list[str]:
    """Return the words of the tokenizer 13a (mteval-v13a): punctuation apart, except stops and dashes in numbers.

    Source: Hugging Face `evaluate`, docs/benchmarks/unimer_test.md.

    >>> tokenize_13a(r"x=\\alpha, 3.14")
    ['x', '=', '\\\\', 'alpha', ',', '3.14']
    """
    check_texts(text=text)
    text = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    if "&" in text:
        for entity, character in _ENTITIES:
            text = text.replace(entity, character)
    text = f" {text} ".translate(_PUNCTUATION)
    if "." in text or "," in text:
        text = _STOP_AFTER_NONDIGIT.sub(r"\1 \2 ", text)
        text = _STOP_BEFORE_NONDIGIT.sub(r" \1 \2", text)
    if "-" in text:
        text = _DASH_AFTER_DIGIT.sub(r"\1 \2 ", text)
    return text.split()


def ngram_counts(tokens: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    """Count the runs of `order` tokens."""
    return Counter(zip(*(tokens[start:] for start in range(order)), strict=False))


def bleu_counts(
    prediction: str, references: References, *, max_order: int = 4, tokenize: Tokenizer = tokenize_13a
) -> BleuCounts:
    """Return what one pair adds to the BLEU of a corpus; `bleu_of_sums` turns the sums of such counts into BLEU.

    2N + 2 counts for N = `max_order`: matches of n-grams for n = 1..N, possible matches for n = 1..N, tokens of the
    prediction, tokens of the reference (of the shortest of several). Source: Papineni et al. 2002.

    >>> bleu_counts("the cat sat", "the cat is")
    (2, 1, 0, 0, 3, 2, 1, 0, 3, 3)
    """
    wanted = [tokenize(text) for text in accepted_references(prediction, references)]
    found = tokenize(prediction)
    matches, possible = [], []
    for order in range(1, max_order + 1):
        available = ngram_counts(wanted[0], order) if wanted else Counter()
        for tokens in wanted[1:]:
            available |= ngram_counts(tokens, order)
        # Like `&` of counters and its total, without making a third one.
        matches.append(sum(min(count, available[gram]) for gram, count in ngram_counts(found, order).items()))
        possible.append(max(0, len(found) - order + 1))
    return (*matches, *possible, len(found), min(map(len, wanted), default=0))


def bleu_of_sums(sums: Any, *, smooth: bool = False) -> Any:
    """Turn sums of `bleu_counts` into corpus BLEU, shape (..., 2N + 2) → (...): the `value` of a BLEU measure.

    Range 0..1, higher is better. No smoothing unless asked: one order without a match makes it 0. No prediction or no
    reference tokens: 0.0, where the official metric divides by zero.

    >>> float(bleu_of_sums(bleu_counts("a b c d", "a b c d")))
    1.0
    """
    import numpy as np

    sums = np.asarray(sums, float)
    orders = sums.shape[-1] // 2 - 1
    matches, possible = sums[..., :orders] + smooth, sums[..., orders : 2 * orders] + smooth
    found, wanted = sums[..., -2], sums[..., -1]
    some = (matches > 0).all(-1) & (found > 0) & (wanted > 0)
    precisions = np.where(some[..., None], matches, 1.0) / np.where(some[..., None], possible, 1.0)
    ratio = np.where(some, found, 1.0) / np.where(some, wanted, 1.0)
    penalty = np.where(ratio > 1, 1.0, np.exp(1 - 1 / np.minimum(ratio, 1.0)))
    return np.where(some, np.exp(np.log(precisions).mean(-1)) * penalty, 0.0)


def corpus_bleu(
    predictions: str | Sequence[str],
    references: str | Sequence[References],
    *,
    max_order: int = 4,
    smooth: bool = False,
) -> float:
    """Return the BLEU of a corpus.

    Range 0..1, higher is better. `references` has a text, or a list of texts, for each prediction. A single text is a
    corpus of one, and may have a list of references. Without n-grams of all orders up to `max_order` in common (texts
    of fewer than four tokens) 0.0, even for equal texts; `smooth` adds one to every count. Empty texts on either side
    of the whole corpus: 0.0. Source: Hugging Face `evaluate`, "bleu", whose numbers these are. Raises ValueError for
    lists of unequal length.

    >>> round(corpus_bleu(["the cat sat on the mat"], ["the cat sat on a mat"]), 4)
    0.5373
    """
    if isinstance(predictions, str):
        nested = is_several(references) and all(is_several(each) for each in references)
        found: list[str] = [predictions]
        wanted: list[References] = list(references) if nested else [cast(References, references)]
    elif is_several(references):
        found, wanted = list_of_texts("predictions", predictions), list(references)
    else:
        raise wrong_type("references", references, "a list with a text, or a list of texts, for each prediction")
    for place, texts in enumerate(wanted):
        if not isinstance(texts, str):
            list_of_texts("references" if isinstance(predictions, str) else f"references[{place}]", texts)
    if len(found) != len(wanted):
        raise ValueError(f"{len(found)} predictions for {len(wanted)} references")
    counts = [bleu_counts(*pair, max_order=max_order) for pair in zip(found, wanted, strict=True)]
    sums = [sum(column) for column in zip(*counts, strict=True)]
    return float(bleu_of_sums(sums, smooth=smooth)) if sums else 0.0


def sentence_bleu(prediction: Words, reference: Words) -> float:
    """Return the BLEU-4 of one text, or list of words, against another. A text is split at white space.

    Range 0..1, higher is better. Source: NLTK's `sentence_bleu` without smoothing. NLTK gives an order without matches
    the smallest float instead of zero: texts of fewer than four words, or without four in a row in common, score
    about 1e-78 to 1e-231. Only texts without a common word score 0. Kept: Fox's page scores are means of these.

    >>> round(sentence_bleu("the cat sat on the mat", "the cat sat on a mat"), 4)
    0.5373
    """
    prediction, reference = words_of("prediction", prediction), words_of("reference", reference)
    logarithms = []
    for order in range(1, 5):
        found = ngram_counts(prediction, order)
        matches = (found & ngram_counts(reference, order)).total()
        if not matches and order == 1:
            return 0.0
        logarithms.append(math.log(matches / max(1, found.total()) or sys.float_info.min))
    penalty = min(1.0, math.exp(1 - len(reference) / len(prediction)))
    return penalty * math.exp(math.fsum(0.25 * logarithm for logarithm in logarithms))


class Synonyms(Protocol):
    """The methods that METEOR needs of a dictionary; NLTK's own corpus readers fit, too."""

    def synsets(self, word: str, /) -> Sequence[Synset]:
        """The groups of words with one meaning that hold `word`."""
        ...


def meteor(prediction: Words, reference: Words, *, synonyms: Synonyms | None = None) -> float:
    """Return the METEOR of two texts, or lists of words. A text is split at white space.

    Range 0..1, higher is better, case ignored; equal texts score a little below 1; no common word: 0.0. Words match
    exactly or by their Porter stem, and by `synonyms=installed_wordnet()` as in the official metric. Source: NLTK,
    whose quirk is kept: it looks up synonyms of stems, so "automobile" and "car" differ. Its release 3.10.4 has an
    index of words: time grows with their number, not with its square. Raises MissingToolError if nltk is not installed.

    >>> round(meteor("the cat sat on the mat", "the cat sat on a mat"), 4)  # doctest: +SKIP
    0.8067
    """
    words = words_of("prediction", prediction), words_of("reference", reference)
    try:
        from nltk.translate.meteor_score import meteor_score
    except ModuleNotFoundError:
        raise MissingToolError(
            "METEOR needs nltk, which is not installed", hint="install it: pip install nltk"
        ) from None
    return float(meteor_score([words[1]], words[0], wordnet=synonyms or NoSynonyms()))


@cache
def installed_wordnet() -> WordNet | None:
    """Return the WordNet of this machine, for `meteor(..., synonyms=...)`; None if it, or NLTK, is not installed.

    It is in one of NLTK's data folders (`python -m nltk.downloader wordnet`) or where the system has it
    (`apt install wordnet-base`): both give the same numbers.
    """
    try:
        import nltk
    except ModuleNotFoundError:
        return None
    return find_wordnet(nltk.data.path)


_PARTS = ("noun", "verb", "adj", "adv")
#: Endings that a word may have, and what stands in their place in the dictionary.
_ENDINGS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "noun": (
        *(("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z")),
        *(("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y")),
    ),
    "verb": (
        *(("s", ""), ("ies", "y"), ("es", "e"), ("es", "")),
        *(("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")),
    ),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}
#: The longest entry has 71 characters, and an ending adds at most 4.
_LONGEST = 80
#: Where systems put the files of WordNet 3.0; NLTK's own folders come first.
SYSTEM_FOLDERS = (
    Path("/usr/share/wordnet"),
    Path("/usr/share/wordnet-3.0/dict"),
    Path("/usr/local/WordNet-3.0/dict"),
)


@dataclass(frozen=True, slots=True)
class Synset:
    """A group of words with one meaning; the methods are those that NLTK's METEOR calls."""

    words: tuple[Lemma, ...]

    def lemmas(self) -> tuple[Lemma, ...]:
        """The words of the group."""
        return self.words


@dataclass(frozen=True, slots=True)
class Lemma:
    """One word of a group."""

    word: str

    def name(self) -> str:
        """The word, with "_" for blanks."""
        return self.word


class WordNet:
    """The dictionary in one folder, or in NLTK's `wordnet.zip`. Raises FileNotFoundError if a file is missing."""

    def __init__(self, path: Path) -> None:
        names = [f"{kind}.{part}" for part in _PARTS for kind in ("index", "data")]
        self._files = dict(zip(names, _open(path, names), strict=True))
        exceptions = _open(path, [f"{part}.exc" for part in _PARTS])
        self._exceptions = {
            part: {words[0]: words[1:] for line in bytes(content[:]).decode().splitlines() if (words := line.split())}
            for part, content in zip(_PARTS, exceptions, strict=True)
        }
        self._cached = lru_cache(maxsize=50_000)(self._synsets)

    def synsets(self, word: str) -> tuple[Synset, ...]:
        """The groups that hold `word`, or the dictionary form of it, as any part of speech."""
        return self._cached(word) if len(word) <= _LONGEST else ()

    def _synsets(self, word: str) -> tuple[Synset, ...]:
        word = word.lower()
        return tuple(
            self._synset(part, offset)
            for part in _PARTS
            for form in self._forms(word, part)
            for offset in self._offsets(part, form)
        )

    def _forms(self, word: str, part: str) -> Iterable[str]:
        """The word itself and its dictionary forms, each once; exceptions replace the rules."""
        changed = self._exceptions[part].get(word)
        if changed is None:
            changed = [word[: -len(old)] + new for old, new in _ENDINGS[part] if word.endswith(old)]
        return dict.fromkeys([word, *changed])

    def _offsets(self, part: str, form: str) -> Iterator[int]:
        """Yield the offsets of the groups of `form`: the index is sorted by its bytes, so it is searched by
        halves.
        """
        key = form.encode(errors="replace") + b" "
        if key.find(b" ") < len(key) - 1 or key == b" " or b"\n" in key:
            return
        index = self._files[f"index.{part}"]
        low, high = 0, len(index)
        while low < high:
            middle = (low + high) // 2
            line = index.rfind(b"\n", 0, middle) + 1
            if index[line : line + len(key)] < key:
                end = index.find(b"\n", middle)
                low = end + 1 if end >= 0 else len(index)
            else:
                high = line
        if index[low : low + len(key)] == key:
            fields = index[low : index.find(b"\n", low)].split()
            count = int(fields[2])
            yield from (int(field) for field in fields[-count:])

    def _synset(self, part: str, offset: int) -> Synset:
        data = self._files[f"data.{part}"]
        fields = data[offset : data.find(b"\n", offset)].split(b"|", 1)[0].decode().split()
        # Two fields per word; adjectives may carry a mark of their place: "galore(ip)".
        words = (fields[4 + 2 * number].split("(")[0] for number in range(int(fields[3], 16)))
        return Synset(tuple(Lemma(word) for word in words))


class NoSynonyms:
    """A dictionary that knows no word: METEOR then compares words and stems only."""

    def synsets(self, word: str) -> tuple[Synset, ...]:
        """Always nothing."""
        return ()


def find_wordnet(folders: Iterable[str | Path] = ()) -> WordNet | None:
    """The first dictionary found: in `folders` (NLTK's data path), then where systems keep it; None: not installed."""
    nltk = (Path(folder) / "corpora" / name for folder in folders for name in ("wordnet", "wordnet.zip"))
    for path in (*nltk, *SYSTEM_FOLDERS):
        try:
            return WordNet(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
    return None


def _open(path: Path, names: Iterable[str]) -> list[Any]:
    """The content of files as mapped memory, or as bytes from a zip; Any, because both have slices, find and rfind."""
    if path.suffix == ".zip" and path.is_file():
        with zipfile.ZipFile(path) as archive:
            try:
                return [archive.read(f"wordnet/{name}") for name in names]
            except KeyError as error:
                raise FileNotFoundError(f"{path}: {error}") from None
    return [_map(path / name) for name in names]


def _map(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
