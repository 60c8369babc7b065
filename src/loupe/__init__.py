"""Loupe measures how well machines read documents.

>>> import loupe
>>> run = loupe.run("sample_pages", engine="pdf_text", limit=12, runs=None)
>>> run.headline, run["text_similarity"].n
('text_similarity', 12)
"""

# Only `sys`, a part of the interpreter, is imported here: the command leaves the working folder, which may be
# anybody's, after this file.
import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from loupe import metrics
    from loupe.api.comparing import Comparison, compare, report
    from loupe.api.listing import benchmarks, engines
    from loupe.api.reading import arun, run, score
    from loupe.api.runs import Run, ScoredSample, load_run
    from loupe.engines.shared.functions import Page
    from loupe.errors import LoupeError
    from loupe.types import Estimate, Failure, Output
else:
    ModuleType = type(sys)

__version__ = "0.1.0"

__all__ = [
    "Comparison",
    "Estimate",
    "Failure",
    "LoupeError",
    "Output",
    "Page",
    "Run",
    "ScoredSample",
    "__version__",
    "arun",
    "benchmarks",
    "compare",
    "engines",
    "load_run",
    "metrics",
    "report",
    "run",
    "score",
]

#: Name → where it is.
_PLACES = {
    "Comparison": "loupe.api.comparing:Comparison",
    "Estimate": "loupe.types:Estimate",
    "Failure": "loupe.types:Failure",
    "LoupeError": "loupe.errors:LoupeError",
    "Output": "loupe.types:Output",
    "Page": "loupe.engines.shared.functions:Page",
    "Run": "loupe.api.runs:Run",
    "ScoredSample": "loupe.api.runs:ScoredSample",
    "arun": "loupe.api.reading:arun",
    "benchmarks": "loupe.api.listing:benchmarks",
    "compare": "loupe.api.comparing:compare",
    "engines": "loupe.api.listing:engines",
    "load_run": "loupe.api.runs:load_run",
    "report": "loupe.api.comparing:report",
    "run": "loupe.api.reading:run",
    "score": "loupe.api.reading:score",
}
#: Functions with the names of packages: `loupe.benchmarks.NAME` is a module, and `loupe.benchmarks()` lists all.
_CALLABLE = frozenset({"benchmarks", "engines", "report"})


class _Callable(ModuleType):
    """A package that can be called as the function of its name. It knows nothing of that: this module makes it one."""

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """The text that `help` shows: the function, then the package."""
        from inspect import getdoc

        name = self.__name__.rpartition(".")[2]
        return f"{getdoc(_found(name))}\n\nCall: {name}{self.__signature__}\nAs a package: {self.__dict__['__doc__']}"

    @property
    def __signature__(self) -> "Any":
        from inspect import signature

        return signature(_found(self.__name__.rpartition(".")[2]))

    def __call__(self, *arguments: object, **options: object) -> object:
        return _found(self.__name__.rpartition(".")[2])(*arguments, **options)


class _Face(ModuleType):
    """This module. Python sets each package in it that is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in _CALLABLE and type(value) is ModuleType:
            value.__class__ = _Callable
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Face


def _found(name: str) -> "Any":
    from importlib import import_module

    module, _, attribute = _PLACES[name].partition(":")
    return getattr(import_module(module), attribute)


def __getattr__(name: str) -> object:
    if name in _CALLABLE or name == "metrics":
        from importlib import import_module

        return import_module(f"loupe.{name}")
    if name in _PLACES:
        return _found(name)
    raise AttributeError(f"module 'loupe' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
