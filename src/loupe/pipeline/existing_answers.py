"""Scoring what people already have: answers in a folder, a JSON-lines file, or the official JSON of a benchmark.

They are filed as a run, without any engine. Missing, extra and double answers are counted and named, never dropped: a
sample without an answer fails, an answer without a sample is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from loupe.benchmarks import get_benchmark
from loupe.engines.registry import slug
from loupe.errors import UnsafeFileError, UsageError, did_you_mean
from loupe.files.foreign import data_lines, is_inside, read_data
from loupe.pipeline.answer_names import Answers, match_answers, nearly_named
from loupe.pipeline.plan import Plan, asked_ids, make_info, samples_of, survey
from loupe.pipeline.stored_answers import StoredAnswers
from loupe.runs.folder import RUN, RunFolder, claim
from loupe.runs.info import RunInfo
from loupe.typed import decode_json, encode_json, json_decoder
from loupe.types import RETRIED, UNDECODABLE, UNREADABLE, Prediction, Sample

_TEXT_SUFFIXES = frozenset({".txt", ".md", ".html", ".json", ".mmd", ".tex"})
_LONGEST_NAME = 60
_ID_KEYS = ("sample_id", "sample", "id", "image_path", "filename", "image", "name")
_TEXT_KEYS = ("predict", "prediction", "pred", "text", "response", "answer", "output", "html", "markdown")


def file_answers(plan: Plan, path: Path) -> tuple[RunFolder, Answers]:
    """File the answers at `path` as the run of `plan`, in place of those that stood there. Scoring is `score_run`.

    Raises UsageError where the file is in no known layout, or has no answer to any sample.
    """
    benchmark = get_benchmark(plan.benchmark)
    known = survey(benchmark, plan.benchmark, plan.data, plan.options)
    info = make_info(plan, benchmark, known)
    asked = asked_ids(known.ids, info)
    samples = partial(samples_of, benchmark, plan.data, plan.options)
    answers = find_all(plan.benchmark, path, samples, asked, known.ids)
    # Officially, a folder without any answer is a candidate like any other (`missing=official`).
    if not answers.found and plan.options.get("missing") != "official":
        there = [*answers.extra, *answers.unread]
        first = ", ".join(repr(name) for name in there[:3]) or "no answers at all"
        names = benchmark.answers.file_names
        wanted = [name for sample in samples() for name in names(sample)] if names and path.is_dir() else []
        raise UsageError(
            f"{path}: no answer to any sample of {plan.benchmark}; it has {first}",
            hint=nearly_named(path, there, wanted)
            or f"name answers after samples: {', '.join(repr(ident) for ident in asked[:3])}",
        )
    with claim(
        plan.folder, info, shared=plan.shared, hint=f"{_other_name(plan, info)} keeps both; or remove {plan.path}"
    ) as folder:
        folder.drop_result()
        records = (answers.found.get(ident) or _missing(ident, path) for ident in asked)
        folder.write_predictions(map(encode_json, records))
        folder.write_info(msgspec.structs.replace(info, data=folder.info.data, notes=_notes(answers, path)))
    return folder, answers


def _other_name(plan: Plan, info: RunInfo) -> str:
    """The option that files answers apart; one that can be pasted where options of the benchmark are given."""
    there = RunFolder.open(plan.folder).info.options if RUN in plan.folder.names() else {}
    values = [value for key, value in info.options.items() if there.get(key) != value]
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
    if path.is_dir() and layout.in_folder and layout.join:
        return find_repeated_answers(path, partial(layout.in_folder, samples()), asked, join=layout.join)
    if path.is_dir() and layout.file_names:
        return find_answers(path, {sample.id: layout.file_names(sample) for sample in samples()}, asked)
    published = layout.published_names(samples()) if layout.published_names else None
    answers = read_answers(benchmark, path, samples=samples)
    matched = match_answers(answers, asked, known, published=published)
    return replace(matched, unread=_unread(path))


def _notes(answers: Answers, path: Path) -> list[str]:
    """What does not fit between answers and samples, for the result's warnings."""
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
    )
    return [
        f"{path.name}: {len(names):,} {one if len(names) == 1 else more}: "
        f"{', '.join(names[:10])}{' …' if len(names) > 10 else ''}"
        for one, more, names in said
        if names
    ]


