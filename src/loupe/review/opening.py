"""What a path holds that can be reviewed, opened: olmOCR tests, a folder of documents, the files of a selection."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from loupe.benchmarks.own.checking import missing_samples
from loupe.benchmarks.own.config import CONFIG, SAMPLES, read_config
from loupe.errors import UsageError, word
from loupe.files.foreign import real_path
from loupe.review.entries import Entry
from loupe.review.line_file import LineFile
from loupe.review.next_command import run_folder, run_tests, select_models
from loupe.review.olmocr_tests import TESTS
from loupe.review.own_samples import own_samples
from loupe.review.selection_files import SelectionFiles, document_types, find_selection, folders_with_documents
from loupe.review.selection_truth import selection_truth
from loupe.review.session import Review


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
        return Review(LineFile(folder / SAMPLES), own_samples(config, by=by), name=name, then=partial(_run, folder))
    types = document_types(find_selection(folder))
    if types:
        return _selection(folder, types[0], negative=negative)
    if (folder / CONFIG).is_file():
        raise missing_samples(folder).error()
    raise UsageError(
        f"{folder}: nothing to review here",
        hint=f"loupe init {word(folder)} begins truth of your own; --type TYPE that of loupe select",
    )


def _run(folder: Path, entries: Sequence[Entry]) -> str:
    return run_folder(folder, (draft.engine for entry in entries for draft in entry.drafts))


def _selection(folder: Path, document_type: str, *, negative: bool) -> Review:
    documents = find_selection(folder, negative=negative)
    if not documents:
        hint = "images or PDF files, here or in positive and negative"
        if found := folders_with_documents(folder):
            names = ", ".join(found[:5])
            hint = f"{names}: call them positive and negative, or review one of them, with --negative if need be"
        raise UsageError(f"{folder} holds no documents", hint=hint)
    files = SelectionFiles(folder, documents)
    positive = {each.path.relative_to(files.path).as_posix(): each.positive for each in documents}
    return Review(
        files,
        selection_truth(document_type, positive),
        name=real_path(folder).name,
        then=lambda _: select_models(folder, document_type, documents),
    )
