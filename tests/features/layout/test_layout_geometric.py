"""The geometric detector: born-digital pages whose layout is known, hostile pictures, and what always holds."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from loupe.features.layout.detectors import DetectorOptions, detector_names, load_detector
from loupe.features.layout.detectors.geometric import detect, pieces_of, smeared
from loupe.features.layout.filtering import Region, keep_areas, regions
from tests.support.layout_pages import FIGURE, FORMULA, TABLE, TWO_COLUMNS, drawn


def found(image: Image.Image) -> list[Region]:
    """The regions of a page, from the detector and the rules after it."""
    return regions(keep_areas(detect(image), *image.size), *image.size)


def labels(image: Image.Image) -> list[str]:
    return [region.label for region in found(image)]


def test_two_columns_are_read_one_after_the_other_below_their_title() -> None:
    page = found(drawn(TWO_COLUMNS))
    assert [region.label for region in page] == ["doc_title", "paragraph_title", "text", "paragraph_title", "text"]
    _, first, left, second, right = (region.box for region in page)
    assert max(first[2], left[2]) <= 520 <= min(second[0], right[0]) + 40
    assert left[3] - left[1] > 100 and right[3] - right[1] > 100


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (TABLE, ["text", "table", "text"]),
        (FIGURE, ["text", "image", "text"]),
        (FORMULA, ["text", "display_formula", "formula_number", "text"]),
    ],
)
def test_what_is_no_text_is_told_from_it(source: str, expected: list[str]) -> None:
    assert labels(drawn(source)) == expected


def test_a_table_holds_all_its_cells_and_a_page_at_twice_the_resolution_has_the_same_layout() -> None:
    once, twice = found(drawn(TABLE)), found(drawn(TABLE, dpi=300))
    assert [region.label for region in once] == [region.label for region in twice]
    assert np.abs(np.array([one.box for one in once]) - np.array([one.box for one in twice])).max() <= 8
    left, _, right, _ = once[1].box
    assert left <= 110 and right >= 890


HOSTILE = {
    "a pixel": Image.new("RGB", (1, 1), "white"),
    "a black page": Image.new("RGB", (1000, 1400), "black"),
    "a ribbon": Image.new("RGB", (20_000, 20), "white"),
    "a ribbon on end": Image.new("RGB", (20, 20_000), "white"),
    "a checkerboard": Image.fromarray((np.indices((1500, 1500)).sum(axis=0) % 2 * 255).astype(np.uint8)).convert("RGB"),
    "noise": Image.fromarray(np.random.default_rng(0).integers(0, 256, (1200, 1200, 3)).astype(np.uint8)),
    "dots": Image.fromarray(np.kron(np.eye(4)[:2, :2] * 255, np.ones((4, 4))).astype(np.uint8)).resize((2000, 2000)),
    "stripes": Image.fromarray((np.indices((1500, 1500))[0] % 6 // 3 * 255).astype(np.uint8)).convert("RGB"),
    "combs": Image.fromarray((np.indices((1500, 1500))[1] % 40 // 20 * 255).astype(np.uint8)).convert("RGB"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pictures_take_seconds_and_give_boxes_on_the_page(name: str) -> None:
    image = HOSTILE[name].convert("RGB")
    began = time.process_time()
    page = found(image)
    assert time.process_time() - began < 6
    assert len(page) <= 300
    assert all(0 <= region.box[0] < region.box[2] <= 1000 or region.box[0] == region.box[2] for region in page)


def test_an_empty_page_has_no_regions_and_a_photo_of_one_is_read_whole() -> None:
    assert found(Image.new("RGB", (800, 1000), "white")) == []
    scanned = Image.new("RGB", (800, 1000), "white")
    scanned.paste((30, 30, 30), (797, 0, 800, 900))
    assert found(scanned) == []
    photo = Image.new("RGB", (800, 1000), (90, 90, 90))
    ImageDraw.Draw(photo).rectangle((40, 40, 760, 960), fill=(220, 220, 220), outline=(10, 10, 10), width=12)
    assert [region.box for region in found(photo)] in ([], [(0, 0, 1000, 1000)])


@st.composite
def pictures(draw: st.DrawFn) -> Image.Image:
    """Rectangles, lines and words anywhere, also over the edges, on any paper."""
    width, height = draw(st.integers(1, 400)), draw(st.integers(1, 400))
    image = Image.new("RGB", (width, height), draw(st.sampled_from(["white", "black", "#ddeeff"])))
    pen = ImageDraw.Draw(image)
    place = st.integers(-20, 420)
    for _ in range(draw(st.integers(0, 12))):
        x, y, w, h = draw(place), draw(place), draw(st.integers(0, 300)), draw(st.integers(0, 60))
        ink = draw(st.sampled_from(["black", "white", "red", "#888888"]))
        if draw(st.booleans()):
            pen.rectangle((x, y, x + w, y + h), outline=ink, width=draw(st.integers(1, 4)))
        else:
            pen.text((x, y), draw(st.sampled_from(["Harbour Notes of March", "a + b = c", "(12)", "."])), fill=ink)
    return image


@given(pictures())
@settings(max_examples=30, deadline=None)
def test_boxes_lie_on_the_page_and_are_numbered_from_0(image: Image.Image) -> None:
    detections = detect(image)
    assert [one.order for one in detections] == list(range(1, len(detections) + 1))
    for one in detections:
        left, top, right, bottom = one.box
        assert 0 <= left < right <= image.width and 0 <= top < bottom <= image.height
    page = regions(keep_areas(detections, *image.size), *image.size)
    assert [region.index for region in page] == list(range(len(page)))
    assert all(0 <= side <= 1000 for region in page for side in region.box)


@given(st.integers(1, 24), st.integers(1, 24), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_pieces_of_ink_are_those_of_a_flood_fill(width: int, height: int, dice: random.Random) -> None:
    seed = np.random.default_rng(dice.getrandbits(32))
    mask = seed.random((height, width)) < 0.45
    assert sorted(map(tuple, pieces_of(mask).tolist())) == sorted(_flooded(mask))
    assert (smeared(mask, 3, 2) >= mask).all()


def _flooded(mask: np.ndarray) -> list[tuple[int, ...]]:
    left_over = set(zip(*np.nonzero(mask), strict=True))
    found: list[tuple[int, ...]] = []
    while left_over:
        stack, piece = [left_over.pop()], []
        while stack:
            row, column = stack.pop()
            piece.append((row, column))
            near = {(row + r, column + c) for r in (-1, 0, 1) for c in (-1, 0, 1)} & left_over
            left_over -= near
            stack += near
        rows, columns = zip(*piece, strict=True)
        found.append((min(columns), min(rows), max(columns) + 1, max(rows) + 1, len(piece)))
    return found


def test_detectors_are_found_by_their_file() -> None:
    assert detector_names() == ["geometric", "pp_doclayout_v3"]
    loaded = load_detector("geometric", DetectorOptions())
    assert loaded.facts == {"layout_model": "geometric 2"} and loaded.detect([Image.new("RGB", (9, 9))] * 2) == [[], []]
