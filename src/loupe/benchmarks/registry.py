"""Finding benchmarks: what lies in this folder, what features and other packages add, files, and folders.

The name of a module or package is the benchmark's id; adding one is all it takes to add a benchmark. A module with
several versions lists them in `versions`; `benchmark` is the one that its id alone stands for.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import msgspec

from loupe.data import trust
from loupe.data.python_file import load_python_file
from loupe.errors import LoupeError, UntrustedError, UsageError, beginning, completed, did_you_mean, nearest
from loupe.files.foreign import real_path
from loupe.hooks import HookError, found, left_out
from loupe.runs.installed import benchmark_ids as benchmark_ids
from loupe.runs.installed import id_apart, installed_benchmarks
from loupe.runs.installed import is_installed as is_installed
from loupe.typed import convert, wrong_type
from loupe.types import INTERNAL, Benchmark, DataSet, Load, Sample

if TYPE_CHECKING:
    from loupe.runs.info import RunInfo

#: What people call benchmarks of one task; with an s behind it, too.
_CALLED = {
    "table": ("table",),
    "fields": ("kie", "field", "extraction", "form", "receipt", "invoice"),
    "formula": ("formula", "math", "latex", "equation"),
    "question": ("question", "vqa", "qa"),
    "text": ("text", "line", "handwriting"),
    "markdown": ("page", "document", "markdown", "parsing"),
}


def benchmark_names() -> list[str]:
    """List the names of all installed benchmarks, each id followed by its other versions as `id@version`."""
    return [
        ident if one is versions[0] else f"{ident}@{one.version}"
        for ident, versions in usable_benchmarks()
        for one in versions
    ]


def usable_benchmarks() -> Iterator[tuple[str, tuple[Benchmark, ...]]]:
    """All installed benchmarks; those of other packages that are broken are left out with a warning."""
    for ident in benchmark_ids():
        try:
            yield ident, versions_of(ident)
        except HookError as error:
            left_out(error)


def full_name(name: str) -> str:
    """The name of a benchmark as users type it, `omnidoc@1.5` or `DP-Bench`, with the id in full.

    A folder or file of that name, an exact id, and what begins no id or several stay as they are.
    """
    ident, at, version = name.partition("@")
    if not ident or ident in benchmark_ids() or not re.fullmatch(r"[\w .-]+", ident) or Path(name).exists():
        return name
    return f"{completed(ident, benchmark_ids())}{at}{version}"


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
        return _version(ident, version)
    path = Path(name)
    if _is_python(name):
        return _from_file(path)
    if (opened := opened_by_feature(path)) is not None:
        return opened
    if path.is_dir():
        from loupe.benchmarks.folders.own import open_folder

        return open_folder(path)
    raise _unknown(name)


def _version(ident: str, version: str) -> Benchmark:
    """One version of an installed benchmark; without one named, the usual one."""
    versions = versions_of(ident)
    found = next((one for one in versions if version in ("", one.version)), None)
    if found is None:
        there = " and ".join(repr(one.version) for one in versions)
        raise UsageError(
            f"{ident} has no version {version!r} here, only {there}", hint=f"see its options: loupe bench show {ident}"
        )
    return found


def _unknown(name: str) -> UsageError:
    """That there is no such benchmark, with those that may be meant."""
    path = Path(name)
    if path.exists():
        return UsageError(
            f"{name}: a benchmark is a folder or a .py file, not such a file",
            hint="make a benchmark of pages: loupe init DIR --task text",
        )
    beside = _beside(path)
    if "/" in name or path.suffix == ".py":
        what = "file" if path.suffix == ".py" else "folder"
        return UsageError(f"no {what} {name}{beside}", hint="check the path, or choose a benchmark: loupe bench list")
    ident = name.partition("@")[0]
    begun = beginning(ident, benchmark_ids())
    if len(begun) > 1:
        meant = f"; {len(begun)} benchmarks begin so: {', '.join(begun)}"
    else:
        meant = did_you_mean(ident, benchmark_ids()) or beside
    if not meant and (alike := begun or _alike(ident.casefold())):
        meant = f"; did you mean {' or '.join(alike)}?"
    return UsageError(f"no benchmark or folder {name!r}{meant}", hint="list the benchmarks: loupe bench list")


def _beside(path: Path) -> str:
    """The folder, or Python file, beside which a path is a slip, as the end of a message; "" where none is near."""
    try:
        names = [each.name for each in path.parent.iterdir() if each.suffix == ".py" or each.is_dir()]
    except OSError:
        return ""
    near = nearest(path.name, [name for name in names if (Path(name).suffix == ".py") == (path.suffix == ".py")])
    return f"; did you mean {path.parent}/{near}?" if near else ""


def _alike(name: str) -> list[str]:
    """The benchmarks with this word in their id, and those of the task that is called so."""
    single = name.removesuffix("s")
    tasks = {task for task, words in _CALLED.items() if not {name, single, name.replace("ies", "y")}.isdisjoint(words)}
    return [ident for ident, versions in usable_benchmarks() if name in ident.split("_") or versions[0].task in tasks]


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


def opened_by_feature(path: Path) -> Benchmark | None:
    """The benchmark that a feature or another package makes of a path; None for one in the folder format, or for none.

    A file in the folder decides, else what is there: a folder without `loupe.toml`, or a file.
    """
    marked = [hook for name, hook in found("folders").items() if (path / name).is_file()]
    others = found("paths").values() if path.exists() and not (path / "loupe.toml").is_file() else ()
    for hook in (*marked[:1], *others):
        benchmark = hook.call(path)
        if isinstance(benchmark, Benchmark):
            return benchmark
        if benchmark is not None or hook in marked:
            raise hook.broken("it gives no Benchmark")
    return None


def is_own_folder(name: str) -> bool:
    """True for a path of the user's, but not a Python file; an id, also `id@version`, wins over a path of that name."""
    return name.partition("@")[0] not in benchmark_ids() and Path(name).exists() and not _is_python(name)


