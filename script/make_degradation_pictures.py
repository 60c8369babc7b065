"""Make the pictures of docs/synth-degradations.md: every degradation at every severity, one sheet for each group.

    python script/make_degradation_pictures.py [FOLDER]

The page is ours, set by typst as A4 at 150 dpi. Needs the Python package `typst`.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import typst
from PIL import Image, ImageDraw, ImageFont

from loupe.features.synth.degradations import DEGRADATIONS, SEVERITIES, Degradation, degrade

TARGET = Path(__file__).parents[1] / "docs/pictures"
#: Pixels of the page's lower-case letters; its text is 11 pt.
X_HEIGHT = 9.8
SEED = 3
PAGE = """\
#set page(width: 210mm, height: 297mm, margin: 25mm)
#set text(font: "Libertinus Serif", size: 11pt)
#set par(justify: true)
= Minutes of the meeting
#for number in range(14) [
  The harbour office received 4,218 crates on 12 May and returned 37 of them, since the seals were broken. Mr Ellery
  signed the list; invoice 7731-B for 1,906.40 was paid in two parts, and the rest will be charged to the account of
  the northern store in autumn.

]
"""
#: These are seen on a whole page, the others on a few words at full size.
WHOLE = {"skew", "quarter_turns", "perspective", "fold", "stains", "stamps", "uneven_light", "photo"}
CELL, GAP, CAPTION = 250, 6, 26
NEAR_HEIGHT, WHOLE_HEIGHT = 68, 180
WORDS = (150, 306)


def main() -> None:
    """Write one WebP for each group into the folder."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    with Image.open(io.BytesIO(typst.compile(PAGE.encode(), format="png", ppi=150))) as drawn:
        page = np.asarray(drawn.convert("RGB"))
    groups: dict[str, list[Degradation]] = {}
    for one in DEGRADATIONS.values():
        groups.setdefault(one.group, []).append(one)
    for group, members in groups.items():
        rows = [row(page, one) for one in members]
        sheet = Image.new("RGB", (rows[0].width, sum(each.height for each in rows)), "white")
        top = 0
        for each in rows:
            sheet.paste(each, (0, top))
            top += each.height
        path = target / f"degradations-{group}.webp"
        sheet.save(path, quality=70, method=6)
        print(f"{path.name}: {sheet.width} x {sheet.height}, {path.stat().st_size // 1000} KB")


def row(page: np.ndarray, one: Degradation) -> Image.Image:
    """The five severities of one degradation beside each other, with their values above."""
    height = WHOLE_HEIGHT if one.name in WHOLE else NEAR_HEIGHT
    found = Image.new("RGB", (5 * CELL + 4 * GAP, 2 * CAPTION + height + 2 * GAP), "white")
    draw = ImageDraw.Draw(found)
    # Pillow's own font has neither Greek nor accents.
    words = f"{one.title} ({one.unit})".replace("σ", "sigma").replace("é", "e")
    draw.text((4, 6), words, "black", ImageFont.load_default(17))
    for severity, value in zip(SEVERITIES, one.severities, strict=True):
        left = (severity - 1) * (CELL + GAP)
        draw.text((left + 4, CAPTION + 3), f"{severity}:  {value:g}", "#444444", ImageFont.load_default(15))
        degraded = degrade(page, one.name, severity, x_height=X_HEIGHT, seed=SEED)
        found.paste(cell(degraded, height, whole=one.name in WHOLE), (left, 2 * CAPTION))
        draw.rectangle((left, 2 * CAPTION, left + CELL - 1, 2 * CAPTION + height - 1), outline="#999999")
    return found


def cell(pixels: np.ndarray, height: int, *, whole: bool) -> Image.Image:
    """What one cell shows of a page."""
    if not whole:
        left, top = WORDS
        return Image.fromarray(pixels[top : top + height, left : left + CELL])
    picture = Image.fromarray(pixels)
    scale = CELL / picture.width
    small = picture.resize((CELL, round(picture.height * scale)), Image.Resampling.LANCZOS)
    found = Image.new("RGB", (CELL, height), "white")
    found.paste(small, (0, -round(0.07 * small.height)))
    return found


if __name__ == "__main__":
    main()
