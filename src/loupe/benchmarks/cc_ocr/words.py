"""The OCR tracks of CC-OCR: words or characters found, whatever their order.

Source: AlibabaResearch/AdvancedLiterateMachinery @ fb6187e, `Benchmarks/CC-OCR/evaluation`; protocol:
docs/protocols/cc_ocr.md#ocr.
"""

from __future__ import annotations

import re
from collections import Counter

#: The official programs add this to every number that they divide by.
TINY = 1e-9
_MARKS = ("###", "***")
_OTHER = re.compile(r"[^A-Za-z0-9]")
_BY_CHARACTER = frozenset({"Arabic", "Japanese", "Korean"})


def counted(prediction: str, label: str, track: str, subset: str) -> tuple[float, float, float]:
    """How many words or characters are right, how many the label has, and how many the prediction."""
    found, wanted = (Counter(_tokens(text, track, subset)) for text in (prediction, label))
    return float((found & wanted).total()), float(wanted.total()), float(found.total())


def f1(right: float, wanted: float, found: float) -> float:
    """F1 of such counts, 0..1; 0 where the label is empty, also for an empty prediction."""
    recall, precision = right / (wanted + TINY), right / (found + TINY)
    return 2 * recall * precision / (recall + precision + TINY)


def _tokens(text: str, track: str, subset: str) -> list[str]:
    text = text.strip()
    for mark in _MARKS:
        text = text.replace(mark, "")
    words = text.split()
    if subset in _BY_CHARACTER or "zh" in subset:
        return [character.lower() for word in words for character in word]
    words = [word.lower() for word in words]
    if track == "multi_scene_ocr":
        words = [_OTHER.sub("", word) for word in words]
    return [word for word in words if word]
