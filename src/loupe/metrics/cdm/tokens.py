"""List the tokens of a formula by what CDM does with them, and find matching braces among them.

Protocol: docs/protocols/cdm.md#normaliser (commands and their arguments) and #assignment (tokens that look alike).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from loupe.metrics.cdm.profiles import CdmProfile


def _commands(names: str) -> frozenset[str]:
    return frozenset("\\" + name for name in names.split())


FRACTIONS: Final = _commands("frac binom")
ROOTS: Final = _commands("xrightarrow xleftarrow sqrt")
STACKS: Final = _commands("overset underset stackrel")
SPANS: Final = _commands("multicolumn multirow")
UNSEEN: Final = _commands(
    "boldsymbol pmb textbf mathrm mathbf mathbb mathcal textmd texttt textnormal text textit textup mathop mathbin "
    "smash operatorname textrm mathfrak emph textsf textsc"
)
_ACCENTS: Final = _commands(
    "widetilde overline hat widehat tilde Tilde dot bar vec underline underbrace check breve Bar Vec mathring ddot"
)
_PHANTOMS: Final = _commands("fontfamily vphantom phantom rowcolor ref")
_SKIPPED: Final = _commands(
    "\\ index a multirow def raggedright url cr ensuremath left right mathchoice scriptstyle displaystyle qquad quad "
    ", ! boldmath"
) | {"\\", "&", "$", "~"}


@lru_cache
def accents(profile: CdmProfile) -> frozenset[str]:
    """Commands with one argument that leave ink of their own."""
    return _ACCENTS | profile.more_accents


@lru_cache
def phantoms(profile: CdmProfile) -> frozenset[str]:
    """Commands that are passed over with their argument."""
    return _PHANTOMS | profile.more_phantoms


@lru_cache
def skipped(profile: CdmProfile) -> frozenset[str]:
    """Tokens that are never coloured."""
    return _SKIPPED | profile.more_skipped | STACKS


def is_markup(token: str) -> bool:
    """True if the start of a token looks like something without ink; whole chunks of unparsed text do too."""
    if token[0] in "{}[]^_":
        return True
    if token[0] != "\\":
        return False
    if "rule" in token or "line" in token:
        return True
    return token.startswith(("\\begin{", "\\end{")) and "}" in token


# Upstream's lists have no such limits; these keep the time of hostile input bounded. Formulas of more than 5,800
# visible tokens cannot be coloured, and TeX allows 255 groups inside each other.
MAX_CHARACTERS: Final = 200_000
MAX_TOKENS: Final = 50_000
MAX_TOTAL_DEPTH: Final = 5_000_000


class NotColouredError(Exception):
    """Upstream fails on this formula before it is rendered, so it counts as not rendered."""


def matching_brace(tokens: Sequence[str], start: int, left: str = "{", right: str = "}") -> int:
    """The position of the brace that closes what opens at the start.

    -1 if nothing opened, which upstream uses as a position, as it uses positions past a brace that was never open.
    """
    depth = 0
    for position in range(start, len(tokens)):
        token = tokens[position]
        if token == left:
            depth += 1
        elif token == right:
            depth -= 1
            if depth == 0:
                return position
    if depth > 0:
        raise NotColouredError(f"no {right} for the {left} at token {start}")
    return -1


def token_at(tokens: Sequence[str], position: int) -> str:
    """The token at a position; upstream fails where the list has ended."""
    if position >= len(tokens):
        raise NotColouredError("an argument is missing at the end")
    return tokens[position]


def check_size(tokens: Sequence[str]) -> None:
    """Refuse lists whose braces would take too long to match: too many tokens, or too many inside each other."""
    if len(tokens) > MAX_TOKENS:
        raise NotColouredError(f"more than {MAX_TOKENS} tokens")
    if len(tokens) ** 2 <= MAX_TOTAL_DEPTH:
        return
    for left, right in (("{", "}"), ("[", "]"), ("(", ")")):
        depth = total = 0
        for token in tokens:
            if token == left:
                depth += 1
            elif token == right and depth:
                depth -= 1
            total += depth
        if total > MAX_TOTAL_DEPTH:
            raise NotColouredError(f"too many {left} inside each other")


_OLD_MAP: Final = {
    "\\cdot": ".",
    "\\mid": "|",
    "\\to": "\\rightarrow",
    "\\top": "T",
    "\\Tilde": "\\tilde",
    "\\cdots": "\\dots",
    "\\prime": "'",
    "\\ast": "*",
    "\\left<": "\\langle",
    "\\right>": "\\rangle",
}
_OLD_BARS: Final = {
    "\\leq": "\\le",
    "\\geq": "\\ge",
    "\\lVert": "\\|",
    "\\rVert": "\\|",
    "\\Vert": "\\|",
    "\\lvert": "|",
    "\\rvert": "|",
    "\\vert": "|",
}
_NEW_MAP: Final = {
    "\\dot": ".",
    "\\Dot": ".",
    "\\cdot": ".",
    "\\cdotp": ".",
    "\\ldotp": ".",
    "\\mid": "|",
    "\\rightarrow": "\\to",
    "\\top": "T",
    "\\Tilde": "\\tilde",
    "\\prime": "'",
    "\\ast": "*",
    "\\left<": "\\langle",
    "\\right>": "\\rangle",
    "\\lbrace": "\\{",
    "\\rbrace": "\\}",
    "\\lbrack": "[",
    "\\rbrack": "]",
    "\\blackslash": "/",
    "\\slash": "/",
    "\\leq": "\\le",
    "\\geq": "\\ge",
    "\\neq": "\\not=",
    "\\Vert": "\\|",
    "\\lVert": "\\|",
    "\\rVert": "\\|",
    "\\parallel": "\\|",
    "\\vert": "|",
    "\\lvert": "|",
    "\\rvert": "|",
    "\\colon": ":",
    "\\Ddot": "\\ddot",
    "\\Bar": "\\bar",
    "\\Vec": "\\vec",
    "\\dag": "\\dagger",
    "\\ddag": "\\ddagger",
    "\\textlangle": "<",
    "\\textless": "<",
    "\\textrangle": ">",
    "\\textgreater": ">",
    "\\textbackslash": "n",
    "\\textunderscore": "_",
    "\\=": "_",
    "\\neg": "\\lnot",
}
_NOT_JUST_DELIMITERS: Final = ("arrow", "<", ">", "harpoon")


def similar_name(token: str, *, newer: bool) -> str:
    """The name that similar tokens share, by the newer (UniMERNet) or the older (OmniDocBench) rules."""
    return _newer_name(token) if newer else _older_name(token)


def _older_name(token: str) -> str:
    token = _OLD_MAP.get(token, token)
    if token.startswith(("\\left", "\\right")):  # arrows too: `\rightarrow` becomes `arrow`
        token = _without_sides(token)
    token = _without_big(token)
    if token in _OLD_BARS:
        return _OLD_BARS[token]
    for arrow in ("rightarrow", "leftarrow"):
        if token.endswith(arrow):
            return "\\" + arrow
    if token.startswith("\\wide"):
        return token.replace("wide", "")
    return token.replace("\\var", "") if token.startswith("\\var") else token


def _newer_name(token: str) -> str:
    if token.startswith(("\\left", "\\right")) and not any(part in token for part in _NOT_JUST_DELIMITERS):
        token = _without_sides(token)
    token = _without_big(token)
    token = _NEW_MAP.get(token, token)
    if token.startswith("\\wide"):
        return token.replace("wide", "")
    if token.startswith("\\var"):
        return token.replace("var", "")
    return token.replace("\\string", "") if token.startswith("\\string") else token


def _without_sides(token: str) -> str:
    return token.replace("\\left", "").replace("\\right", "")


def _without_big(token: str) -> str:
    """The delimiter of `\\big(`; of other commands that start so (`\\bigcup`), the last character."""
    if not token.startswith(("\\big", "\\Big")):
        return token
    _, backslash, name = token[4:].rpartition("\\")
    return "\\" + name if backslash else token[-1]
