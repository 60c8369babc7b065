"""Degradations: the same bytes everywhere, and severities that measure what their unit says."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageFont

from loupe.errors import LoupeError
from loupe.features.synth import benchmark as synth
from loupe.features.synth.degradations import DEGRADATIONS, FAX, PHOTO, SEVERITIES, degrade, digest, versions
from loupe.features.synth.pixels import Bytes, Chance
from loupe.features.synth.typeset import drawing
from tests.engines.test_engine_local import needs_rapidocr, read, texts

DOCS = Path(__file__).parents[3] / "docs/synth-degradations.md"
#: Of all degradations of a small page. The same with Pillow 11.0 and 13.0, NumPy 1.26 and 2.4, with and without SIMD.
#: Where it changes, pages change: raise VERSION of the catalogue.
DIGEST = "b3ea67d6b0268e2f977afc413b215790e12e0a5b2169f604cb24e63ff06497c8"
X_HEIGHT = 10.0
#: Positions without an order, or with their own test of order below.
UNORDERED = {"quarter_turns"}
#: Seeds only choose one of two sides.
SIDES = {"motion", "skew"}
UNSEEDED = {"blur", "jpeg", "low_resolution", "bold_strokes", "quarter_turns"}


@pytest.fixture(scope="module")
def page() -> Bytes:
    """Ten lines of black text on white."""
    picture = Image.new("RGB", (420, 360), "white")
    draw = ImageDraw.Draw(picture)
    for line in range(10):
        draw.text((30, 25 + 31 * line), "The harbour office received 4,218", "black", ImageFont.load_default(19))
    pixels: Bytes = np.asarray(picture)
    return pixels


def plain(level: int, height: int = 200, width: int = 160) -> Bytes:
    return np.full((height, width, 3), level, dtype=np.uint8)


def test_the_pixels_are_the_same_as_when_the_version_was_set() -> None:
    assert digest() == DIGEST
    assert set(versions()) == {"degradations", "pillow", "libjpeg"}


def test_another_process_without_the_processors_extensions_makes_the_same_bytes() -> None:
    words = "from loupe.features.synth.degradations import digest; print(digest())"
    plainly = {"NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3", "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", words],
        env=plainly,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == digest()


def test_random_bytes_are_those_of_the_first_release() -> None:
    assert Chance(7, "noise").octets("grain", 8).tolist() == [33, 213, 108, 179, 90, 122, 180, 93]
    assert [Chance(7, "noise").integer(what, 1, 100) for what in "abc"] == [75, 95, 96]


@pytest.mark.parametrize("name", DEGRADATIONS)
def test_a_ladder_gets_worse_by_step_and_is_seeded(name: str, page: Bytes) -> None:
    before = page.copy()
    ladder = [degrade(page, name, severity, x_height=X_HEIGHT, seed=4) for severity in SEVERITIES]
    for found in ladder:
        assert found.dtype == np.uint8 and found.ndim == 3 and found.shape[2] == 3
    if all(found.shape == page.shape for found in ladder) and name not in UNORDERED:
        away = [float(np.mean(np.abs(found.astype(int) - page))) for found in ladder]
        assert away[0] > 0 and away == sorted(away), away
    others = [degrade(page, name, 3, x_height=X_HEIGHT, seed=seed) for seed in range(5, 15 if name in SIDES else 6)]
    assert all(np.array_equal(other, ladder[2]) for other in others) == (name in UNSEEDED)
    assert np.array_equal(ladder[4], degrade(page, name, 5, x_height=X_HEIGHT, seed=4))
    assert np.array_equal(page, before)


@pytest.mark.parametrize("name", DEGRADATIONS)
def test_a_grey_page_and_one_with_a_coloured_spot_are_degraded_alike(name: str, page: Bytes) -> None:
    """Grey pages take a faster way; elsewhere than at the spot it may show only where JPEG spreads it."""
    spotted = page.copy()
    spotted[2:5, 2:5] = (250, 255, 255)
    grey, coloured = (degrade(each, name, 2, x_height=X_HEIGHT, seed=4).astype(int) for each in (page, spotted))
    slack = 6 if name in ("jpeg", "photo") else 1
    assert np.percentile(np.abs(grey - coloured), 99.5) <= slack


@settings(max_examples=20, deadline=None)
@given(
    height=st.integers(1, 70),
    width=st.integers(1, 70),
    x_height=st.floats(0.5, 60),
    seed=st.integers(-(2**70), 2**70),
    name=st.sampled_from(sorted(DEGRADATIONS)),
    severity=st.sampled_from(SEVERITIES),
)
def test_any_size_of_page_and_text_can_be_degraded(
    height: int, width: int, x_height: float, seed: int, name: str, severity: int
) -> None:
    found = degrade(plain(200, height, width), name, severity, x_height=x_height, seed=seed)
    assert found.dtype == np.uint8 and found.size > 0


def values(name: str) -> tuple[float, ...]:
    return DEGRADATIONS[name].severities


def measured(name: str, page: Bytes, measure: Callable[[Bytes], float], x_height: float = X_HEIGHT) -> list[float]:
    return [measure(degrade(page, name, severity, x_height=x_height, seed=2)) for severity in SEVERITIES]


def test_noise_has_the_spread_that_it_says() -> None:
    found = measured("noise", plain(128, 300, 300), lambda pixels: float(pixels.std()) / 255)
    assert found[:3] == pytest.approx(values("noise")[:3], rel=0.03)  # more is cut off at black and white


def edge_width(pixels: Bytes) -> float:
    """The spread of an edge between white and black, in pixels: that of the kernel that made it."""
    steps = -np.diff(pixels[100, :, 0].astype(float))
    places = np.arange(len(steps))
    middle = np.average(places, weights=steps)
    return float(np.sqrt(np.average((places - middle) ** 2, weights=steps)))


def test_blur_has_the_sigma_that_it_says() -> None:
    edge = plain(255)
    edge[:, 80:] = 0
    found = measured("blur", edge, edge_width, x_height=20)
    assert found == pytest.approx([20 * value for value in values("blur")], rel=0.05, abs=0.08)


def test_motion_is_as_long_as_it_says() -> None:
    dot = plain(255)
    dot[100, 80] = 0

    def length(pixels: Bytes) -> float:
        ink = 255.0 - pixels[..., 0]
        return float(ink.sum() / ink.max())

    assert measured("motion", dot, length, 20) == pytest.approx([20 * value for value in values("motion")], abs=0.3)


def test_light_is_as_uneven_as_it_says() -> None:
    found = measured("uneven_light", plain(255, 600, 400), lambda pixels: float(pixels.min()) / float(pixels.max()))
    assert found == pytest.approx(values("uneven_light"), abs=0.03)


def test_faded_ink_keeps_the_contrast_that_it_says() -> None:
    found = measured("faded_ink", plain(0, 700, 700), lambda pixels: 1 - float(pixels.max()) / 255)
    assert found == pytest.approx(values("faded_ink"), abs=0.03)


def test_broken_strokes_lose_the_share_that_they_say() -> None:
    found = measured("broken_strokes", plain(0, 500, 500), lambda pixels: float(pixels.mean()) / 255)
    assert found == pytest.approx(values("broken_strokes"), abs=0.015)


def test_bold_strokes_grow_as_they_say() -> None:
    bar = plain(255)
    bar[:, 70:90] = 0
    found = measured("bold_strokes", bar, lambda pixels: float((255.0 - pixels[100, :, 0]).sum()) / 255 - 20, 20)
    assert found == pytest.approx([2 * 20 * value for value in values("bold_strokes")], abs=0.15)


def test_low_resolution_keeps_only_as_many_pixels() -> None:
    rows = np.arange(240)[:, None, None] // 2 % 2 * 255 + np.zeros((1, 240, 3))
    stripes = rows.astype(np.uint8)  # 2 pixels each: gone where a cell of the scanner is wider than a stripe
    found = measured("low_resolution", stripes, lambda pixels: float(pixels.std()))
    assert found == sorted(found, reverse=True) and found[-1] < 0.45 * stripes.std()
    small = degrade(stripes, "low_resolution", 5, x_height=3, seed=1)
    assert np.array_equal(small, stripes)


def test_the_waves_of_a_screen_are_as_deep_as_they_say() -> None:
    found = measured("moire", plain(255, 300, 300), lambda pixels: 1 - float(pixels.min()) / 255)
    assert found == pytest.approx(values("moire"), abs=0.02)


def test_the_other_side_has_the_contrast_that_it_says() -> None:
    page = plain(255, 300, 300)
    page[:, 40:110] = 0
    found = measured("bleed_through", page, lambda pixels: 1 - float(pixels[150, 150:].min()) / 255)
    assert found == pytest.approx(values("bleed_through"), abs=0.02)


def dark_middle(pixels: Bytes, part: tuple[slice, slice]) -> tuple[float, float]:
    """The middle of what is dark within a part, as (x, y) of the whole."""
    ink = 255.0 - pixels[..., 0][part]
    rows, columns = np.arange(ink.shape[0]), np.arange(ink.shape[1])
    x, y = np.average(columns, weights=ink.sum(axis=0)), np.average(rows, weights=ink.sum(axis=1))
    return x + (part[1].start or 0), y + (part[0].start or 0)


def test_skew_turns_by_the_degrees_that_it_says_and_cuts_nothing_off() -> None:
    page = plain(255, 400, 300)
    for x, y in ((4, 190), (276, 190)):
        page[y : y + 20, x : x + 20] = 0

    def angle(pixels: Bytes) -> float:
        half = pixels.shape[1] // 2
        left = dark_middle(pixels, (slice(None), slice(0, half)))
        right = dark_middle(pixels, (slice(None), slice(half, None)))
        assert 255.0 - pixels[..., 0].mean() == pytest.approx(2 * 400 * 255 / pixels[..., 0].size, rel=0.01)
        return abs(float(np.degrees(np.arctan2(right[1] - left[1], right[0] - left[0]))))

    assert measured("skew", page, angle) == pytest.approx(values("skew"), abs=0.05)


def test_quarter_turns_are_exact(page: Bytes) -> None:
    turns = {90: 3, 180: 2, 270: 1}
    for severity, degrees in zip(SEVERITIES, values("quarter_turns"), strict=True):
        if degrees in turns:
            found = degrade(page, "quarter_turns", severity, x_height=X_HEIGHT, seed=1)
            assert np.array_equal(found, np.rot90(page, turns[int(degrees)]))


def test_a_corner_is_as_far_in_as_perspective_says() -> None:
    width = 400

    def shift(pixels: Bytes) -> float:
        paper = pixels[..., 0] > 180
        rows, columns = np.nonzero(paper)
        corners = [(rows + columns).argmin(), (rows - columns).argmin(), (rows + columns).argmax()]
        corners.append((rows - columns).argmax())
        there = [(columns[place], rows[place]) for place in corners]
        real = [(0, 0), (width - 1, 0), (width - 1, 499), (0, 499)]
        return float(max(max(abs(x - u), abs(y - v)) for (x, y), (u, v) in zip(there, real, strict=True))) / width

    assert measured("perspective", plain(255, 500, width), shift) == pytest.approx(values("perspective"), abs=0.012)


def test_a_fold_moves_text_as_far_as_it_says() -> None:
    page = plain(0, 900, 256)
    page[...] = np.arange(256, dtype=np.uint8)[None, :, None]  # the level says where a pixel comes from

    def moved(pixels: Bytes) -> float:
        row = pixels[100, :, 0].astype(int)
        crease = int(np.diff(row[100:160]).argmin()) + 100
        return float((row - np.arange(256))[: crease - 5].max())

    assert measured("fold", page, moved) == pytest.approx([X_HEIGHT * value for value in values("fold")], abs=1)


def test_pen_lines_are_as_thick_as_they_say() -> None:
    def thickness(pixels: Bytes) -> float:
        dark = (255.0 - pixels[:, 100, 0]) / (255.0 - pixels[:, 100, 0].min() + 1e-9)
        lines = int((np.diff((dark > 0.3).astype(int)) == 1).sum())
        return float(dark.sum()) / lines

    found = measured("line_through_text", plain(255, 900, 300), thickness, x_height=20)
    assert found == pytest.approx([20 * value for value in values("line_through_text")], abs=0.5)


def test_black_text_stays_blacker_than_what_lies_over_it(page: Bytes) -> None:
    sheet = plain(255, 1200, 900)
    for name in ("stains", "stamps", "line_through_text", "uneven_light"):
        assert degrade(page, name, 5, x_height=X_HEIGHT, seed=3)[page == 0].max() <= 1
        grey = degrade(sheet, name, 5, x_height=X_HEIGHT, seed=3).mean(axis=2)
        assert np.percentile(grey, 0.5) > 35, name


def test_jpeg_of_lower_quality_is_a_smaller_file() -> None:
    assert list(values("jpeg")) == sorted(values("jpeg"), reverse=True)


@pytest.mark.parametrize(
    ("name", "severity", "x_height", "says"),
    [
        ("blurr", 1, 10.0, "no degradation is called 'blurr'; did you mean 'blur'?"),
        ("blur", 0, 10.0, "severity 0"),
        ("blur", 6, 10.0, "severity 6"),
        ("blur", 1, 0.0, "x-height"),
        ("blur", 1, float("nan"), "x-height"),
    ],
)
def test_wrong_arguments_are_named(name: str, severity: int, x_height: float, says: str) -> None:
    with pytest.raises((LoupeError, ValueError), match=re.escape(says)):
        degrade(plain(255), name, severity, x_height=x_height, seed=1)


def test_a_grey_array_is_no_page() -> None:
    with pytest.raises(ValueError, match=r"\(H, W, 3\)"):
        degrade(plain(255)[..., 0], "blur", 1, x_height=10, seed=1)


def test_the_table_of_the_docs_has_every_value() -> None:
    text = DOCS.read_text("utf-8")
    rows = {cells[0].strip("`"): cells[-5:] for line in text.split("## Chains")[0].splitlines() if (cells := cut(line))}
    stated = {name: tuple(map(float, cells)) for name, cells in rows.items() if name in DEGRADATIONS}
    assert stated == {name: one.severities for name, one in DEGRADATIONS.items()}
    parts = [tuple(map(float, cells[-5:])) for line in text.split("## Chains")[1].splitlines() if (cells := cut(line))][
        1:
    ]
    assert parts == [*PHOTO.values(), *FAX.values()]


def cut(line: str) -> list[str]:
    """The cells of a row that has five values."""
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    return cells if len(cells) >= 7 and re.fullmatch(r"[\d.]+", cells[-1]) else []


@needs_rapidocr
@pytest.mark.parametrize("severity", ["1", "4", "5"])  # 90, 95 and 185 degrees
def test_rapidocr_reads_long_lines_in_their_order_whichever_way_they_run(severity: str, tmp_path: Path) -> None:
    pages = synth.load(None, tracks="degrade", seed=7, pages=416)
    page = next(one for one in pages if one.id == f"degrade-0004-quarter_turns-{severity}")
    drawing.picture(page.truth.recipe).save(tmp_path / "page.png")
    assert texts(read("rapidocr", tmp_path / "page.png")) == [" ".join(page.truth.text.split())]
