"""Which answer belongs to which sample, by their names.

A name is compared as it is, then as a safe file name or without the suffix of an image, and last without its folders.
No looser match takes the place of a closer one, and none is made where it could mean two samples or two answers.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from loupe.files.file_names import safe_name
from loupe.pipeline.stored_answers import StoredAnswers
from loupe.types import Prediction

_IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp", ".gif", ".pdf"})


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers by sample id; `extra` have no sample, `double` had several answers (the last one counts).

    `passed_over` are files that would answer a sample, but for one that goes first: file → the one that counts.
    `unread` are files beside the answers that are no text.
    """

    found: StoredAnswers = field(default_factory=StoredAnswers)
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    double: list[str] = field(default_factory=list)
    passed_over: dict[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)


def match_answers(
    answers: Iterable[Prediction],
    asked: Iterable[str],
    known: Iterable[str],
    *,
    published: Mapping[str, str] | None = None,
) -> Answers:
    """Match names of answers with sample ids. `published`: sample ids by other names that official files have.

    A record that says itself that there is no answer takes the place of none.
    """
    matched = Answers()
    names: list[str] = []
    none: set[int] = set()
    for record in answers:
        number = matched.found.store(record)
        names.append(record.sample)
        if record.outcome == "missing":
            none.add(number)
    samples = targets_of(names, known, published or {})
    wanted = dict.fromkeys(asked)
    for number, name in enumerate(names):
        ident = samples.get(name)
        if ident is None:
            matched.extra.append(name)
        elif ident in wanted and number not in none:
            if ident in matched.found:
                matched.double.append(ident)
            matched.found.name(ident, number)
    matched.missing.extend(ident for ident in wanted if ident not in matched.found)
    return matched


def targets_of(names: Iterable[str], known: Iterable[str], published: Mapping[str, str]) -> dict[str, str]:
    """The sample id for each name of an answer that has one."""
    names, known = dict.fromkeys(names), dict.fromkeys(known)
    targets = {name: name for name in names if name in known}
    if len(targets) == len(names):
        return targets  # Of a million names, looser forms are only made where they are needed.
    spelled, based = _owners(known, _spellings), _owners(known, _base_names)
    alone = _owners(names, _base_names)
    ways: tuple[Callable[[str], str | None], ...] = (
        lambda name: next((published[each] for each in _spellings(name) if each in published), None),
        lambda name: _first(spelled, _spellings(name)),
        lambda name: _first(based, (each for each in _base_names(name) if alone[each] == name)),
    )
    for way in ways:
        taken = set(targets.values())
        for name in names:
            ident = None if name in targets else way(name)
            if ident is not None and ident not in taken:
                targets[name] = ident
    return targets


def nearly_named(folder: Path, there: Sequence[str], wanted: Iterable[str]) -> str:
    """What is wrong with the names of all these files, if it is a sub-folder or the ending alone; else ""."""
    names = set(wanted)
    stems = {PurePosixPath(name).stem.lower(): name for name in reversed(list(names))}
    for file in map(PurePosixPath, there):
        if file.name in names:
            return f"only the folder itself is searched; its answers are in {shlex.quote(str(folder / file.parent))}"
        if near := stems.get(file.stem.lower()):
            return f"{file.name!r} would count as an answer if it were named {near!r}"
    return ""


def _owners(names: Iterable[str], forms: Callable[[str], Iterable[str]]) -> dict[str, str | None]:
    """Whose each form is; None if it is a form of several names."""
    owners: dict[str, str | None] = {}
    for name in names:
        for form in forms(name):
            owners[form] = name if owners.setdefault(form, name) == name else None
    return owners


def _first(owners: Mapping[str, str | None], forms: Iterable[str]) -> str | None:
    return next((owner for form in forms if (owner := owners.get(form)) is not None), None)


def _spellings(name: str) -> list[str]:
    bare = _bare(name)
    return list(dict.fromkeys([name, safe_name(name), bare, safe_name(bare)]))


def _base_names(name: str) -> list[str]:
    return list(dict.fromkeys([PurePosixPath(name).name, PurePosixPath(_bare(name)).name]))


def _bare(name: str) -> str:
    path = PurePosixPath(name)
    return str(path.with_suffix("")) if path.suffix.lower() in _IMAGE_SUFFIXES else name
