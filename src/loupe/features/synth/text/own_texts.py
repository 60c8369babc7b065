"""Texts of the user's own as sentences: plain text and Markdown of one folder. Nothing of them leaves the machine."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from loupe.errors import UsageError
from loupe.features.synth.dice import Dice
from loupe.features.synth.text.language import language
from loupe.features.synth.text.prose import Prose
from loupe.features.synth.text.tokens import Text, Token, tokens_of
from loupe.files.foreign import decode_text, is_inside, read_data

_KINDS = (".txt", ".md", ".markdown")
_MOST_FILES, _MOST_BYTES = 2_000, 20_000_000
_LEAST_WORDS, _MOST_WORDS = 3, 60
#: More than any writing has in use; each is set once to see whether the font has it.
_MOST_LETTERS = 20_000
#: Languages in which every noun has a capital: there, no word can be taken for a name.
_CAPITAL_NOUNS = frozenset({"de"})
#: Markdown that is no text: fences, tables, headings' and lists' marks, emphasis, pictures; of links the words stay.
_FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.DOTALL | re.MULTILINE)
_NO_TEXT = re.compile(r"^[ \t]*\|.*$|^[ \t]*[-=*_]{3,}[ \t]*$|!\[[^\]\[]*\]\([^)\[]*\)|<[^<>\n]*>", re.MULTILINE)
_MARKS = re.compile(r"^[ \t]*(?:#{1,6}|[-*+]|\d+[.)]|>)[ \t]+|[*_`]+", re.MULTILINE)
_LINK = re.compile(r"\[([^\]\[]*)\]\([^)\[]*\)")
_SENTENCE = re.compile(r"(?<=[.!?。！？।])\s+|(?<=[。！？])|\n\s*\n")


class OwnTexts(NamedTuple):
    """The prose of a folder, and of every letter in it the file that has it first."""

    prose: Prose
    letters: Mapping[str, Path]


def own_texts(folder: Path, code: str) -> OwnTexts:
    """The sentences of a folder in any order. Raises UsageError, with file and line, for what cannot be typeset."""
    sentences: list[Text] = []
    letters: dict[str, Path] = {}
    for path in _files(folder):
        for found in _sentences(path, code):
            sentences.append(found)
            letters |= {letter: path for token in found for letter in token.text if letter not in letters}
    if not sentences:
        raise UsageError(
            f"{folder}: no sentence of {_LEAST_WORDS} words or more in its texts", hint="add .txt or .md files"
        )

    if len(letters) > _MOST_LETTERS:
        raise UsageError(
            f"{folder}: {len(letters):,} different letters; texts have {_MOST_LETTERS:,} at most",
            hint="leave out what is no text",
        )

    def sentence(dice: Dice) -> Text:
        return sentences[dice.below(len(sentences))]

    return OwnTexts(Prose(code, sentence), letters)


def line_of(path: Path, letter: str) -> int:
    """The first line of a text with this letter."""
    text = decode_text(read_data(path, limit=_MOST_BYTES))
    return text.count("\n", 0, max(text.find(letter), 0)) + 1


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder of texts", hint="use --text DIR with .txt or .md files")
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _KINDS and path.is_file())
    if not found:
        raise UsageError(f"{folder}: no .txt or .md file in it", hint="use --text DIR with .txt or .md files")
    for path in found:
        if not is_inside(path, folder):
            raise UsageError(f"{path}: a link that leads out of the folder", hint="copy the text into the folder")
    if len(found) > _MOST_FILES or sum(path.stat().st_size for path in found) > _MOST_BYTES:
        raise UsageError(
            f"{folder}: over {_MOST_FILES:,} texts, or {_MOST_BYTES // 10**6} MB of them", hint="name a part of it"
        )
    return found


def _sentences(path: Path, code: str) -> Iterator[Text]:
    try:
        whole = decode_text(read_data(path, limit=_MOST_BYTES))
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line}: not UTF-8", hint="save the file as UTF-8") from None
    whole = whole.replace("\r\n", "\n")
    _refuse_controls(path, whole)
    if path.suffix.lower() != ".txt":
        whole = _MARKS.sub("", _LINK.sub(r"\1", _NO_TEXT.sub(" ", _FENCE.sub(" ", whole))))
    for piece in _SENTENCE.split(whole):
        words = piece.split()
        if _LEAST_WORDS <= len(words) <= _MOST_WORDS or (not language(code).glue and len(piece.strip()) > _LEAST_WORDS):
            text = tokens_of(" ".join(words))
            yield text if code in _CAPITAL_NOUNS else _with_names(text)


def _refuse_controls(path: Path, text: str) -> None:
    for place, letter in enumerate(text):
        if letter not in "\n\t" and unicodedata.category(letter) in ("Cc", "Co", "Cs", "Cn"):
            line = text.count("\n", 0, place) + 1
            what = (
                f"the control character U+{ord(letter):04X}"
                if letter < " " or letter == "\x7f"
                else f"U+{ord(letter):04X}"
            )
            raise UsageError(f"{path}:{line}: {what} cannot be typeset", hint="remove it from the text")


def _with_names(text: Text) -> Text:
    """Words with a capital inside a sentence count as names, which the rung `swapped` exchanges."""
    return [
        Token(token.text, "name") if place and token.kind == "word" and token.text[:1].isupper() else token
        for place, token in enumerate(text)
    ]
