"""Count how many vision tokens DeepSeek-OCR spends on a page, from the size of the page alone.

Source: deepseek-ai/DeepSeek-OCR @ e4ac34e and the `infer()` of its model repository;
docs/protocols/fox.md#vision-tokens. Where paper and code differ (rounding of valid tokens), the code counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral

from loupe.metrics.arguments import wrong_type

_PATCH = 16
_DOWNSAMPLING = 4
#: Tiles at most in "gundam" mode: `infer()` of the model repository; the published vLLM configuration has 6.
MAX_TILES = 9
_MIN_TILES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """A resolution mode: side of the whole page, side of a tile, and whether the page is also cut into tiles."""

    page: int
    tile: int
    tiled: bool = False


MODES: Mapping[str, Mode] = {
    "tiny": Mode(page=512, tile=512),
    "small": Mode(page=640, tile=640),
    "base": Mode(page=1024, tile=1024),
    "large": Mode(page=1280, tile=1280),
    "gundam": Mode(page=1024, tile=640, tiled=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionTokens:
    """The tokens that DeepSeek-OCR spends on one page in one mode.

    `nominal` is what the paper counts, `valid` leaves out the padding (what the reference program prints), `sequence`
    is the number of places in the prompt, line ends included. `tiles` are columns and rows; (1, 1) without tiles.
    """

    mode: str
    tiles: tuple[int, int]
    local_tiles: int
    nominal: int
    valid: int
    sequence: int


def vision_tokens(width: int, height: int, mode: str = "base", *, max_tiles: int = MAX_TILES) -> VisionTokens:
    """Count the tokens that DeepSeek-OCR spends on a page of `width` x `height` pixels (upright, before any scaling).

    `mode`: tiny, small, base, large or gundam, which cuts the page into at most `max_tiles` tiles as well. Source:
    deepseek-ai/DeepSeek-OCR, docs/protocols/fox.md#vision-tokens. Raises ValueError for an unknown mode or a page
    without area.

    >>> vision_tokens(1275, 1650, "base").valid
    197
    """
    for name, value in {"width": width, "height": height, "max_tiles": max_tiles}.items():
        if not isinstance(value, Integral):
            raise wrong_type(name, value, "a whole number")
    if mode not in MODES:
        raise ValueError(f"no mode {mode!r}: one of {', '.join(MODES)}")
    if width < 1 or height < 1:
        raise ValueError(f"a page of {width} x {height} pixels has no area")
    chosen = MODES[mode]
    columns, rows = choose_tiles(width, height, chosen.tile, max_tiles=max_tiles) if chosen.tiled else (1, 1)
    local = columns * rows if columns * rows > 1 else 0
    side, tile_side = _queries(chosen.page), _queries(chosen.tile)
    whole, part = side**2, tile_side**2
    places = (side + 1) * side + 1
    return VisionTokens(
        mode=mode,
        tiles=(columns, rows),
        local_tiles=local,
        nominal=whole + part * local,
        valid=(int(whole * _filled(width, height)) if _keeps_shape(chosen) else whole) + part * local,
        sequence=places + ((tile_side * columns + 1) * tile_side * rows if local else 0),
    )


def choose_tiles(width: int, height: int, tile: int = 640, *, max_tiles: int = MAX_TILES) -> tuple[int, int]:
    """Columns and rows of tiles: the grid nearest in shape to the page; (1, 1), no tiles, if the page fits into one.

    Of equally near grids a later, larger one wins if the page has more than half its pixels.
    """
    if width <= tile and height <= tile:
        return 1, 1
    grids = [
        (columns, rows)
        for columns in range(1, max_tiles + 1)
        for rows in range(1, max_tiles + 1)
        if _MIN_TILES <= columns * rows <= max_tiles
    ]
    best, nearest = (1, 1), float("inf")
    for columns, rows in sorted(grids, key=lambda grid: grid[0] * grid[1]):
        distance = abs(width / height - columns / rows)
        tie = distance == nearest and width * height > 0.5 * tile * tile * columns * rows
        if distance < nearest or tie:
            best, nearest = (columns, rows), distance
    return best


def compression_ratio(text_tokens: float, vision_tokens: float) -> float:
    """Return text tokens per vision token. Range 0.., higher is denser. Raises ValueError without vision tokens.

    >>> compression_ratio(1970, vision_tokens(1275, 1650, "base").valid)
    10.0
    """
    if vision_tokens <= 0:
        raise ValueError("no vision tokens")
    return text_tokens / vision_tokens


def _queries(size: int) -> int:
    """Tokens along one side: patches of 16 pixels, four by four of them in a token."""
    return -(-(size // _PATCH) // _DOWNSAMPLING)


def _keeps_shape(mode: Mode) -> bool:
    """True if the page is padded to a square; small modes without tiles stretch it instead, and waste nothing."""
    return mode.tiled or mode.tile > 640


def _filled(width: int, height: int) -> float:
    """The share of the square that the page fills, in the reference's own order of floating-point steps."""
    longer, shorter = max(width, height), min(width, height)
    return 1 - ((longer - shorter) / longer)
