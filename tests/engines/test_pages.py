"""Reading pages: every image mode becomes upright RGB, every unreadable file one clear line."""

from __future__ import annotations

import concurrent.futures
import struct
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pypdfium2
import pytest
from PIL import Image, ImageDraw, ImageFont

from loupe.data.pages import BLANK_INK, ink_fraction, load_page, page_count, page_size, thumbnail
from loupe.data.rasters import to_rgb
from loupe.errors import PageError
from loupe.types import PdfPage

GRAY_LEVELS = (0, 128, 255)


def save(image: Image.Image, path: Path, **options: object) -> Path:
    image.save(path, **options)
    return path


def pdf(path: Path, *sizes: tuple[float, float]) -> Path:
    document = pypdfium2.PdfDocument.new()
    for size in sizes:
        document.new_page(*size)
    document.save(path)
    document.close()
    return path


def encrypted_pdf(path: Path) -> Path:
    """A minimal PDF whose encryption dictionary no empty password opens."""
    key = b"<" + b"00" * 32 + b">"
    parts = [
        b"1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj\n",
        b"2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj\n",
        b"3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]>> endobj\n",
        b"4 0 obj <</Filter/Standard/V 1/R 2/O " + key + b"/U " + key + b"/P -4>> endobj\n",
    ]
    body, offsets = b"%PDF-1.4\n", []
    for part in parts:
        offsets.append(len(body))
        body += part
    table = b"xref\n0 5\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    trailer = b"trailer <</Size 5/Root 1 0 R/Encrypt 4 0 R/ID[<00><00>]>>\nstartxref\n%d\n%%%%EOF\n" % len(body)
    path.write_bytes(body + table + trailer)
    return path


def huge_png(path: Path, side: int) -> Path:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b""))
    return path


def page_of_text(words: str, *, size: tuple[int, int] = (1240, 1754)) -> Image.Image:
    image = Image.new("L", size, 250)
    ImageDraw.Draw(image).text((200, 200), words, fill=20, font=ImageFont.load_default(24))
    return image


def noisy(image: Image.Image, sigma: float) -> Image.Image:
    noise = np.random.default_rng(0).normal(0, sigma, (image.height, image.width))
    return Image.fromarray(np.clip(np.asarray(image) + noise, 0, 255).astype(np.uint8))


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK"])
def test_every_mode_becomes_rgb_with_white_staying_white(tmp_path: Path, mode: str) -> None:
    suffix = ".tiff" if mode == "CMYK" else ".png"
    page = load_page(save(Image.new("RGB", (8, 6), "white").convert(mode), tmp_path / f"a{suffix}"))
    assert (page.mode, page.size, page.getpixel((3, 3))) == ("RGB", (8, 6), (255, 255, 255))


@pytest.mark.parametrize("alpha", [0, 255])
def test_transparent_pixels_become_white_and_opaque_ones_stay(tmp_path: Path, alpha: int) -> None:
    page = load_page(save(Image.new("RGBA", (4, 4), (10, 20, 30, alpha)), tmp_path / "a.png"))
    assert page.getpixel((0, 0)) == ((255, 255, 255) if alpha == 0 else (10, 20, 30))


def test_a_transparent_palette_entry_becomes_white(tmp_path: Path) -> None:
    image = Image.new("P", (4, 4), 0)
    image.putpalette([0, 0, 0, 200, 0, 0])
    assert load_page(save(image, tmp_path / "a.png", transparency=0)).getpixel((0, 0)) == (255, 255, 255)


@pytest.mark.parametrize("suffix", [".png", ".tiff"])
def test_sixteen_bit_gray_is_scaled_not_clipped(tmp_path: Path, suffix: str) -> None:
    values = np.array([[level * 257 for level in GRAY_LEVELS]], dtype=np.uint16)
    page = load_page(save(Image.fromarray(values), tmp_path / f"a{suffix}"))
    assert tuple(page.getpixel((x, 0))[0] for x in range(3)) == GRAY_LEVELS


def test_fractions_of_a_float_tiff_are_scaled_to_eight_bits(tmp_path: Path) -> None:
    values = np.array([[0.0, 128 / 255, 1.0]], dtype=np.float32)
    page = load_page(save(Image.fromarray(values), tmp_path / "a.tiff"))
    assert tuple(page.getpixel((x, 0))[0] for x in range(3)) == GRAY_LEVELS


