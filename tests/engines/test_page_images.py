"""Images as servers get them: untouched where possible, otherwise resized by the rule and encoded with care."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from loupe.engines.pages.page_images import EncodedImage, encode, encode_untouched, glm_resize, parse_rule, smart_resize
from loupe.errors import PageError
from loupe.types import PdfPage, TiffPage
from tests.support.shared import cases

FIT = parse_rule("fit2048")
SIDES = st.integers(28, 5600)


def save(image: Image.Image, path: Path, **options: Any) -> Path:
    image.save(path, **options)
    return path


def decoded(image: EncodedImage) -> Image.Image:
    return Image.open(io.BytesIO(image.data))


def turned() -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif


def with_late_exif(png: bytes, exif: Image.Exif) -> bytes:
    """The PNG with its EXIF block after the pixels, where the format allows it too."""
    data = exif.tobytes().removeprefix(b"Exif\0\0")
    chunk = struct.pack(">I", len(data)) + b"eXIf" + data + struct.pack(">I", zlib.crc32(b"eXIf" + data))
    return png[:-12] + chunk + png[-12:]


def test_smart_resize_gives_the_sizes_of_glm_ocr_and_dots_ocr() -> None:
    wrong = []
    for case in cases("oracles/engines/smart_resize.jsonl"):
        height, width = case["input"]["height"], case["input"]["width"]
        glm = glm_resize(height, width)
        dots = smart_resize(height, width, factor=28, min_pixels=3_136, max_pixels=11_289_600)
        if [list(glm), list(dots)] != [case["expected"]["glm_height_width"], case["expected"]["dots_height_width"]]:
            wrong.append(case["id"])
    assert wrong == []


@given(SIDES, SIDES)
def test_smart_resize_gives_multiples_of_the_factor_within_the_area(height: int, width: int) -> None:
    new_height, new_width = smart_resize(height, width, factor=28, min_pixels=3_136, max_pixels=1_003_520)
    assert new_height % 28 == new_width % 28 == 0
    assert 3_136 <= new_height * new_width <= 1_003_520


def test_an_extremely_long_image_is_refused_by_the_smart_rule(tmp_path: Path) -> None:
    with pytest.raises(PageError, match=r"a\.png: the image is more than 200 times"):
        encode(save(Image.new("L", (3000, 10)), tmp_path / "a.png"), parse_rule("smart(28, 3136, 11289600)"))


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("fit", "use none, fit2048"),
        ("fit(2048)", "use none, fit2048"),
        ("smart(28)", "smart takes factor, min_pixels, max_pixels"),
        ("smart(28, 200, 100)", "min_pixels is above max_pixels"),
        ("longest()", "longest takes one size"),
        ("fit0", "each above 0"),
        ("", "use none"),
    ],
)
def test_a_wrong_rule_is_explained(rule: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as raised:
        parse_rule(rule)
    assert repr(rule) in str(raised.value)


@pytest.mark.parametrize("suffix", [".jpg", ".png"])
@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_a_jpeg_or_png_that_fits_travels_byte_for_byte(tmp_path: Path, suffix: str, mode: str) -> None:
    path = save(Image.new(mode, (60, 40), 90), tmp_path / f"a{suffix}")
    assert encode(path, FIT) == EncodedImage("image/jpeg" if suffix == ".jpg" else "image/png", path.read_bytes())


def test_the_mime_type_of_passed_on_bytes_is_what_they_are_not_what_the_name_says(tmp_path: Path) -> None:
    assert encode(save(Image.new("L", (9, 9)), tmp_path / "a.jpg", format="PNG"), FIT).mime == "image/png"


@pytest.mark.parametrize(
    ("image", "name", "options", "mime", "size"),
    [
        (Image.new("RGB", (4096, 1024)), "large.jpg", {}, "image/jpeg", (2048, 512)),
        (Image.new("RGB", (60, 40)), "rotated.jpg", {"exif": turned()}, "image/jpeg", (40, 60)),
        (Image.new("RGB", (60, 40)), "rotated.png", {"exif": turned()}, "image/jpeg", (40, 60)),
        (Image.new("CMYK", (60, 40)), "cmyk.jpg", {}, "image/jpeg", (60, 40)),
        (Image.new("RGBA", (60, 40)), "alpha.png", {}, "image/jpeg", (60, 40)),
        (Image.new("L", (60, 40)), "key.png", {"transparency": 0}, "image/jpeg", (60, 40)),
        (Image.new("P", (60, 40)), "palette.png", {}, "image/jpeg", (60, 40)),
        (Image.new("I;16", (60, 40)), "deep.png", {}, "image/jpeg", (60, 40)),
        (Image.new("RGB", (60, 40)), "a.webp", {}, "image/jpeg", (60, 40)),
        (Image.new("RGB", (60, 40)), "a.bmp", {}, "image/jpeg", (60, 40)),
        (Image.new("RGB", (60, 40)), "a.tiff", {}, "image/png", (60, 40)),
        (Image.new("1", (4096, 4096)), "scan.tif", {}, "image/png", (2048, 2048)),
        (Image.new("P", (60, 40)), "a.gif", {}, "image/png", (60, 40)),
    ],
    ids=lambda value: value if isinstance(value, str) and "." in value else "",
)
def test_what_a_server_may_not_read_is_encoded_anew(
    tmp_path: Path, image: Image.Image, name: str, options: dict[str, Any], mime: str, size: tuple[int, int]
) -> None:
    sent = encode(save(image, tmp_path / name, **options), FIT)
    result = decoded(sent)
    assert (sent.mime, result.size, result.mode) == (mime, size, "RGB")
    assert Image.MIME[str(result.format)] == mime


def test_a_png_that_hides_its_rotation_behind_the_pixels_is_turned(tmp_path: Path) -> None:
    path = save(Image.new("RGB", (60, 40)), tmp_path / "a.png")
    path.write_bytes(with_late_exif(path.read_bytes(), turned()))
    assert decoded(encode(path, FIT)).size == (40, 60)


def test_jpeg_keeps_full_colour_resolution_at_quality_95(tmp_path: Path) -> None:
    result = decoded(encode(save(Image.new("RGB", (4096, 64)), tmp_path / "a.png"), FIT))
    tables = result.quantization
    reference = io.BytesIO()
    Image.new("RGB", (8, 8)).save(reference, "JPEG", quality=95)
    assert result.layer[0][1:3] == (1, 1)  # sampling factors of luminance: 4:4:4
    assert tables == Image.open(reference).quantization


@pytest.mark.parametrize(
    ("rule", "size", "expected"),
    [
        ("fit100", (200, 100), (100, 50)),
        ("fit100", (20, 10), (20, 10)),
        ("longest(100)", (200, 100), (100, 50)),
        ("longest(100)", (20, 10), (100, 50)),
        ("smart(28, 3136, 11289600)", (100, 100), (112, 112)),
    ],
)
def test_each_rule_leads_to_its_size(
    tmp_path: Path, rule: str, size: tuple[int, int], expected: tuple[int, int]
) -> None:
    path = save(Image.new("RGB", size), tmp_path / "a.png")
    assert decoded(encode(path, parse_rule(rule))).size == parse_rule(rule).target(*size) == expected


@pytest.mark.parametrize(
    ("rule", "size"),
    [
        ("none", (1191, 1684)),
        ("fit2048", (1191, 1684)),
        ("fit1000", (708, 1000)),
        ("longest(2048)", (1449, 2048)),
        ("smart(28, 3136, 11289600)", (1204, 1680)),
    ],
)
def test_a_pdf_page_becomes_a_jpeg_of_the_size_that_the_rule_says(
    tmp_path: Path, rule: str, size: tuple[int, int]
) -> None:
    document = pypdfium2.PdfDocument.new()
    document.new_page(595.28, 841.89)
    document.save(tmp_path / "a.pdf")
    document.close()
    sent = encode(PdfPage(tmp_path / "a.pdf"), parse_rule(rule))
    assert (sent.mime, decoded(sent).size) == ("image/jpeg", size)


@pytest.mark.parametrize(
    ("name", "mime"),
    [
        ("a.tiff", "image/tiff"),
        ("a.GIF", "image/gif"),
        ("a.jpeg", "image/jpeg"),
        ("a.webp", "image/webp"),
        ("a", "image/png"),
    ],
)
def test_the_rule_none_sends_any_bytes_with_the_type_of_the_name(tmp_path: Path, name: str, mime: str) -> None:
    (tmp_path / name).write_bytes(b"whatever")
    assert encode(tmp_path / name, parse_rule("none")) == EncodedImage(mime, b"whatever")


@pytest.mark.parametrize("rule", ["none", "fit2048"])
@pytest.mark.parametrize("name", ["a.png", "a.webp", "a.gif", "a.tif", "a.jp2"])
def test_what_is_transparent_lies_on_white_when_it_is_sent(tmp_path: Path, name: str, rule: str) -> None:
    """Servers lay it on black, where dark letters vanish; opaque pixels keep the bytes of their file."""
    see_through = Image.new("RGBA", (8, 8), (0, 0, 0, 0))
    save(see_through, tmp_path / name)
    sent = encode(tmp_path / name, parse_rule(rule))
    assert encode_untouched(tmp_path / name, parse_rule(rule)) is None
    assert decoded(sent).mode == "RGB" and min(decoded(sent).convert("L").getextrema()) > 250
    assert (sent.mime == "image/png") or rule != "none"
    opaque = save(Image.new("RGBA", (8, 8), "red"), tmp_path / f"opaque-{name}")
    assert encode(opaque, parse_rule("none")).data == opaque.read_bytes()


def test_a_page_of_a_tiff_file_is_sent_without_loss(tmp_path: Path) -> None:
    pages = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    pages[0].save(tmp_path / "a.tif", save_all=True, append_images=pages[1:])
    for rule in ("none", "fit2048"):
        sent = encode(TiffPage(tmp_path / "a.tif", 2), parse_rule(rule))
        assert (sent.mime, decoded(sent).getpixel((0, 0))) == ("image/png", (0, 0, 255))
    assert encode_untouched(TiffPage(tmp_path / "a.tif", 1), parse_rule("none")) is None


@pytest.mark.parametrize("rule", ["none", "fit2048"])
@pytest.mark.parametrize(("name", "reason"), [("missing.png", "no such file"), ("empty.png", "0 bytes")])
def test_a_missing_or_empty_file_is_named(tmp_path: Path, rule: str, name: str, reason: str) -> None:
    (tmp_path / "empty.png").touch()
    with pytest.raises(PageError, match=f"{name}: .*{reason}"):
        encode(tmp_path / name, parse_rule(rule))
