"""What both interfaces of MinerU are given: a page as a file with its number, and one of ours to load models."""

from __future__ import annotations

from pathlib import Path

from loupe.types import PdfPage, Request


def file_and_page(request: Request) -> tuple[Path, int | None]:
    """The file of a page, and its number from 1 if it is one of a PDF."""
    (source,) = request.images
    if isinstance(source, PdfPage):
        return source.path, source.page
    assert isinstance(source, Path)
    return source, None


def draw_page(path: Path) -> Path:
    """A page with some words and a ruled table, as a PNG: what it takes to make the package load its models."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (900, 1200), "white")
    pen = ImageDraw.Draw(image)
    for line in range(8):
        pen.text((90, 90 + 32 * line), "Loupe reads this page before it reads yours.", fill="black", font_size=24)
    for step in range(4):
        pen.line([(90, 500 + 60 * step), (810, 500 + 60 * step)], fill="black", width=2)
        pen.line([(90 + 240 * step, 500), (90 + 240 * step, 680)], fill="black", width=2)
    for row in range(3):
        for column in range(3):
            pen.text((110 + 240 * column, 515 + 60 * row), f"{row}.{column}", fill="black", font_size=24)
    image.save(path)
    return path
