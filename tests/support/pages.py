"""Small page images and PDFs, drawn for tests of engines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

LINES = ("Invoice number 12345", "The quick brown fox", "Total amount due 99.50")


def draw_page(path: Path, lines: Sequence[str] = LINES, *, size: int = 32, turn: int = 0) -> Path:
    """An image file with these lines, turned left by `turn` degrees; the suffix names the format."""
    image = Image.new("RGB", (700, 80 + 70 * max(len(lines), 2)), "white")
    draw = ImageDraw.Draw(image)
    for i, line in enumerate(lines):
        draw.text((50, 50 + 70 * i), line, fill="black", font=ImageFont.load_default(size=size))
    image.rotate(turn, expand=True).save(path)
    return path


def write_pdf(path: Path, *pages: str) -> Path:
    """A PDF with a text layer: one page per text, in Typst markup; an empty text is a blank page."""
    import typst

    source = "#set page(width: 12cm, height: 8cm)\n#set text(size: 14pt)\n" + "\n#pagebreak()\n".join(pages)
    path.write_bytes(typst.compile(source.encode()))
    return path