@pytest.mark.parametrize("mode", ["F", "I", "I;16"])
def test_gray_of_many_bits_needs_little_memory_beside_the_picture_itself(mode: str) -> None:
    image = Image.new(mode, (2000, 2000), 1)
    tracemalloc.start()
    page = to_rgb(image, Path("a.tiff"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The picture before and after, 4 bytes each, is Pillow's and not counted here.
    assert page.mode == "RGB" and peak < 2 * 2000 * 2000


def test_gray_of_many_bits_is_converted_alike_at_both_ends_of_a_large_page(tmp_path: Path) -> None:
    values = np.zeros((3000, 700), dtype=np.float32)
    values[0, 0], values[-1, -1], values[1500, 0] = np.nan, 200.0, -np.inf
    page = load_page(save(Image.fromarray(values), tmp_path / "a.tiff"))
    corners = [page.getpixel(place) for place in ((0, 0), (699, 2999), (0, 1500))]
    assert corners == [(0, 0, 0), (200, 200, 200), (0, 0, 0)]


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", [".jpg", ".tiff"])
def test_exif_orientation_is_applied_to_pixels_and_size(tmp_path: Path, orientation: int, suffix: str) -> None:
    upright = Image.new("L", (48, 32), 255)
    upright.paste(0, (0, 0, 16, 16))  # the mark that tells corners apart
    undo = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}  # transposition that a camera of this orientation would store
    stored = upright if orientation == 1 else upright.transpose(Image.Transpose(undo[orientation]))
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = save(stored, tmp_path / f"a{suffix}", exif=exif)
    page = load_page(path)
    assert page.size == page_size(path) == (48, 32)
    assert page.getpixel((5, 5))[0] < 40 < 200 < page.getpixel((40, 26))[0]


def test_only_the_first_frame_of_an_animation_is_read(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (9, 9), colour) for colour in ("red", "blue")]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert load_page(tmp_path / "a.gif").getpixel((4, 4)) == (255, 0, 0)


@pytest.mark.parametrize(("size", "longest", "expected"), [((300, 100), 150, (150, 50)), ((30, 10), 150, (30, 10))])
def test_longest_shrinks_images_and_never_enlarges_them(
    tmp_path: Path, size: tuple[int, int], longest: int, expected: tuple[int, int]
) -> None:
    assert load_page(save(Image.new("L", size), tmp_path / "a.png"), longest=longest).size == expected


@pytest.mark.parametrize(
    ("longest", "dpi", "expected"),
    [(None, None, (1191, 1684)), (None, 72, (596, 842)), (2048, None, (1449, 2048)), (1000, 200, (708, 1000))],
)
def test_a_pdf_page_is_rendered_at_the_asked_size(
    tmp_path: Path, longest: int | None, dpi: float | None, expected: tuple[int, int]
) -> None:
    page = PdfPage(pdf(tmp_path / "a.pdf", (595.28, 841.89)))
    assert load_page(page, longest=longest, dpi=dpi).size == expected


def test_pages_of_a_pdf_are_counted_from_one(tmp_path: Path) -> None:
    path = pdf(tmp_path / "a.pdf", (72, 72), (144, 72))
    assert (page_count(path), page_size(PdfPage(path, 2))) == (2, (288, 144))


def test_a_thumbnail_of_a_large_jpeg_has_the_asked_size_and_colour(tmp_path: Path) -> None:
    small = thumbnail(save(Image.new("RGB", (2000, 1000), (200, 30, 30)), tmp_path / "a.jpg"), 200)
    assert small.size == (200, 100)
    assert small.getpixel((50, 50)) == pytest.approx((200, 30, 30), abs=4)


def test_pdf_pages_can_be_rendered_from_many_threads(tmp_path: Path) -> None:
    path = pdf(tmp_path / "a.pdf", *[(72 + n, 72) for n in range(16)])
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        images = list(pool.map(lambda number: load_page(PdfPage(path, number), dpi=72), range(1, 17)))
    assert [image.width for image in images] == [72 + n for n in range(16)]