def read_answers(benchmark: str, path: Path, *, samples: Callable[[], Iterable[Sample]]) -> Iterator[Prediction]:
    """Every answer under the name that it has there. Raises UsageError for a file in no known layout."""
    if path.is_dir():
        return _from_folder(path)
    if path.suffix == ".jsonl":
        return _from_lines(path)
    if path.suffix == ".json":
        return _from_document(benchmark, path, samples)
    raise UsageError(
        f"{path}: neither a folder nor a .json or .jsonl file", hint="a folder with one text file per sample also works"
    )


def find_answers(folder: Path, names: Mapping[str, Sequence[str]], asked: Iterable[str]) -> Answers:
    """Answers by the file names of each sample, in the order in which its official evaluator tries them."""
    there = {file.relative_to(folder).as_posix(): file for file in _text_files(folder)}
    chosen = {ident: next((name for name in tried if name in there), None) for ident, tried in names.items()}
    used = set(chosen.values())
    passed_over = {
        name: first
        for ident, tried in names.items()
        for name in tried
        if (first := chosen[ident]) and name in there and name not in used
    }
    extra = sorted(there.keys() - used - passed_over.keys())
    found = Answers(extra=extra, passed_over=passed_over, unread=_unread(folder))
    for ident in asked:
        name = chosen[ident]
        if name is None:
            found.missing.append(ident)
        else:
            found.found[ident] = _read_answer(ident, there[name])
    return found


def find_repeated_answers(
    folder: Path,
    chosen: Callable[[Iterable[str]], Mapping[str, Sequence[str]]],
    asked: Iterable[str],
    *,
    join: Callable[[Sequence[str | None]], str],
) -> Answers:
    """Answers where several files may answer one sample: its benchmark chooses them, and makes one text of theirs."""
    there = {file.relative_to(folder).as_posix(): file for file in _text_files(folder)}
    by_sample = chosen(there)
    used = {name for names in by_sample.values() for name in names}
    found = Answers(extra=sorted(there.keys() - used), unread=_unread(folder))
    for ident in asked:
        answers = [_read_answer(ident, there[name]) for name in by_sample[ident]]
        if not answers:
            found.missing.append(ident)
        elif len(answers) == 1:
            found.found[ident] = answers[0]
        else:
            text = join([None if each.failed else each.text for each in answers])
            found.found[ident] = msgspec.structs.replace(_answer(ident, text), joined=True)
    return found


def _missing(ident: str, path: Path) -> Prediction:
    return Prediction(sample=ident, outcome="missing", error=f"no answer in {path}")


def _from_folder(folder: Path) -> Iterator[Prediction]:
    for file in _text_files(folder):
        yield _read_answer(file.relative_to(folder).with_suffix("").as_posix(), file)


def _text_files(folder: Path) -> Iterator[Path]:
    """Those that lie in the folder really: a link could make an answer of any file of the user's."""
    for file in sorted(folder.rglob("*")):
        if _is_text(file) and file.is_file() and is_inside(file, folder):
            yield file


def _is_text(file: Path) -> bool:
    return file.suffix.lower() in _TEXT_SUFFIXES


def _unread(path: Path) -> list[str]:
    """Files in a folder of answers that are not read; hidden ones are nobody's answers."""
    if not path.is_dir():
        return []
    there = ((file.relative_to(path), file) for file in sorted(path.rglob("*")) if file.is_file())
    shown = [(name, file) for name, file in there if not any(part.startswith(".") for part in name.parts)]
    return [
        name.as_posix() if not _is_text(file) else f"{name.as_posix()} (a link out of the folder)"
        for name, file in shown
        if not _is_text(file) or not is_inside(file, path)
    ]


