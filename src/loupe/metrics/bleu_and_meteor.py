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
from typing import Any, Protocol, TypeAlias

from loupe.errors import MissingToolError

#: Matches for n = 1..N, possible matches for n = 1..N, prediction tokens, reference tokens.
BleuCounts: TypeAlias = tuple[int, ...]
#: One reference, or several of which the best counts.
References: TypeAlias = str | Sequence[str]
Tokenizer: TypeAlias = Callable[[str], list[str]]

_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
#: All ASCII punctuation except ' , - and the full stop, each a token of its own.
_PUNCTUATION = str.maketrans({sign: f" {sign} " for sign in string.punctuation if sign not in "',-."})
_STOP_AFTER_NONDIGIT = re.compile(r"([^0-9])([.,])")
_STOP_BEFORE_NONDIGIT = re.compile(r"([.,])([^0-9])")
_DASH_AFTER_DIGIT = re.compile(r"([0-9])(-)")


def tokenize_13a(text: str) -> list[str]:
    """The words of the tokenizer 13a (mteval-v13a): punctuation apart, but for stops and dashes inside numbers.

    >>> tokenize_13a(r"x=\\alpha, 3.14")
    ['x', '=', '\\\\', 'alpha', ',', '3.14']
    """
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
    """How often each run of `order` tokens occurs."""
    return Counter(zip(*(tokens[start:] for start in range(order)), strict=False))


def bleu_counts(
    prediction: str, references: References, *, max_order: int = 4, tokenize: Tokenizer = tokenize_13a
) -> BleuCounts:
    """What one pair adds to the corpus: see `BleuCounts`. Of several references the shortest gives the length."""
    found = tokenize(prediction)
    wanted = [tokenize(text) for text in ([references] if isinstance(references, str) else references)]
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
    """Corpus BLEU of summed counts, shape (..., 2N + 2) → (...): the `value` of a BLEU measure.

    No smoothing unless asked: one order without a match makes it 0. No prediction or no reference tokens: 0.0, where
    the official metric divides by zero.
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
    """BLEU of a corpus, 0..1, higher is better: the numbers of Hugging Face `evaluate`, "bleu".

    A single text is a corpus of one. `references` holds one text, or a list of texts, per prediction. `smooth` adds one
    to every count. Empty texts on either side of the whole corpus: 0.0. Raises ValueError for lists of unequal length.

    >>> round(corpus_bleu(["the cat sat on the mat"], ["the cat sat on a mat"]), 4)
    0.5373
    """
    pairs = zip(
        [predictions] if isinstance(predictions, str) else predictions,
        [references] if isinstance(references, str) else references,
        strict=True,
    )
    counts = [bleu_counts(found, wanted, max_order=max_order) for found, wanted in pairs]
    sums = [sum(column) for column in zip(*counts, strict=True)]
    return float(bleu_of_sums(sums, smooth=smooth)) if sums else 0.0


def sentence_bleu(prediction: Sequence[str], reference: Sequence[str]) -> float:
    """BLEU-4 of one list of words against another, 0..1: the numbers of NLTK's `sentence_bleu` without smoothing.

    NLTK gives an order without matches the smallest float instead of zero, so that short or unlike texts score about
    1e-78 to 1e-231; only texts without a common word score 0. Kept: Fox's page scores are means of these.
    """
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
        from nltk.translate.meteor_score import meteor_score
    except ModuleNotFoundError:
        raise MissingToolError(
            "METEOR needs nltk, which is not installed", hint="install it: pip install nltk"
        ) from None
    return float(meteor_score([list(reference)], list(prediction), wordnet=synonyms or NoSynonyms()))


@cache
def installed_wordnet() -> WordNet | None:
    """WordNet in one of NLTK's data folders or where the system has it; None: not installed, or NLTK is not.

    `python -m nltk.downloader wordnet` and `apt install wordnet-base` give the same numbers.
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
        """Where the groups of `form` begin: the index is sorted by its bytes, so it is searched by halves."""
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