def broken_files(folder: Path) -> dict[str, Path | PdfPage]:
    whole = save(noisy(Image.new("L", (64, 64), 128), 40), folder / "whole.jpg").read_bytes()
    contents = {
        "empty.png": b"",
        "text.png": b"hello, I am no image",
        "cut.jpg": whole[: len(whole) // 2],
        "cut.png": save(Image.new("L", (64, 64)), folder / "whole.png").read_bytes()[:60],
        "page.png": pdf(folder / "whole.pdf", (72, 72)).read_bytes(),
        "cut.pdf": b"%PDF-1.7\n1 0 obj <<",
        "empty.pdf": b"",
    }
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    sources = {name: PdfPage(folder / name) if name.endswith(".pdf") else folder / name for name in contents}
    return sources | {
        "missing.png": folder / "missing.png",
        "missing.pdf": PdfPage(folder / "missing.pdf"),
        "folder": folder,
        "locked.pdf": PdfPage(encrypted_pdf(folder / "locked.pdf")),
        "page 2 of 1": PdfPage(folder / "whole.pdf", 2),
        "page 0": PdfPage(folder / "whole.pdf", 0),
        "30,000 pixels": huge_png(folder / "huge.png", 30_000),
        "huge.pdf": PdfPage(pdf(folder / "huge.pdf", (14_400, 14_400))),
    }


REASONS = {
    "empty.png": "0 bytes",
    "text.png": "not an image",
    "cut.jpg": "broken image",
    "cut.png": "broken",
    "page.png": "is a PDF",
    "cut.pdf": "not a PDF, or a broken one",
    "empty.pdf": "0 bytes",
    "missing.png": "no such file",
    "missing.pdf": "no such file",
    "folder": "not a file",
    "locked.pdf": "encrypted",
    "page 2 of 1": "has no page 2",
    "page 0": "has no page 0",
    "30,000 pixels": "30,000 x 30,000 pixels are more than the limit of 200 megapixels",
    "huge.pdf": "above the limit of 200 megapixels",
}


@pytest.mark.parametrize("case", REASONS)
@pytest.mark.parametrize("read", [load_page, lambda source: thumbnail(source, 100) and load_page(source), ink_fraction])
def test_what_cannot_be_read_is_named_with_the_reason_in_one_line(tmp_path: Path, case: str, read: object) -> None:
    source = broken_files(tmp_path)[case]
    if case == "huge.pdf" and read is ink_fraction:
        pytest.skip("a small rendering of a huge page is fine")
    with pytest.raises(PageError) as raised:
        read(source)
    path = source.path if isinstance(source, PdfPage) else source
    assert REASONS[case] in raised.value.message
    assert str(path) in raised.value.message
    assert "\n" not in raised.value.message


def test_a_meaningless_exif_block_does_no_harm(tmp_path: Path) -> None:
    path = save(Image.new("L", (5, 7)), tmp_path / "a.png", exif=b"Exif\0\0not exif at all")
    assert (load_page(path).size, page_size(path)) == ((5, 7), (5, 7))


BLANK = {
    "white paper": Image.new("L", (1240, 1754), 255),
    "gray paper": Image.new("L", (1240, 1754), 190),
    "scan noise": noisy(Image.new("L", (1240, 1754), 235), 12),
    "strong noise": noisy(Image.new("L", (1240, 1754), 200), 30),
    "noise at small size": noisy(Image.new("L", (700, 990), 235), 15),
    "shading": Image.linear_gradient("L").resize((1240, 1754)).point([160 + v // 3 for v in range(256)]),
}


@pytest.mark.parametrize("name", BLANK)
def test_a_blank_page_has_no_ink_whatever_its_paper(tmp_path: Path, name: str) -> None:
    assert ink_fraction(save(BLANK[name], tmp_path / "a.png")) < BLANK_INK


INKED = {
    "one short word": page_of_text("Page 3"),
    "a word under noise": noisy(page_of_text("Page 3"), 12),
    "a large scan": page_of_text("Hello").resize((2480, 3508)),
    "inverted": page_of_text("Hello there").point([255 - v for v in range(256)]),
    "a full page": page_of_text("\n".join(["the quick brown fox jumps over the lazy dog"] * 40)),
    "a text line": page_of_text("a line of handwriting", size=(900, 300)).crop((180, 190, 600, 240)),
}


@pytest.mark.parametrize("name", INKED)
def test_a_page_with_even_one_word_has_ink(tmp_path: Path, name: str) -> None:
    assert ink_fraction(save(INKED[name], tmp_path / "a.png")) > BLANK_INK
