"""CPU seconds for each degradation of `synth` on an A4 page at 150 dpi. Usage: python perf/degradations.py

Exit code 1 means that a goal is missed: 6 degraded pages a second on two cores on average, 0.5 s for the slowest.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from loupe.features.synth.degradations import DEGRADATIONS, SEVERITIES, degrade

A_SECOND, SLOWEST = 6.0, 0.5
WORDS = "The harbour office received 4,218 crates on 12 May and returned 37 of them, since the seals were broken."


def page() -> np.ndarray:
    """Fifty lines of text on A4."""
    picture = Image.new("RGB", (1240, 1754), "white")
    draw = ImageDraw.Draw(picture)
    for line in range(50):
        draw.text((140, 150 + 29 * line), WORDS, "black", ImageFont.load_default(19))
    return np.asarray(picture)


def main() -> None:
    """Print the seconds of every degradation at every severity."""
    clean, means, slowest = page(), [], 0.0
    for name in DEGRADATIONS:
        found = []
        for severity in SEVERITIES:
            start = time.process_time()
            degrade(clean, name, severity, x_height=10, seed=1)
            found.append(time.process_time() - start)
        print(f"{name:18}", *(f"{seconds:6.3f}" for seconds in found))
        means.append(sum(found) / len(found))
        slowest = max(slowest, *found)
    mean = sum(means) / len(means)
    print(f"mean {mean:.3f} s, slowest {slowest:.3f} s, {2 / mean:.0f} pages a second on two cores")
    sys.exit(2 / mean < A_SECOND or slowest > SLOWEST)


if __name__ == "__main__":
    main()
