"""Texts that nobody has published: sentences of our own phrases in many languages, or a user's own texts.

Languages are TOML files in `languages/`. Every text is in pieces that can be exchanged one by one, from a text that
means something to letters that mean nothing, while every line stays as long as it was.
"""

from __future__ import annotations

import functools
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, cast

import msgspec

from loupe.errors import UsageError, did_you_mean
from loupe.features.synth.dice import Dice
from loupe.files.foreign import decode_text, is_inside, read_data
from loupe.typed import convert

Kind: TypeAlias = Literal["word", "name", "number", "mark", "gap"]

#: Around a name that may be exchanged for another.
NAME_BEGINS, NAME_ENDS = "\ue000", "\ue001"
_PIECE = re.compile(
    rf"{NAME_BEGINS}(?P<name>[^{NAME_ENDS}]*){NAME_ENDS}|(?P<gap>\s+)|(?P<number>\d+)|(?P<word>[^\W\d_]"
    rf"(?:[^\W\d_]|[\u0300-\u036f\u0900-\u0903\u093a-\u094f])*)|(?P<mark>.)",
    re.DOTALL,
)
#: A letter with all that is written on it; in Indic scripts with the consonants that it is joined to.
_CLUSTER = re.compile(r"(?:.\u094d)*.[\u0300-\u036f\u0900-\u0903\u093a-\u094c\u094e\u094f]*")
_DENSE = re.compile("[\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uff00-\uffef]")
#: What begins no line.
_CLOSING = frozenset("，。、；：！？）」』”")


class Token(NamedTuple):
    """A word, a name, a number, a mark of punctuation, or a space, at which a line may end."""

    text: str
    kind: Kind


Text: TypeAlias = list[Token]


def tokens_of(text: str) -> Text:
    """The pieces of a text; a character of a script without spaces is a piece of its own.

    >>> [token.kind for token in tokens_of("A week has 7 days.")]
    ['word', 'gap', 'word', 'gap', 'word', 'gap', 'number', 'gap', 'word', 'mark']
    """
    found: Text = []
    for match in _PIECE.finditer(unicodedata.normalize("NFC", text)):
        kind = cast("Kind", match.lastgroup)
        piece = match[kind]
        if kind == "gap":
            found.append(Token(" ", "gap"))
        elif kind in ("word", "name") and _DENSE.search(piece):
            found += [Token(letter, kind) for letter in piece]
        else:
            found.append(Token(piece, kind))
    return found


def clusters(word: str) -> list[str]:
    """The letters of a word, each with what is written on it."""
    return _CLUSTER.findall(word)


def text_of(tokens: Iterable[Token]) -> str:
    """The pieces as a text."""
    return "".join(token.text for token in tokens)


def width(text: str) -> float:
    """About how wide a text is, in em of a book face; combining signs take no place."""
    return sum(map(_em, text))


@functools.cache
def _em(letter: str) -> float:
    if unicodedata.combining(letter) or unicodedata.category(letter) == "Mn":
        return 0.0
    if letter in " iljtfrI.,;:'!|()’-":
        return 0.32
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    if letter in "mwMW@%—" or "\u0900" <= letter <= "\u097f":
        return 0.86
    return 0.7 if letter.isupper() else 0.53


def lines_of(text: Sequence[Token], most: float) -> list[Text]:
    """The text in lines of at most `most` em; a line ends at a gap, or between characters written without spaces.

    A gap at the end of a line keeps its place in it, so that all lines together are the text.
    """
    lines: list[Text] = [[]]
    used = 0.0
    for unit in _units(text):
        seen = width(text_of(unit[:-1] if unit[-1].kind == "gap" else unit))
        if used + seen > most and used:
            lines.append([])
            used = 0.0
        lines[-1] += unit
        used += seen + (width(unit[-1].text) if unit[-1].kind == "gap" else 0.0)
    return lines


def _units(text: Sequence[Token]) -> Iterable[Text]:
    """Pieces that stay on one line: up to and with the next gap, or one character of a script without spaces."""
    unit: Text = []
    for place, token in enumerate(text):
        unit.append(token)
        following = text[place + 1].text if place + 1 < len(text) else ""
        dense = _DENSE.match(token.text) and following not in _CLOSING and _DENSE.match(following or " ")
        if token.kind == "gap" or dense:
            yield unit
            unit = []
    if unit:
        yield unit


