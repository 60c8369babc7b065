"""What `loupe compress --image` shows: one page as a list, several as a table with means below."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from loupe.results.sections import Section, format_margin, format_value, margin_heading

if TYPE_CHECKING:
    from loupe.studies.compress.precision import PageCompression, Reading
    from loupe.types import Result

_MEANS = ("precision", "compression_gt", "compression_output", "vision_tokens", "vision_tokens_nominal")


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _ratio(value: float | None) -> str:
    """A compression; nothing where there are fewer text tokens than vision tokens, as the page carries no text."""
    return "" if value is None or value < 1 else f"{value:,.2f}x"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f} %"


def _counted(tokens: int | None, source: str) -> str:
    """A number of tokens; `~` before an estimate."""
    return f"{'~' if source.startswith('estimate') else ''}{_number(tokens)}"


#: Heading of a column → its cell; columns that no row fills are left out.
_COLUMNS: Mapping[str, Callable[[PageCompression], str]] = {
    "page": lambda row: row.page,
    "mode": lambda row: row.mode,
    "size": lambda row: f"{row.width}x{row.height}" if row.width else "",
    "tiles": lambda row: f"{row.tiles[0]}x{row.tiles[1]}" if row.tiles else "",
    "valid": lambda row: _number(row.vision_tokens),
    "nominal": lambda row: _number(row.vision_tokens_nominal),
    "sequence": lambda row: _number(row.vision_tokens_sequence),
    "gt": lambda row: _counted(row.gt_tokens, row.gt_tokens_source),
    "gt/nominal": lambda row: _ratio(row.compression_gt),
    "output": lambda row: _counted(row.output_tokens, row.output_tokens_source),
    "output/valid": lambda row: _ratio(row.compression_output),
    "edits": lambda row: _number(row.edits),
    "precision": lambda row: _percent(row.precision),
    "paper": lambda row: _percent(row.expected),
}


def sections(rows: Sequence[PageCompression], result: Result | None) -> list[Section]:
    """The tables."""
    if len(rows) == 1:
        return [_one(rows[0])]
    names = [name for name, cell in _COLUMNS.items() if any(cell(row) for row in rows)]
    cells = [tuple(_COLUMNS[name](row) or "–" for name in names) for row in rows]
    found = [Section(title="vision tokens, and text tokens for each of them", header=names, rows=cells)]
    if result is not None and len(rows) > 1:
        found.append(_means(result))
    if any(row.gt_tokens_source.startswith("estimate") for row in rows):
        found.append(Section(title="~ estimate: 0.3 tokens a character, 0.6 a Chinese one", rows=[]))
    return found


def _means(result: Result) -> Section:
    rows = []
    for name in _MEANS:
        one, unit = result.measures[name], result.units[name]
        if one.value is not None:
            rows.append((name, format_value(one.value, unit), format_margin(one, unit), f"{one.n:,}"))
    header = ("measure", "value", margin_heading(row[2] for row in rows), "n")
    return Section(title="means over the pages", header=header, rows=rows)


def _one(row: PageCompression) -> Section:
    """One page in one mode, in words."""
    tiles = f"{row.tiles[0]} x {row.tiles[1]} tiles and the whole page" if row.tiles else ""
    edits = "" if row.edits is None else f"{row.edits:,} edits"
    gt = f"{row.gt_tokens:,} tokens ({row.gt_tokens_source})" if row.gt_tokens is not None else ""
    output = f"{row.output_tokens:,} tokens ({row.output_tokens_source})" if row.output_tokens is not None else ""
    ended = row.outcome if row.outcome != "ok" else ""
    lines = [
        ("size", f"{row.width} x {row.height}"),
        ("cut into", tiles),
        ("vision tokens, valid", _number(row.vision_tokens)),
        ("vision tokens, nominal", _number(row.vision_tokens_nominal)),
        ("places in the prompt", _number(row.vision_tokens_sequence)),
        ("ground truth", gt),
        ("compression, ground truth / nominal", _ratio(row.compression_gt)),
        ("output", output),
        ("compression, output / valid", _ratio(row.compression_output)),
        ("edit distance", edits),
        ("precision", _percent(row.precision)),
        ("the paper's precision", f"{_percent(row.expected)} ({row.expected_for})" if row.expected else ""),
        ("answer", ended),
    ]
    return Section(title=f"{row.page}, {row.mode}", rows=[line for line in lines if line[1]])


def document(
    rows: Sequence[PageCompression], result: Result | None, warnings: Sequence[str], reading: Reading | None
) -> dict[str, Any]:
    """The same for programs: fractions as fractions, what was not measured as null."""
    found: dict[str, Any] = {"pages": [msgspec.to_builtins(row) for row in rows], "warnings": list(warnings)}
    if reading is not None:
        found |= {"engine": reading.engine, "facts": dict(reading.facts)}
    if result is not None:
        found["means"] = {name: msgspec.to_builtins(result.measures[name]) for name in _MEANS}
    return found
