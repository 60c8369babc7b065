"""The tree of a formula, as CDM's tokenizer sees it (docs/protocols/cdm.md#parser)."""

from __future__ import annotations

from dataclasses import dataclass


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
    """What stands between `\\left` and `\\right`."""

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
    """What the official printer fails on: colours and the KaTeX logo."""


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
