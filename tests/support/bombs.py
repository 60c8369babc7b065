"""Small hostile pages, made from code: each asks for more memory or time than a page may have, or is no page at all."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from PIL import Image

_PAGES = (b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>")
_FLATE3 = b"/Filter[/FlateDecode/FlateDecode/FlateDecode]"


def pdf(*objects: bytes) -> bytes:
    """A PDF file of these objects, numbered from 1; the first is the catalog."""
    body, offsets = b"%PDF-1.7\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += b"%d 0 obj%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    end = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(body))
    return body + head + table + end


def stream(data: bytes, head: bytes = b"") -> bytes:
    return b"<<%s/Length %d>>stream\n%s\nendstream" % (head, len(data), data)


def one_page(content: bytes, resources: bytes, *more: bytes) -> bytes:
    """A PDF of one page with this content; further objects count from 5."""
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<<%s>>>>" % resources
    return pdf(*_PAGES, page, stream(content), *more)


def deflated(unit: bytes, megabytes: int, times: int = 3) -> bytes:
    """So many megabytes of a repeated unit, compressed over and over to some hundred bytes."""
    block = unit * ((1 << 20) // len(unit))
    packer = zlib.compressobj(9, wbits=-15)
    # A full flush leaves nothing to look back to, so the same bytes may stand there again.
    packed = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    check = 1
    for _ in range(megabytes):
        check = zlib.adler32(block, check)
    data = b"\x78\x9c" + packed * megabytes + b"\x03\0" + check.to_bytes(4, "big")
    for _ in range(times - 1):
        data = zlib.compress(data, 9)
    return data


def content_bomb() -> bytes:
    """A few hundred bytes whose content is 64 MB of saved states, in memory a hundred times that."""
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R>>"
    return pdf(*_PAGES, page, stream(deflated(b"q ", 64), _FLATE3))


def font_bomb() -> bytes:
    """A font file of 2.5 GB in a thousand bytes."""
    font = b"<</Type/Font/Subtype/TrueType/BaseFont/X/FirstChar 0/LastChar 255/FontDescriptor 6 0 R>>"
    facts = b"<</Type/FontDescriptor/FontName/X/FontFile2 7 0 R>>"
    return one_page(
        b"BT /F 9 Tf (a) Tj ET", b"/Font<</F 5 0 R>>", font, facts, stream(deflated(bytes(4096), 2500), _FLATE3)
    )


def image_bomb() -> bytes:
    """An image of 65,000 by 65,000 pixels behind three filters."""
    facts = b"/Type/XObject/Subtype/Image/Width 65000/Height 65000/BitsPerComponent 8/ColorSpace/DeviceRGB" + _FLATE3
    return one_page(b"q 600 0 0 800 0 0 cm /I Do Q", b"/XObject<</I 5 0 R>>", stream(deflated(bytes(64), 1), facts))


def pattern_bomb() -> bytes:
    """A pattern of tiles that are huge and stand at every ten-thousandth of a point."""
    facts = b"/PatternType 1/PaintType 1/TilingType 1/BBox[0 0 100000 100000]/XStep 0.0001/YStep 0.0001/Resources<<>>"
    content = b"/Pattern cs /P scn 0 0 600 800 re f"
    return one_page(content, b"/Pattern<</P 5 0 R>>", stream(b"0 0 1 1 re f", facts))


def form_that_draws_itself() -> bytes:
    facts = b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</F 5 0 R>>>>"
    return one_page(b"/F Do", b"/XObject<</F 5 0 R>>", stream(b"q /F Do Q /F Do", facts))


def pages_that_hold_themselves() -> bytes:
    pages = b"<</Type/Pages/Kids[2 0 R 2 0 R 3 0 R]/Count 2147483647>>"
    return pdf(_PAGES[0], pages, b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>")


def png(width: int, height: int, *chunks: tuple[bytes, bytes], kind: int = 2) -> bytes:
    """A PNG of these chunks, 8 bits a sample; `kind` 2 is RGB."""
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    parts = [(b"IHDR", header), *chunks, (b"IEND", b"")]
    body = b"".join(struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in parts)
    return b"\x89PNG\r\n\x1a\n" + body


def png_of_a_billion_pixels() -> bytes:
    return png(40_000, 40_000, (b"IDAT", zlib.compress(bytes(1000))))


def png_with_a_text_of_a_gigabyte() -> bytes:
    return png(9, 9, (b"zTXt", b"a\0\0" + deflated(b"a", 1000, 1)), (b"IDAT", zlib.compress(bytes(28 * 9))))


def png_with_a_profile_of_a_gigabyte() -> bytes:
    return png(9, 9, (b"iCCP", b"a\0\0" + deflated(b"a", 1000, 1)), (b"IDAT", zlib.compress(bytes(28 * 9))))


def tiff(*tags: tuple[int, int, int, int], next_page: int = 0) -> bytes:
    """A TIFF of one directory with these tags (number, type, count, value)."""
    rows = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", len(tags)) + rows + struct.pack("<I", next_page)


_GRAY = (
    (256, 4, 1, 9),
    (257, 4, 1, 9),
    (258, 3, 1, 8),
    (259, 3, 1, 1),
    (262, 3, 1, 1),
    (273, 4, 1, 8),
    (279, 4, 1, 81),
)


def tiff_whose_next_page_is_its_first() -> bytes:
    return tiff(*_GRAY, next_page=8) + bytes(100)


def tiff_with_a_tag_of_four_billion_values() -> bytes:
    return tiff(*_GRAY, (700, 1, 0xFFFFFFFF, 8)) + bytes(100)


def jpeg2000_of_huge_size() -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (16, 16)).save(buffer, "JPEG2000")
    # Width and height in the header of the file and in that of the code stream.
    return buffer.getvalue().replace(struct.pack(">II", 16, 16), struct.pack(">II", 13_000, 13_000))


#: Each by its file name. All end in one line, or are read within the bounds.
BOMBS: Mapping[str, Callable[[], bytes]] = {
    "content.pdf": content_bomb,
    "font.pdf": font_bomb,
    "image.pdf": image_bomb,
    "pattern.pdf": pattern_bomb,
    "form.pdf": form_that_draws_itself,
    "tree.pdf": pages_that_hold_themselves,
    "pixels.png": png_of_a_billion_pixels,
    "text.png": png_with_a_text_of_a_gigabyte,
    "profile.png": png_with_a_profile_of_a_gigabyte,
    "loop.tif": tiff_whose_next_page_is_its_first,
    "tag.tif": tiff_with_a_tag_of_four_billion_values,
    "size.jp2": jpeg2000_of_huge_size,
}
#: Those that can only be read with more memory than there may be.
TOO_LARGE = ("content.pdf", "font.pdf")

#: Files that are called images, by what each is said to be.
IMPOSTORS: Mapping[str, bytes] = {
    "PostScript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 100 100\n%%EndComments\n",
    "an SVG or XML file": b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>',
    "a HEIC photo": b"\0\0\0\x18ftypheic\0\0\0\0mif1heic",
    "a Photoshop file": b"8BPS\0\x01" + bytes(40),
    "a web page": b"<!DOCTYPE html><html><body>Not found</body></html>",
    "a pointer of Git LFS": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n",
}


def plant(folder: Path, *names: str) -> list[Path]:
    """The named bombs, all of them by default, as files of a folder."""
    paths = [folder / name for name in names or BOMBS]
    for path in paths:
        path.write_bytes(BOMBS[path.name]())
    return paths
