"""Targets of a review, opened from a path: olmOCR tests, a folder of documents, or what features find there.

What is done with truth that is all reviewed goes with it: the command, as it is typed in a shell.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from loupe.benchmarks.folders.own.config import CONFIG, SAMPLES, how_to_begin, read_config
from loupe.benchmarks.folders.own.facts import FACTS
from loupe.benchmarks.folders.own.survey import asks_facts_alone, missing_samples, review_command
from loupe.engines.registry import engine_kinds, profile_names
from loupe.errors import LoupeError, UsageError, word
from loupe.files.foreign import real_path
from loupe.hooks import loaded
from loupe.web.review.entries import Entry
from loupe.web.review.line_file import LineFile
from loupe.web.review.olmocr_tests import TESTS
from loupe.web.review.own_samples import own_samples
from loupe.web.review.session import Review

F = TypeVar("F", bound=Callable[..., Any])
_SOME_ENGINE = ("-e", "ENGINE")


def open_tests(file: Path) -> Review:
    """A test file. Raises DatasetError."""
    return Review(LineFile(file), TESTS, then=lambda _: run_tests(file))


class ReviewTarget(Protocol):
    """A module of the hook `review_targets`: what `loupe review` can open besides the folder format.

    `ABOUT` follows "DIR has … or" in the help, and `HINT` is a command in the hint if there is nothing to review.
    """

    ABOUT: str
    HINT: str

    def add_options(self, function: F) -> F:
        """Add options to `loupe review folder`."""

    def open_review(self, folder: Path, options: Mapping[str, Any]) -> Review | None:
        """Open what the options ask for; without any, what the folder holds. None if it is nothing of this target."""


def open_folder(folder: Path, *, by: str, **options: Any) -> Review:
    """Open the folder format; if options of a target ask for it, or only its files are there, that of the target.

    Raises DatasetError for settings that cannot be read, UsageError if there is nothing to review.
    """
    if (folder / SAMPLES).is_file() and not any(options.values()):
        return _own_folder(folder, by)
    targets = [target for _, target in loaded("review_targets")]
    for target in targets:
        review: Review | None = target.open_review(folder, options)
        if review is not None:
            return review
    if (folder / CONFIG).is_file():
        raise missing_samples(folder).error()
    hints = [how_to_begin(folder), *(f"or, {target.HINT.replace('DIR', word(folder))}" for target in targets)]
    raise UsageError(f"{folder}: nothing to review here", hint="; ".join(hints))


def _own_folder(folder: Path, by: str) -> Review:
    config, problems = read_config(folder)
    if config is None:
        raise problems[0].error()
    facts = asks_facts_alone(folder)
    return Review(
        LineFile(folder / SAMPLES),
        own_samples(config, by=by),
        name=config.title or real_path(folder).name,
        then=(lambda _: review_command(folder)) if facts else partial(_run, folder),
        remark=f"These transcripts are not scored; what counts are their tests: {review_command(folder)}"
        if facts
        else "",
    )


def _run(folder: Path, entries: Sequence[Entry]) -> str:
    return run_folder(folder, (draft.engine for entry in entries for draft in entry.drafts))


def run_folder(folder: Path, drafted_by: Iterable[str]) -> str:
    """Score engines on the folder; those that drafted, as far as their names say which they are."""
    known = _engines()
    names = [name for name in dict.fromkeys(drafted_by) if name in known]
    engines = [word for name in names for word in ("-e", name)] or _SOME_ENGINE
    return shlex.join(["loupe", "run", typed(folder), *engines])


def run_tests(file: Path) -> str:
    """Run the tests of an olmOCR-Bench file; "" if its documents do not lie where the benchmark looks for them.

    Facts of a folder of one's own are run with it.
    """
    if file.name == FACTS and (file.parent / CONFIG).is_file():
        return shlex.join(["loupe", "run", typed(file.parent), *_SOME_ENGINE])
    if not (file.parent / "pdfs").is_dir():
        return ""
    return shlex.join(["loupe", "run", "olmocr_bench", *_SOME_ENGINE, "--data", typed(file)])


def typed(path: Path) -> str:
    """The path as it was given; one that begins with a dash is no option."""
    return f"./{path}" if str(path).startswith("-") else str(path)


def _engines() -> frozenset[str]:
    try:
        return frozenset([*profile_names(), *engine_kinds()])
    except LoupeError:
        return frozenset()