def benchmark_id(name: str) -> str:
    """The id under which runs of `name` are filed: the id itself, else the name of the folder or file.

    A folder or file that is called like an installed benchmark has an id of its own.
    """
    ident = name.partition("@")[0]
    return ident if ident in benchmark_ids() else id_apart(name, real_path(Path(name)).stem)


def filed_as(name: str) -> str:
    """Return the name that tells runs and data of `name` apart from others': its id, with a version that is not the
    usual one.

    >>> filed_as("iam_lines"), filed_as("omnidocbench@1.5"), filed_as("omnidocbench@1.6")
    ('iam_lines', 'omnidocbench', 'omnidocbench@1.6')
    """
    ident, at, version = name.partition("@")
    if not at or ident not in benchmark_ids() or version in ("", _from_module(ident).version):
        return benchmark_id(name)
    return name


def name_of_run(info: RunInfo) -> str:
    """The same for a run that is there; a folder of somebody's own has the id that it had there."""
    versioned = info.benchmark.startswith(f"{info.benchmark_id}@")
    return filed_as(info.benchmark) if versioned else info.benchmark_id


def _from_module(ident: str) -> Benchmark:
    """The usual version of an installed benchmark."""
    return versions_of(ident)[0]


def versions_of(ident: str) -> tuple[Benchmark, ...]:
    """All versions of an installed benchmark; the first is the one that the id alone stands for."""
    hook = installed_benchmarks()[ident]
    benchmark, module = hook.load(), importlib.import_module(hook.module)
    if isinstance(benchmark, ModuleType):
        benchmark = getattr(module, "benchmark", None)
    others = [one for one in getattr(module, "versions", ()) if one is not benchmark]
    if not all(isinstance(one, Benchmark) for one in (benchmark, *others)):
        raise hook.broken("it is no Benchmark")
    return benchmark, *others


def _from_file(path: Path) -> Benchmark:
    try:
        module = load_python_file(path, f"loupe_benchmark_{path.stem}")
    except LoupeError:
        raise
    except (Exception, SystemExit) as error:  # the border to a file of the user's, which may raise anything
        raise _mistake(path, error, hint="fix the file, or see CONTRIBUTING.md for one to copy") from error
    benchmark = getattr(module, "benchmark", None)
    if not isinstance(benchmark, Benchmark):
        raise UsageError(f"{path} defines no `benchmark`", hint="see CONTRIBUTING.md for a file to copy")
    return replace(benchmark, load=_loading(path, benchmark.load))


def _loading(path: Path, load: Load) -> Load:
    """The same `load`; what it raises is a mistake in the user's file, and none of Loupe's."""

    @functools.wraps(load)
    def loaded(root: Path | None, **options: Any) -> Iterator[Sample]:
        try:
            for sample in load(root, **options):
                if not isinstance(sample, Sample):
                    raise TypeError(f"`load` gives {type(sample).__name__}, and not Sample")
                if not isinstance(sample.id, str) or not sample.id:
                    raise TypeError(f"`load` gives a sample with the id {sample.id!r}, which is no name")
                yield sample
        except LoupeError:
            raise
        except (Exception, SystemExit) as error:  # the same border to the user's file
            hint = "mend `load`" if root else "mend `load`, or name the folder of its data: --data DIR"
            raise _mistake(path, error, hint=hint) from error

    return loaded


