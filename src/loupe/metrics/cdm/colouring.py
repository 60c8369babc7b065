"""Colour every visible token of a formula, once normalised to one token per thing to be coloured.

Protocol: docs/protocols/cdm.md#normaliser and #colouring; the comments name its steps. Tokens are separated by one
blank, and all arguments are in braces.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from loupe.metrics.cdm.profiles import CdmProfile
from loupe.metrics.cdm.tokenizer import tokenize
from loupe.metrics.cdm.tokens import (
    FRACTIONS,
    MAX_CHARACTERS,
    ROOTS,
    SPANS,
    STACKS,
    UNSEEN,
    NotColouredError,
    accents,
    check_size,
    is_markup,
    matching_brace,
    phantoms,
    skipped,
    token_at,
)

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


MAX_REPEATED_FINDS: Final = 2_000

_LENGTH: Final = re.compile(r"\\[hv]space { [.0-9a-z ]+ }")
_COLUMNS: Final = re.compile(r"\\begin{array} { [lrc ]+ }")
_NOT_SIGN: Final = re.compile(r"\\not [<>+=\-]")
_NOT_COMMAND: Final = re.compile(r"\\not [\\=<>][^ ]+ ")
_STRING: Final = re.compile(r"\\string [^ ]+ ")
_BIG_BRACKET: Final = re.compile(r"\\[Bb]igg?[glrm]? [(){}|\[\]] ")
_BIG_COMMAND: Final = re.compile(r"\\[Bb]igg?[glrm]? \\[^ ]* ")
_ACUTE: Final = re.compile(r"\\' [^{] ")
# `[ -.0-9 and blanks, then letters of units and blanks ]`, in one way only, as blanks belong to both.
_ROW_GAP: Final = re.compile(r"\[ (?:[\-.0-9 ]++[exptcm][exptcm ]*+(?<= )|(?=[\-.0-9 ]{3})[\-.0-9 ]++(?<=  ))\]")
_PARBOX: Final = re.compile(r"\\parbox {[^{]+}")
_RAISEBOX: Final = re.compile(r"\\raisebox {[^{]+} [\[\]0-9 exptcm]+{")
_CHAR: Final = re.compile(r"{ \\char[0-9' ]+}")
_RULE: Final = re.compile(r"\\rule {[ .0-9a-z]+} {[ .0-9a-z]+}")
_SPECIAL_RULE: Final = re.compile(r"\\specialrule {[ .0-9a-z]+} {[ .0-9a-z]+} {[ .0-9a-z]+}")
_COLOUR: Final = re.compile(r"\\(?:color|textcolor|cellcolor|colorbox)[ \[\]RGBrgb]+{ [A-Za-z 0-9,!]+ } ")

_DOTS: Final = ". . ."
_OLD_DOTS: Final = ("\\ldots", "\\cdots", "\\dots", "\\dotsb")
_OLD_NAMES: Final = ("log", "exp", "sin", "cos", "tan", "tanh", "cosh", "sinh")
_NEW_NAMES: Final = (
    "ex ln lg cot min max ker hom sec scs csc deg arg log dim exp sin cos tan tanh cosh sinh coth arcsin arccos arctan"
)
_NEW_DOTS: Final = "… \\ldots \\hdots \\cdots \\dddot \\dots \\dotsc \\dotsi \\dotsm \\dotso \\dotsb \\mathellipsis"


def _upright(name: str) -> str:
    return f"\\mathrm {{ {' '.join(name)} }}"


_OLD_WORDS: Final = [(f" {dots} ", f" {_DOTS} ") for dots in _OLD_DOTS] + [
    (f" \\{name} ", f" {_upright(name)} ") for name in _OLD_NAMES
]
_NEW_WORDS: Final = {
    "--": "- -",
    "---": "- - -",
    **dict.fromkeys(_NEW_DOTS.split(), _DOTS),
    **{"\\" + name: _upright(name) for name in _NEW_NAMES.split()},
    **dict.fromkeys(("\\mod", "\\bmod", "\\pmod"), _upright("mod")),
}
_NEW_WORD: Final = re.compile(r"(?<=\s)[\\…-]\S*+(?=\s)")


def normalize(text: str, profile: CdmProfile) -> str:
    """The normalised text, with a blank at either end. Raises NotColouredError where upstream fails."""
    is_table = "tabular" in text
    text = text.strip().replace("\\pmatrix", "\\mypmatrix").replace("\\matrix", "\\mymatrix")
    for command in ("\\raggedright", "\\arraybackslash", "\\lowercase", "\\uppercase"):
        text = text.replace(command, "")
    if "space {" in text:
        text = _rewritten(_LENGTH, text, _removed if is_table else _glued)
    if is_table:
        text = _with_table_tokens(text)
    if "\\begin{array} {" in text:
        text = _rewritten(_COLUMNS, text, _with_glued_columns)
    if profile.glues_not and "\\not " in text:
        text = _rewritten(_NOT_SIGN, text, _glued)
    text = _split_words(f" {text} ", profile)
    if profile.glues_string_and_rule and "\\string " in text:
        text = _rewritten(_STRING, text, _glued_to_blank)
    text = _glue_layout(text, profile, is_table=is_table)
    if "color" in text:
        text = _rewritten(_COLOUR, text, _removed)
    return " ".join(filled_braces(text.split(" "), profile))


def _rewritten(pattern: re.Pattern[str], text: str, rewrite: Callable[[str], str]) -> str:
    """Rewrite what the pattern finds: upstream finds all, then replaces each text it found wherever it stands.

    In one pass where that comes to the same: no such pattern finds two different texts at one place, so nothing is
    left to be found then. Otherwise as upstream does it.
    """
    once = pattern.sub(lambda found: rewrite(found[0]), text)
    return once if once == text or not pattern.search(once) else _rewritten_one_by_one(pattern, text, rewrite)


def _rewritten_one_by_one(pattern: re.Pattern[str], text: str, rewrite: Callable[[str], str]) -> str:
    found = pattern.findall(text)
    if len(found) > MAX_REPEATED_FINDS:
        raise NotColouredError(f"more than {MAX_REPEATED_FINDS} places that overlap")
    for piece in found:
        text = text.replace(piece, rewrite(piece))
    return text


def _removed(_: str) -> str:
    return ""


def _glued(piece: str) -> str:
    return piece.replace(" ", "")


def _glued_to_blank(piece: str) -> str:
    return _glued(piece) + " "


def _glued_to_brace(piece: str) -> str:
    return _glued(piece)[:-1] + " {"


def _glued_in_braces(piece: str) -> str:
    return f"{{ {_glued(piece)[1:-1]} }}"


def _with_glued_columns(piece: str) -> str:
    return "\\begin{array} " + _glued(piece.removeprefix("\\begin{array} "))


def _split_words(text: str, profile: CdmProfile) -> str:
    """Dots and names of functions become their characters (step 5)."""
    if profile.splits_by_token:
        return _NEW_WORD.sub(lambda word: _NEW_WORDS.get(word[0], word[0]), text)
    for word, letters in _OLD_WORDS:  # two neighbours share a blank, so the second of two equal ones stays
        text = text.replace(word, letters)
    return text


def _glue_layout(text: str, profile: CdmProfile, *, is_table: bool) -> str:
    """Commands and arguments that are one token (steps 6 to 10)."""
    if "ig" in text:
        text = _rewritten(_BIG_BRACKET, text, _glued_to_blank)
        text = _rewritten(_BIG_COMMAND, text, _glued_to_blank)
    text = text.replace("\\operatorname *", "\\operatorname").replace("\\lefteqn", "").replace("\\footnote ", "^ ")
    if "\\' " in text:
        text = _rewritten(_ACUTE, text, _glued_to_blank)
    if is_table and "[ " in text:
        text = _rewritten_one_by_one(_ROW_GAP, text, _glued)
    # The braces of these two end where the next one opens, so what is found at one place may begin what is found at
    # another.
    if "\\parbox {" in text:
        text = _rewritten_one_by_one(_PARBOX, text, _glued)
    if "\\raisebox {" in text:
        text = _rewritten_one_by_one(_RAISEBOX, text, _glued_to_brace)
    if "\\char" in text:
        text = _rewritten(_CHAR, text, _glued_in_braces)
    if "rule {" in text:
        if profile.glues_string_and_rule:
            text = _rewritten(_RULE, text, _glued)
        text = _rewritten(_SPECIAL_RULE, text, _glued)
    if profile.glues_not and "\\not " in text:
        text = _rewritten(_NOT_COMMAND, text, _glued_to_blank)
    return text


def _with_table_tokens(text: str) -> str:
    """Environments with their columns, and rules with their reach, are one token (step 3)."""
    for name in ("tabular", "array"):
        for command in ("\\begin", "\\end"):
            text = text.replace(f"{command} {{{name}}}", f"{command}{{{name}}}")
    tokens = text.split(" ")
    check_size(tokens)
    if "\\begin{tabular}" in tokens:
        start = tokens.index("\\begin{tabular}")
        end = matching_brace(tokens, start + 1)
        tokens = [*tokens[:start], "".join(tokens[start : end + 1]), *tokens[end + 1 :]]
    merged: list[str] = []
    position = 0
    while position < len(tokens):
        end = position
        if tokens[position] in ("\\cmidrule", "\\cline"):
            start = position + 1
            if token_at(tokens, start) == "(":
                start = matching_brace(tokens, start, "(", ")") + 1
            end = matching_brace(tokens, start)
            if end < position:
                raise NotColouredError("a rule without columns, on which upstream never ends")
        merged.append("".join(tokens[position : end + 1]))
        position = end + 1
    return " ".join(merged)


def filled_braces(tokens: list[str], profile: CdmProfile) -> list[str]:
    """All arguments in braces (step 12)."""
    singles = accents(profile) | UNSEEN
    check_size(tokens)
    position = 0
    while position < len(tokens):
        token = tokens[position]
        if token in singles:
            position += 2 * _brace_run(tokens, position, singles) - 1
        elif token in ROOTS:
            start = position + 1
            if token_at(tokens, start) == "[":
                start = matching_brace(tokens, start, "[", "]") + 1
            _brace_one(tokens, start)
        elif token in FRACTIONS or token in STACKS:
            _brace_one(tokens, position + 1)
            _brace_one(tokens, matching_brace(tokens, position + 1) + 1)
        position += 1
    return tokens


def _brace_run(tokens: list[str], start: int, singles: frozenset[str]) -> int:
    """Commands in a row share the one argument that follows them: `\\hat \\bar x` is `\\hat { \\bar { x } }`.

    Returns how many commands there are.
    """
    end = start + 1
    while end < len(tokens) and tokens[end] in singles:
        end += 1
    if token_at(tokens, end) == "{":
        close = matching_brace(tokens, end)
        argument = tokens[end + 1 : close]
    else:
        close = end
        argument = tokens[end : end + 1]
    opened = [piece for command in tokens[start:end] for piece in (command, "{")]
    tokens[start : close + 1] = [*opened, *argument, *["}"] * (end - start)]
    return end - start


def _brace_one(tokens: list[str], position: int) -> None:
    """The token at a position in braces, unless it is one that opens."""
    if token_at(tokens, position) != "{":
        tokens[position : position + 1] = ["{", tokens[position], "}"]
