"""What a bounded process reads of other people's files: each task by the name that it is asked for with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from loupe.data import packed, page_drawing, parquet_reading
from loupe.data.bounded import name_of
from loupe.data.bounds import too_much_memory
from loupe.errors import PageError

_TASKS: Final[Mapping[str, Callable[..., Any]]] = {
    "load_page": page_drawing.load_page,
    "page_size": page_drawing.page_size,
    "page_count": page_drawing.page_count,
    "frames": page_drawing.frames,
    "thumbnail": page_drawing.thumbnail,
    "ink_fraction": page_drawing.ink_fraction,
    "parquet_facts": parquet_reading.parquet_facts,
    "parquet_rows": parquet_reading.parquet_rows,
    "parquet_cell": packed.parquet_cell,
}


def perform(task: str, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """The value of a task, computed in this process. Raises PageError where memory does not suffice."""
    try:
        return (_TASKS.get(task) or _of_module(task))(*arguments, **options)
    except MemoryError:
        raise PageError(f"{name_of(arguments[0])} {too_much_memory()}") from None


def _of_module(task: str) -> Callable[..., Any]:
    """A function of a package above this one, as `MODULE:NAME`. Orders come from a process of ours alone."""
    module, _, name = task.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found
