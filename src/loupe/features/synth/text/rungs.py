"""From a text that means something to letters that mean nothing, rung by rung, every piece as long as it was.

Whoever reads letters reads all rungs alike; whoever guesses words from their neighbours falls from rung to rung.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from loupe.features.synth.dice import Dice
from loupe.features.synth.text.language import language, letters
from loupe.features.synth.text.tokens import Text, Token, clusters

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
