"""List the arguments that macros and environments of pylatexenc 2.10 take: `*`, `[` optional, `{` one expression.

Source: the default context of pylatexenc 2.10. Its macros for the exercise sheets of one university are among them.
"""

from __future__ import annotations

from typing import Final

#: Macros by the form of their arguments.
_MACROS: Final = {
    "{": r"""
        mbox title author date input include bibliography emph textrm textit textbf textmd textsc textsf textsl texttt
        textup text mathrm mathbb mathbf mathit mathsf mathtt mathcal mathscr mathfrak label ref autoref cref Cref eqref
        url hypersetup keywords ' ` " c ^ ~ H k = b . d r u v ensuremath not vec dot hat check breve acute grave tilde
        bar ddot overline underline widehat widetilde wideparen overleftarrow overrightarrow overleftrightarrow
        underleftarrow underrightarrow underleftrightarrow overbrace underbrace overgroup undergroup overbracket
        underbracket overlinesegment underlinesegment overleftharpoon overrightharpoon ket bra citetext citenum
        UebungLoesungFont UebungHinweisFont UebungExTitleFont UebungSubExTitleFont UebungTipsFont UebungLabel
        UebungSubLabel UebungLabelEnum UebungLabelEnumSub UebungSolLabel UebungHinweisLabel UebungHinweiseLabel
        UebungSolEquationLabel UebungTipsLabel UebungTipsEquationLabel UebungsblattTitleSeries
        UebungsblattTitleSolutions UebungsblattTitleTips UebungsblattNumber UebungsblattTitleFont
        UebungTitleCenterVSpacing UebungAttachedSolutionTitleTop UebungAttachedSolutionTitleFont
        UebungAttachedSolutionTitle UebungTextAttachedSolution UebungDueByLabel UebungDueBy UebungLecture UebungProf
        UebungLecturer UebungSemester UebungLogoFile UebungLanguage UebungStyle subuebung subexercise exenumfulllabel
        hint hints hinweis hinweise
    """,
    "[{": r"""
        documentclass usepackage RequirePackage selectlanguage includegraphics footnote hphantom vphantom sqrt
        xleftarrow xrightarrow color pagecolor pdfloesung pdfsolution
    """,
    "[{{": "setlength addlength setcounter addcounter textcolor colorbox",
    "*{[[{": "newcommand renewcommand providecommand",
    "*{[[{{": "newenvironment renewenvironment provideenvironment",
    "*{{": "DeclareMathOperator",
    "*{": "hspace vspace",
    "*[": "\\",
    "[": "item",
    "*[{": "chapter section subsection subsubsection pagagraph subparagraph",
    "{{": "frac nicefrac braket ketbra texorpdfstring defcitealias",
    "[{{{": "definecolor providecolor",
    "[{[{": "colorlet",
    "[{[{{": "fcolorbox",
    "{{{": "boxframe",
    "*[{{{": "rowcolors",
    "*[[{": "cite citet citep citealt citealp citeauthor Citet Citep Citealt Citealp Citeauthor",
    "[[{": "citefullauthor citeyear citeyearpar citetalias citepalias",
    "{[": "uebung exercise",
}
#: Environments likewise; `equation` and its like have none.
_ENVIRONMENTS: Final = {
    "[": """
        figure figure* table table* theorem proposition lemma corollary definition conjecture remark proof thm prop lem
        cor conj rem defn enumerate itemize description
    """,
    "{": "tabular alignat alignat*",
    "{{": "tabular*",
    "{[{": "tabularx",
    "[{": "array",
}

MACRO_ARGUMENTS: Final = {name: form for form, names in _MACROS.items() for name in names.split()}
ENVIRONMENT_ARGUMENTS: Final = {name: form for form, names in _ENVIRONMENTS.items() for name in names.split()}

#: Macros whose argument is text, even within a formula.
TEXT_MACROS: Final = frozenset(
    ("mbox", "text", "textbf", "textit", "textmd", "textrm", "textsc", "textsf", "textsl", "texttt", "textup")
)
#: Environments that are formulas.
MATH_ENVIRONMENTS: Final = frozenset(
    f"{name}{star}"
    for name in ("equation", "eqnarray", "align", "gather", "flalign", "multline", "alignat")
    for star in ("", "*")
) | {"split"}  # fmt: skip
