"""Scoring of answers that people already have, matched with samples by their names.

They are filed as a run, without any engine. Missing, extra and double answers are counted and named, never dropped: a
sample without an answer fails, an answer without a sample is reported.

Names: docs/scoring-rules.md#names-of-answers. A name is compared with the ids as it is, then with the page files, then
as a safe file name or without the suffix of an image, then without its folders, and last as a document with a page
number; all of this in NFC, and then also without regard to case. No looser match takes the place of a closer one, and
none is made that could mean two samples or two answers.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import TypeVar

import msgspec

from loupe.benchmarks import get_benchmark
from loupe.engines.adapters.steps import check_adapters
from loupe.engines.registry import slug
from loupe.errors import UsageError
from loupe.files.file_names import safe_names, same_form, without_image_suffix
from loupe.pipeline.answer_files import (
    FOREIGN,
    StoredAnswers,
    answer_of,
    foreign_files,
    read_answer,
    read_answers,
    refuse_foreign,
    text_files,
    unread,
    with_service_json,
)
from loupe.pipeline.plan import Plan, asked_ids, make_info, samples_of, survey
from loupe.runs.folder import RUN, RunFolder, claim
from loupe.runs.info import RunInfo, signature
from loupe.typed import encode_json
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
    """The mistake in the names of all these files, if it is a sub-folder or the ending alone; else ""."""
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


_LONGEST_NAME = 60
#: Letters of a name of an answer that a message shows.
_LONGEST_SHOWN = 100
_TWINS = "differ only in their Unicode form; the one spelled as its sample counts, else none: keep one of each pair"


def file_answers(plan: Plan, path: Path) -> tuple[RunFolder, Answers]:
    """File the answers at `path` as the run of `plan`, in place of those that stood there. Scoring is `score_run`.

    Raises UsageError if the file is in no known layout, or has no answer to any sample.
    """
    check_adapters(plan.profile.adapters)
    benchmark = get_benchmark(plan.benchmark)
    known = survey(benchmark, plan.benchmark, plan.data, plan.options)
    info = make_info(plan, benchmark, known)
    asked = asked_ids(known.ids, info)
    samples = partial(samples_of, benchmark, plan.data, plan.options)
    answers = find_all(plan.benchmark, path, samples, asked, known.ids)
    # Officially, a folder without any answer is a candidate like any other (`missing=official`).
    if not answers.found and plan.options.get("missing") != "official":
        refuse_foreign(path, foreign_files(path))
        there = [*answers.extra, *answers.unread]
        first = ", ".join(repr(_short(name)) for name in there[:3]) or "no answers at all"
        names = benchmark.answers.file_names
        wanted = [name for sample in samples() for name in names(sample)] if names and path.is_dir() else []
        raise UsageError(
            f"{path}: no answer to any sample of {plan.benchmark}; it has {first}",
            hint=nearly_named(path, there, wanted)
            or f"name answers after samples: {', '.join(repr(ident) for ident in asked[:3])}",
        )
    refuse_foreign(path, answers.found.values())
    steps, taken = with_service_json(info.adapters, answers.found.values())
    if taken:
        info = msgspec.structs.replace(info, adapters=steps, defining={**info.defining, "adapters": steps})
        info = msgspec.structs.replace(info, signature=signature(info))
    with claim(
        plan.folder, info, shared=plan.shared, hint=f"use {_other_name(plan, info)} to keep both, or remove {plan.path}"
    ) as folder:
        folder.drop_result()
        records = (answers.found.get(ident) or _missing(ident, path) for ident in asked)
        folder.write_predictions(map(encode_json, records))
        place = {name: getattr(folder.info, name) for name in ("data", "data_seal")}
        folder.write_info(msgspec.structs.replace(info, **place, notes=_notes(answers, path, taken)))
    return folder, answers


def _other_name(plan: Plan, info: RunInfo) -> str:
    """The option that files answers apart; one that can be pasted where options of the benchmark are given."""
    there = RunFolder.open(plan.folder).info if RUN in plan.folder.names() else None
    values = [value for key, value in info.options.items() if there and there.options.get(key) != value]
    values += [step for step in info.adapters if there and step not in there.adapters]
    name = slug("-".join([plan.name or plan.label, *values]))
    return f"--name {name}" if values and len(name) <= _LONGEST_NAME else "--name NAME"


def find_all(
    benchmark: str,
    path: Path,
    samples: Callable[[], Iterable[Sample]],
    asked: Sequence[str],
    known: Sequence[str],
) -> Answers:
    """The answers at `path` to the samples asked for, found as the benchmark's official evaluator finds them."""
    layout = get_benchmark(benchmark).answers
    if layout.read and path.suffix not in (".json", ".jsonl"):
        return match_answers(layout.read(path, samples()), asked, known)
    if path.is_dir() and layout.in_folder and layout.join:
        return find_repeated_answers(path, partial(layout.in_folder, samples()), asked, join=layout.join)
    if path.is_dir() and layout.file_names:
        return find_answers(path, {sample.id: layout.file_names(sample) for sample in samples()}, asked)
    published = layout.published_names(samples()) if layout.published_names else None
    answers = read_answers(benchmark, path, samples=samples)
    matched = match_answers(answers, asked, known, published=published, samples=samples)
    return replace(matched, unread=unread(path))


