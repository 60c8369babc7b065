"""One formula a page: longer, deeper, a matrix, cases. The page and its LaTeX come from one tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from loupe.features.synth.dice import Dice
from loupe.features.synth.page import PIXELS_PER_POINT, Page, Truth
from loupe.features.synth.tracks.layouts import MARGIN, WIDTH, sheet
from loupe.features.synth.tracks.setting import Setting
from loupe.features.synth.typeset.fonts import BOOK

_SIZE = 14.0
_MATH = "New Computer Modern Math"
_GREEK = ("alpha", "beta", "gamma", "lambda", "mu", "pi", "sigma", "omega")


class Term(NamedTuple):
    """A formula as the typesetter has it, as LaTeX, and the letters and digits that stand on the page."""

    typst: str
    latex: str
    letters: str


def pages(setting: Setting) -> list[Page]:
    """One page for each kind of formula."""
    found = []
    for rank, (rung, make) in enumerate(_KINDS.items()):
        term = make(setting.dice(rung))
        piece = {"math": term.typst, "x": MARGIN, "y": MARGIN, "width": WIDTH - 2 * MARGIN}
        found.append(
            Page(
                track="formulas",
                base=setting.base,
                rung=rung,
                rank=rank,
                task="markdown",
                layout=sheet([piece], BOOK, _SIZE, "en", height=100.0),
                truth=Truth(text=f"$${term.latex}$$", latex=term.latex, layer="letters", drawn=term.letters),
                x_height=_SIZE * 0.43 * PIXELS_PER_POINT,
                faces=(BOOK.family, _MATH),
            )
        )
    return found


def _leaf(dice: Dice) -> Term:
    kind = dice.below(3)
    if kind == 0:
        number = str(dice.between(2, 99))
        return Term(number, number, number)
    if kind == 1:
        name = dice.choice(_GREEK)
        return Term(name, f"\\{name}", _letter(name))
    name = dice.choice("abcdknpqrstuvwxyz")
    return Term(name, name, name)


def _letter(name: str) -> str:
    return dict(zip(_GREEK, "αβγλμπσω", strict=True))[name]


def _sum(terms: list[Term], dice: Dice) -> Term:
    found = terms[0]
    for term in terms[1:]:
        sign = dice.choice("+-=") if "=" not in found.latex else dice.choice("+-")
        found = Term(
            f"{found.typst} {sign} {term.typst}", f"{found.latex} {sign} {term.latex}", found.letters + term.letters
        )
    return found


def _fraction(above: Term, below: Term) -> Term:
    return Term(
        f"frac({above.typst}, {below.typst})",
        f"\\frac{{{above.latex}}}{{{below.latex}}}",
        above.letters + below.letters,
    )


def _root(inside: Term) -> Term:
    return Term(f"sqrt({inside.typst})", f"\\sqrt{{{inside.latex}}}", inside.letters)


def _power(base: Term, above: Term) -> Term:
    return Term(
        f"({base.typst})^({above.typst})",
        f"\\left({base.latex}\\right)^{{{above.latex}}}",
        base.letters + above.letters,
    )


def _indexed(base: Term, index: Term) -> Term:
    return Term(f"{base.typst}_({index.typst})", f"{base.latex}_{{{index.latex}}}", base.letters + index.letters)


def _long(dice: Dice, terms: int) -> Term:
    return _sum(
        [_indexed(_variable(dice), _leaf(dice)) if dice.chance(40) else _leaf(dice) for _ in range(terms)], dice
    )


def _variable(dice: Dice) -> Term:
    name = dice.choice("abcdknpqrstuvwxyz")
    return Term(name, name, name)


def _deep(dice: Dice, depth: int) -> Term:
    if depth == 0:
        return _sum([_leaf(dice), _leaf(dice)], dice)
    inside, kind = _deep(dice, depth - 1), dice.below(3)
    if kind == 0:
        return _root(inside)
    return _fraction(inside, _leaf(dice)) if kind == 1 else _power(inside, _leaf(dice))


def _matrix(dice: Dice) -> Term:
    size = dice.between(2, 4)
    rows = [[_leaf(dice) for _ in range(size)] for _ in range(size)]
    latex = r" \\ ".join(" & ".join(cell.latex for cell in row) for row in rows)
    typst = "; ".join(", ".join(cell.typst for cell in row) for row in rows)
    letters = "".join(cell.letters for row in rows for cell in row)
    return Term(f"mat({typst})", rf"\begin{{pmatrix}} {latex} \end{{pmatrix}}", letters)


def _cases(dice: Dice) -> Term:
    rows = [(_long(dice, 2), _variable(dice), str(dice.between(2, 99))) for _ in range(dice.between(2, 3))]
    typst = ", ".join(f"{value.typst} &quad {name.typst} > {bound}" for value, name, bound in rows)
    latex = r" \\ ".join(rf"{value.latex} & {name.latex} > {bound}" for value, name, bound in rows)
    letters = "".join(value.letters + name.letters + bound for value, name, bound in rows)
    return Term(f"f = cases({typst})", rf"f = \begin{{cases}} {latex} \end{{cases}}", f"f{letters}")


_KINDS: Mapping[str, Callable[[Dice], Term]] = {
    "3 terms": lambda dice: _long(dice, 3),
    "8 terms": lambda dice: _long(dice, 8),
    "depth 1": lambda dice: _deep(dice, 1),
    "depth 3": lambda dice: _deep(dice, 3),
    "matrix": _matrix,
    "cases": _cases,
}
