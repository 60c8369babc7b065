"""Running text by the page: as many sentences as fit into so many lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from loupe.features.synth.dice import Dice
from loupe.features.synth.text.language import language
from loupe.features.synth.text.tokens import Text, Token, lines_of

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
