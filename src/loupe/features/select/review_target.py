"""Ground truth of `loupe select` as something that `loupe review` opens (the hook `review_targets`)."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from loupe.errors import UsageError, word

if TYPE_CHECKING:
    from loupe.features.select.documents import Document
    from loupe.web.review.session import Review

F = TypeVar("F", bound=Callable[..., Any])
ABOUT = (
    "documents with the ground-truth files of `loupe select` beside them, in `positive` and `negative` or in DIR itself"
)
HINT = "to choose a model: loupe review DIR --type TYPE"


def add_options(function: F) -> F:
    """Add `--type` and `--negative`."""
    text = "With --type: the documents directly in DIR are not of that type."
    function = click.option("--negative", is_flag=True, help=text)(function)
    text = "For ground truth of `loupe select`: its --type."
    return click.option("--type", "document_type", metavar="TYPE", help=text)(function)


def open_review(folder: Path, options: Mapping[str, Any]) -> Review | None:
    """Open the ground truth of a type; without `--type` that of the type which most files name, None if none does.

    Raises UsageError if there are no documents, DatasetError if files cannot be read.
    """
    from loupe.features.select.review import SelectionFiles, document_types, find_selection, selection_truth
    from loupe.files.foreign import real_path
    from loupe.web.review.session import Review

    document_type, negative = options.get("document_type"), bool(options.get("negative"))
    if document_type is None:
        if negative:
            raise UsageError(
                "--negative goes with --type", hint=f"run: loupe review {word(folder)} --type TYPE --negative"
            )
        types = document_types(find_selection(folder))
        if not types:
            return None
        document_type = types[0]
    documents = find_selection(folder, negative=negative)
    if not documents:
        raise _no_documents(folder)
    files = SelectionFiles(folder, documents)
    positive = {each.path.relative_to(files.path).as_posix(): each.positive for each in documents}
    return Review(
        files,
        selection_truth(document_type, positive),
        name=real_path(folder).name,
        then=lambda _: _next_command(folder, document_type, documents),
    )


def _no_documents(folder: Path) -> UsageError:
    from loupe.features.select.review import folders_with_documents

    hint = "images or PDF files, here or in positive and negative"
    if found := folders_with_documents(folder):
        names = ", ".join(found[:5])
        hint = f"{names}: rename them positive and negative, or review one of them (with --negative for the negatives)"
    return UsageError(f"{folder} holds no documents", hint=hint)


def _next_command(folder: Path, document_type: str, documents: Iterable[Document]) -> str:
    """Rank models on the documents; DIR stands for the ones that are not here."""
    from loupe.files.foreign import real_path
    from loupe.web.review.review_target import typed

    sides = dict.fromkeys((True, False), "DIR")
    root = real_path(folder)
    for document in documents:
        sides[document.positive] = typed(folder / document.path.parent.relative_to(root))
    words = ["--positive", sides[True], "--negative", sides[False], "--ground-truth", "reuse"]
    return shlex.join(["loupe", "select", "--type", document_type, *words])
