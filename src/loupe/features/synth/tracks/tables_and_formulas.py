"""Tracks of one table or one formula a page, ever harder. A formula and its LaTeX come from one tree."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from loupe.features.synth.dice import Dice
from loupe.features.synth.page import HEIGHT, MARGIN, PIXELS_PER_POINT, WIDTH, Layer, Page, Setting, Truth, sheet
from loupe.features.synth.typeset.typesetter import BOOK

_TABLES_SIZE = 10.0
Cell: TypeAlias = dict[str, Any]
Rows: TypeAlias = list[list[Cell]]
_WORDS = (
    *("Barley", "Copper", "Lamps", "Linen", "Paper", "Pears", "Ropes", "Salt", "Shutters", "Slate", "Timber", "Wax"),
    *("Brede", "Hollin", "Marsh", "Quay", "Ferry", "Mill", "Chapel", "Orchard", "Quarry", "Bridge", "Tower", "Gate"),
)


def table_pages(setting: Setting) -> list[Page]:
    """One page for each kind of table."""
    return [_page(setting, rank, rung, make) for rank, (rung, make) in enumerate(_TABLES_KINDS.items())]


def _page(setting: Setting, rank: int, rung: str, make: Callable[[Dice], Rows]) -> Page:
    rows = make(setting.dice(rung))
    columns = sum(cell.get("colspan", 1) for cell in rows[0])
    width = min((WIDTH - 2 * MARGIN) / columns, 40.0)
    piece: dict[str, Any] = {"cells": [cell for row in rows for cell in row], "columns": [round(width, 3)] * columns}
    piece |= {"x": MARGIN, "y": MARGIN, "width": WIDTH - 2 * MARGIN, "ruled": rung != "borderless"}
    piece |= {"turn": 90} if rung == "turned" else {}
    spans = any(cell.get("rowspan", 1) > 1 for row in rows for cell in row)
    layer: Layer = "bag" if spans or rung in ("turned", "long cells") else "ordered"
    return Page(
        track="tables",
        base=setting.base,
        rung=rung,
        rank=rank,
        task="markdown",
        layout=sheet(
            [piece], BOOK, _TABLES_SIZE, "en", height=HEIGHT if rung == "turned" else 2 * MARGIN + 12.0 * len(rows)
        ),
        truth=Truth(
            text="\n".join(" ".join(cell["text"] for cell in row if cell["text"]) for row in rows),
            html=as_html(rows),
            layer=layer,
        ),
        x_height=_TABLES_SIZE * BOOK.x_height * PIXELS_PER_POINT,
        faces=(BOOK.family,),
    )


def as_html(rows: Rows) -> str:
    """The table as HTML; header cells are `th`."""
    lines = []
    for row in rows:
        cells = ""
        for cell in row:
            tag = "th" if cell.get("head") else "td"
            spans = "".join(f' {name}="{cell[name]}"' for name in ("rowspan", "colspan") if cell.get(name, 1) > 1)
            cells += f"<{tag}{spans}>{html.escape(cell['text'], quote=False)}</{tag}>"
        lines.append(f"<tr>{cells}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _head(*names: str) -> list[Cell]:
    return [{"text": name, "head": True} for name in names]


def _number(dice: Dice) -> Cell:
    return {"text": f"{dice.between(1, 999)}.{dice.below(10)}", "align": "end"}


def _grid(dice: Dice, rows: int, columns: int) -> Rows:
    names = dice.several(_WORDS, rows + columns)
    body = [[{"text": name}, *(_number(dice) for _ in range(columns - 1))] for name in names[columns:]]
    return [_head("Item", *names[1:columns]), *body]


def _spans(dice: Dice) -> Rows:
    """Groups of rows with a name over all of them, and a cell over two columns."""
    names = dice.several(_WORDS, 8)
    rows: Rows = [_head("Place", "Item", *names[:2])]
    for place in names[2:4]:
        size = dice.between(2, 3)
        for number in range(size):
            first: list[Cell] = [{"text": place, "rowspan": size}] if number == 0 else []
            rows.append([*first, {"text": dice.choice(names[4:])}, _number(dice), _number(dice)])
    return [*rows, [{"text": "All places together", "colspan": 3}, _number(dice)]]


def _two_headers(dice: Dice) -> Rows:
    names = dice.several(_WORDS, 7)
    head: list[Cell] = [{"text": "Item", "head": True, "rowspan": 2}]
    head += [{"text": name, "head": True, "colspan": 2} for name in names[:2]]
    body = [[{"text": name}, *(_number(dice) for _ in range(4))] for name in names[2:]]
    return [head, _head("low", "high", "low", "high"), *body]


def _with_gaps(dice: Dice) -> Rows:
    rows = _grid(dice, 6, 5)
    for row in rows[1:]:
        row[dice.between(1, 4)] = {"text": ""}
    return rows


def _long_cells(dice: Dice) -> Rows:
    phrases = (
        "counted twice by the clerk of the harbour",
        "kept in the attic until the first frost",
        "sold to a traveller from the north",
    )
    rows = _grid(dice, 5, 4)
    for row in rows[1:]:
        row[dice.between(1, 3)] = {"text": dice.choice(phrases)}
    return rows


_TABLES_KINDS: Mapping[str, Callable[[Dice], Rows]] = {
    "4x3": lambda dice: _grid(dice, 4, 3),
    "8x5": lambda dice: _grid(dice, 8, 5),
    "14x7": lambda dice: _grid(dice, 14, 7),
    "spans": _spans,
    "borderless": lambda dice: _grid(dice, 6, 4),
    "two header rows": _two_headers,
    "empty cells": _with_gaps,
    "long cells": _long_cells,
    "turned": lambda dice: _grid(dice, 6, 4),
}


_FORMULAS_SIZE = 14.0
_MATH = "New Computer Modern Math"
_GREEK = ("alpha", "beta", "gamma", "lambda", "mu", "pi", "sigma", "omega")


class Term(NamedTuple):
    """A formula as the typesetter has it, as LaTeX, and the letters and digits that stand on the page."""

    typst: str
    latex: str
    letters: str


def formula_pages(setting: Setting) -> list[Page]:
    """One page for each kind of formula."""
    found = []
    for rank, (rung, make) in enumerate(_FORMULAS_KINDS.items()):
        term = make(setting.dice(rung))
        piece = {"math": term.typst, "x": MARGIN, "y": MARGIN, "width": WIDTH - 2 * MARGIN}
        found.append(
            Page(
                track="formulas",
                base=setting.base,
                rung=rung,
                rank=rank,
                task="markdown",
                layout=sheet([piece], BOOK, _FORMULAS_SIZE, "en", height=100.0),
                truth=Truth(text=f"$${term.latex}$$", latex=term.latex, layer="letters", drawn=term.letters),
                x_height=_FORMULAS_SIZE * 0.43 * PIXELS_PER_POINT,
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


_FORMULAS_KINDS: Mapping[str, Callable[[Dice], Term]] = {
    "3 terms": lambda dice: _long(dice, 3),
    "8 terms": lambda dice: _long(dice, 8),
    "depth 1": lambda dice: _deep(dice, 1),
    "depth 3": lambda dice: _deep(dice, 3),
    "matrix": _matrix,
    "cases": _cases,
}
