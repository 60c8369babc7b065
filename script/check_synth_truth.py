"""Hold the truth of generated pages against the text layer of what was typeset, as PDFium reads it.

    python script/check_synth_truth.py [PAGES] [SEED]

Prints every page that differs, and exits with 1 where one does. 10,000 pages take about ten minutes of one core.
Degraded pages have the truth of the clean page that they are made from, which is checked in their place.
"""

from __future__ import annotations

import sys
import time

from loupe.features.synth.benchmark import load
from loupe.features.synth.tracks import TRACKS
from loupe.features.synth.typeset.drawing import clean_pdf
from loupe.features.synth.typeset.templates import difference

STEP = 500


def main() -> int:
    """Check, and say how far it is."""
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    tracks = ",".join(name for name in TRACKS if name != "degrade")
    began, count, wrong = time.monotonic(), 0, 0
    for sample in load(None, tracks=tracks, seed=seed, pages=pages):
        count += 1
        if found := difference(clean_pdf(sample.truth.recipe), sample.truth):
            wrong += 1
            print(f"{sample.id}: {found}")
        if count % STEP == 0:
            print(f"{count:,} pages, {wrong} exceptions, {time.monotonic() - began:,.0f} s", flush=True)
    print(f"{count:,} pages of seed {seed}: {wrong} exceptions")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
