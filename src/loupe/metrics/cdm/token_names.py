"""Tokens that look alike: names under which CDM matches two tokens as similar (docs/protocols/cdm.md#assignment)."""

from __future__ import annotations

from typing import Final

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
