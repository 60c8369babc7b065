"""What a path holds that can be reviewed, opened: tests of olmOCR-Bench, or a folder of documents."""

from __future__ import annotations

from pathlib import Path

from loupe.benchmarks.own.checking import missing_samples
from loupe.benchmarks.own.config import SAMPLES, read_config
from loupe.errors import UsageError
from loupe.review.line_file import LineFile
from loupe.review.olmocr_tests import TESTS
from loupe.review.own_samples import own_samples
from loupe.review.session import Review


def open_tests(file: Path) -> Review:
    """A test file. Raises DatasetError."""
    return Review(LineFile(file), TESTS)


def open_folder(folder: Path, *, document_type: str | None, by: str) -> Review:
    """A folder of the folder format. Raises DatasetError for settings that cannot be read."""
    if document_type is not None:
        raise UsageError("not yet")
    config, problems = read_config(folder)
    if config is None:
        raise problems[0].error()
    if not (folder / SAMPLES).is_file():
        raise missing_samples(folder).error()
    return Review(LineFile(folder / SAMPLES), own_samples(config, by=by), name=config.title or folder.resolve().name)
