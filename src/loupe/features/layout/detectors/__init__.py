"""Detectors of the areas of a page: one module each, with `load(options)`; its name is that of the detector.

A detector gets pages as upright RGB images, of different sizes, and gives back for each of them detections in its
pixels, in any order; `order` is the place in reading order.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from loupe.errors import ProfileError, did_you_mean
from loupe.features.layout.filtering import Detection

if TYPE_CHECKING:
    from PIL.Image import Image

Detect: TypeAlias = Callable[[Sequence["Image"]], list[list[Detection]]]


class DetectorOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options to load a detector; `least_score` is the lowest score that anybody wants to see."""

    model: str = ""
    revision: str = ""
    download: bool = False
    device: str = ""
    least_score: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedDetector:
    """A detector that is ready, and what run.json says of it."""

    detect: Detect
    facts: Mapping[str, str] = field(default_factory=dict)


def detector_names() -> list[str]:
    """The detectors there are."""
    return sorted(info.name for info in pkgutil.iter_modules(__path__))


def check_detector(name: str) -> str:
    """Name a detector with its version, for signatures. Raises ProfileError if there is none of the name.

    The version of a model is that of its weights, which only the loaded detector knows.
    """
    if name not in detector_names():
        raise ProfileError(f"no detector {name!r}{did_you_mean(name, detector_names())}", hint=str(detector_names()))
    version = getattr(importlib.import_module(f"{__name__}.{name}"), "VERSION", "")
    return f"{name}/{version}" if version else name


def load_detector(name: str, options: DetectorOptions) -> LoadedDetector:
    """Load a detector. Raises MissingToolError where it is not installed, or its model is not on this machine."""
    check_detector(name)
    loaded: LoadedDetector = importlib.import_module(f"{__name__}.{name}").load(options)
    return loaded
