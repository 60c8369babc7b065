"""Images of every raster format, files that only pretend to be one, and PDFs, as pages of a folder."""

from __future__ import annotations

import io
import json
import random
import struct
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.hostile import mutations
from tests.hostile.cases import Command, Target, World, choose, command

#: Formats that Pillow writes, with the suffix that files of them have.
FORMATS = {
    **{"PNG": "png", "JPEG": "jpg", "TIFF": "tif", "GIF": "gif", "BMP": "bmp", "WEBP": "webp", "JPEG2000": "jp2"},
    **{"PPM": "ppm", "PCX": "pcx", "TGA": "tga", "ICO": "ico", "ICNS": "icns", "DDS": "dds", "SGI": "sgi", "IM": "im"},
    **{"XBM": "xbm", "MSP": "msp", "SPIDER": "spider", "MPO": "mpo", "AVIF": "avif", "QOI": "qoi", "DIB": "dib"},
    **{"BLP": "blp", "EPS": "eps", "PDF": "pdf"},
}
MODES = ("RGB", "L", "1", "RGBA", "P", "CMYK", "I;16", "I", "F", "LA")
#: What is no image, or one that another program would have to draw.
PRETENDERS: Sequence[bytes] = (
    b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 100 100\n%%EndComments\n(ran) (w) file pop showpage\n%%EOF\n",
    b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 100 100\n{} loop\n",
    b"\xc5\xd0\xd3\xc6\x1e\0\0\0\xff\0\0\0"
    + b"\0" * 18
    + b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n",
    b'<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]><svg width="9" height="9">&x;</svg>',
    b'<svg xmlns="http://www.w3.org/2000/svg" width="99999" height="99999"><image href="http://192.0.2.1/x"/></svg>',
    b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + b"\0" * 200,
    b"\xd7\xcd\xc6\x9a\0\0\0\0\0\0\xff\x7f\xff\x7f\x60\0" + b"\0" * 60,
    b"\x01\0\0\0l\0\0\0" + b"\0" * 32 + b" EMF" + b"\0" * 60,
    b"SIMPLE  =                    T" + b" " * 50 + b"BITPIX  =                    8" + b" " * 50,
    b"\x89HDF\r\n\x1a\n" + b"\0" * 100,
    b"GRIB" + b"\0" * 100,
    b"BUFR" + b"\0" * 100,
    b"\0\0\x01\xb3" + b"\0" * 50,
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 1000,
    b"<html><body><img src=x></body></html>",
    b"#!/bin/sh\ntouch ran\n",
    b"PK\x03\x04" + b"\0" * 100,
    b"\x1f\x8b" + b"\0" * 100,
    b"8BPS\0\x01" + b"\0" * 6 + b"\0\x03" + struct.pack(">II", 30000, 30000) + b"\0\x08\0\x03" + b"\0" * 12,
)
IMAGE_NAMES = ("a.png", "b.jpg", "c.tif")


