"""Define the TeX documents that formulas are set in, and the TeX, packages and fonts that they need.

Protocol: docs/protocols/cdm.md#rendering.
The page is that of the official templates, so that every glyph stands where it stands there: 12 pt article, landscape,
geometry scale 0.98, the formula alone in a display. Many formulas share a document. Around each page a line in the log
says which formula it is, how many pages have been shipped, and how deep in groups TeX is; what these lines do not
confirm is set again alone.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final

from loupe.helpers import said_by
from loupe.metrics.cdm.colouring import ColouredFormula
from loupe.metrics.cdm.profiles import CHINESE, TABLE, CdmProfile, Program

_CJK_FONT: Final = "Source Han Sans SC"
#: The same design under the name of another publisher; the first that is installed is taken.
CJK_FONTS: Final = (_CJK_FONT, "Noto Sans CJK SC")

#: Tokens from which on a larger page is taken: more than 600, more than 1300.
_PAPERS: Final = ((1300, "a3"), (600, "a4"), (-1, "a5"))
_LARGER: Final = {"a5": "a4", "a4": "a3", "a3": "a2", "a2": "a1"}

#: How TeX reports an argument, a definition or a condition that does not end before the next page.
_RAN_ON: Final = re.compile(r"^! (?:Forbidden control sequence found|Incomplete \\if|File ended)", re.MULTILINE)
#: What drives the printer, spells out commands, or makes other characters spell them; as an "environment", too, which
#: is a way to say a command. Never set at all. That it is out of reach under any name: `_out_of_reach`, xdv_specials.
_REFUSED: Final = re.compile(
    r"(?:\\|\\begin\s*\{\s*)(?:special|csname|catcode|scantokens|scantextokens|primitive|pdfprimitive|directlua"
    r"|XeTeX(?:pic|pdf)file|pdf(?:literal|obj|refobj|ximage|catalog|info|names"
    r"|trailer|extension|mapfile|mapline|filedump|mdfivesum|filesize|filemoddate))(?![A-Za-z])"
)
#: Primitives by which TeX itself could hand files to the PDF or tell of them. No template needs them.
_OUTWARD: Final[dict[Program, tuple[str, ...]]] = {
    "pdflatex": (
        *(
            "openout",
            "special",
            "primitive",
            "pdfprimitive",
            "pdfliteral",
            "pdfobj",
            "pdfrefobj",
            "pdfximage",
            "pdfrefximage",
        ),
        *("pdfcatalog", "pdfinfo", "pdfnames", "pdftrailer", "pdfmapfile", "pdfmapline", "pdffontattr"),
        *(
            "pdffiledump",
            "pdfmdfivesum",
            "pdffilesize",
            "pdffilemoddate",
            "pdfannot",
            "pdfstartlink",
            "pdfglyphtounicode",
        ),
    ),
    # `\special` is what colours are made of: its traces are looked through before the driver sees them.
    "xelatex": (
        *("openout", "primitive", "pdfprimitive", "XeTeXpicfile", "XeTeXpdffile", "filedump", "mdfivesum", "filesize"),
        "filemoddate",
    ),
}

#: What makes the ink black again, whatever colours were left on the stack.
BLACK: Final[dict[Program, str]] = {
    "pdflatex": r"\pdfcolorstack0 set{0 g 0 G}",
    "xelatex": r"\special{color gray 0}",
}


@dataclass(frozen=True, slots=True)
class Template:
    """The setting that formulas of one document share."""

    program: Program
    packages: tuple[str, ...]
    paper: str
    cjk_font: str = ""


def template_of(formula: ColouredFormula, profile: CdmProfile, *, cjk_font: str) -> Template:
    """The document that upstream sets this formula in. Only `xelatex` ones need a CJK font."""
    paper = next(name for limit, name in _PAPERS if len(formula.tokens) > limit)
    packages = {"tabular": TABLE, "formula_zh": CHINESE}.get(formula.template, profile.packages)
    return Template(profile.program, packages, paper, cjk_font if profile.program == "xelatex" else "")


def on_larger_paper(template: Template) -> Template | None:
    """The same on the next larger paper; None on the largest."""
    paper = _LARGER.get(template.paper)
    return replace(template, paper=paper) if paper else None


def is_overfull(log: str) -> bool:
    """True if TeX says that something does not fit its page."""
    return "Overfull \\hbox" in log or "Overfull \\vbox" in log


def is_refused(tex: str) -> bool:
    """True if this is never given to TeX."""
    return bool(_REFUSED.search(tex))


def single_document(template: Template, tex: str) -> str:
    """A document with this formula alone, as upstream has it."""
    return f"{preamble(template)}{displayed(template, tex)}\\end{{document}}\n"


@dataclass(frozen=True, slots=True)
class PageReport:
    """The part of a batch's log about one formula: pages shipped while it was set, groups it left open, and whether a
    command of it looked for its arguments beyond its page. `stayed`: its page ended in the group that it began in.
    `overfull`: it does not fit the page.
    """

    pages: int
    groups: int
    ran_on: bool
    stayed: bool
    overfull: bool

    @property
    def is_clean(self) -> bool:
        """One page, and nothing left behind."""
        return self.pages == 1 and self.groups == 0 and self.stayed


#: A colour is worked out once, and a `\mathcolor` that names its model is read without LaTeX's general reader of
#: arguments: both take most of the time of a page. What TeX does then is the same, to the byte of the PDF. The first
#: thing that `\mathcolor` does must not be expandable, as commands before it look ahead by expanding.
_QUICK: Final = r"""\makeatletter\ifdefined\XC@display\let\LoupeMix\@undeclaredcolor
\def\LoupeKeep#1{\begingroup\let\XC@display\relax\LoupeMix[RGB]{#1}%
\expandafter\xdef\csname Loupe\detokenize{RGB:#1}\endcsname{\dimen0=\the\dimen0\relax
\def\noexpand\@tempa{\unexpanded\expandafter{\@tempa}}\def\noexpand\@tempb{\unexpanded\expandafter{\@tempb}}%
\def\noexpand\@tempc{\unexpanded\expandafter{\@tempc}}%
\def\noexpand\current@color{\unexpanded\expandafter{\current@color}}%
\def\noexpand\XC@current@color{\unexpanded\expandafter{\XC@current@color}}}\endgroup}
\def\@undeclaredcolor[#1]#2{\ifcsname Loupe\detokenize{#1:#2}\endcsname
\expandafter\@firstoftwo\else\expandafter\@secondoftwo\fi
{\csname Loupe\detokenize{#1:#2}\endcsname\XC@display}{\LoupeMix[#1]{#2}}}
COLOURS\fi
\ifcsname mathcolor code\endcsname\let\LoupeSlow\mathcolor
\expandafter\let\expandafter\LoupeCode\csname mathcolor code\endcsname
\protected\def\mathcolor{\futurelet\LoupeNext\LoupeColour}
\def\LoupeColour{\ifx\LoupeNext[\expandafter\LoupeModel\else\expandafter\LoupeSlow\fi}
\def\LoupeModel[#1]#2#3{\LoupeCode{#1}{#2}{#3}}\fi
\makeatother
"""
_COLOUR: Final = re.compile(r"color\[RGB\]\{((?:(?:25[0-5]|2[0-4]\d|1?\d?\d),){2}(?:25[0-5]|2[0-4]\d|1?\d?\d))\}")


def _quick_colours(formulas: Sequence[str]) -> str:
    """Return the code that makes the colours of these formulas cheap."""
    colours = sorted({colour for tex in formulas for colour in _COLOUR.findall(tex)})
    return _QUICK.replace("COLOURS", "".join(rf"\LoupeKeep{{{colour}}}" for colour in colours))


def batch_document(template: Template, formulas: Sequence[str], *, nonce: str, names: Collection[str] = ()) -> str:
    r"""A document with one page a formula; before each page and after the last the log has a line of the state of TeX.

    The command that starts a page is \outer: no argument reaches beyond it, which TeX reports as an error. The nonce is
    unknown to those who wrote the formulas, so no formula can vouch for itself or another. Every page is in a group of
    its own that has a mark: who leaves the group loses the mark, even if as many groups are open as before. `names`:
    those of which the log is to say whether TeX knows them.
    """
    report = r"\the\ReadonlyShipoutCounter\space\the\currentgrouplevel\space\LoupeMark"
    # The page number and the colour are put right, whatever the page before has done to them.
    black = BLACK[template.program]
    turn = (
        rf"\outer\def\LoupePage#1.{{\newpage\immediate\write-1{{{nonce} #1 {report}}}\endgroup"
        rf"\global\count0=1\setcounter{{equation}}{{0}}{black}\begingroup\def\LoupeMark{{#1}}}}"
        "\n\\errorcontextlines=-1\n\\def\\LoupeMark{none}\\begingroup\n"
    )
    asked = (
        rf"\immediate\write-1{{{nonce} name {name} \ifcsname {name}\endcsname known\else unknown\fi}}" for name in names
    )
    turn += "\n".join([*asked, ""])
    pages = (f"\\LoupePage{index}.\n{displayed(template, tex)}" for index, tex in enumerate(formulas))
    start = f"{preamble(template)}{_quick_colours(formulas)}{turn}"
    return f"{start}{''.join(pages)}\\LoupePage{len(formulas)}.\n\\endgroup\\end{{document}}\n"


def page_reports(log: str, nonce: str) -> list[PageReport]:
    """Read what the log says of the formulas from the first on, as far as it goes without a gap."""
    parts = re.split(rf"^{nonce} (\d+) (\d+) (\d+) (\w+)$", log, flags=re.MULTILINE)
    states = list(zip(parts[1::5], parts[2::5], parts[3::5], parts[4::5], parts[5::5], strict=True))
    reports: list[PageReport] = []
    for number, (state, following) in enumerate(pairwise(states)):
        if (int(state[0]), int(following[0])) != (number, number + 1):
            break
        pages, groups = (int(following[place]) - int(state[place]) for place in (1, 2))
        ran_on, stayed = bool(_RAN_ON.search(state[4])), following[3] == str(number)
        reports.append(PageReport(pages, groups, ran_on, stayed, is_overfull(state[4])))
    return reports


def unknown_names(log: str, nonce: str) -> set[str]:
    """The names of which the log says that TeX does not know them."""
    return set(re.findall(rf"^{nonce} name (\S+) unknown$", log, flags=re.MULTILINE))


def preamble(template: Template) -> str:
    """The document up to the first formula."""
    lines = [
        r"\documentclass[12pt]{article}",
        r"\usepackage[landscape]{geometry}",
        rf"\geometry{{{template.paper}paper,scale=0.98}}",
        r"\pagestyle{empty}",
        *(rf"\usepackage{{{name}}}" for name in template.packages),
    ]
    if template.cjk_font:
        lines += [rf"\setCJK{kind}font{{{template.cjk_font}}}" for kind in ("main", "sans", "mono")]
        lines.append(r"\xeCJKsetup{CJKmath=true}")
    return "\n".join([*lines, r"\begin{document}", _TEXTCOLOR, _out_of_reach(template.program), ""])


def _out_of_reach(program: Program) -> str:
    """Primitives that reach outside made unknown, under the names that LaTeX has for them, too."""
    names = (
        rf"\let\{name}\LoupeNothing\expandafter\let\csname tex_{name}:D\endcsname\LoupeNothing"
        for name in _OUTWARD[program]
    )
    short = (
        rf"\expandafter\let\csname tex_{name.removeprefix('pdf')}:D\endcsname\LoupeNothing"
        for name in _OUTWARD[program]
        if name.startswith("pdf")
    )
    return "%\n".join([*names, *short])


#: Colour without a group of its own around the argument's spacing, as upstream has it.
_TEXTCOLOR: Final = (
    r"\makeatletter\renewcommand*{\@textcolor}[3]"
    r"{\protect\leavevmode\begingroup\color#1{#2}#3\endgroup}\makeatother"
)


def displayed(template: Template, tex: str) -> str:
    """The formula as it stands in the document."""
    display = f"\\begin{{displaymath}}\n{tex}\n\\end{{displaymath}}\n"
    if "CJK" in template.packages:
        return f"\\begin{{CJK}}{{UTF8}}{{gkai}}\n{display}\\end{{CJK}}\n"
    return display


_DEBIAN: Final = {
    "pdflatex": "texlive-latex-extra",
    "xelatex": "texlive-xetex texlive-lang-chinese fonts-noto-cjk",
    "chinese": "latex-cjk-chinese latex-cjk-chinese-arphic-gkai00mp",
}
_FEDORA: Final = "sudo dnf install texlive-scheme-full google-noto-sans-cjk-fonts"
_MAC: Final = "brew install --cask mactex-no-gui font-noto-sans-cjk-sc"
#: Files whose absence makes formulas of a profile fail, and the set that they are in.
_PACKAGES: Final[dict[Program, tuple[tuple[str, str], ...]]] = {
    "pdflatex": (
        ("geometry.sty", "pdflatex"),
        ("booktabs.sty", "pdflatex"),
        ("multirow.sty", "pdflatex"),
        ("amsmath.sty", "pdflatex"),
        ("amssymb.sty", "pdflatex"),
        ("xcolor.sty", "pdflatex"),
        ("upgreek.sty", "pdflatex"),
        ("CJK.sty", "chinese"),
        ("c70gkai.fd", "chinese"),
    ),
    "xelatex": (
        ("geometry.sty", "pdflatex"),
        ("amsmath.sty", "pdflatex"),
        ("amssymb.sty", "pdflatex"),
        ("xcolor.sty", "pdflatex"),
        ("upgreek.sty", "pdflatex"),
        ("xeCJK.sty", "xelatex"),
        ("ctexhook.sty", "xelatex"),
    ),
}


class MissingTexError(Exception):
    """A program, package or font is not there. `hint` is the command that installs it."""

    def __init__(self, missing: Sequence[str], hint: str) -> None:
        super().__init__(f"CDM needs TeX, and this is missing: {', '.join(missing)}")
        self.missing = tuple(missing)
        self.hint = hint


class BrokenTexError(MissingTexError):
    """TeX is there and sets nothing at all: what it fails on says nothing of a formula."""

    def __init__(self, program: str) -> None:
        Exception.__init__(self, f"CDM needs {program}, which is there, but sets nothing")
        self.missing = (program,)
        self.hint = f"see what {program} says of a document of your own"


@dataclass(frozen=True, slots=True)
class TexTools:
    """The tools that were found: a description of the release, or what is missing and what brings it."""

    version: str
    missing: tuple[str, ...] = ()
    hint: str = ""

    def check(self) -> None:
        """Raises MissingTexError where something is missing."""
        if self.missing:
            raise MissingTexError(self.missing, self.hint)


def tex_tools(profile: CdmProfile) -> TexTools:
    """Find what a profile needs and this machine has; looked up once in the life of a process."""
    return _tools(profile.program)


@lru_cache(maxsize=8)
def _tools(program: Program) -> TexTools:
    missing: dict[str, str] = {}
    if shutil.which(program) is None:
        missing[program] = program
        missing |= {"fonts": "pdflatex"} if program == "xelatex" else {}
    else:
        names = _PACKAGES[program]
        found = _found_files([name for name, _ in names])
        missing |= {name: source for name, source in names if name not in found}
    if program == "xelatex" and not cjk_font():
        missing[f"a font named {' or '.join(CJK_FONTS)}"] = "xelatex"
    if missing:
        return TexTools("", tuple(missing), _install(set(missing.values()) | {"pdflatex"}))
    parts = [_release(program), *([cjk_font()] if program == "xelatex" else [])]
    return TexTools(", ".join(parts))


def _install(sets: set[str]) -> str:
    """The command for this machine; where nothing tells which that is, those of all that are known."""
    names = " ".join(_DEBIAN[name] for name in _DEBIAN if name in sets)
    debian = f"sudo apt-get install --no-install-recommends {names}"
    if shutil.which("apt-get") or Path("/etc/debian_version").exists():
        return debian
    if sys.platform == "darwin":
        return _MAC
    if shutil.which("dnf"):
        return _FEDORA
    return (
        f"Debian, Ubuntu: {debian}; Fedora: {_FEDORA}; elsewhere TeX Live 2022 or later in full, and Noto Sans CJK SC"
    )


@lru_cache(maxsize=1)
def cjk_font() -> str:
    """The font that stands in for upstream's, "" where there is none (or no fontconfig to ask)."""
    for font in CJK_FONTS:
        if font in re.split(r"[\n,]", _output(["fc-list", ":", "family"])):
            return font
    return ""


def _found_files(names: Sequence[str]) -> set[str]:
    """Return those of these files that TeX finds."""
    return {Path(line).name for line in _output(["kpsewhich", *names]).splitlines()}


def _release(program: Program) -> str:
    """`pdfTeX 3.14… (TeX Live 2022/Debian)`: another release may set a formula otherwise."""
    return re.sub(r"\s+", " ", _first_line([program, "--version"]))


def _first_line(words: Sequence[str]) -> str:
    return _output(words).partition("\n")[0].strip()


def _output(words: Sequence[str]) -> str:
    if shutil.which(words[0]) is None:
        return ""
    try:
        return said_by(words).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
