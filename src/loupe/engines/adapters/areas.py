"""Find where an engine says that the parts of a page stand: beside its answer, or in marks inside it (docs/report.md).

Beside it: `regions` of layout pipelines, `lines` of OCR engines. Inside: grounding marks of DeepSeek-OCR, box tokens of
MinerU's model, and JSON with boxes (dots.ocr, Qwen-VL). All of it is model output: what is no box is left out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loupe.engines.adapters.marks import grounding
from loupe.explanation import Area

#: Boxes of regions are in thousandths of the page; those of DeepSeek-OCR run from 0 to 999.
WHOLE, _GROUNDED = 1000.0, 999.0
#: No page has more areas, and no answer with boxes more characters or so many broken objects.
MOST, _LONGEST, _MOST_BROKEN = 2_000, 1_000_000, 200
_JSON_AREA = re.compile(r'\{\s*"bbox(?:_2d)?"\s*:')
_BOX_TOKENS = re.compile(
    r"<\|box_start\|>\s*(\d{1,4})\s+(\d{1,4})\s+(\d{1,4})\s+(\d{1,4})\s*<\|box_end\|>"
    r"(?:\s*<\|ref_start\|>([^<]{0,100})<\|ref_end\|>)?"
)
#: What an object of a JSON answer is called, by the model families that write it.
_NAMES = ("category", "label", "type", "text_content", "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Areas:
    """The areas of a page in the order of the answer. `lines`: of text, not of the layout; `unusable` counts what was
    no box. With `pixels`, boxes are in pixels of the image that was sent; else in fractions of the page.
    """

    areas: tuple[Area, ...]
    lines: bool = False
    pixels: bool = False
    unusable: int = 0


def areas_of(text: str, response: Mapping[str, Any] | None) -> Areas | None:
    """Return what an answer tells of the places of its parts; None if it tells nothing."""
    known = response or {}
    if found := stored_regions(known):
        return _collected(_regions(found))
    if isinstance(known.get("lines"), list) and known["lines"]:
        return _collected(_lines(known["lines"]), lines=True)
    text = text[:_LONGEST]
    if "<|det|>" in text:
        return _collected(
            (Area(box=box, label=label), 0) if (box := box_within(given, _GROUNDED)) else (None, 1)
            for label, given in grounding(text)
        )
    if "<|box_start|>" in text:
        return _collected(_box_tokens(text))
    return _json_areas(text) if _JSON_AREA.search(text) else None


def stored_regions(response: Mapping[str, Any]) -> list[Any]:
    """Regions as a layout pipeline leaves them beside its answer: a list of them, or of pages with one list each."""
    found = response.get("regions")
    if isinstance(found, list) and len(found) == 1 and isinstance(found[0], list):
        found = found[0]
    return found if isinstance(found, list) else []


def box_within(box: object, whole: float) -> tuple[float, float, float, float] | None:
    """Left, top, right, bottom as fractions of a page with sides of `whole`; None for what has no area on it."""
    sides = _numbers(box)
    if sides is None or not whole > 0:
        return None
    left, top, right, bottom = (min(max(side / whole, 0.0), 1.0) for side in sides)
    return (left, top, right, bottom) if left < right and top < bottom else None


def _numbers(box: object) -> list[float] | None:
    """Four finite numbers; whole numbers of any length come from JSON."""
    if not isinstance(box, Sequence) or isinstance(box, str) or len(box) != 4:
        return None
    if not all(isinstance(side, int | float) and not isinstance(side, bool) for side in box):
        return None
    try:
        sides = [float(side) for side in box]
    except OverflowError:
        return None
    return sides if all(map(math.isfinite, sides)) else None


def _collected(found: Iterable[tuple[Area | None, int]], **kind: bool) -> Areas | None:
    areas: list[Area] = []
    unusable = 0
    for area, wrong in found:
        unusable += wrong
        if area is not None:
            areas.append(area)
        if len(areas) == MOST:
            break
    return Areas(areas=tuple(areas), unusable=unusable, **kind) if areas or unusable else None


def _regions(rows: Sequence[Any]) -> Iterator[tuple[Area | None, int]]:
    for row in rows:
        box = box_within(row.get("bbox_2d"), WHOLE) if isinstance(row, dict) else None
        if box is None:
            yield None, 1
            continue
        label = row.get("native_label") or row.get("label")
        yield Area(box=box, label=label if isinstance(label, str) else "", confidence=_share(row.get("score"))), 0


def _lines(rows: Sequence[Any]) -> Iterator[tuple[Area | None, int]]:
    for row in rows:
        is_line = isinstance(row, list | tuple) and len(row) in (5, 6) and isinstance(row[0], str)
        box = box_within(row[1:5], 1.0) if is_line else None
        yield (
            (Area(box=box, label=row[0], confidence=_share(row[5] if len(row) > 5 else None)), 0) if box else (None, 1)
        )


def _box_tokens(text: str) -> Iterator[tuple[Area | None, int]]:
    for found in _BOX_TOKENS.finditer(text):
        box = box_within([int(side) for side in found.groups()[:4]], WHOLE)
        yield (Area(box=box, label=(found[5] or "").strip()), 0) if box else (None, 1)


def _json_areas(text: str) -> Areas | None:
    """Objects with `bbox` (dots.ocr: pixels of the image) or `bbox_2d`: thousandths, unless one is larger than that."""
    objects = list(_objects(text))
    boxes = [_numbers(one["bbox"] if "bbox" in one else one.get("bbox_2d")) for one in objects]
    pixels = any("bbox" in one for one in objects) or any(box and max(box) > WHOLE for box in boxes)

    def read() -> Iterator[tuple[Area | None, int]]:
        for one, sides in zip(objects, boxes, strict=True):
            label = next((one[name] for name in _NAMES if isinstance(one.get(name), str)), "")
            if sides is None or not (sides[0] < sides[2] and sides[1] < sides[3]):
                yield None, 1
            elif pixels:
                yield Area(box=(sides[0], sides[1], sides[2], sides[3]), label=label), 0
            else:
                box = box_within(sides, WHOLE)
                yield (Area(box=box, label=label), 0) if box else (None, 1)

    return _collected(read(), pixels=pixels)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Every whole object that begins with a box; an answer that was cut off has those before the cut."""
    decoder = json.JSONDecoder()
    at = count = broken = 0
    while count < MOST and broken < _MOST_BROKEN and (start := _JSON_AREA.search(text, at)):
        try:
            found, at = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            at, broken = start.end(), broken + 1
            continue
        count += 1
        yield found


def _share(value: object) -> float | None:
    """A confidence from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= 1 else None
