"""What is done with truth that is all reviewed: the command, as it is typed in a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from loupe.benchmarks.selection.documents import Document
from loupe.engines.registry import engine_kinds, profile_names
from loupe.errors import LoupeError
from loupe.files.foreign import real_path

_SOME_ENGINE = ("-e", "ENGINE")


def run_folder(folder: Path, drafted_by: Iterable[str]) -> str:
    """Score engines on the folder; those that drafted, as far as their names say which they are."""
    known = _engines()
    names = [name for name in dict.fromkeys(drafted_by) if name in known]
    engines = [word for name in names for word in ("-e", name)] or _SOME_ENGINE
    return shlex.join(["loupe", "run", _typed(folder), *engines])


def run_tests(file: Path) -> str:
    """Run the tests of an olmOCR-Bench file; "" where its documents do not lie where the benchmark looks for them."""
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
