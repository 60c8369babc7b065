"""Answers that exist already: a folder of texts, JSON lines, a JSON document, or the form of another program."""

from __future__ import annotations

import weakref
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from itertools import islice
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any

import msgspec

from loupe.benchmarks import get_benchmark
from loupe.engines.adapters.service_json import service_json
from loupe.engines.adapters.steps import STEPS, apply_adapters
from loupe.engines.shared.foreign_formats import foreign_format
from loupe.errors import UnsafeFileError, UsageError, did_you_mean, word
from loupe.files.foreign import data_lines, decode_text, encoding_of, is_inside, read_data
from loupe.runs.folder import RunFolder
from loupe.runs.places import Place
from loupe.typed import decode_json, encode_json, json_decoder
from loupe.types import FAILED, RETRIED, UNDECODABLE, UNREADABLE, Prediction, Sample

#: Bytes of answers that stay in memory.
_HELD = 32 << 20


class StoredAnswers(MutableMapping[str, Prediction]):
    """Predictions by name. The file has no name and goes with this object; what is replaced stays in it till then."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(max_size=_HELD)  # noqa: SIM115  it is closed with this object
        weakref.finalize(self, self._file.close)
        self._starts = array("q", [0])
        self._numbers: dict[str, int] = {}

    def store(self, prediction: Prediction) -> int:
        """Keep an answer that has no name yet; returns its number, for `name`."""
        data = encode_json(prediction)
        self._file.seek(self._starts[-1])
        self._file.write(data)
        self._starts.append(self._starts[-1] + len(data))
        return len(self._starts) - 2

    def name(self, name: str, number: int) -> None:
        """Let an answer be that of this name, in place of the one before."""
        self._numbers[name] = number

    def __setitem__(self, name: str, prediction: Prediction) -> None:
        self.name(name, self.store(prediction))

    def __getitem__(self, name: str) -> Prediction:
        number = self._numbers[name]
        start, end = self._starts[number], self._starts[number + 1]
        self._file.seek(start)
        found = json_decoder(Prediction).decode(self._file.read(end - start))
        return msgspec.structs.replace(found, sample=name)

    def __delitem__(self, name: str) -> None:
        del self._numbers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, name: object) -> bool:
        return name in self._numbers


#: Why an answer that was filed is none.
FOREIGN = "foreign"
#: Answers of a run that are looked at.
_LOOKED_AT = 200
_BETWEEN = ", not text; "


def refused_format(name: str, text: str, place: str) -> Prediction | None:
    """Return the failure of an answer that is in a foreign format, None for any other."""
    if (found := foreign_format(text)) is None:
        return None
    error = f"{place}: {found.name}{_BETWEEN}{found.advice}"
    return Prediction(sample=name, outcome="error", error=error, finish_reason=FOREIGN)


def refuse_foreign(path: Path, answers: Iterable[Prediction]) -> None:
    """Raise UsageError if all that was found are answers in foreign formats."""
    count, error = 0, ""
    for answer in answers:
        if answer.finish_reason != FOREIGN:
            return
        count, error = count + 1, error or answer.error
    if count:
        message, _, advice = error.partition(_BETWEEN)
        more = f" (and {count - 1:,} more answers)" if count > 1 else ""
        raise UsageError(f"{path}: the answers are not text: {message}{more}", hint=advice)


def with_service_json(adapters: Iterable[str], answers: Iterable[Prediction]) -> tuple[list[str], int]:
    """Return the steps, with `service_json` if an answer needs it, and how many do."""
    count = sum(service_json(answer.text) != answer.text for answer in answers)
    wanted = {*adapters, *(["service_json"] if count else [])}
    return [step for step in STEPS if step in wanted], count


def foreign_warnings(folder: RunFolder, predictions: Mapping[str, Place]) -> list[str]:
    """Return a warning for each foreign format among the answers of a run, by up to 200 of them."""
    places = [place for place in predictions.values() if place.mark not in FAILED]
    chosen = places[:: max(1, -(-len(places) // _LOOKED_AT))]
    counts: Counter[str] = Counter()
    for answer in folder.read_predictions(chosen):
        text = apply_adapters(answer.text, folder.info.adapters)
        if (found := foreign_format(text)) is not None:
            counts[f"{found.name}, not text"] += 1
        elif service_json(text) != text:
            counts[
                "JSON of a service, not text: the step service_json takes it (-o 'adapters=[\"service_json\"]')"
            ] += 1
    return [f"{count:,} of {len(chosen):,} answers looked at are {what}" for what, count in counts.items()]


_TEXT_SUFFIXES = frozenset({".txt", ".md", ".html", ".json", ".mmd", ".tex"})
#: Endings of formats that are known by their content, and refused.
_FOREIGN_SUFFIXES = frozenset({".hocr", ".htm", ".xhtml", ".xml", ".alto", ".page", ".tei", ".mets", ".tsv"})
#: Files with such endings that are looked at.
_MOST_FOREIGN = 1_000
_ID_KEYS = ("sample_id", "sample", "id", "image_path", "filename", "image", "name")
_TEXT_KEYS = ("predict", "prediction", "pred", "text", "response", "answer", "output", "html", "markdown")


def read_answers(benchmark: str, path: Path, *, samples: Callable[[], Iterable[Sample]]) -> Iterator[Prediction]:
    """Every answer under the name that it has there. Raises UsageError for a file in no known layout."""
    if path.is_dir():
        return _from_folder(path)
    if path.suffix == ".jsonl":
        return _from_lines(path)
    if path.suffix == ".json":
        return _from_document(benchmark, path, samples)
    raise UsageError(
        f"{path}: neither a folder nor a .json or .jsonl file",
        hint="give one of these, or a folder with one text file per sample",
    )


def _from_folder(folder: Path) -> Iterator[Prediction]:
    for file in text_files(folder):
        yield read_answer(file.relative_to(folder).with_suffix("").as_posix(), file)


def text_files(folder: Path) -> Iterator[Path]:
    """Yield the text files that lie in the folder really: a link could make an answer of any file of the user's.

    Hidden ones are left out, such as the `._NAME` that macOS puts beside each file.
    """
    for file in sorted(folder.rglob("*")):
        if _is_text(file) and file.is_file() and is_inside(file, folder) and not _is_hidden(file.relative_to(folder)):
            yield file


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _is_text(file: Path) -> bool:
    return file.suffix.lower() in _TEXT_SUFFIXES


def unread(path: Path) -> list[str]:
    """Files in a folder of answers that are not read; hidden ones are nobody's answers."""
    if not path.is_dir():
        return []
    there = ((file.relative_to(path), file) for file in sorted(path.rglob("*")) if file.is_file())
    shown = [(name, file) for name, file in there if not _is_hidden(name)]
    return [
        name.as_posix() if not _is_text(file) else f"{name.as_posix()} (a link out of the folder)"
        for name, file in shown
        if not _is_text(file) or not is_inside(file, path)
    ]