def _notes(answers: Answers, path: Path, taken: int) -> list[str]:
    """Mismatches of answers and samples, for the result's warnings; `taken`: by the step service_json."""
    said = (
        # Those without an answer are failed samples, listed with the others.
        ("answer has no sample", "answers have no sample", answers.extra),
        (
            "answer is ignored in favour of one with precedence",
            "answers are ignored in favour of ones with precedence",
            [f"{name} ({used} counts)" for name, used in answers.passed_over.items()],
        ),
        (
            "sample has several answers, the last one counts",
            "samples have several answers, the last one counts",
            answers.double,
        ),
        ("file was not read", "files were not read", answers.unread),
        (
            f"pair of names {_TWINS}",
            f"pairs of names {_TWINS}",
            answers.twins,
        ),
    )
    of = f"{taken:,} of {len(answers.found):,} answers are"
    service = f"{path.name}: {of} JSON of a service; the step service_json takes their text"
    return [service] * bool(taken) + [
        f"{path.name}: {len(names):,} {one if len(names) == 1 else more}: "
        f"{', '.join(map(_short, names[:10]))}{' …' if len(names) > 10 else ''}"
        for one, more, names in said
        if names
    ]


def _short(name: str) -> str:
    """Cut a long name, and escape one with characters that cannot be shown or written down."""
    name = name if name.isprintable() else ascii(name)[1:-1]
    return name if len(name) <= _LONGEST_SHOWN else f"{name[: _LONGEST_SHOWN - 1]}…"


def find_answers(folder: Path, names: Mapping[str, Sequence[str]], asked: Iterable[str]) -> Answers:
    """Answers by the file names of each sample, in the order in which its official evaluator tries them."""
    there = {file.relative_to(folder).as_posix(): file for file in text_files(folder)}
    forms = {same_form(name): name for name in there}
    here = {
        ident: [name for each in tried if (name := each if each in there else forms.get(same_form(each)))]
        for ident, tried in names.items()
    }
    used = {tried[0] for tried in here.values() if tried}
    passed_over = {name: tried[0] for tried in here.values() for name in tried if name not in used}
    extra = sorted(there.keys() - used - passed_over.keys())
    found = Answers(extra=extra, passed_over=passed_over, unread=unread(folder), twins=twins_of(there))
    for ident in asked:
        if here[ident]:
            found.found[ident] = read_answer(ident, there[here[ident][0]], as_official=True)
        else:
            found.missing.append(ident)
    return found


def find_repeated_answers(
    folder: Path,
    chosen: Callable[[Iterable[str]], Mapping[str, Sequence[str]]],
    asked: Iterable[str],
    *,
    join: Callable[[Sequence[str | None]], str],
) -> Answers:
    """Answers where several files may answer one sample: its benchmark chooses them, and makes one text of theirs."""
    files = {file.relative_to(folder).as_posix(): file for file in text_files(folder)}
    # Official programs do not know the names that macOS makes.
    there = {same_form(name): file for name, file in files.items()} | files
    by_sample = chosen(there)
    used = {there[name] for names in by_sample.values() for name in names}
    extra = sorted(name for name, file in files.items() if file not in used)
    found = Answers(extra=extra, unread=unread(folder), twins=twins_of(files))
    for ident in asked:
        answers = [read_answer(ident, there[name], as_official=True) for name in by_sample[ident]]
        if not answers:
            found.missing.append(ident)
        elif len(answers) == 1:
            found.found[ident] = answers[0]
        else:
            text = join([None if each.failed else each.text for each in answers])
            found.found[ident] = msgspec.structs.replace(answer_of(ident, text), joined=True)
    return found


def _missing(ident: str, path: Path) -> Prediction:
    return Prediction(sample=ident, outcome="missing", error=f"no answer in {path}")
