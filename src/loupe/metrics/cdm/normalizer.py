"""A tokenised formula with exactly one token per thing to be coloured, and all arguments in braces.

Protocol: docs/protocols/cdm.md#normaliser; the comments name its steps. Tokens are separated by one blank.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from loupe.metrics.cdm.braces import NotColouredError, check_size, matching_brace, token_at
from loupe.metrics.cdm.profiles import CdmProfile
from loupe.metrics.cdm.token_lists import FRACTIONS, ROOTS, STACKS, UNSEEN, accents

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
    """What the pattern finds, rewritten: upstream finds all, then replaces each text it found wherever it stands.

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
