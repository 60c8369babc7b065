"""Languages: their phrases, their letters, and the font that has these. One TOML file each in `languages/`."""

from __future__ import annotations

import functools
import tomllib
from collections import Counter
from pathlib import Path

import msgspec

from loupe.errors import UsageError, did_you_mean
from loupe.features.synth.dice import Dice
from loupe.features.synth.text.tokens import NAME_BEGINS, NAME_ENDS, Text, clusters, tokens_of
from loupe.files.foreign import read_data
from loupe.typed import convert

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
    """The language with this code. Raises UsageError where there is none."""
    if code not in language_codes():
        meant = did_you_mean(code, language_codes())
        raise UsageError(f"synth has no language {code!r}{meant}", hint=f"languages: {', '.join(language_codes())}")
    return convert(tomllib.loads(read_data(_FOLDER / f"{code}.toml").decode()), Language)


class Letters(msgspec.Struct, frozen=True):
    """Which letter follows which in the words of a language, and how often; "" stands before a word."""

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