def _mistake(path: Path, error: BaseException, *, hint: str) -> UsageError:
    return UsageError(f"{_place(path, error)}: {type(error).__name__}: {_reason(error)}", hint=hint)


def _place(path: Path, error: BaseException) -> str:
    """`file:line` of what a benchmark file cannot do; the line is the last one in this file that was at work."""
    if isinstance(error, SyntaxError) and error.filename == str(path.absolute()) and error.lineno:
        return f"{path}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path.absolute())]
    return f"{path}:{lines[-1]}" if lines else str(path)


def _reason(error: BaseException) -> str:
    return " ".join(str(error.msg if isinstance(error, SyntaxError) else error).split())[:200]


def data_set(name: str) -> DataSet | None:
    """Return what `loupe data get` brings for an installed benchmark (`id` or `id@version`), or None."""
    ident, _, version = name.partition("@")
    found = _version(ident, version).data if ident in benchmark_ids() else None
    return replace(found, id=filed_as(name)) if found else None


def data_sets() -> dict[str, DataSet]:
    """The data sets of all installed benchmarks, by name."""
    return {name: found for name in benchmark_names() if (found := data_set(name))}


def find_data_set(name: str, *, source: str = "") -> DataSet:
    """The data set of a benchmark (`id` or `id@version`), or any repository of the hub as OWNER/NAME.

    Raises UsageError for an unknown name or source.
    """
    ident = name.partition("@")[0]
    if ident.count("/") == 1 and all(ident.split("/")):
        return DataSet(id=ident.replace("/", "--"), repo=ident)
    found = data_set(name)
    if found is None:
        raise UsageError(
            f"no data set {name!r}{did_you_mean(ident, data_sets())}", hint="list the datasets: loupe data list"
        )
    if not source:
        return found
    if source not in found.sources:
        there = ", ".join(found.sources) or "none"
        raise UsageError(f"{ident} has no source {source!r} (there: {there})", hint="docs/data.md lists them")
    return replace(found.sources[source], id=found.id, licence=found.licence)


def check_options(benchmark: Benchmark, options: Mapping[str, str], *, called: str = "") -> dict[str, Any]:
    """Options as keyword arguments of the benchmark's `load`, converted to the types it declares.

    Raises UsageError for a name that `load` does not have, or a value of the wrong kind. `called` is what a user who
    sets them calls the benchmark: then those that are only for Loupe are refused, too.
    """
    parameters = shown_options(benchmark) if called else _parameters(benchmark)
    checked: dict[str, Any] = {}
    for name, value in options.items():
        if name not in parameters:
            known, ident = shown_options(benchmark), benchmark_id(called) if called else benchmark.title
            options_there = f"options: {', '.join(known) or 'none'}"
            raise UsageError(
                f"{ident} has no option {name!r}{did_you_mean(name, known)}",
                # Nobody set it now: it is from a run of a Loupe that had it.
                hint=options_there if called else f"remove it from the options in run.json; {options_there}",
            )
        kind = parameters[name].annotation
        if kind is inspect.Parameter.empty:
            kind = str
        try:
            checked[name] = convert(value, kind, strict=False)
        except (msgspec.ValidationError, TypeError) as error:
            if get_origin(kind) is not Literal:
                types = wrong_type(str(error))
                raise UsageError(f"option {name}={value}: {f'not {types[0]}' if types else error}") from None
            choices = [str(choice) for choice in get_args(kind)]
            raise UsageError(
                f"option {name}={value}: no such value{did_you_mean(value, choices)}",
                hint=f"values: {', '.join(choices)}",
            ) from None
    return checked


def shown_options(benchmark: Benchmark) -> dict[str, inspect.Parameter]:
    """The options that users set: the parameters of `load` after the data folder, but for internal ones."""
    kept = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {
        name: item
        for name, item in _parameters(benchmark).items()
        if item.kind in kept and INTERNAL not in getattr(item.annotation, "__metadata__", ())
    }


def _parameters(benchmark: Benchmark) -> dict[str, inspect.Parameter]:
    return dict(list(inspect.signature(benchmark.load, eval_str=True).parameters.items())[1:])


def changed_options(benchmark: Benchmark, options: Mapping[str, str]) -> dict[str, str]:
    """The options that are not at their default: only they make other numbers. Raises UsageError as `check_options`."""
    parameters = inspect.signature(benchmark.load).parameters
    checked = check_options(benchmark, options)
    return {name: value for name, value in options.items() if checked[name] != parameters[name].default}
