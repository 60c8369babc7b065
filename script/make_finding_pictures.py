"""Draw the pages of docs/synth.md#an-example-rapidocr-and-tesseract: python script/make_finding_pictures.py.

Needs the extras synth and rapidocr.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image
from rapidocr.utils.process_img import reduce_max_side

from loupe.features.synth import benchmark as synth
from loupe.features.synth.typeset.drawing import picture

PICTURES = Path(__file__).parent.parent / "docs/pictures"
#: Page of seed 7 → the part of it that is shown.
PARTS = {
    "degrade-0007-bleed_through-3": (80, 105, 1160, 245),
    "traps-0003-repeated_lines-4": (80, 100, 420, 328),
    "density-0000-12000": (98, 108, 538, 304),
}
SHRUNK = "density-0000-12000"
#: RapidOCR shrinks pages until no side is longer.
LONGEST = 2_000
GAP = 20


def main() -> None:
    """Parts of pages as they are; of the dense sheet, beside it, what RapidOCR leaves of it."""
    pages = {sample.id: sample for sample in synth.load(None, seed=7, pages=400)}
    for name, part in PARTS.items():
        page = picture(pages[name].truth.recipe)
        shown = page.crop(part)
        if name == SHRUNK:
            small, *_ = reduce_max_side(np.asarray(page), LONGEST)
            left = Image.fromarray(small).resize(page.size, Image.Resampling.NEAREST).crop(part)
            both = Image.new("RGB", (2 * shown.width + GAP, shown.height), "white")
            both.paste(shown, (0, 0))
            both.paste(left, (shown.width + GAP, 0))
            shown = both
        shown.convert("L").save(PICTURES / f"finding-{name}.webp", lossless=True, method=6)


if __name__ == "__main__":
    main()
