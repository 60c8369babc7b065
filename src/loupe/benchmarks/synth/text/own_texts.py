"""Texts of the user's own as sentences: plain text and Markdown of one folder. Nothing of them leaves the machine."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from loupe.benchmarks.synth.dice import Dice
from loupe.benchmarks.synth.text.language import language
from loupe.benchmarks.synth.text.prose import Prose
from loupe.benchmarks.synth.text.tokens import Text, Token, tokens_of
from loupe.errors import UsageError
from loupe.files.foreign import is_inside, read_data

_KINDS = (".txt", ".md", ".markdown")
_MOST_FILES, _MOST_BYTES = 2_000, 20_000_000
_LEAST_WORDS, _MOST_WORDS = 3, 60
#: Markdown that is no text: fences, tables, headings' and lists' marks, emphasis, pictures; of links the words stay.
_FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.DOTALL | re.MULTILINE)
_NO_TEXT = re.compile(r"^[ \t]*\|.*$|^[ \t]*[-=*_]{3,}[ \t]*$|!\[[^\]\[]*\]\([^)\[]*\)|<[^<>\n]*>", re.MULTILINE)
_MARKS = re.compile(r"^[ \t]*(?:#{1,6}|[-*+]|\d+[.)]|>)[ \t]+|[*_`]+", re.MULTILINE)
_LINK = re.compile(r"\[([^\]\[]*)\]\([^)\[]*\)")
_SENTENCE = re.compile(r"(?<=[.!?。！？।])\s+|(?<=[。！？])|\n\s*\n")


def own_prose(folder: Path, code: str) -> Prose:
    """The sentences of a folder in any order. Raises UsageError, with file and line, for what cannot be typeset."""
    sentences = [sentence for path in _files(folder) for sentence in _sentences(path, code)]
    if not sentences:
        raise UsageError(
            f"{folder}: no sentence of {_LEAST_WORDS} words or more in its texts", hint="add .txt or .md files"
        )

    def sentence(dice: Dice) -> Text:
        return sentences[dice.below(len(sentences))]

    return Prose(code, sentence)


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder of texts", hint="--text DIR with .txt or .md files")
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _KINDS and path.is_file())
    if not found:
        raise UsageError(f"{folder}: no .txt or .md file in it", hint="--text DIR with .txt or .md files")
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
        text = read_data(path, limit=_MOST_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line}: not UTF-8", hint="save the file as UTF-8") from None
    text = text.replace("\r\n", "\n")
    _refuse_controls(path, text)
    if path.suffix.lower() != ".txt":
        text = _MARKS.sub("", _LINK.sub(r"\1", _NO_TEXT.sub(" ", _FENCE.sub(" ", text))))
    for piece in _SENTENCE.split(text):
        words = piece.split()
        if _LEAST_WORDS <= len(words) <= _MOST_WORDS or (not language(code).glue and len(piece.strip()) > _LEAST_WORDS):
            yield _with_names(tokens_of(" ".join(words)))


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
