"""Names that are imported with their first use, so that `import loupe` costs next to nothing."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


def found_at(place: str) -> Any:
    """The object at a place such as `loupe.api.runs:load_run`."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def callable_package(package: str, place: str) -> None:
    """Let the package be called, too: it then does what the function at `place` does, which is imported only then.

    `loupe.benchmarks` holds the benchmarks, and `loupe.benchmarks()` lists them.
    """

    class Callable(ModuleType):
        def __call__(self, *arguments: Any, **options: Any) -> Any:
            return found_at(place)(*arguments, **options)

    sys.modules[package].__class__ = Callable
