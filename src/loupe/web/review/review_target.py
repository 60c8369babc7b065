"""What a path holds that can be reviewed, opened: olmOCR tests, a folder of documents, the files of a selection.

What is done with truth that is all reviewed goes with it: the command, as it is typed in a shell.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from loupe.benchmarks.folders.own.config import CONFIG, SAMPLES, how_to_begin, read_config
from loupe.benchmarks.folders.own.facts import FACTS
from loupe.benchmarks.folders.own.survey import asks_facts_alone, missing_samples, review_command
from loupe.benchmarks.folders.selection.documents import Document
from loupe.engines.registry import engine_kinds, profile_names
from loupe.errors import LoupeError, UsageError, word
from loupe.files.foreign import real_path
from loupe.web.review.entries import Entry
from loupe.web.review.line_file import LineFile
from loupe.web.review.olmocr_tests import TESTS
from loupe.web.review.own_samples import own_samples
from loupe.web.review.selection_files import SelectionFiles, document_types, find_selection, folders_with_documents
from loupe.web.review.selection_truth import selection_truth
from loupe.web.review.session import Review

_SOME_ENGINE = ("-e", "ENGINE")


def open_tests(file: Path) -> Review:
    """A test file. Raises DatasetError."""
    return Review(LineFile(file), TESTS, then=lambda _: run_tests(file))


def open_folder(folder: Path, *, document_type: str | None, by: str, negative: bool = False) -> Review:
    """The folder format; with a type, or where only its files are there, the ground truth of `loupe select`.

    `negative`: the documents right in the folder are of no such type.
    Raises DatasetError for settings that cannot be read, UsageError where there is nothing to review.
    """
    if document_type is not None:
        return _selection(folder, document_type, negative=negative)
    if (folder / SAMPLES).is_file():
        config, problems = read_config(folder)
        if config is None:
            raise problems[0].error()
        name = config.title or real_path(folder).name
        facts = asks_facts_alone(folder)
        return Review(
            LineFile(folder / SAMPLES),
            own_samples(config, by=by),
            name=name,
            then=(lambda _: review_command(folder)) if facts else partial(_run, folder),
            remark=f"These transcripts are not scored; what counts are their tests: {review_command(folder)}"
            if facts
            else "",
        )
    types = document_types(find_selection(folder))
    if types:
        return _selection(folder, types[0], negative=negative)
    if (folder / CONFIG).is_file():
        raise missing_samples(folder).error()
    raise UsageError(
        f"{folder}: nothing to review here",
        hint=f"{how_to_begin(folder)}; or, to choose a model: loupe review {word(folder)} --type TYPE",
    )


def _run(folder: Path, entries: Sequence[Entry]) -> str:
    return run_folder(folder, (draft.engine for entry in entries for draft in entry.drafts))


def _selection(folder: Path, document_type: str, *, negative: bool) -> Review:
    documents = find_selection(folder, negative=negative)
    if not documents:
        hint = "images or PDF files, here or in positive and negative"
        if found := folders_with_documents(folder):
            names = ", ".join(found[:5])
            hint = (
                f"{names}: rename them positive and negative, or review one of them (with --negative for the negatives)"
            )
        raise UsageError(f"{folder} holds no documents", hint=hint)
    files = SelectionFiles(folder, documents)
    positive = {each.path.relative_to(files.path).as_posix(): each.positive for each in documents}
    return Review(
        files,
        selection_truth(document_type, positive),
        name=real_path(folder).name,
        then=lambda _: select_models(folder, document_type, documents),
    )


def run_folder(folder: Path, drafted_by: Iterable[str]) -> str:
    """Score engines on the folder; those that drafted, as far as their names say which they are."""
    known = _engines()
    names = [name for name in dict.fromkeys(drafted_by) if name in known]
    engines = [word for name in names for word in ("-e", name)] or _SOME_ENGINE
    return shlex.join(["loupe", "run", _typed(folder), *engines])


def run_tests(file: Path) -> str:
    """Run the tests of an olmOCR-Bench file; "" where its documents do not lie where the benchmark looks for them.

    Facts of a folder of one's own are run with it.
    """
    if file.name == FACTS and (file.parent / CONFIG).is_file():
        return shlex.join(["loupe", "run", _typed(file.parent), *_SOME_ENGINE])
    if not (file.parent / "pdfs").is_dir():
        return ""
    return shlex.join(["loupe", "run", "olmocr_bench", *_SOME_ENGINE, "--data", _typed(file)])


def select_models(folder: Path, document_type: str, documents: Iterable[Document]) -> str:
    """Rank models on the documents; DIR stands for the ones that are not here."""
    sides = dict.fromkeys((True, False), "DIR")
    root = real_path(folder)
    for document in documents:
        sides[document.positive] = _typed(folder / document.path.parent.relative_to(root))
    words = ["--positive", sides[True], "--negative", sides[False], "--ground-truth", "reuse"]
    return shlex.join(["loupe", "select", "--type", document_type, *words])


def _typed(path: Path) -> str:
    """The path as it was given; one that begins with a dash is no option."""
    return f"./{path}" if str(path).startswith("-") else str(path)


def _engines() -> frozenset[str]:
    try:
        return frozenset([*profile_names(), *engine_kinds()])
    except LoupeError:
        return frozenset()
