"""Finding benchmarks: modules of this folder, entry points of the group `loupe.benchmarks`, files, and folders.

Sub-packages are support. The name of a module is the benchmark's id; adding a file is all it takes to add a benchmark.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import traceback
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec

from loupe.data import trust
from loupe.data.python_file import load_python_file
from loupe.errors import LoupeError, UntrustedError, UsageError, did_you_mean
from loupe.files.foreign import real_path
from loupe.typed import convert
from loupe.types import Benchmark


def benchmark_ids() -> list[str]:
    """The ids of all installed benchmarks, sorted; nothing is imported."""
    return sorted(name for name in _own_modules() | _entry_points().keys() if not name.startswith("_"))


@functools.cache
def _own_modules() -> frozenset[str]:
    package = importlib.import_module("loupe.benchmarks")
    return frozenset(info.name for info in pkgutil.iter_modules(package.__path__) if not info.ispkg) - {"registry"}


def get_benchmark(name: str) -> Benchmark:
    """The benchmark that the user calls `name`, who trusts it by naming it. Raises as `load_benchmark` does."""
    if _is_python(name):
        trust.remember(Path(name))
    return load_benchmark(name)


def load_benchmark(name: str) -> Benchmark:
    """The benchmark called `name`: an id, `id@version`, a `.py` file, or a folder in the folder format.

    A `.py` file is run: whether it may be is asked before, by `get_benchmark` or `benchmark_of_run`. Raises UsageError
    for an unknown name or version, DatasetError for a folder that is not in the format.
    """
    ident, _, version = name.partition("@")
    if ident in benchmark_ids():
        benchmark = _from_module(ident)
        if version and version != benchmark.version:
            raise UsageError(
                f"{ident} has no version {version!r} here, only {benchmark.version!r}",
                hint=f"loupe bench show {ident}",
            )
        return benchmark
    path = Path(name)
    if (path / "selection.json").is_file():
        from loupe.benchmarks.selection import open_selection

        return open_selection(path)
    if path.is_dir():
        from loupe.benchmarks.own import open_folder

        return open_folder(path)
    if _is_python(name):
        return _from_file(path)
    raise UsageError(f"no benchmark or folder {name!r}{did_you_mean(ident, benchmark_ids())}", hint="loupe bench list")


def benchmark_of_run(name: str) -> Benchmark:
    """The benchmark that a run.json names. Raises UntrustedError for a Python file that the user never ran here."""
    path = Path(name)
    if _is_python(name) and not trust.is_trusted(path):
        effect = "the run names it as its benchmark, whose Python code would run"
        raise UntrustedError(path, effect, changed=trust.was_trusted(path))
    return load_benchmark(name)


def _is_python(name: str) -> bool:
    path = Path(name)
    return name.partition("@")[0] not in benchmark_ids() and path.suffix == ".py" and path.is_file()


def benchmark_id(name: str) -> str:
    """The id under which runs of `name` are filed: the id itself, else the name of the folder or file."""
    ident = name.partition("@")[0]
    return ident if ident in benchmark_ids() else real_path(Path(name)).stem


@functools.cache  # looking through the metadata of every installed package takes ten milliseconds
def _entry_points() -> Mapping[str, str]:
    return {point.name: point.value for point in entry_points(group="loupe.benchmarks")}


def _from_module(ident: str) -> Benchmark:
    target = _entry_points().get(ident, f"loupe.benchmarks.{ident}:benchmark")
    module, _, attribute = target.partition(":")
    benchmark = getattr(importlib.import_module(module), attribute or "benchmark")
    if not isinstance(benchmark, Benchmark):
        raise UsageError(f"{target} is not a Benchmark", hint="see CONTRIBUTING.md for a file to copy")
    return benchmark


def _from_file(path: Path) -> Benchmark:
    try:
        module = load_python_file(path, f"loupe_benchmark_{path.stem}")
    except LoupeError:
        raise
    except Exception as error:  # the border to a file of the user's, which may raise anything
        raise UsageError(
            f"{_place(path, error)}: {type(error).__name__}: {_reason(error)}",
            hint="mend the file, or see CONTRIBUTING.md for one to copy",
        ) from error
    benchmark = getattr(module, "benchmark", None)
    if not isinstance(benchmark, Benchmark):
        raise UsageError(f"{path} defines no `benchmark`", hint="see CONTRIBUTING.md for a file to copy")
    return benchmark


def _place(path: Path, error: Exception) -> str:
    """`file:line` of what a benchmark file cannot do; the line is the last one in this file that was at work."""
    if isinstance(error, SyntaxError) and error.filename == str(path.absolute()) and error.lineno:
        return f"{path}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path.absolute())]
    return f"{path}:{lines[-1]}" if lines else str(path)


def _reason(error: Exception) -> str:
    return " ".join(str(error.msg if isinstance(error, SyntaxError) else error).split())[:200]


def check_options(benchmark: Benchmark, options: Mapping[str, str]) -> dict[str, Any]:
    """Options as keyword arguments of the benchmark's `load`, converted to the types it declares.

    Raises UsageError for a name that `load` does not have or a value of the wrong kind.
    """
    parameters = dict(list(inspect.signature(benchmark.load, eval_str=True).parameters.items())[1:])
    checked: dict[str, Any] = {}
    for name, value in options.items():
        if name not in parameters:
            raise UsageError(
                f"{benchmark.title} has no option {name!r}{did_you_mean(name, parameters)}",
                hint=f"options: {', '.join(parameters) or 'none'}",
            )
        kind = parameters[name].annotation
        if kind is inspect.Parameter.empty:
            kind = str
        try:
            checked[name] = convert(value, kind, strict=False)
        except (msgspec.ValidationError, TypeError) as error:
            if get_origin(kind) is not Literal:
                raise UsageError(f"option {name}={value}: {error}") from None
            choices = [str(choice) for choice in get_args(kind)]
            raise UsageError(
                f"option {name}={value}: no such value{did_you_mean(value, choices)}",
                hint=f"values: {', '.join(choices)}",
            ) from None
    return checked


def changed_options(benchmark: Benchmark, options: Mapping[str, str]) -> dict[str, str]:
    """The options that are not at their default: only they make other numbers. Raises UsageError as `check_options`."""
    parameters = inspect.signature(benchmark.load).parameters
    checked = check_options(benchmark, options)
    return {name: value for name, value in options.items() if checked[name] != parameters[name].default}