def foreign_files(folder: Path) -> Iterator[Prediction]:
    """Yield the refusals of files that other programs have written under endings of their own: .hocr, .xml, .tsv."""
    there = (folder / name for name in unread(folder))
    named = (file for file in there if file.suffix.lower() in _FOREIGN_SUFFIXES and is_inside(file, folder))
    for file in islice(named, _MOST_FOREIGN):
        answer = read_answer(file.stem, file)
        if answer.finish_reason == FOREIGN:
            yield answer


def read_answer(name: str, file: Path, *, as_official: bool = False) -> Prediction:
    """Read the answer in a text file; one that cannot be read is an error of its sample.

    With `as_official`, a byte order mark stays part of the text: official evaluators that find the files themselves
    read them as plain UTF-8.
    """
    try:
        data = read_data(file)
        encoding = encoding_of(data)[1]
        if as_official and encoding != "utf-8":
            raise UnsafeFileError(f"{file}: {encoding.upper()}, but this benchmark's answers are read as UTF-8")
        text = data.decode() if as_official else decode_text(data)
    except UnsafeFileError as error:
        return Prediction(sample=name, outcome="error", error=error.message, finish_reason=UNREADABLE)
    except UnicodeDecodeError as error:
        said = f"{file}: not {error.encoding.upper()} (byte {error.start})"
        return Prediction(sample=name, outcome="error", error=said, finish_reason=UNREADABLE)
    return refused_format(name, text, str(file)) or answer_of(name, text, keep_mark=as_official)


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
        text = decode_text(read_data(path))
        document = decode_json(text)
    except (*UNDECODABLE, UnicodeEncodeError) as error:
        raise UsageError(f"{path}: {error}") from None
    _refuse_single_page(path, text)
    official = get_benchmark(benchmark).answers.in_document
    if official is not None:
        for name, text in official(document, samples()):
            yield answer_of(name, text)
    elif isinstance(document, dict):
        for name, value in document.items():
            yield _answer_of_json(name, value, f"{path}, {name!r}")
    elif isinstance(document, list):
        for number, row in enumerate(document, 1):
            yield _from_object(row, f"{path}, entry {number}")
    else:
        raise UsageError(f"{path}: neither a JSON object nor a list", hint='{"sample id": "answer", …}')


def _refuse_single_page(path: Path, text: str) -> None:
    """Raise UsageError for a document that is what a service says about one page."""
    found = foreign_format(text)
    if found is not None or service_json(text) != text:
        name = found.name if found else "JSON of a service"
        raise UsageError(
            f"{path}: {name} for one page, not answers by sample",
            hint=found.advice if found else f"score its folder: loupe score BENCHMARK {word(path.parent)}",
        )


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
        hint=f"put the text of an answer under one of: {', '.join(_TEXT_KEYS)} (null: no answer)",
    )


def _nearest(row: Mapping[str, Any], wanted: Sequence[str]) -> str:
    """The key that was meant, where one of the row's is a misspelling."""
    return next((near for key in list(row)[:50] if len(key) <= 40 and (near := did_you_mean(key, wanted))), "")


def _answer_of_json(name: str, value: Any, place: str) -> Prediction:
    """A text as it is, fields and elements as their JSON; null is no answer, and not the text "null"."""
    if value is None:
        return Prediction(sample=name, outcome="missing", error=f"{place}: no text")
    text = value if isinstance(value, str) else encode_json(value).decode()
    return refused_format(name, text, place) or answer_of(name, text)


def answer_of(name: str, text: str, *, keep_mark: bool = False) -> Prediction:
    """Make an answer of a text. A byte order mark that a program has taken for text is dropped."""
    text = text if keep_mark else text.removeprefix("\ufeff")
    return Prediction(sample=name, text=text, outcome="ok" if text.strip() else "empty")
