"""Match answers with samples by their names.

Source: docs/scoring-rules.md#names-of-answers. A name is compared with the ids as it is, then with the page files,
then as a safe file name or without the suffix of an image, then without its folders, and last as a document with a
page number; all of this in NFC, and then also without regard to case. No looser match takes the place of a closer
one, and none is made where it could mean two samples or two answers.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TypeVar

from loupe.files.file_names import safe_names, same_form, without_image_suffix
from loupe.pipeline.foreign_answers import FOREIGN
from loupe.pipeline.stored_answers import StoredAnswers
from loupe.types import PackedImage, PageSource, Prediction, Sample

#: Folders of a page's path that a name may repeat.
_MOST_FOLDERS = 4
#: The end of a name that is a document's with a page number: `scan.pdf#page=2`, `scan_p2`, `scan-02`, `scan/page_2`.
_PAGE_NUMBER = re.compile(r"(?:#(?:page=)?|[ ./_-]+(?:pages?|pg|p)?[ ._-]*)([0-9]{1,6})\Z", re.IGNORECASE)
_LONGEST_PAGE_NUMBER = 24

_Form = TypeVar("_Form", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers by sample id; `extra` have no sample, `double` had several answers (the last one counts).

    `passed_over` are files that would answer a sample, but for one that goes first: file → the one that counts.
    `unread` are files beside the answers that are no text. `twins` are pairs of names that are equal in NFC, escaped.
    """

    found: StoredAnswers = field(default_factory=StoredAnswers)
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    double: list[str] = field(default_factory=list)
    passed_over: dict[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    twins: list[str] = field(default_factory=list)


def match_answers(
    answers: Iterable[Prediction],
    asked: Iterable[str],
    known: Iterable[str],
    *,
    published: Mapping[str, str] | None = None,
    samples: Callable[[], Iterable[Sample]] = tuple,
) -> Answers:
    """Match names of answers with sample ids. `published`: sample ids by other names that official files have.

    `samples` are read for their page files if ids alone do not suffice. A record that says itself that there is no
    answer takes the place of none, and one that cannot be read as text that of none that can.
    """
    matched = Answers()
    names: list[str] = []
    none: set[int] = set()
    foreign: dict[int, str] = {}
    for record in answers:
        number = matched.found.store(record)
        names.append(record.sample)
        if record.outcome == "missing":
            none.add(number)
        elif record.finish_reason == FOREIGN:
            foreign[number] = Path(record.error.partition(": ")[0]).name
    targets = targets_of(names, known, published or {}, samples)
    wanted = dict.fromkeys(asked)
    readable: set[str] = set()
    double: dict[str, None] = {}
    passed: dict[str, list[str]] = {}
    for number, name in sorted(enumerate(names), key=lambda each: each[0] not in foreign):
        ident = targets.get(name)
        if ident is None:
            matched.extra.append(name)
        elif ident in wanted and number not in none:
            if ident in readable:
                double[ident] = None
            elif number not in foreign:
                readable.add(ident)
            else:
                passed.setdefault(ident, []).append(foreign[number])
            matched.found.name(ident, number)
    matched.double.extend(double)
    matched.passed_over.update((file, "a text") for ident in readable for file in passed.get(ident, ()))
    matched.missing.extend(ident for ident in wanted if ident not in matched.found)
    matched.twins.extend(twins_of(names))
    return matched


def targets_of(
    names: Iterable[str],
    known: Iterable[str],
    published: Mapping[str, str],
    samples: Callable[[], Iterable[Sample]] = tuple,
) -> dict[str, str]:
    """Return the sample id for each name of an answer that has one."""
    names, known = dict.fromkeys(names), dict.fromkeys(known)
    targets = {name: name for name in names if name in known}
    if len(targets) == len(names):
        return targets  # Of a million names, looser forms are only made where they are needed.
    pages = list(_pages_of(samples()))
    given = (*names, *known, *published, *(page.path for page in pages))
    for same in (_plain, _folded):
        if same is _folded and not any("%" in name or _folded(name) != _plain(name) for name in given):
            return targets  # Nothing is spelled differently: the same ways would find the same.
        for way in _Ways(same, tuple(names), tuple(known), published, pages).in_order():
            _follow(way, [name for name in names if name not in targets], targets)
            if len(targets) == len(names) or known.keys() <= {*targets.values()}:
                return targets
    return targets


def twins_of(names: Iterable[str]) -> list[str]:
    """Return the pairs of names that differ only in their Unicode form, escaped: they look the same."""
    forms: dict[str, dict[str, None]] = defaultdict(dict)
    for name in names:
        if not name.isascii():
            forms[same_form(name)][name] = None
    return [" and ".join(map(ascii, group)) for group in forms.values() if len(group) > 1]


def _follow(way: Callable[[str], str | None], names: Iterable[str], targets: dict[str, str]) -> None:
    """Add what one way finds; neither a sample that has an answer, nor one that several names would answer."""
    taken = set(targets.values())
    found = {name: ident for name in names if (ident := way(name)) is not None and ident not in taken}
    counts = Counter(found.values())
    targets |= {name: ident for name, ident in found.items() if counts[ident] == 1}


@dataclass(frozen=True, slots=True)
class _Page:
    """The page file of a sample; `number` is that of a page in it, 0 if the sample is about the whole file."""

    ident: str
    path: str
    number: int


def _pages_of(samples: Iterable[Sample]) -> Iterator[_Page]:
    """Yield the page file of every sample that is about one file."""
    for sample in samples:
        sources = [(_path_of(each), getattr(each, "page", 0)) for each in sample.images]
        if len({path for path, _ in sources}) == 1:
            path, number = sources[0]
            yield _Page(sample.id, path, number if len(sources) == 1 else 0)


def _path_of(source: PageSource) -> str:
    if isinstance(source, PackedImage):
        return source.member
    return (source if isinstance(source, Path) else source.path).as_posix()


@dataclass(frozen=True)
class _Ways:
    """The ways from a name to a sample id, names and ids being compared in the form that `same` gives."""

    same: Callable[[str], str]
    names: Sequence[str]
    known: Sequence[str]
    published: Mapping[str, str]
    pages: Sequence[_Page]

    def in_order(self) -> Iterator[Callable[[str], str | None]]:
        """Yield each way, the closest one first."""
        same = self.same
        ids = _owners((same(ident), ident) for ident in self.known)
        yield lambda name: ids.get(same(name))
        yield lambda name: self._files.get(same(name))
        yield lambda name: self._bare_files.get(same(name))
        if published := {same(name): ident for name, ident in self.published.items()}:
            yield lambda name: _first(published, map(same, _spellings(name)))
        spelled = _owners((same(form), ident) for ident in self.known for form in _spellings(ident))
        yield lambda name: _first(spelled, map(same, _spellings(name)))
        based = _owners((same(form), ident) for ident in self.known for form in _base_names(ident))
        alone = _owners((form, name) for name in self.names for form in _base_names(same(name)))
        yield lambda name: _first(based, (form for form in _base_names(same(name)) if alone[form] == name))
        yield lambda name: _longest(self._files, same(name))
        yield lambda name: _longest(self._bare_files, same(name))
        numbered = self._numbered
        yield numbered.get

    @cached_property
    def _files(self) -> dict[str, str | None]:
        """Sample ids by the ends of the paths of page files; None if an end is that of several samples."""
        whole = [(page.path, page.ident) for page in self.pages]
        marked = [(f"{page.path}#page={page.number}", page.ident) for page in self.pages if page.number]
        return _owners((tail, ident) for path, ident in whole + marked for tail in _tails(self.same(path)))

    @cached_property
    def _bare_files(self) -> dict[str, str | None]:
        paths = ((self.same(without_image_suffix(page.path)), page.ident) for page in self.pages)
        return _owners((tail, ident) for path, ident in paths for tail in _tails(path))

    @cached_property
    def _numbered(self) -> dict[str, str]:
        """Sample ids for names that are those of a document with a page number.

        Numbers that count from 0 are left alone: they could be taken for those of the next page.
        """
        idents = _owners(((page.path, page.number), page.ident) for page in self.pages if page.number)
        paths = {page.path for page in self.pages if page.number}
        forms = ((form, path) for path in paths for form in {self.same(path), self.same(without_image_suffix(path))})
        documents = _owners((tail, path) for form, path in forms for tail in _tails(form))
        found: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
        for name in self.names:
            bare = self.same(without_image_suffix(name))
            ending = _PAGE_NUMBER.search(bare, max(0, len(bare) - _LONGEST_PAGE_NUMBER))
            if ending is None or bare in self._bare_files:
                continue
            document = _longest(documents, bare[: ending.start()])
            if document is not None:
                found[document, bare[: ending.start(1)]][name] = int(ending[1])
        return {
            name: ident
            for (document, _), numbers in found.items()
            for name, number in numbers.items()
            if 0 not in numbers.values() and (ident := idents.get((document, number))) is not None
        }


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


def _plain(name: str) -> str:
    """The name in NFC, with the slashes of Linux."""
    return same_form(name).replace("\\", "/")


def _folded(name: str) -> str:
    return same_form(_plain(name).casefold())


def _owners(forms: Iterable[tuple[_Form, str]]) -> dict[_Form, str | None]:
    """Return whose each form is; None if it is a form of several."""
    owners: dict[_Form, str | None] = {}
    for form, owner in forms:
        if owners.setdefault(form, owner) != owner:
            owners[form] = None
    return owners


def _first(owners: Mapping[str, str | None], forms: Iterable[str]) -> str | None:
    return next((owner for form in forms if (owner := owners.get(form)) is not None), None)


def _longest(owners: Mapping[str, str | None], name: str) -> str | None:
    """The owner of the longest end of a path that is known."""
    return next((owners[tail] for tail in _tails(name) if tail in owners), None)


def _tails(path: str) -> Iterator[str]:
    """Yield a path with its last folders, the longest end first."""
    parts = path.rsplit("/", _MOST_FOLDERS + 1)
    for start in range(max(0, len(parts) - _MOST_FOLDERS - 1), len(parts)):
        yield "/".join(parts[start:])


def _spellings(name: str) -> list[str]:
    bare = without_image_suffix(name)
    return safe_names(name) if bare == name else list(dict.fromkeys([*safe_names(name), *safe_names(bare)]))


def _base_names(name: str) -> list[str]:
    if "/" not in name and "." not in name:
        return [name]  # A path of pathlib takes far longer.
    return list(dict.fromkeys([PurePosixPath(name).name, PurePosixPath(without_image_suffix(name)).name]))
