"""Scoring what people already have: answers in a folder, a JSON-lines file, or the official JSON of a benchmark.

They are filed as a run, without any engine. Missing, extra and double answers are counted and named, never dropped: a
sample without an answer fails, an answer without a sample is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

from loupe.benchmarks import get_benchmark
from loupe.engines.adapters.steps import check_adapters
from loupe.engines.registry import slug
from loupe.errors import UsageError
from loupe.files.file_names import same_form
from loupe.pipeline.answer_files import answer_of, foreign_files, read_answer, read_answers, text_files, unread
from loupe.pipeline.answer_names import Answers, match_answers, nearly_named, twins_of
from loupe.pipeline.foreign_answers import refuse_foreign, with_service_json
from loupe.pipeline.plan import Plan, asked_ids, make_info, samples_of, survey
from loupe.runs.folder import RUN, RunFolder, claim
from loupe.runs.info import RunInfo, signature
from loupe.typed import encode_json
from loupe.types import Prediction, Sample

_LONGEST_NAME = 60
#: Letters of a name of an answer that a message shows.
_LONGEST_SHOWN = 100
_TWINS = "differ only in their Unicode form; the one spelled as its sample counts, else none: keep one of each pair"


def file_answers(plan: Plan, path: Path) -> tuple[RunFolder, Answers]:
    """File the answers at `path` as the run of `plan`, in place of those that stood there. Scoring is `score_run`.

    Raises UsageError where the file is in no known layout, or has no answer to any sample.
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
    if layout.read:
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
    """What does not fit between answers and samples, for the result's warnings; `taken`: by the step service_json."""
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
