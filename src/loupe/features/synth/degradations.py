"""Twenty degradations, each with its unit and five physical severities: docs/synth-degradations.md.

Severity 1 is an ordinary office scan; at 5 a person still reads the page, slowly. The severities are relative to the
text and were set by looking at pages, never by what an engine scores. The same seed puts the same stains and shadows at
all five, so that a ladder differs in one thing only.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from PIL import Image, __version__, features

from loupe.errors import LoupeError, did_you_mean
from loupe.features.synth import damage
from loupe.features.synth.pixels import Bytes, Chance, to_picture, to_pixels

#: A page, the severity in its unit, the x-height in pixels, and the chance of the page.
Apply: TypeAlias = Callable[[Image.Image, float, float, Chance], Image.Image]
Five: TypeAlias = tuple[float, float, float, float, float]
#: Raised whenever a degradation gives other pixels than before.
VERSION = "1"
SEVERITIES = (1, 2, 3, 4, 5)


@dataclass(frozen=True, slots=True)
class Degradation:
    """One way in which pages get worse: what severity is measured in, and its values from 1 to 5."""

    name: str
    title: str
    group: str
    unit: str
    severities: Five
    apply: Apply


def degrade(image: Bytes, name: str, severity: int, *, x_height: float, seed: int) -> Bytes:
    """The page (H, W, 3) of uint8, degraded; the same bytes for the same arguments, on every machine.

    `severity` is 1 to 5, `x_height` that of the text in pixels. Turned pages have another shape. Raises LoupeError for
    an unknown name, ValueError for an image, severity or x-height that is none.
    """
    if (found := DEGRADATIONS.get(name)) is None:
        raise LoupeError(
            f"no degradation is called {name!r}{did_you_mean(name, DEGRADATIONS)}",
            hint=f"there are {', '.join(DEGRADATIONS)}",
        )
    if severity not in SEVERITIES:
        raise ValueError(f"severity {severity} is not one of 1 to 5")
    if not x_height > 0:
        raise ValueError(f"an x-height of {x_height} pixels")
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
        raise ValueError(f"an image of shape {image.shape} and type {image.dtype} instead of (H, W, 3) uint8")
    page = to_picture(image)
    return to_pixels(found.apply(page, found.severities[severity - 1], x_height, Chance(seed, name)))


def versions() -> dict[str, str]:
    """All that the pixels depend on besides the arguments: this catalogue, and the libraries that blur and encode."""
    return {
        "degradations": VERSION,
        "pillow": __version__,
        "libjpeg": features.version("libjpeg_turbo") or features.version("jpg") or "unknown",
    }


@functools.cache
def digest() -> str:
    """SHA-256 of a small page under every degradation at every severity: equal where machines make the same pages."""
    stripes = np.arange(72)[:, None] // 4 % 3 * np.arange(56)[None, :] // 5 % 4
    page = np.repeat(np.where(stripes > 0, 255, 20).astype(np.uint8)[..., None], 3, axis=2)
    total = hashlib.sha256()
    for name in DEGRADATIONS:
        for severity in SEVERITIES:
            found = degrade(page, name, severity, x_height=8.0, seed=1)
            total.update(f"{name} {severity} {found.shape}".encode() + found.tobytes())
    return total.hexdigest()


def _chain(parts: Mapping[str, Five]) -> Apply:
    """Several degradations after each other; the value is the severity, which says how strong each part is."""

    def apply(page: Image.Image, value: float, x_height: float, chance: Chance) -> Image.Image:
        for name, values in parts.items():
            part = Chance(chance.seed, f"{chance.purpose}/{name}")
            page = _PARTS[name](page, values[round(value) - 1], x_height, part)
        return page

    return apply


#: The strength of every part of the chains at severity 1 to 5, in the unit of the part.
PHOTO: Mapping[str, Five] = {
    "perspective": (0.01, 0.02, 0.03, 0.045, 0.06),
    "uneven_light": (0.85, 0.7, 0.55, 0.42, 0.32),
    "blur": (0.05, 0.08, 0.11, 0.14, 0.17),
    "noise": (0.01, 0.02, 0.03, 0.045, 0.06),
    "jpeg": (80, 65, 50, 38, 28),
}
FAX: Mapping[str, Five] = {
    "skew": (0.2, 0.5, 0.8, 1.2, 1.8),
    "low_resolution": (10, 8.5, 7.5, 6.8, 6.2),
    "broken_strokes": (0.01, 0.02, 0.04, 0.06, 0.09),
    "noise": (0.02, 0.05, 0.08, 0.11, 0.14),
    "black_and_white": (0.62, 0.62, 0.62, 0.62, 0.62),
}
_PARTS: Mapping[str, Apply] = {
    "perspective": damage.perspective,
    "uneven_light": damage.uneven_light,
    "blur": damage.blur,
    "noise": damage.noise,
    "jpeg": damage.jpeg,
    "skew": damage.skew,
    "low_resolution": damage.low_resolution,
    "broken_strokes": damage.broken_strokes,
    "black_and_white": damage.black_and_white,
}
_STEPS: Five = (1, 2, 3, 4, 5)

_ALL = (
    Degradation("blur", "Blur", "camera", "σ in x-heights", (0.06, 0.11, 0.16, 0.21, 0.27), damage.blur),
    Degradation("motion", "Motion blur", "camera", "length in x-heights", (0.2, 0.4, 0.55, 0.7, 0.9), damage.motion),
    Degradation(
        "noise", "Sensor noise", "camera", "σ, share of full scale", (0.04, 0.1, 0.18, 0.28, 0.4), damage.noise
    ),
    Degradation("jpeg", "JPEG", "camera", "quality", (60, 30, 15, 7, 3), damage.jpeg),
    Degradation(
        "low_resolution", "Low resolution", "camera", "px of x-height", (9, 7, 5.5, 4.6, 3.9), damage.low_resolution
    ),
    Degradation(
        "moire", "Moiré of a screen", "camera", "depth of the waves", (0.1, 0.25, 0.4, 0.55, 0.7), damage.moire
    ),
    Degradation(
        "uneven_light",
        "Uneven light and shadow",
        "camera",
        "least light, share of most",
        (0.8, 0.6, 0.42, 0.28, 0.16),
        damage.uneven_light,
    ),
    Degradation("skew", "Skew", "geometry", "degrees", (0.5, 1.5, 4, 8, 15), damage.skew),
    Degradation(
        "quarter_turns",
        "Quarter turns",
        "geometry",
        "degrees clockwise",
        (90, 270, 180, 95, 185),
        damage.quarter_turns,
    ),
    Degradation(
        "perspective",
        "Perspective",
        "geometry",
        "corner shift, share of the width",
        (0.01, 0.03, 0.06, 0.1, 0.15),
        damage.perspective,
    ),
    Degradation("fold", "Fold", "paper", "shift in x-heights", (0.15, 0.35, 0.6, 0.9, 1.3), damage.fold),
    Degradation(
        "bleed_through",
        "Bleed-through",
        "paper",
        "contrast, share of this side's",
        (0.08, 0.18, 0.3, 0.45, 0.6),
        damage.bleed_through,
    ),
    Degradation("stains", "Stains", "paper", "light taken at the rim", (0.2, 0.4, 0.6, 0.8, 1), damage.stains),
    Degradation("stamps", "Stamps over text", "paper", "density of the ink", (0.2, 0.4, 0.6, 0.75, 0.9), damage.stamps),
    Degradation(
        "line_through_text",
        "Lines through text",
        "paper",
        "thickness in x-heights",
        (0.06, 0.1, 0.16, 0.22, 0.3),
        damage.line_through_text,
    ),
    Degradation(
        "faded_ink", "Faded ink", "ink", "contrast that is left", (0.7, 0.45, 0.3, 0.18, 0.1), damage.faded_ink
    ),
    Degradation(
        "broken_strokes",
        "Broken strokes",
        "ink",
        "share of the ink gone",
        (0.04, 0.1, 0.17, 0.25, 0.33),
        damage.broken_strokes,
    ),
    Degradation(
        "bold_strokes",
        "Bold strokes",
        "ink",
        "wider on each side, in x-heights",
        (0.02, 0.04, 0.065, 0.09, 0.12),
        damage.bold_strokes,
    ),
    Degradation("photo", "Photo of a page", "chain", "step of its parts", _STEPS, _chain(PHOTO)),
    Degradation("fax", "Fax", "chain", "step of its parts", _STEPS, _chain(FAX)),
)
DEGRADATIONS: Mapping[str, Degradation] = MappingProxyType({one.name: one for one in _ALL})