def images_template(world: World) -> None:
    """A folder whose pages are put in by each case, and runs of it."""
    docs = world.case / "docs"
    docs.mkdir()
    (docs / "loupe.toml").write_text('[benchmark]\ntitle = "Pages"\n')
    rows = [
        {"id": name, "image": name, "reference": "x"} for name in (*IMAGE_NAMES[:2], "c.tif#page=1", "c.tif#page=2")
    ]
    (docs / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def make_images(dice: random.Random, world: World) -> Sequence[Command]:
    """Pages in any format, broken or not, under names that may say something else."""
    for name in IMAGE_NAMES:
        (world.case / "docs" / name).write_bytes(image(dice))
    return _looks(dice, world, IMAGE_NAMES[0])


def _looks(dice: random.Random, world: World, name: str) -> Sequence[Command]:
    """Everything that looks at pages."""
    look = world.reader.replace(":right", ":look")
    cheap = (
        command("bench", "check", "docs"),
        command("bench", "check", "docs", "--json"),
        command("compress", "--image", f"docs/{name}", "--dry-run"),
        command("compress", "--image", "docs", "--dry-run", "--json"),
    )
    if dice.random() < 0.3:
        for file in ("samples.jsonl", "loupe.toml"):
            (world.case / "docs" / file).unlink()
        return [command("init", "docs", "--task", dice.choice(["text", "class"])), command("review", "docs")]
    dear = (
        command("review", "docs"),
        command("infer", "docs", "-e", look),
        command("infer", "docs", "-e", look),
        command("data", "prepare", "docs", "--to", "new"),
        command("run", "docs", "-e", "pdf_text", "-j", "1"),
    )
    return choose(dice, cheap, dear, count=1, often=0.3)


def image(dice: random.Random) -> bytes:
    """The bytes of an image: whole, bent, a bomb, or a pretender."""
    kind = 1.0 if isinstance(dice, mutations.Calm) else dice.random()
    if kind < 0.2:
        data = dice.choice(PRETENDERS)
        return data if dice.random() < 0.7 else mutations.bend_bytes(dice, data)
    if kind < 0.35:
        return _bomb(dice)
    data = _written(dice)
    return data if kind > 0.95 else mutations.bend_bytes(dice, data)


def _written(dice: random.Random) -> bytes:
    """A small image in some format and mode, with several frames now and then."""
    from PIL import Image

    name = dice.choice(list(FORMATS))
    for mode in (dice.choice(MODES), "RGB", "L", "1", "F"):
        size = (dice.choice([1, 7, 60, 300]), dice.choice([1, 9, 50, 200]))
        picture = Image.new(mode, size)
        stream = io.BytesIO()
        try:
            more = {"save_all": True, "append_images": [picture] * 3} if dice.random() < 0.2 else {}
            compression = dice.choice([None, "tiff_lzw", "group4", "jpeg", "packbits", "tiff_adobe_deflate"])
            more |= {"compression": compression} if name == "TIFF" and compression else {}
            picture.save(stream, name, **more)
        except (OSError, ValueError, KeyError, SystemError, TypeError, AttributeError, struct.error):
            continue
        return stream.getvalue()
    return b""


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _png(width: int, height: int, depth: int, colour: int, chunks: bytes = b"") -> bytes:
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    body = zlib.compress(b"\0" * min(5_000_000, max(1, width * height // 8)), 9)
    parts = _chunk(b"IHDR", head) + chunks + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def _bomb(dice: random.Random) -> bytes:
    """A few bytes that ask for many."""
    side = dice.choice([14_000, 30_000, 60_000, 65_535, 2**31 - 1])
    text = _chunk(b"zTXt", b"x\0\0" + zlib.compress(b"\0" * 30_000_000, 9))
    profile = _chunk(b"iCCP", b"x\0\0" + zlib.compress(b"\0" * 30_000_000, 9))
    makers: Sequence[Callable[[], bytes]] = (
        lambda: _png(side, side, 8, 2),
        lambda: _png(side, 1, 8, 6),
        lambda: _png(14_000, 14_000, 1, 0),
        lambda: _png(14_000, 14_000, 16, 6),
        lambda: _png(9, 9, 8, 2, text),
        lambda: _png(9, 9, 8, 2, text * 20),
        lambda: _png(9, 9, 8, 2, profile),
        lambda: b"P6\n%d %d\n255\n" % (side, side) + b"\0" * 100,
        lambda: b"P1\n%d %d\n" % (side, side) + b"1 " * 100,
        lambda: (
            b"GIF89a"
            + struct.pack("<HH", min(side, 65_535), min(side, 65_535))
            + b"\xf0\0\0"
            + b"\0\0\0\xff\xff\xff"
            + b",\0\0\0\0\xff\xff\xff\xff\0\x02\x02\x4c\x01\0;"
        ),
        lambda: b"BM" + struct.pack("<IIIIiiHHIIiiII", 90, 0, 54, 40, side, side, 1, 24, 1, 0, 0, 0, 0, 0),
        lambda: _tiff(side, dice.choice([1, 5, 7, 8, 32773])),
        lambda: _tiff_pages(dice.choice([2, 50, 9_999, 60_000]), after=dice.choice([0, 8, 26, 2**31, 7])),
        lambda: b"qoif" + struct.pack(">II", side, side) + b"\x04\0" + b"\xfd" * 200,
    )
    return dice.choice(makers)()


def _tiff(side: int, compression: int) -> bytes:
    """A header that promises a large page; its directory points back at itself."""
    tags = [(256, 4, 1, side), (257, 4, 1, side), (258, 3, 1, 8), (259, 3, 1, compression), (262, 3, 1, 1)]
    tags += [(273, 4, 1, 8), (278, 4, 1, side), (279, 4, 1, 1000)]
    body = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags) + struct.pack("<I", 8)
    return b"II*\0\x08\0\0\0" + body + b"\0" * 1000


def _tiff_pages(count: int, *, after: int) -> bytes:
    """So many pages of one pixel; the last one leads on to `after`: nowhere, back to a page, or beyond the file."""
    tags = [
        (256, 3, 1, 1),
        (257, 3, 1, 1),
        (258, 3, 1, 8),
        (259, 3, 1, 1),
        (262, 3, 1, 1),
        (273, 4, 1, 8),
        (279, 4, 1, 1),
    ]
    directory = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags)
    step = len(directory) + 4
    chain = [
        directory + struct.pack("<I", 8 + step * number if number < count else after) for number in range(1, count + 1)
    ]
    return b"II*\0\x08\0\0\0" + b"".join(chain)


def pdf(*objects: bytes) -> bytes:
    """A PDF of these objects, numbered from 1; the first is the catalogue."""
    body, places = b"%PDF-1.7\n", []
    for number, data in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, data)
    table = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    table += b"".join(b"%010d 00000 n \n" % place for place in places)
    return body + table + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(body))


