"""Which pages a seed stands for, and in what order: whole ladders, track by track in turn, without an end."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from loupe.features.synth.degrade import versions
from loupe.features.synth.dice import Dice
from loupe.features.synth.page import Page
from loupe.features.synth.text.language import language_codes
from loupe.features.synth.text.prose import Prose
from loupe.features.synth.tracks import TRACKS
from loupe.features.synth.tracks.setting import Setting
from loupe.features.synth.tracks.template import template_page
from loupe.features.synth.typeset.fonts import face_of, is_there, made_with
from loupe.types import PageSource, PdfPage, Sample

#: A changed generator makes other pages from the same seed: it is another version of the benchmark.
GENERATOR = "2"
#: Tracks whose base pages are one text on every rung: their samples belong together.
PAIRED = frozenset({"prior", "legibility", "density", "degrade"})
#: With so many ladders in a row of which no font is there, there are no pages.
_PATIENCE = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What was asked for. `codes` are languages; empty: text is English, and `languages` has all whose font is there.

    `pages` is a bound from below: ladders are whole. `texts` are the user's own sentences. `pdf` gives pages as they
    are typeset, and so with their text layer, where nothing was done to the picture. `template` takes the place of the
    tracks. Pages in faces that are `lacking` letters of the texts are left out.
    """

    tracks: tuple[str, ...]
    seed: int
    pages: int
    codes: tuple[str, ...] = ()
    texts: Prose | None = None
    template: Path | None = None
    pdf: bool = False
    lacking: frozenset[str] = frozenset()


def chosen_pages(choice: Choice) -> Iterator[Page]:
    """The pages, in an order of which every beginning holds the tracks by their shares."""
    if choice.template is not None:
        code = choice.codes[0] if choice.codes else "en"
        yield from (template_page(choice.template, choice.seed, number, code) for number in range(choice.pages))
        return
    done = dict.fromkeys(choice.tracks, 0)
    made = dict.fromkeys(choice.tracks, 0)
    total, empty = 0, 0
    while total < choice.pages and empty < _PATIENCE * len(done):
        name = min(done, key=lambda each: (done[each] / TRACKS[each].share, choice.tracks.index(each)))
        pages = TRACKS[name].pages(_setting(choice, name, made[name]))
        ladder = [page for page in pages if page.face not in choice.lacking and _can_be_set(page)]
        made[name] += 1
        # A ladder that cannot be set counts a little, so that the others have their turn.
        done[name] += len(ladder) or 1
        empty = 0 if ladder else empty + 1
        total += len(ladder)
        yield from ladder


def _can_be_set(page: Page) -> bool:
    return all(is_there(family) for family in page.faces)


def _setting(choice: Choice, name: str, ladder: int) -> Setting:
    track = TRACKS[name]
    number, visit = track.place(ladder)
    worded = [code for code in choice.codes if is_there(face_of(code).family)] or ["en"]
    code = worded[number // track.round % len(worded)] if track.worded else "en"
    prose = choice.texts if choice.texts and track.worded else Prose.of(code)
    there = tuple(code for code in choice.codes or language_codes() if is_there(face_of(code).family))
    return Setting(track=name, seed=choice.seed, number=number, visit=visit, codes=there, prose=prose)


def sample_of(page: Page, choice: Choice, folder: Path, *, named: bool = False) -> Sample:
    """A page as a sample; its file lies in `folder`, called by the digest of all that decides about its pixels.

    `named`: by its id instead, for people.
    """
    truth = page.truth
    recipe = {**truth.recipe, **({"layout": page.layout} if page.layout else {})}
    if page.damage:
        seed = Dice(choice.seed, "damage", page.base).below(1 << 31)
        recipe |= {"damage": list(page.damage), "x_height": round(page.x_height, 3), "seed": seed}
        recipe |= {"damaged_by": versions()}
    made = made_with(page.faces, GENERATOR)
    # Where a template lies is no part of the page; what it says is.
    whole = json.dumps([{**recipe, "template": ""}, made], ensure_ascii=False, sort_keys=True).encode()
    pdf = page.pdf or (choice.pdf and not page.damage)
    name = page.ident if named else hashlib.sha256(whole).hexdigest()[:32]
    path = folder / f"{name}.{'pdf' if pdf else 'png'}"
    image: PageSource = PdfPage(path) if pdf else path
    tags = {"track": page.track, "kind": page.kind, "rung": page.rung, "language": page.language, "face": page.face}
    return Sample(
        id=page.ident,
        images=(image,),
        truth=replace(truth, recipe=recipe, made_with=made),
        task=page.task,
        group=page.base if page.track in PAIRED else page.ident,
        tags={name: value for name, value in tags.items() if value},
    )
