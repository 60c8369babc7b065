r"""Define the tree of a formula, and what CDM's tokenizer knows of LaTeX (docs/protocols/cdm.md#parser).

Source: the tables of the KaTeX fork in im2markup that both CDM releases carry (docs/protocols/cdm.md#parser). Only
what changes the output is kept: the class of a symbol matters in one place, the letters of `\mathrm`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final


@dataclass(frozen=True, slots=True)
class Symbol:
    """A token that stands for itself; `splits` says that `\\mathrm` takes it apart into characters."""

    text: str
    splits: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """A braced group, also a cell of an array."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """The argument of `\\text` and its like."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Phantom:
    """Something that takes room and leaves no ink."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Scripts:
    """A base with a subscript, a superscript or both."""

    base: Node | None
    sub: Node | None
    sup: Node | None


@dataclass(frozen=True, slots=True)
class Fraction:
    """A fraction or, without a bar, a binomial."""

    bar: bool
    upper: Node | None
    lower: Node | None


@dataclass(frozen=True, slots=True)
class Array:
    """Rows of cells; `columns` are the alignments, one letter each."""

    columns: str
    rows: tuple[tuple[Group, ...], ...]


@dataclass(frozen=True, slots=True)
class Root:
    """A root, perhaps with an index."""

    index: Node | None
    body: Node | None


@dataclass(frozen=True, slots=True)
class Delimited:
    """The content between `\\left` and `\\right`."""

    left: str
    items: tuple[Node, ...]
    right: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command printed with its argument as it is: fonts, `\\llap`, and many that are taken for fonts."""

    name: str
    body: Node | None
    is_font: bool = True


@dataclass(frozen=True, slots=True)
class Braced:
    """A command that gives its argument a pair of braces: always, or only if it has none (accents)."""

    name: str
    body: Node | None
    always: bool


@dataclass(frozen=True, slots=True)
class Operator:
    """A named operator (`\\lim`) or the symbol of one (`\\sum`)."""

    name: str
    limits: bool
    is_symbol: bool


