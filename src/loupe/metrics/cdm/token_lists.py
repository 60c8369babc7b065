"""Commands by what CDM's normaliser and colouring do with their arguments (docs/protocols/cdm.md#normaliser)."""

from __future__ import annotations

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
    """Whether the start of a token looks like something without ink; whole chunks of unparsed text do too."""
    if token[0] in "{}[]^_":
        return True
    if token[0] != "\\":
        return False
    if "rule" in token or "line" in token:
        return True
    return token.startswith(("\\begin{", "\\end{")) and "}" in token
