"""DeepSeek-OCR's compression study on Fox: how precise an answer is when a page is given few vision tokens.

Paper: arXiv 2510.18234, table 2 and figure 1; protocol: docs/benchmarks/fox.md. The expected
values stand beside the measured ones; they are never a pass or a fail.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from loupe.types import Estimate, Result

#: What pages are binned by; each is a slice of the result.
Binning: TypeAlias = Literal["gt_tokens", "compression_gt", "compression_output"]

TOKEN_BOUNDS = (600, 700, 800, 900, 1000, 1100, 1200, 1300)
RATIO_BOUNDS = (10, 12, 15, 17, 19)
#: Precision of the paper's table 2, by tokens of the page's text, for 64 and 100 vision tokens.
EXPECTED_BY_TOKENS: Mapping[str, Mapping[int, float]] = {
    "600-700": {64: 0.965, 100: 0.985},
    "700-800": {64: 0.938, 100: 0.973},
    "800-900": {64: 0.838, 100: 0.968},
    "900-1000": {64: 0.859, 100: 0.968},
    "1000-1100": {64: 0.793, 100: 0.915},
    "1100-1200": {64: 0.764, 100: 0.898},
    "1200-1300": {64: 0.591, 100: 0.871},
}
#: The paper in one line: by compression, "about" values.
EXPECTED_BY_RATIO: Mapping[str, float] = {"<10x": 0.97, "10-12x": 0.90, "15-17x": 0.80, ">=19x": 0.60}


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """One bin of the curve: its pages, mean compression ratio, precision with interval, and the paper's precision."""

    label: str
    pages: int
    compression: float | None
    precision: Estimate
    expected: float | None


def token_bin(tokens: int) -> str:
    """The bin of a page by the tokens of its text, half open: 700 belongs to "700-800"."""
    return _bin(tokens, TOKEN_BOUNDS, "")


def ratio_bin(ratio: float) -> str:
    """The bin of a compression ratio, half open: 10.0 belongs to "10-12x"."""
    return _bin(ratio, RATIO_BOUNDS, "x")


def expected_precision(text_tokens: int | None, nominal: int, ratio: float | None) -> tuple[float | None, str]:
    """The paper's precision for a page, and where it stands: table 2, else the line by compression, else nothing."""
    if text_tokens is not None:
        label = token_bin(text_tokens)
        known = EXPECTED_BY_TOKENS.get(label, {}).get(nominal)
        if known is not None:
            return known, f"table 2: {label} tokens of text in {nominal}"
    if ratio is not None and (about := EXPECTED_BY_RATIO.get(ratio_bin(ratio))) is not None:
        return about, f"about, for {ratio_bin(ratio)}"
    return None, ""


def compression_curve(result: Result, by: Binning = "gt_tokens") -> list[CurvePoint]:
    """Precision against compression, one point per bin with pages, in order of the bins.

    The compression is that of ground-truth tokens over nominal vision tokens, as in the paper; for bins by
    `compression_output`, that of output tokens over valid ones. A result without vision tokens has no ratios.
    """
    slices = result.slices.get(by, {})
    ratio = "compression_output" if by == "compression_output" else "compression_gt"
    bounds, unit = (TOKEN_BOUNDS, "") if by == "gt_tokens" else (RATIO_BOUNDS, "x")
    points = []
    for label in _labels(bounds, unit):
        values = slices.get(label, {})
        if "precision" not in values:
            continue
        spent = values.get("vision_tokens_nominal", Estimate(value=None)).value
        expected = EXPECTED_BY_RATIO.get(label)
        if by == "gt_tokens" and spent is not None:
            expected = EXPECTED_BY_TOKENS.get(label, {}).get(round(spent))
        points.append(
            CurvePoint(
                label=label,
                pages=values["precision"].n,
                compression=values.get(ratio, Estimate(value=None)).value,
                precision=values["precision"],
                expected=expected,
            )
        )
    return points


def _bin(value: float, bounds: tuple[int, ...], unit: str) -> str:
    return _labels(bounds, unit)[bisect.bisect_right(bounds, value)]


def _labels(bounds: tuple[int, ...], unit: str) -> list[str]:
    middle = [f"{low}-{high}{unit}" for low, high in pairwise(bounds)]
    return [f"<{bounds[0]}{unit}", *middle, f">={bounds[-1]}{unit}"]
