"""Every page of a TIFF file is a page: counted, read, and named when it cannot be."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image

from loupe.cli import main
from loupe.data.digests import source_digest
from loupe.data.page_drawing import load_page as drawn
from loupe.data.pages import frames, load_page, page_count, page_size
from loupe.errors import PageError
from loupe.types import TiffPage
from tests.support.pages import draw_page

#: NewSubfileType: a smaller version of another picture, a mask.
THUMBNAIL, MASK = 1, 4


def save(path: Path, *pages: Image.Image, **options: str) -> Path:
    """A TIFF file with these pages."""
    pages[0].save(path, save_all=True, append_images=pages[1:], **options)
    return path


def raw(
    path: Path, sizes: Sequence[tuple[int, int]], flags: Sequence[int] = (), *, leads_to: int | None = None
) -> Path:
    """A gray TIFF file, directory by directory; the last one leads to directory `leads_to` or to nothing."""
    data, place = bytearray(b"II*\0\0\0\0\0" + bytes([200]) * 64), []
    for number, (width, height) in enumerate(sizes):
        flag = flags[number] if flags else 0
        entries = [(254, flag), (256, width), (257, height), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1)]
        entries += [(278, height), (279, min(width * height, 2**32 - 1))]
        place.append(len(data))
        data += struct.pack("<H", len(entries)) + b"".join(
            struct.pack("<HHLL", tag, 4, 1, value) for tag, value in entries
        )
        data += struct.pack("<L", len(data) + 4 if number + 1 < len(sizes) else 0)
    data[4:8] = struct.pack("<L", place[0])
    if leads_to is not None:
        data[-4:] = struct.pack("<L", place[leads_to])
    path.write_bytes(data)
    return path


def test_pages_of_all_sizes_modes_and_compressions_are_read(tmp_path: Path) -> None:
    modes = [
        *(Image.new("L", (60, 40), 200), Image.new("1", (30, 90), 1), Image.new("I;16", (8, 8), 40_000)),
        *(
            Image.new("CMYK", (8, 8), (0, 255, 0, 0)),
            Image.new("F", (8, 8), 0.5),
            Image.new("RGBA", (8, 8), (9, 9, 9, 0)),
        ),
    ]
    file = save(tmp_path / "all.tif", *modes)
    assert page_count(file) == len(modes)
    read = [load_page(TiffPage(file, number)) for number in range(1, len(modes) + 1)]
    assert [page.size for page in read] == [page.size for page in modes]
    assert [page_size(TiffPage(file, number)) for number in (1, 2)] == [(60, 40), (30, 90)]
    gray = (200, 255, 156, None, 128, 255)
    assert [page.getpixel((0, 0)) for page in read] == [(255, 0, 255) if each is None else (each,) * 3 for each in gray]
    fax = save(tmp_path / "fax.tif", Image.new("1", (64, 64), 1), Image.new("1", (32, 64), 0), compression="group4")
    assert [load_page(TiffPage(fax, number)).getpixel((5, 5))[0] for number in (1, 2)] == [255, 0]
    assert source_digest(TiffPage(fax, 1)) != source_digest(TiffPage(fax, 2))


def test_thumbnails_and_masks_are_no_pages(tmp_path: Path) -> None:
    sizes = [(4, 4), (8, 8), (5, 5), (6, 8), (8, 8)]
    file = raw(tmp_path / "a.tif", sizes, [THUMBNAIL, 0, THUMBNAIL, 2, MASK])
    assert page_count(file) == 2
    assert [page_size(source) for source in (file, TiffPage(file, 1), TiffPage(file, 2))] == [(8, 8), (8, 8), (6, 8)]
    assert page_count(raw(tmp_path / "b.tif", [(4, 4), (5, 5)], [THUMBNAIL, THUMBNAIL])) == 1


@pytest.mark.parametrize(("leads_to", "count"), [(None, 3), (0, 3), (1, 3), (2, 3)])
def test_directories_in_a_circle_come_to_an_end(tmp_path: Path, leads_to: int | None, count: int) -> None:
    file = raw(tmp_path / "a.tif", [(4, 4), (5, 4), (6, 4)], leads_to=leads_to)
    assert page_count(file) == count and page_size(TiffPage(file, 3)) == (6, 4)
    with pytest.raises(PageError, match=r"a\.tif: has no page 4 \(pages 1 to 3\)"):
        load_page(TiffPage(file, 4))


def test_a_page_that_is_broken_or_too_large_costs_itself(tmp_path: Path) -> None:
    file = raw(tmp_path / "a.tif", [(4, 4), (100_000, 100_000), (6, 4)])
    with pytest.raises(PageError, match=r"page 2: 100,000 x 100,000 pixels are more than the limit"):
        load_page(TiffPage(file, 2))
    broken = bytearray(file.read_bytes())
    second = broken.index(struct.pack("<HHLL", 256, 4, 1, 100_000))
    broken[second : second + 12] = struct.pack("<HHLL", 60_000, 4, 1, 1)
    file.write_bytes(broken)
    with pytest.raises(PageError, match="page 2 is broken"):
        load_page(TiffPage(file, 2))
    assert page_count(file) == 3 and load_page(TiffPage(file, 3)).size == (6, 4)
    many = raw(tmp_path / "many.tif", [(1, 1)] * 9_998 + [(5, 3)])
    began = time.process_time()
    for _ in range(20):
        assert drawn(TiffPage(many, 9_999)).size == (5, 3)
    assert time.process_time() - began < 5, "each page was found by way of all before it"
    many = raw(tmp_path / "many.tif", [(1, 1)] * 10_001)
    with pytest.raises(PageError, match="has 10,000 pages or more"):
        page_count(many)


def test_moving_pictures_are_counted_and_are_no_pages(tmp_path: Path) -> None:
    pictures = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue", "green")]
    for name, kind in (("a.gif", "GIF"), ("a.webp", "WEBP"), ("a.png", "PNG")):
        pictures[0].save(tmp_path / name, save_all=True, append_images=pictures[1:])
        assert frames(tmp_path / name) == (kind, 3) and page_count(tmp_path / name) == 1
    with pytest.raises(PageError, match=r"a\.gif: is not a TIFF file, so it has no page 2"):
        load_page(TiffPage(tmp_path / "a.gif", 2))


def test_a_fax_goes_all_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """From `init` to answers that are named by page, and a plain name that would lose two pages is said by all."""
    lines = ["First page", "Second page", "Third page"]
    pages = [Image.open(draw_page(tmp_path / f"{number}.png", [line])) for number, line in enumerate(lines)]
    (tmp_path / "fax").mkdir()
    save(tmp_path / "fax/fax.tif", *pages)
    (tmp_path / "read.py").write_text("def read(request):\n    return f'page {request.images[0].page}'\n")
    monkeypatch.chdir(tmp_path)
    assert main(["init", "fax", "--task", "text"]) == 0
    rows = [json.loads(line) for line in (tmp_path / "fax/samples.jsonl").read_text().splitlines()]
    assert [(row["id"], row["image"], row["group"]) for row in rows] == [
        (f"fax-p{number}", f"fax.tif#page={number}", "fax") for number in (1, 2, 3)
    ]
    for number, row in enumerate(rows, 1):
        row |= {"reference": f"page {number}"}
        del row["truth"]
    (tmp_path / "fax/samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    capfd.readouterr()
    assert main(["bench", "check", "fax"]) == 0
    assert "fax: no problem found" in capfd.readouterr().err
    assert main(["run", "fax", "-e", "python:read.py:read", "--fail-under", "100"]) == 0
    assert main(["report", "runs", "-o", "r.html"]) == 0
    (tmp_path / "fax/samples.jsonl").write_text('{"id": "a", "image": "fax.tif", "reference": "x"}\n')
    capfd.readouterr()
    assert main(["bench", "check", "fax"]) == 2
    assert "'fax.tif': has 3 pages; name one: fax.tif#page=1" in capfd.readouterr().out
    main(["run", "fax", "-e", "predictions:fax", "--name", "plain"])
    assert "fax.tif: 1 of its 3 pages is in samples.jsonl" in capfd.readouterr().err