def _read_answer(name: str, file: Path) -> Prediction:
    try:
        return _answer(name, read_data(file).decode("utf-8"))
    except (UnicodeDecodeError, UnsafeFileError) as error:
        said = error.message if isinstance(error, UnsafeFileError) else f"{file}: not UTF-8 (byte {error.start})"
        return Prediction(sample=name, outcome="error", error=said, finish_reason=UNREADABLE)


def _from_lines(path: Path) -> Iterator[Prediction]:
    """JSON lines; those of a run keep their class, and its last good line of a sample counts."""
    of_run, outcomes = StoredAnswers(), dict[str, str]()
    for number, line in data_lines(path):
        try:
            if b'"class"' in line:
                record = json_decoder(Prediction).decode(line)
                old = outcomes.get(record.sample)
                if old is None or old in RETRIED or record.outcome not in RETRIED:
                    of_run[record.sample], outcomes[record.sample] = record, record.outcome
                continue
            yield _from_object(decode_json(line), f"{path}, line {number}")
        except UNDECODABLE as error:
            raise UsageError(f"{path}, line {number}: {error}") from None
    yield from of_run.values()


def _from_document(benchmark: str, path: Path, samples: Callable[[], Iterable[Sample]]) -> Iterator[Prediction]:
    """One JSON document: the official layout if the benchmark has one of its own, else id → text, or objects."""
    try:
        document = decode_json(read_data(path))
    except UNDECODABLE as error:
        raise UsageError(f"{path}: {error}") from None
    official = get_benchmark(benchmark).answers.in_document
    if official is not None:
        for name, text in official(document, samples()):
            yield _answer(name, text)
    elif isinstance(document, dict):
        for name, value in document.items():
            yield _answer_of_json(name, value, f"{path}, {name!r}")
    elif isinstance(document, list):
        for number, row in enumerate(document, 1):
            yield _from_object(row, f"{path}, entry {number}")
    else:
        raise UsageError(f"{path}: neither a JSON object nor a list", hint='{"sample id": "answer", …}')


def _from_object(row: Any, place: str) -> Prediction:
    if not isinstance(row, dict):
        raise UsageError(f"{place}: not an object with an id and a text")
    name = next((str(row[key]) for key in _ID_KEYS if row.get(key) is not None), None)
    if name is None:
        raise UsageError(f"{place}: no `id`{_nearest(row, _ID_KEYS)}", hint=f"one of: {', '.join(_ID_KEYS)}")
    key = next((key for key in _TEXT_KEYS if key in row), None)
    if key is not None:
        return _answer_of_json(name, row[key], place)
    if row.get("error"):
        return Prediction(sample=name, outcome="error", error=f"{place}: {str(row['error'])[:300]}")
    found = ", ".join(f"`{key[:40]}`" for key in list(row)[:8])
    raise UsageError(
        f"{place}: no text; it has {found}{_nearest(row, _TEXT_KEYS)}",
        hint=f"the text of an answer is found under one of: {', '.join(_TEXT_KEYS)} (null: no answer)",
    )


def _nearest(row: Mapping[str, Any], wanted: Sequence[str]) -> str:
    """The key that was meant, where one of the row's is a misspelling."""
    return next((near for key in list(row)[:50] if len(key) <= 40 and (near := did_you_mean(key, wanted))), "")


def _answer_of_json(name: str, value: Any, place: str) -> Prediction:
    """A text as it is, fields and elements as their JSON; null is no answer, and not the text "null"."""
    if value is None:
        return Prediction(sample=name, outcome="missing", error=f"{place}: no text")
    return _answer(name, value if isinstance(value, str) else encode_json(value).decode())


def _answer(name: str, text: str) -> Prediction:
    return Prediction(sample=name, text=text, outcome="ok" if text.strip() else "empty")
