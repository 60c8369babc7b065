r"""Decide which formulas may share a TeX run: all commands are known to set mathematics only, and all is closed.

A formula is text that a model wrote, and TeX a programming language: one that says `\def`, `\catcode` or
`\end{displaymath}` could change what is set after it, or read the document that it stands in. So nothing is listed as
dangerous, but what is known as harmless: anything else is set in a run of its own, which is slower and otherwise the
same. Numbered environments are among the others: their number would depend on their neighbours.

Whether a formula closes what it opens decides nothing by itself. Nothing is decided by it. Formulas that look whole
are set together, the others where they can do no harm; and where a colour's argument never ends, it says what TeX
is to be asked (see `broken_formulas`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from loupe.metrics.cdm.grammar import FUNCTIONS, WHOLE_SYMBOLS


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


_COMMAND: Final = re.compile(r"\\(?:([A-Za-z]+)|.)", re.DOTALL)
_ENVIRONMENT: Final = re.compile(r"\\(?:begin|end)\s*\{\s*([A-Za-z]+)(\*?)\s*\}")
_ENVIRONMENTS: Final = _names(
    "array tabular aligned alignedat gathered matrix pmatrix bmatrix Bmatrix vmatrix Vmatrix smallmatrix cases subarray"
)
#: Environments that number, each with its end: harmless where the numbers start anew and each formula is followed by a
#: known one.
NUMBERED: Final = frozenset(
    start + name + star
    for start in ("", "end")
    for name in ("equation", "align", "gather", "multline", "eqnarray", "alignat", "flalign")
    for star in ("", "*")
)
#: Of the tokenizer's tables: what reads, writes, numbers, takes registers or is no mathematics.
_NOT_HARMLESS: Final = _names("label comment put picture line circle makebox raisebox framebox noalign")
_MORE: Final = _names(
    """
    mathcolor textcolor begin end left right middle limits nolimits displaylimits operatorname operatornamewithlimits
    overset underset substack sideset binom genfrac cfrac dfrac tfrac dbinom tbinom above brace brack
    mathord mathrel mathopen mathclose mathpunct mathinner mathop mathbin mathchoice mathnormal boldsymbol pmb bm
    textnormal textmd textit textsc textsf texttt textup textsl textrm textbf emph rm bf it sf tt sl cal mit
    hphantom vphantom phantom smash mathstrut strut null hfill kern mkern mskip hskip quad qquad enspace enskip
    thinspace medspace thickspace negthinspace negmedspace negthickspace hspace vspace noindent
    overbrace overleftarrow overrightarrow overleftrightarrow underleftarrow underrightarrow underleftrightarrow
    xleftarrow xrightarrow iiiint idotsint dotsb dotsc dotsi dotsm dotso ddddot dddot mathring Hat Check Tilde Acute
    Grave Dot Ddot Breve Bar Vec hline cline multicolumn multirow toprule midrule bottomrule cmidrule
    bmod pmod mod pod injlim projlim varinjlim varprojlim varlimsup varliminf nonumber notag boxed fbox ensuremath
    alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi omicron pi varpi rho
    varrho sigma varsigma tau upsilon phi varphi chi psi omega varGamma varDelta varTheta varLambda varXi varPi
    varSigma varUpsilon varPhi varPsi varOmega
    upalpha upbeta upgamma updelta upepsilon upvarepsilon upzeta upeta uptheta upvartheta upiota upkappa uplambda upmu
    upnu upxi uppi upvarpi uprho upvarrho upsigma upvarsigma uptau upupsilon upphi upvarphi upchi uppsi upomega
    Upgamma Updelta Uptheta Uplambda Upxi Uppi Upsigma Upupsilon Upphi Uppsi Upomega
    exists imath jmath arrowvert Arrowvert bracevert lhook rhook skew overunderset relax tag
    ldots lbrace rbrace lnot iff implies impliedby S P L l O o AA aa AE ae OE oe ss i j dag ddag copyright pounds
    textdegree textbackslash textless textgreater textunderscore textquoteright textquoteleft textasciitilde
    matrix pmatrix cases bigstar circ rightleftharpoons longmapsto hookrightarrow hookleftarrow ominus bigstar
    leftharpoonup Longleftrightarrow relbar Relbar joinrel mathellipsis textellipsis degree arcmin
    """
)
_HARMLESS: Final = (
    frozenset(name[1:] for name in (*FUNCTIONS, *WHOLE_SYMBOLS) if name[1:].isalpha()) | _MORE
) - _NOT_HARMLESS
#: Single characters after a backslash that leave or enter mathematics, or that the reader of a file acts on.
_NOT_HARMLESS_SIGNS: Final = frozenset("[]()\n\r")


def is_harmless(tex: str) -> bool:
    """True if setting this can change nothing that is set after it, as far as names tell."""
    return unheard_names(tex) == frozenset()


def unheard_names(tex: str) -> frozenset[str] | None:
    """The names in it that are not known to be harmless: where TeX does not know them either, the formula is harmless.

    What TeX does not know it reports and passes over. None where more than names is in the way.
    """
    if "$$" in tex or "^^" in tex:
        return None
    unheard: set[str] = set()
    for found in _COMMAND.finditer(tex):
        name = found[1]
        if name is None:
            if found[0][1] in _NOT_HARMLESS_SIGNS:
                return None
        elif name.startswith("Loupe"):
            return None  # Names of our own documents, which TeX may know in one and not in another.
        elif name in ("begin", "end"):
            environment = _ENVIRONMENT.match(tex, found.start())
            if environment is None:
                return None
            if environment[1] not in _ENVIRONMENTS:
                unheard |= {environment[1] + environment[2], f"end{environment[1]}{environment[2]}"}
        elif name not in _HARMLESS:
            if tex[found.end() : found.end() + 1] > "\x7f":
                return None  # for XeTeX a letter, and the name another
            unheard.add(name)
    return frozenset(unheard)


_PIECE: Final = re.compile(
    r"(?P<colour>\\mathcolor\[RGB\]\{\d+,\d+,\d+\}\{)"
    r"|\\(?P<turn>begin|end)\s*\{\s*(?P<name>[A-Za-z]*\*?)\s*\}|(?P<side>\\(?:left|right)(?![A-Za-z]))"
    r"|\\(?:[A-Za-z]+|.)|(?P<brace>[{}])",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Begun:
    r"""A formula up to the `\mathcolor` whose argument never ends, and what closes that which is open there."""

    start: str
    closing: str


@dataclass(frozen=True, slots=True)
class _Open:
    at: int
    closing: str
    is_colour: bool = False


def is_whole(tex: str) -> bool:
    """True if everything that is opened is closed in its turn, as far as is seen."""
    opened: list[_Open] = []
    for found in _pieces(tex):
        if (one := _opening(found)) is not None:
            opened.append(one)
        elif (closing := _closing(found)) and (not opened or opened.pop().closing != closing):
            return False
    return not opened


def begun(tex: str) -> Begun | None:
    """Return the start of the argument of the first colour that no brace ends; None if there is none."""
    if "%" in tex.replace(r"\%", ""):
        return None  # what follows on the line is no part of the formula
    braces: list[_Open] = []
    for found in _pieces(tex):
        one = _opening(found)
        if one is not None and one.closing == "}":
            braces.append(one)
        elif found["brace"] == "}" and braces:
            braces.pop()
    at = next((one.at for one in braces if one.is_colour), -1)
    return None if at < 0 else Begun(tex[:at], "".join(_still_open(tex[:at])))


def _still_open(tex: str) -> Iterator[str]:
    """Yield what would close everything that is open, the innermost first."""
    opened: list[str] = []
    for found in _pieces(tex):
        if (one := _opening(found)) is not None:
            opened.append(one.closing)
        elif opened and opened[-1] == _closing(found):
            opened.pop()
    return (r"\right." if closing == r"\right" else closing for closing in reversed(opened))


def _pieces(tex: str) -> Iterator[re.Match[str]]:
    """All that opens or closes something; commands and escaped braces are passed over."""
    return (found for found in _PIECE.finditer(tex) if found.lastgroup)


def _opening(found: re.Match[str]) -> _Open | None:
    if found["colour"] or found["brace"] == "{":
        return _Open(found.start(), "}", bool(found["colour"]))
    if found["turn"] == "begin":
        return _Open(found.start(), rf"\end{{{found['name']}}}")
    return _Open(found.start(), r"\right") if found["side"] == r"\left" else None


def _closing(found: re.Match[str]) -> str:
    if found["turn"] == "end":
        return rf"\end{{{found['name']}}}"
    return r"\right" if found["side"] == r"\right" else "}" if found["brace"] == "}" else ""
