"""A colour of its own for every visible token of a formula (docs/protocols/cdm.md#colouring)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from loupe.metrics.cdm.braces import MAX_CHARACTERS, NotColouredError, check_size, matching_brace, token_at
from loupe.metrics.cdm.normalizer import normalize
from loupe.metrics.cdm.profiles import CdmProfile
from loupe.metrics.cdm.token_lists import FRACTIONS, ROOTS, SPANS, UNSEEN, accents, is_markup, phantoms, skipped
from loupe.metrics.cdm.tokenizer import tokenize

MAX_COLOURS: Final = 5800
MAX_UNSEEN_DEPTH: Final = 980  # upstream recurses here, and Python lets it go about so deep
_STEP: Final = 15
_SHADES: Final = 255 // _STEP + 1
_PLACEHOLDER: Final = re.compile("<color_(0|[1-9][0-9]{0,3})>")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

Colour = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColouredFormula:
    """A formula ready to be set: `tokens[k]` is drawn in `colours[k]`, as far as the palette reaches."""

    tex: str  # what goes into the template
    tokens: tuple[str, ...]
    colours: tuple[Colour, ...]
    template: str  # "formula", "formula_zh" or "tabular"
    parsed: bool  # false: the tokenizer gave nothing, the formula is coloured as it came
    tokenized: str
    normalized: str
    placeholders: str  # the text with `<color_k>` for the colours


def colour(formula: str, profile: CdmProfile) -> ColouredFormula:
    """The formula with all its visible tokens coloured.

    Raises NotColouredError where upstream fails before it renders anything; that counts as a formula not rendered.
    """
    if len(formula) > MAX_CHARACTERS:
        raise NotColouredError(f"more than {MAX_CHARACTERS} characters")
    if _SURROGATE.search(formula):
        raise NotColouredError("half a surrogate pair, which upstream cannot write to a file")
    tokenized = tokenize(formula, profile)
    normalized = normalize(tokenized.text, profile)
    tokens = normalized.strip().split(" ")
    colours = palette(min(len(tokens), MAX_COLOURS))
    coloured, visible = _Walk(tokens, profile).walk()
    placeholders = " ".join(coloured)
    return ColouredFormula(
        tex=_PLACEHOLDER.sub(lambda found: _painted(found, colours), placeholders),
        tokens=tuple(visible),
        colours=colours,
        template=tokenized.template,
        parsed=tokenized.parsed,
        tokenized=tokenized.text,
        normalized=normalized,
        placeholders=placeholders,
    )


def palette(count: int) -> tuple[Colour, ...]:
    """The first colours: blue runs fastest, in steps of 15; black is left out."""
    return _PALETTE[:count]


def _mixed(number: int) -> Colour:
    red, rest = divmod(number, _SHADES * _SHADES)
    green, blue = divmod(rest, _SHADES)
    return red * _STEP, green * _STEP, blue * _STEP


_PALETTE: Final = tuple(_mixed(number) for number in range(1, MAX_COLOURS + 1))


def _painted(placeholder: re.Match[str], colours: tuple[Colour, ...]) -> str:
    number = int(placeholder[1])
    return "{},{},{}".format(*colours[number]) if number < len(colours) else placeholder[0]


@dataclass(slots=True)
class _Part:
    """A stretch of the list that is walked by itself.

    Its end is a position taken before the walk and not moved when the walk inserts braces; after it the walk goes on
    at `then`. So with every insertion one more element is skipped. Upstream does this, and scores depend on it.
    """

    end: int
    then: int
    braces: bool  # ordinary tokens get a pair of braces more


def _check_argument(command: int, end: int) -> None:
    """Refuse an argument that ends before its command: upstream starts again from there and never ends."""
    if end < command:
        raise NotColouredError("a command without its argument, on which upstream never ends")


class _Walk:
    """Left to right over the list of tokens, which grows while it is walked."""

    def __init__(self, tokens: list[str], profile: CdmProfile) -> None:
        check_size(tokens)
        self.tokens = tokens
        self.visible: list[str] = []
        self.command = profile.colour_command
        self.parts: list[_Part] = []
        self.accents = accents(profile)
        self.phantoms = phantoms(profile)
        self.skipped = skipped(profile)

    def walk(self) -> tuple[list[str], list[str]]:
        position = 0
        while True:
            while self.parts and position >= self.parts[-1].end:
                position = self.parts.pop().then
            if not self.parts and position >= len(self.tokens):
                return self.tokens, self.visible
            position = self.visit(position)

    def visit(self, at: int) -> int:
        """Colour what starts here and say where to go on."""
        tokens = self.tokens
        token = tokens[at]
        if not token:
            return at + 1
        if token in self.phantoms:
            return (matching_brace(tokens, at + 1) if token_at(tokens, at + 1) == "{" else at + 1) + 1
        if token in FRACTIONS:
            self.wrap(at, matching_brace(tokens, matching_brace(tokens, at + 1) + 1))
            return at + 1
        if token in self.accents:
            end = matching_brace(tokens, at + 1)
            has_subscript = tokens[end + 1 : end + 2] == ["_"]
            self.wrap(at, end, braces=token != "\\underbrace" and has_subscript)
            return at + 1
        if token in UNSEEN:
            return self.unseen(at)
        if token in ROOTS:
            return self.root(at)
        if token in SPANS:
            return self.span(at)
        if token in self.skipped or is_markup(token):
            is_bracket = (token == "[" and tokens[at - 1] != "\\sqrt") or (
                token == "]" and at >= 3 and tokens[at - 3] != "\\sqrt"
            )
            if is_bracket:
                self.paint(at)
            return at + 1
        in_braces = bool(self.parts) and self.parts[-1].braces
        self.paint(at, braces=in_braces or (at > 1 and tokens[at - 1] == "_"))
        return at + 1

    def opened(self, token: str) -> str:
        """The start of a coloured token, which is recorded as visible."""
        self.visible.append(token)
        return f"{self.command}[RGB]{{<color_{len(self.visible) - 1}>}}{{{token}"

    def paint(self, at: int, *, braces: bool = False) -> None:
        painted = self.opened(self.tokens[at]) + "}"
        self.tokens[at] = f"{{{painted}}}" if braces else painted

    def wrap(self, at: int, end: int, *, braces: bool = False) -> None:
        """Colour a command with its arguments, which end at `end`."""
        _check_argument(at, end)
        start = self.opened(self.tokens[at])
        self.tokens[at] = "{" + start if braces else start
        self.tokens.insert(end + 1, "}}" if braces else "}")

    def enter(self, end: int, then: int, *, braces: bool = False) -> None:
        if len(self.parts) >= MAX_UNSEEN_DEPTH:
            raise NotColouredError(f"more than {MAX_UNSEEN_DEPTH} commands inside each other")
        self.parts.append(_Part(end, then, braces))

    def unseen(self, at: int) -> int:
        """A command that leaves no ink: what is inside is coloured, a single token with no more ado."""
        end = matching_brace(self.tokens, at + 1)
        _check_argument(at, end)
        if end == at + 3:
            self.paint(at + 2)
            return end + 1
        self.enter(end, then=end + 1)
        return at + 2

    def root(self, at: int) -> int:
        """`\\sqrt` and the long arrows: what may stand in brackets, then the argument."""
        tokens = self.tokens
        if token_at(tokens, at + 1) == "{":
            end = matching_brace(tokens, at + 1)
            self.wrap(at, end)
            self.enter(end, then=end + 1)
            return at + 2
        if tokens[at + 1] != "[":
            raise NotColouredError("a root without an argument")
        middle = matching_brace(tokens, at + 1, "[", "]")
        end = matching_brace(tokens, middle + 1)
        self.wrap(at, end)
        self.enter(end, then=end + 1)
        self.enter(middle, then=middle + 2, braces=True)
        return at + 2

    def span(self, at: int) -> int:
        """`\\multicolumn` and `\\multirow`: only the last of three arguments is seen."""
        second = matching_brace(self.tokens, at + 1) + 1
        third = matching_brace(self.tokens, second) + 1
        end = matching_brace(self.tokens, third)
        _check_argument(at, third)
        _check_argument(at, end)
        self.enter(end, then=end + 1)
        return third + 1
