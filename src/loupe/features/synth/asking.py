"""What a user asked for, checked before anything is made: one line says what is wrong and what there is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loupe.errors import MissingToolError, UsageError, did_you_mean
from loupe.features.synth.choosing import Choice
from loupe.features.synth.text.language import language
from loupe.features.synth.text.prose import Prose
from loupe.features.synth.tracks import TRACKS
from loupe.features.synth.typeset.compiler import need_typesetter
from loupe.features.synth.typeset.fonts import BOOK, FACES, face_of, is_there, missing
from loupe.features.synth.typeset.templates import checked_template

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
    from loupe.features.synth.text.own_texts import line_of, own_texts
    from loupe.features.synth.typeset.letters import without_glyph

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
            hint=f"sudo apt-get install {package}; or a folder that has it: TYPST_FONT_PATHS=DIR",
        )


def _listed(names: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
