"""The pages that a seed stands for, in their order, and the checks of what a user asked for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from loupe.errors import MissingToolError, UsageError, did_you_mean
from loupe.features.synth.degradations import versions
from loupe.features.synth.dice import Dice
from loupe.features.synth.page import Page, Setting
from loupe.features.synth.texts import Prose, language, language_codes
from loupe.features.synth.tracks import TRACKS
from loupe.features.synth.typeset.templates import checked_template, template_page
from loupe.features.synth.typeset.typesetter import BOOK, FACES, face_of, is_there, made_with, missing, need_typesetter
from loupe.types import PageSource, PdfPage, Sample

#: A changed generator makes other pages from the same seed: it is another version of the benchmark.
GENERATOR = "2"
#: Tracks whose base pages are one text on every rung: their samples belong together.
PAIRED = frozenset({"prior", "legibility", "density", "degrade"})
#: With so many ladders in a row of which no font is there, there are no pages.
_PATIENCE = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A user's wishes. `codes` are languages; empty: text is English, and `languages` has all whose font is there.

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


#: A run of more is many runs.
_MOST = 1_000_000


def choice_of(
    tracks: str, seed: int, pages: int, languages: str, form: str, text: str = "", template: str = ""
) -> Choice:
    """The choice. Raises UsageError for what does not exist, MissingToolError for a font or typesetter that is missing.

    Fonts of languages must be there only where the user names the languages.
    """
    need_typesetter()
    if not 1 <= pages <= _MOST:
        raise UsageError(f"pages={pages}: not from 1 to {_MOST:,}", hint="-o pages=250")
    codes = _listed(languages)
    for code in codes:
        _check_font(code)
    names = list(TRACKS) if tracks == "all" else _listed(tracks)
    for name in names:
        if name not in TRACKS:
            raise UsageError(
                f"synth has no track {name!r}{did_you_mean(name, TRACKS)}", hint=f"tracks: {', '.join(TRACKS)}"
            )
    if not names:
        raise UsageError("tracks: none named", hint=f"tracks: {', '.join(TRACKS)}")
    texts, lacking = _own(Path(text), codes or ["en"]) if text else (None, frozenset[str]())
    return Choice(
        tracks=tuple(names),
        seed=seed,
        pages=pages,
        codes=tuple(codes),
        texts=texts,
        lacking=lacking,
        template=checked_template(Path(template)) if template else None,
        pdf=form == "pdf",
    )


def _own(folder: Path, codes: Sequence[str]) -> tuple[Prose, frozenset[str]]:
    """The user's texts, and the names of further faces that lack a letter of theirs."""
    from loupe.features.synth.texts import line_of, own_texts
    from loupe.features.synth.typeset.drawing import without_glyph

    found = own_texts(folder, codes[0])
    needed = [face_of(code) for code in codes]
    for face in needed:
        if gone := without_glyph(found.letters, face):
            letter = min(gone)
            path = found.letters[letter]
            raise UsageError(
                f"{path}:{line_of(path, letter)}: the font {face.family} has no {letter!r} (U+{ord(letter):04X})",
                hint="remove it from the text, or name the language of the texts: --languages",
            )
    # Plain pages come in many faces, where the language has that of books.
    more = [face for face in FACES if face not in needed and is_there(face.family)] if BOOK in needed else []
    return found.prose, frozenset(face.name for face in more if without_glyph(found.letters, face))


def _check_font(code: str) -> None:
    face = face_of(code)
    if lacking := missing([face]):
        (package,) = lacking
        raise MissingToolError(
            f"{language(code).name} ({code}) needs the font {face.family}, which is not installed",
            hint=f"name a folder that has it (TYPST_FONT_PATHS=DIR), or install it: sudo apt-get install {package}",
        )


def _listed(names: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
