"""How many generated pages two cores make in a second: A4 at 150 dpi, clean and degraded. Usage: python perf/synth.py

From seed to PNG file, as it happens beside an engine. Counted are CPU seconds of one process, which other programs on
the machine hardly change; pages are made by processes that share nothing, so that two cores make twice as many. Exit
code 1 means that a goal is missed: 15 clean and 6 degraded pages a second.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from loupe.features.synth.choosing import Choice, sample_of
from loupe.features.synth.degradations import DEGRADATIONS
from loupe.features.synth.page import Page, Setting
from loupe.features.synth.texts import Prose
from loupe.features.synth.tracks import TRACKS
from loupe.features.synth.typeset.drawing import draw
from loupe.workers.limits import bound_process

GOALS = {"clean": 15.0, "degraded": 6.0}
PAGES, CORES = 40, 2
CHOICE = Choice(tracks=("plain",), seed=1, pages=1)


def page(number: int, *, degraded: bool) -> Page:
    """An A4 page of the track `plain`; degraded by each kind in turn, at severity 3."""
    setting = Setting(track="plain", seed=1, number=number, codes=("en",), prose=Prose.of("en"))
    (made,) = TRACKS["plain"].pages(setting)
    name = list(DEGRADATIONS)[number % len(DEGRADATIONS)]
    return replace(made, kind=name, damage=(name, 3)) if degraded else made


def seconds(*, degraded: bool) -> float:
    """CPU seconds for a page, after one to warm up."""
    began = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(-1, PAGES):
            if number == 0:
                began = time.process_time()
            sample = sample_of(page(number % PAGES, degraded=degraded), CHOICE, Path(folder) / str(number))
            draw(sample.truth.recipe, Path(str(sample.images[0])))
    return (time.process_time() - began) / PAGES


def main() -> None:
    """Measure, print, and compare with the goals."""
    bound_process()
    missed = False
    for name, goal in GOALS.items():
        each = seconds(degraded=name == "degraded")
        missed |= CORES / each < goal
        print(f"{name:8} {1000 * each:4.0f} ms a page, {CORES / each:4.0f} pages a second on two cores (goal {goal:g})")
    sys.exit(missed)


if __name__ == "__main__":
    main()