def _stream(head: bytes, data: bytes, *, packed: bool = True) -> bytes:
    filters = b"/Filter/FlateDecode" if packed else b""
    data = zlib.compress(data, 9) if packed else data
    return b"<<%s%s/Length %d>>stream\n%s\nendstream" % (head, filters, len(data), data)


def page_with(content: bytes, resources: bytes = b"", *more: bytes, box: bytes = b"0 0 600 800") -> bytes:
    """A PDF of one page; further objects count from 5."""
    return pdf(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[%s]/Contents 4 0 R/Resources<<%s>>>>" % (box, resources),
        _stream(b"", content),
        *more,
    )


def _pdf_bombs() -> Sequence[Callable[[], bytes]]:
    """PDFs of a few hundred bytes that starve a reader of memory or time."""
    form = b"/Type/XObject/Subtype/Form/BBox[0 0 600 800]/Resources<</XObject<</X %d 0 R>>>>"
    nested = [_stream(form % (6 + n), b"/X Do " * 20) for n in range(12)] + [_stream(form % 5, b"0 0 9 9 re f")]
    group = b"/Group<</S/Transparency/I true/K true>>"
    deep = [_stream(form % (6 + n) + group, b"q 1.1 0 0 1.1 0 0 cm /X Do Q") for n in range(60)]
    image = b"/Type/XObject/Subtype/Image/Width %d/Height %d/ColorSpace/DeviceRGB/BitsPerComponent 8"
    pattern = b"/Type/Pattern/PatternType 1/PaintType 1/TilingType 1/BBox[0 0 1 1]/XStep .001/YStep .001/Resources<<>>"
    shade = b"<</ShadingType 1/ColorSpace/DeviceRGB/Domain[0 1 0 1]/Function 6 0 R>>"
    loop = b"<</FunctionType 3/Domain[0 1]/Functions[6 0 R 6 0 R]/Bounds[.5]/Encode[0 1 0 1]>>"
    huge = image % (60_000, 60_000)
    mask = b"/SMask 6 0 R"
    return (
        lambda: page_with(b"/X Do", b"/XObject<</X 5 0 R>>", *nested),
        lambda: page_with(b"/X Do", b"/XObject<</X 5 0 R>>", *deep),
        lambda: page_with(b"600 0 0 800 0 0 cm /X Do", b"/XObject<</X 5 0 R>>", _stream(huge, b"\0" * 30_000_000)),
        lambda: page_with(
            b"600 0 0 800 0 0 cm /X Do",
            b"/XObject<</X 5 0 R>>",
            _stream(image % (20000, 20000) + mask, b"\0" * 9_000_000),
            _stream(
                b"/Type/XObject/Subtype/Image/Width 30000/Height 30000/ColorSpace/DeviceGray/BitsPerComponent 8",
                b"\0" * 9_000_000,
            ),
        ),
        lambda: page_with(
            b"/Pattern cs /P scn 0 0 600 800 re f", b"/Pattern<</P 5 0 R>>", _stream(pattern, b"0 0 1 1 re f")
        ),
        lambda: page_with(b"/S sh " * 1000, b"/Shading<</S 5 0 R>>", shade, loop),
        lambda: page_with(b"0 0 m 1 1 l S", box=b"0 0 1000000 1000000"),
        lambda: page_with(b"0 0 m 1 1 l S", box=b"0 0 14000 14000"),
        lambda: page_with(b"0 0 m 1 1 l S", box=b"0 0 1e30 1"),
        lambda: page_with(b"0 0 m 1 1 l S", box=b"0 0 nan -5"),
        lambda: page_with(b"0 0 m 1 1 l S", box=b"0 0 0.001 100000"),
        lambda: page_with(b"q " * 2_000_000),
        lambda: page_with(b"[" * 500_000),
        lambda: page_with(b"0 0 m " + b"600 800 l 0 0 l " * 300_000 + b"S"),
        lambda: page_with(
            b"BT /F 1000000 Tf (" + b"x" * 100_000 + b") Tj ET",
            b"/Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>",
        ),
        lambda: pdf(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 1000000000>>"),
        lambda: pdf(
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 2147483647>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>",
        ),
        lambda: page_with(
            b"/X Do",
            b"/XObject<</X 5 0 R>>",
            _stream(
                huge.replace(b"60000", b"3000") + b"/DecodeParms<</Predictor 15/Columns 2147483647>>", b"\0" * 10_000
            ),
        ),
        lambda: page_with(
            b"/X Do",
            b"/XObject<</X 5 0 R>>",
            b"<<%s/Filter/JBIG2Decode/Length 40>>stream\n%s\nendstream"
            % (image % (65000, 65000), b"\0\0\0\0\x30\0\x01\0\0\0\x13\0\0\xff\xff\0\0\xff\xff" + b"\0" * 21),
        ),
        lambda: page_with(
            b"/X Do",
            b"/XObject<</X 5 0 R>>",
            b"<<%s/Filter/CCITTFaxDecode/DecodeParms<</Columns 60000/Rows 60000/K -1>>/Length 9>>stream\n%s\nendstream"
            % (image % (60000, 60000), b"\0" * 9),
        ),
        lambda: page_with(
            b"/X Do",
            b"/XObject<</X 5 0 R>>",
            _stream(
                b"/Subtype/Image/Width 9/Height 9/ColorSpace[/Indexed/DeviceRGB 255 5 0 R]/BitsPerComponent 8",
                b"\0" * 99,
            ),
        ),
        lambda: page_with(
            b"/X Do",
            b"/XObject<</X 5 0 R>>",
            b"<<%s/Filter[%s]/Length 9>>stream\n123456789\nendstream" % (image % (9, 9), b"/FlateDecode " * 500),
        ),
    )


PDF_NAMES = ("a.pdf", "b.pdf")


def pdfs_template(world: World) -> None:
    """A folder whose PDFs are put in by each case."""
    docs = world.case / "docs"
    docs.mkdir()
    (docs / "loupe.toml").write_text('[benchmark]\ntitle = "Pages"\n')
    rows = [{"id": name, "image": f"{name}#page=1", "reference": "x"} for name in PDF_NAMES]
    (docs / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def make_pdfs(dice: random.Random, world: World) -> Sequence[Command]:
    """Bent PDFs and bombs."""
    from loupe.benchmarks.sample_pages import DATA
    from tests.support.web.review_app import PDF

    real = sorted(Path(DATA).rglob("*.pdf"))
    bombs = _pdf_bombs()
    for name in PDF_NAMES:
        kind = 0.6 if isinstance(dice, mutations.Calm) else dice.random()
        if kind < 0.25:
            data = dice.choice(bombs)()
        elif kind < 0.5:
            data = mutations.bend_bytes(dice, dice.choice(bombs)())
        else:
            data = mutations.bend_bytes(dice, PDF if kind < 0.8 or not real else dice.choice(real).read_bytes())
        (world.case / "docs" / name).write_bytes(data)
    return _looks(dice, world, PDF_NAMES[0])


#: A page may take 60 s of CPU time, and two are bad here.
_SECONDS = 150
IMAGES = Target(name="images", make=make_images, template=images_template, share=30, memory=4 << 30, seconds=_SECONDS)
PDFS = Target(name="pdfs", make=make_pdfs, template=pdfs_template, share=16, memory=4 << 30, seconds=_SECONDS)