@dataclass(frozen=True, slots=True)
class Switch:
    """A change of size, font or style that holds to the end of the group."""

    name: str
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Dimension:
    """A length."""

    number: float
    unit: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A black box."""

    width: Dimension
    height: Dimension


@dataclass(frozen=True, slots=True)
class Infix:
    """`\\over` or `\\choose` before both sides are known."""

    bar: bool


@dataclass(frozen=True, slots=True)
class Unprintable:
    """A node on which the official printer fails: colours and the KaTeX logo."""


Node = (
    Symbol
    | Group
    | Text
    | Phantom
    | Scripts
    | Fraction
    | Array
    | Root
    | Delimited
    | Command
    | Braced
    | Operator
    | Switch
    | Dimension
    | Rule
    | Infix
    | Unprintable
)


class Kind(Enum):
    """The way to convert a function and its arguments."""

    ROOT = auto()
    TEXT = auto()
    UNPRINTABLE = auto()
    LINE = auto()
    PHANTOM = auto()
    RULE = auto()
    OPERATOR = auto()
    FRACTION = auto()
    LAP = auto()
    BIG = auto()
    LEFT = auto()
    BEGIN = auto()
    SWITCH = auto()
    STYLE = auto()
    FONT = auto()
    ACCENT = auto()
    INFIX = auto()
    ENDING = auto()


class Argument(Enum):
    """The way to read an argument."""

    GROUP = auto()
    TEXT = auto()
    SIZE = auto()
    COLOUR = auto()


@dataclass(frozen=True, slots=True)
class Function:
    """A command with arguments: the first `optional` of them may be missing."""

    kind: Kind
    arguments: tuple[Argument, ...] = ()
    optional: int = 0
    greediness: int = 1


def _functions() -> dict[str, Function]:
    group, text, size = Argument.GROUP, Argument.TEXT, Argument.SIZE
    table: dict[str, Function] = {}

    def define(function: Function, names: str) -> None:
        table.update(dict.fromkeys(("\\" + name for name in names.split()), function))

    define(Function(Kind.ROOT, (group, group), optional=1), "sqrt")
    define(Function(Kind.TEXT, (text,), greediness=2), "text mbox hbox vbox")
    define(Function(Kind.UNPRINTABLE, (Argument.COLOUR, group), greediness=3), "color")
    define(Function(Kind.UNPRINTABLE, (group,), greediness=3), _COLOURS)
    define(Function(Kind.UNPRINTABLE), "KaTeX")
    define(Function(Kind.LINE, (group,)), "overline underline")
    define(Function(Kind.PHANTOM, (group,)), "phantom")
    define(Function(Kind.RULE, (size, size, size), optional=1), "rule")
    define(Function(Kind.OPERATOR), f"{_PLAIN_OPERATORS} {_LIMIT_OPERATORS} {_SYMBOL_OPERATORS}")
    define(Function(Kind.FRACTION, (group, group), greediness=2), "dfrac frac tfrac dbinom binom tbinom")
    define(Function(Kind.LAP, (group,)), "llap rlap")
    define(Function(Kind.BIG, (group,)), _BIG)
    define(Function(Kind.LEFT, (group,)), "left")
    define(Function(Kind.SWITCH), _SWITCHES)
    define(Function(Kind.STYLE), "displaystyle textstyle scriptstyle scriptscriptstyle")
    define(Function(Kind.FONT, (group,), greediness=2), _FONTS)
    define(Function(Kind.ACCENT, (group,)), "acute grave ddot tilde bar breve check hat vec dot")
    define(Function(Kind.INFIX), "over choose")
    define(Function(Kind.BEGIN, (text,)), "begin")
    define(Function(Kind.ENDING), "end right \\ cr")
    return table


_COLOURS: Final = (
    "blue orange pink red green gray purple blueA blueB blueC blueD blueE tealA tealB tealC tealD tealE greenA greenB "
    "greenC greenD greenE goldA goldB goldC goldD goldE redA redB redC redD redE maroonA maroonB maroonC maroonD "
    "maroonE purpleA purpleB purpleC purpleD purpleE mintA mintB mintC grayA grayB grayC grayD grayE grayF grayG grayH "
    "grayI kaBlue kaGreen"
)
_PLAIN_OPERATORS: Final = (
    "arcsin arccos arctan arg cos cosh cot coth csc deg dim exp hom ker lg ln log sec sin sinh tan tanh"
)
_LIMIT_OPERATORS: Final = "det gcd inf lim liminf limsup max min Pr sup"
_SYMBOL_OPERATORS: Final = (
    "int iint iiint oint coprod bigvee bigwedge biguplus bigcap bigcup intop prod sum bigotimes bigoplus bigodot "
    "bigsqcup smallint"
)
_BIG: Final = "bigl Bigl biggl Biggl bigr Bigr biggr Biggr bigm Bigm biggm Biggm big Big bigg Bigg"
_SWITCHES: Final = (
    "tiny scriptsize footnotesize small normalsize large Large LARGE huge Huge textrm rm cal bf siptstyle boldmath it"
)
_FONTS: Final = (
    "mathrm mathit mathbf mathop stackrel mathbb mathcal mathfrak mathscr mathsf mathtt label comment hspace vspace "
    "atop fbox tag makebox raisebox framebox circle line put vphantom textup noalign Bbb bold frak"
)

FUNCTIONS: Final = _functions()
LIMIT_OPERATORS: Final = frozenset("\\" + name for name in _LIMIT_OPERATORS.split())
SYMBOL_OPERATORS: Final = frozenset("\\" + name for name in _SYMBOL_OPERATORS.split())
FONT_ALIASES: Final = {"\\Bbb": "\\mathbb", "\\bold": "\\mathbf", "\\frak": "\\mathfrak"}

EXPRESSION_ENDS: Final = frozenset(["}", "\\end", "\\right", "&", "\\\\", "\\cr"])
BRACED_ARRAYS: Final = {"\\matrix": "matrix", "\\pmatrix": "pmatrix", "\\cases": "cases"}
_DELIMITERS: Final = (
    "( ) [ ] < > / | . \\lbrack \\rbrack \\{ \\lbrace \\} \\rbrace \\lfloor \\rfloor \\lceil \\rceil \\langle \\rangle "
    "\\lt \\gt \\lvert \\rvert \\lVert \\rVert \\lgroup \\rgroup \\lmoustache \\rmoustache \\backslash \\vert \\| "
    "\\Vert \\uparrow \\Uparrow \\downarrow \\Downarrow \\updownarrow \\Updownarrow"
)
DELIMITERS: Final = frozenset(_DELIMITERS.split())
# Environment -> the delimiters around its array.
ENVIRONMENTS: Final[dict[str, tuple[str, str] | None]] = {
    "array": None,
    "tabular": None,
    "aligned": None,
    "matrix": None,
    "pmatrix": ("(", ")"),
    "bmatrix": ("[", "]"),
    "Bmatrix": ("\\{", "\\}"),
    "vmatrix": ("|", "|"),
    "Vmatrix": ("\\Vert", "\\Vert"),
    "cases": ("\\{", "."),
    "picture": ("\\{", "."),
}

_NAMED_SYMBOLS: Final = """
Bbbk Box Bumpeq Cap Cup Delta Diamond Doteq Downarrow Finv Game Gamma Im Join L Lambda Leftarrow Leftrightarrow
Lleftarrow Longleftarrow Longleftrightarrow Longrightarrow Lsh M Omega Phi Pi Psi Re Rightarrow Rrightarrow Rsh S
Sigma Subset Supset Theta Uparrow Updownarrow Upsilon Vdash Vert Vvdash Xi a aleph amalg angle approx approxeq ast
asymp b backepsilon backprime backsim backsimeq backslash barwedge because beth between bigcirc bigstar
bigtriangledown bigtriangleup blacklozenge blacksquare blacktriangle blacktriangledown blacktriangleleft
blacktriangleright boldmathr bot bowtie boxdot boxminus boxplus boxtimes bullet bumpeq c cap cases cdot cdotp cdots
centerdot checkmark circ circeq circlearrowleft circlearrowright circledR circledS circledast circledcirc
circleddash clubsuit colon complement cong cup curlyeqprec curlyeqsucc curlyvee curlywedge curvearrowleft
curvearrowright d dag dagger daleth dashleftarrow dashrightarrow dashv ddag ddagger ddots diagdown diagup diamond
diamondsuit digamma dint div divideontimes do doteq doteqdot dotplus dots doublebarwedge doublecap doublecup
downarrow downdownarrows downharpoonleft downharpoonright e eixsts ell em emptyset enspace eqcirc eqsim eqslantgtr
eqslantless equiv eth f fallingdotseq flat forall frown g ge geq geqq geqslant gets gg ggg gggtr gimel gnapprox gneq
gneqq gnsim gt gtrapprox gtrdot gtreqless gtreqqless gtrless gtrsim gvertneqq h hbar heartsuit hline hookleftarrow
hookrightarrow hskip hslash i in infty intd intercal intf j k l lVert land langle lbrace lbrack lceil ldotp ldots le
leadsto leftarrow leftarrowtail leftharpoondown leftharpoonup leftleftarrows leftrightarrow leftrightarrows
leftrightharpoons leftrightsquigarrow leftthreetimes leq leqq leqslant lessapprox lessdot lesseqgtr lesseqqgtr
lessgtr lesssim lfloor lgroup lhd ll llcorner lll llless lmoustache lnapprox lneq lneqq lnot lnsim longleftarrow
longleftrightarrow longmapsto longrightarrow looparrowleft looparrowright lor lozenge lrcorner lt ltimes lvert
lvertneqq m mapsto mathbin measuredangle mho mid mit models mp multimap n nLeftarrow nLeftrightarrow nRightarrow
nVDash nVdash nabla natural nc ncong ne nearrow neg neq nexists ngeq ngeqq ngeqslant ngtr ni nleftarrow
nleftrightarrow nleq nleqq nleqslant nless nmid nonumber not notin nparallel nprec npreceq nrightarrow nshortmid
nshortparallel nsim nsubseteq nsubseteqq nsucc nsucceq nsupseteq nsupseteqq ntriangleleft ntrianglelefteq
ntriangleright ntrianglerighteq nvDash nvdash nwarrow o odot ominus oplus oslash otimes overleftarrow overrightarrow
owns parallel partial perp pii pitchfork pm prec precapprox preccurlyeq preceq precnapprox precneqq precnsim precsim
prime propto qquad quad rVert rangle rbrace rbrack rceil restriction rfloor rgroup rhd rightarrow rightarrowtail
rightharpoondown rightharpoonup rightleftarrows rightleftharpoons rightrightarrows rightsquigarrow rightthreetimes
risingdotseq rmoustache rtimes rvert sb searrow setminus sf sharp shortmid shortparallel sim simeq slash smallfrown
smallsetminus smallskip smallsmile smile sp space spadesuit sphericalangle sqcap sqcup sqsubset sqsubseteq sqsupset
sqsupseteq square star subset subseteq subseteqq subsetneq subsetneqq succ succapprox succcurlyeq succeq succnapprox
succneqq succnsim succsim supset supseteq supseteqq supsetneq supsetneqq surd swarrow textbf therefore thickapprox
thicksim thinspace times to top triangle triangledown triangleleft trianglelefteq triangleq triangleright
trianglerighteq tt twoheadleftarrow twoheadrightarrow ulcorner underbrace unitlength unlhd unrhd uparrow updownarrow
upharpoonleft upharpoonright uplus upuparrows urcorner vDash varkappa varnothing varpropto varsubsetneq
varsubsetneqq varsupsetneq varsupsetneqq vartriangle vartriangleleft vartriangleright vdash vdots vee veebar vert
wedge widehat widetilde wp wr yen
"""
# Symbols of math mode that are no ordinary letters: `\mathrm` prints them whole, everything else letter by letter.
WHOLE_SYMBOLS: Final = frozenset("\\" + name for name in [*_NAMED_SYMBOLS.split(), *"()#&$%_!,:;{}| "])
