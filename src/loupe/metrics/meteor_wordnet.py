"""Synonyms from the files of WordNet 3.0, as METEOR asks for them: read where they lie, nothing loaded up front.

Same answers as NLTK's reader of the same files (`synsets(word)`, the names of their lemmas), which needs seconds and
100 MB to start, and a file that Debian's package lacks. Format: wndb(5WN) and morphy(7WN) of WordNet 3.0.
"""

from __future__ import annotations

import mmap
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

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
