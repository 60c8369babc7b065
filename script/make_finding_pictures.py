"""Draw the pages of docs/synth.md#an-example-rapidocr-and-tesseract: python script/make_finding_pictures.py."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from loupe.benchmarks import synth
from loupe.benchmarks.synth.typeset.drawing import picture

PICTURES = Path(__file__).parent.parent / "docs/pictures"
#: Page of seed 7 → the part of it that is shown.
PARTS = {
    "degrade-0007-bleed_through-3": (80, 105, 1160, 245),
    "traps-0003-repeated_lines-4": (80, 100, 420, 328),
}
DENSE, PLACE, SIZE = "density-0000-12000", (98, 108), (440, 196)
#: RapidOCR shrinks pages until no side is longer.
LONGEST = 2_000


def main() -> None:
    """Crops as they are, and of the dense sheet what is left after it was shrunk."""
    for sample in synth.load(None, seed=7, pages=400):
        if sample.id in PARTS:
            save(picture(sample.truth.recipe).crop(PARTS[sample.id]), sample.id)
        if sample.id == DENSE:
            page = picture(sample.truth.recipe)
            share = LONGEST / max(page.size)
            small = page.resize((round(page.width * share), round(page.height * share)), Image.Resampling.BILINEAR)
            both = Image.new("RGB", (2 * SIZE[0] + 20, SIZE[1]), "white")
            for place, shown in enumerate((page, small.resize(page.size, Image.Resampling.NEAREST))):
                left, top = PLACE
                both.paste(shown.crop((left, top, left + SIZE[0], top + SIZE[1])), (place * (SIZE[0] + 20), 0))
            save(both, sample.id)


def save(shown: Image.Image, name: str) -> None:
    """Write one picture."""
    shown.convert("L").save(PICTURES / f"finding-{name}.webp", lossless=True, method=6)


if __name__ == "__main__":
    main()