def like(lines: Sequence[Text], changed: Sequence[Token]) -> list[Text]:
    """Another text of as many pieces in the same lines."""
    found, place = [], 0
    for line in lines:
        found.append(list(changed[place : place + len(line)]))
        place += len(line)
    return found


def strings(lines: Iterable[Text]) -> list[str]:
    """Lines as they are typeset."""
    return [text_of(line).strip() for line in lines]


_FOLDER = Path(__file__).parent / "languages"
_SLOTS = ("when", "when2", "who", "does", "where", "where2", "tail")


class Language(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Phrases of a language. `orders` says how a sentence is made of them; `package` brings its font ("": typst does).

    `glue` is "" where words are written without spaces. `facts` are sentences that are true until their numbers and
    names are exchanged.
    """

    name: str
    script: str
    font: str
    orders: list[str]
    when: list[str]
    who: list[str]
    does: list[str]
    where: list[str]
    names: list[str]
    facts: list[str]
    when2: list[str] = []
    where2: list[str] = []
    tail: list[str] = []
    glue: str = " "
    package: str = ""
    rtl: bool = False

    def sentence(self, dice: Dice) -> Text:
        """A sentence that nobody has written before."""
        if dice.chance(14):
            return tokens_of(dice.choice(self.facts).replace("[", NAME_BEGINS).replace("]", NAME_ENDS))
        text = dice.choice(self.orders)
        for slot in _SLOTS:
            if f"{{{slot}}}" in text:
                text = text.replace(f"{{{slot}}}", dice.choice(getattr(self, slot)), 1)
        while "{name}" in text:
            text = text.replace("{name}", f"{NAME_BEGINS}{dice.choice(self.names)}{NAME_ENDS}", 1)
        while "{year}" in text:
            text = text.replace("{year}", str(dice.between(1801, 1989)), 1)
        while "{n}" in text:
            text = text.replace("{n}", str(dice.between(2, 98)), 1)
        return tokens_of(text[0].upper() + text[1:])


@functools.cache
def language_codes() -> tuple[str, ...]:
    """The codes of all languages, English first."""
    found = sorted(file.stem for file in _FOLDER.glob("*.toml"))
    return ("en", *(code for code in found if code != "en"))


@functools.cache
def language(code: str) -> Language:
    """The language with this code. Raises UsageError if there is none."""
    if code not in language_codes():
        meant = did_you_mean(code, language_codes())
        raise UsageError(f"synth has no language {code!r}{meant}", hint=f"languages: {', '.join(language_codes())}")
    return convert(tomllib.loads(read_data(_FOLDER / f"{code}.toml").decode()), Language)


class Letters(msgspec.Struct, frozen=True):
    """Counts of the letters that follow each other in the words of a language; "" stands before a word."""

    after: dict[str, list[str]]
    words: frozenset[str]


@functools.cache
def letters(code: str) -> Letters:
    """The letter statistics of a language, counted over its own phrases."""
    one = language(code)
    phrases = [*(phrase for slot in _SLOTS for phrase in getattr(one, slot)), *one.names, *one.facts]
    words = [
        token.text.lower()
        for phrase in phrases
        for token in tokens_of(phrase.replace("{name}", "").replace("{n}", "").replace("{year}", ""))
        if token.kind == "word"
    ]
    after: dict[str, Counter[str]] = {}
    for word in words:
        before = ""
        for letter in clusters(word):
            after.setdefault(before, Counter())[letter] += 1
            before = letter
    return Letters({key: sorted(found.elements()) for key, found in sorted(after.items())}, frozenset(words))


#: Where sentences come from.
Sentences: TypeAlias = Callable[[Dice], Text]
_GAP = Token(" ", "gap")


@dataclass(frozen=True, slots=True)
class Prose:
    """A source of sentences in one language: our phrases, or texts of the user's."""

    code: str
    sentence: Sentences

    @classmethod
    def of(cls, code: str) -> Prose:
        """Sentences of our own. Raises UsageError for an unknown language."""
        return cls(code, language(code).sentence)

    def paragraph(self, dice: Dice, sentences: int) -> Text:
        """So many sentences."""
        glue = [_GAP] if language(self.code).glue else []
        found: Text = []
        for _ in range(sentences):
            found += [*(glue if found else []), *self.sentence(dice)]
        return found

    def words(self, dice: Dice, count: int) -> str:
        """The first words of a sentence, as a title or the cell of a table has them."""
        text = self.sentence(dice)
        taken, words = "", 0
        for token in text:
            words += token.kind == "gap" if language(self.code).glue else token.kind in ("word", "number")
            if words >= count:
                break
            taken += token.text
        return taken.strip(" ,.;:।、。，") or text[0].text

    def paragraphs(self, dice: Dice, lines: int, most: float) -> list[list[Text]]:
        """Paragraphs of lines of at most `most` em: together so many lines or a few less, never more."""
        found: list[list[Text]] = []
        left = lines
        while left > 0:
            made = lines_of(self.paragraph(dice, dice.between(3, 5)), most)
            if len(made) > left:
                if found:
                    break
                made = made[:left]
            found.append(made)
            left -= len(made) + 1
        return found


_TRIES = 20


def natural(text: Sequence[Token], code: str, dice: Dice) -> Text:
    """The text itself."""
    return list(text)


def swapped(text: Sequence[Token], code: str, dice: Dice) -> Text:
    """Other numbers, and names of the same length: still grammatical, and now false."""
    there = [token.text for token in text if token.kind == "name"]
    pool = sorted({*there, *language(code).names})
    found = []
    for token in text:
        if token.kind == "number":
            found.append(token._replace(text=_other_digits(token.text, dice)))
        elif token.kind == "name":
            alike = [name for name in pool if len(name) == len(token.text) and name.casefold() != token.text.casefold()]
            other = dice.choice(alike) if alike else token.text
            found.append(token._replace(text=_like(token.text[:1], other[:1]) + other[1:]))
        else:
            found.append(token)
    return found


def shuffled(text: Sequence[Token], code: str, dice: Dice) -> Text:
    """The same words in another order; each takes the place of one as long as itself."""
    places: dict[int, list[int]] = {}
    for place, token in enumerate(text):
        if token.kind in ("word", "name", "number"):
            places.setdefault(len(token.text), []).append(place)
    found = list(text)
    for _, group in sorted(places.items()):
        for place, source in zip(group, dice.shuffled(group), strict=True):
            found[place] = text[source]
    return found


def pseudo_words(text: Sequence[Token], code: str, dice: Dice) -> Text:
    """Words that could be of this language and are not: each letter follows one that it follows in real words."""
    return [_changed(token, lambda word: _pseudo(word, code, dice), dice) for token in text]


def random_letters(text: Sequence[Token], code: str, dice: Dice) -> Text:
    """The letters of the page in any order: those of the page, so that it keeps its length and its look."""
    pool = [letter for token in text if token.kind in ("word", "name") for letter in clusters(token.text.lower())]
    dice.shuffle(pool)
    drawn = iter(pool)
    return [_changed(token, lambda word: [next(drawn) for _ in clusters(word)], dice) for token in text]


#: In their order on the ladder.
RUNGS: Mapping[str, Callable[[Sequence[Token], str, Dice], Text]] = {
    "natural": natural,
    "swapped": swapped,
    "shuffled": shuffled,
    "pseudo-words": pseudo_words,
    "random letters": random_letters,
}


def _changed(token: Token, make: Callable[[str], list[str]], dice: Dice) -> Token:
    """A word of other letters with capitals where they were; a number of other digits; all else as it is."""
    if token.kind == "number":
        return token._replace(text=_other_digits(token.text, dice))
    if token.kind not in ("word", "name"):
        return token
    pairs = zip(clusters(token.text), make(token.text), strict=True)
    return Token("".join(_like(old, new) for old, new in pairs), "word")


def _like(old: str, new: str) -> str:
    """A letter as a capital where it takes the place of one."""
    return new.upper() if old.isupper() and len(new.upper()) == len(new) else new


def _pseudo(word: str, code: str, dice: Dice) -> list[str]:
    known = letters(code)
    made: list[str] = []
    for _ in range(_TRIES):
        made, before = [], ""
        for _ in clusters(word):
            before = dice.choice(known.after.get(before) or known.after[""])
            made.append(before)
        if "".join(made) not in known.words:
            break
    return made


def _other_digits(digits: str, dice: Dice) -> str:
    """Another number with as many digits; of four digits the first stays, as most are years."""
    while True:
        other = digits[0] + dice.digits(3) if len(digits) == 4 else dice.digits(len(digits))
        if other != digits:
            return other


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
