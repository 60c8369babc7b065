"""Loupe measures how well machines read documents.

>>> import loupe
>>> run = loupe.run("sample_pages", engine="pdf_text", limit=12, runs=None)
>>> run.headline, run["text_similarity"].n
('text_similarity', 12)
"""

# Nothing is imported here: the command leaves the working folder, which may be anybody's, only after this file.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from loupe.api.comparing import Comparison, compare
    from loupe.api.listing import benchmarks, engines
    from loupe.api.reading import arun, run
    from loupe.api.reports import report
    from loupe.api.runs import Run, ScoredSample, load_run
    from loupe.api.scoring import score
    from loupe.engines.in_process import Page
    from loupe.errors import LoupeError
    from loupe.types import Estimate, Failure, Output

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
    "report",
    "run",
    "score",
]

#: Name → where it is. Packages that can be called are themselves (`loupe.lazily.callable_package`).
_PLACES = {
    "Comparison": "loupe.api.comparing:Comparison",
    "Estimate": "loupe.types:Estimate",
    "Failure": "loupe.types:Failure",
    "LoupeError": "loupe.errors:LoupeError",
    "Output": "loupe.types:Output",
    "Page": "loupe.engines.in_process:Page",
    "Run": "loupe.api.runs:Run",
    "ScoredSample": "loupe.api.runs:ScoredSample",
    "arun": "loupe.api.reading:arun",
    "compare": "loupe.api.comparing:compare",
    "load_run": "loupe.api.runs:load_run",
    "run": "loupe.api.reading:run",
    "score": "loupe.api.scoring:score",
}
_PACKAGES = frozenset({"benchmarks", "engines", "report"})


def __getattr__(name: str) -> object:
    from importlib import import_module

    from loupe.lazily import found_at

    if name in _PLACES:
        return found_at(_PLACES[name])
    if name in _PACKAGES:
        return import_module(f"loupe.{name}")
    raise AttributeError(f"module 'loupe' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
