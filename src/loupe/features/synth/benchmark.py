"""Pages nobody has trained on: generated anew from every seed, with exact truth, one difficulty turned up at a time.

Design, tracks, measures and what the headline means: docs/synth.md. Nothing is read but fonts, and nothing is sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from loupe.data.user_folders import cache_folder
from loupe.errors import UsageError
from loupe.features.synth.choosing import GENERATOR, choice_of, chosen_pages, sample_of
from loupe.features.synth.page import Truth
from loupe.features.synth.scoring import MEASURES, conclude, score, shown_facts, summarize
from loupe.types import Benchmark, Sample

#: About 250 pages: every track, ladders whole.
PAGES = 250


def load(
    root: Path | None,
    tracks: str = "all",
    seed: int = 1,
    pages: int = PAGES,
    languages: str = "",
    form: Literal["picture", "pdf"] = "picture",
    text: str = "",
    template: str = "",
) -> Iterator[Sample]:
    """Yield the pages of a seed, track by track in turn; each is drawn when it is needed.

    `pages` counts from below, as ladders are whole. `languages` are those of text tracks in turn. `form=pdf` gives
    clean pages as PDFs with their text layer. `text` is a folder with texts of the user's own, `template` a design of
    theirs for typst, in place of the tracks.
    """
    if root is not None:
        raise UsageError("synth makes its pages itself", hint="leave out --data; own texts: -o text=DIR")
    choice = choice_of(tracks, seed, pages, languages, form, text, template)
    folder = cache_folder("synth", to_write=True)
    return (sample_of(page, choice, folder) for page in chosen_pages(choice))


def draw(sample: Sample) -> None:
    """Make the page of a sample where it is not there yet."""
    from loupe.features.synth.typeset.drawing import draw as draw_page

    for image in sample.images:
        truth: Truth = sample.truth
        draw_page(truth.recipe, image if isinstance(image, Path) else image.path)


def reference(sample: Sample) -> str:
    """The text of the page; of a table its HTML."""
    truth: Truth = sample.truth
    return truth.html or truth.text


benchmark = Benchmark(
    title="Generated pages",
    version=GENERATOR,
    task="text",
    max_tokens=16_384,
    measures=MEASURES,
    headline="overall",
    summarize=summarize,
    load=load,
    draw=draw,
    score=score,
    reference=reference,
    conclude=conclude,
    facts=shown_facts,
)
