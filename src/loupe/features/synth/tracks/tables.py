"""One table a page: more and more cells, cells over several, no rules, two header rows, gaps, long cells, turned."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from loupe.features.synth.dice import Dice
from loupe.features.synth.page import PIXELS_PER_POINT, Layer, Page, Truth
from loupe.features.synth.tracks.layouts import HEIGHT, MARGIN, WIDTH, sheet
from loupe.features.synth.tracks.setting import Setting
from loupe.features.synth.typeset.fonts import BOOK

_SIZE = 10.0
Cell: TypeAlias = dict[str, Any]
Rows: TypeAlias = list[list[Cell]]
_WORDS = (
    *("Barley", "Copper", "Lamps", "Linen", "Paper", "Pears", "Ropes", "Salt", "Shutters", "Slate", "Timber", "Wax"),
    *("Brede", "Hollin", "Marsh", "Quay", "Ferry", "Mill", "Chapel", "Orchard", "Quarry", "Bridge", "Tower", "Gate"),
)


def pages(setting: Setting) -> list[Page]:
    """One page for each kind of table."""
    return [_page(setting, rank, rung, make) for rank, (rung, make) in enumerate(_KINDS.items())]


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
        layout=sheet([piece], BOOK, _SIZE, "en", height=HEIGHT if rung == "turned" else 2 * MARGIN + 12.0 * len(rows)),
        truth=Truth(
            text="\n".join(" ".join(cell["text"] for cell in row if cell["text"]) for row in rows),
            html=as_html(rows),
            layer=layer,
        ),
        x_height=_SIZE * BOOK.x_height * PIXELS_PER_POINT,
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


_KINDS: Mapping[str, Callable[[Dice], Rows]] = {
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
