"""Find what features of this package and other distributions add to Loupe, both by one mechanism.

A feature is a folder of `loupe.features`. Its `__init__` imports nothing and holds one constant, `HOOKS`: the groups
below, and in each a name with the place of an object, `module:attribute`. Other distributions name the same objects as
entry points, `loupe.` and the name of the group. The core asks for a group and knows no feature by name.

The groups:
- `benchmarks`: a `Benchmark`;
- `folders`: by the name of a file, a function that opens a folder with this file in it as a `Benchmark`;
- `paths`: a function of a path, a file or a folder without settings, that opens it as a `Benchmark` or gives None;
- `engines`: a module with `Settings` and `open_engine`, without an attribute;
- `profiles`: a package whose folder holds profiles of engines (TOML);
- `server_kinds`: a package whose folder holds kinds of model servers (`servers.toml`, as in `servers/templates.toml`);
- `server_plans`: a function of a profile, what `--size` says and if vectors are wanted, that gives a `ServerPlan`;
- `executors`: a function that gives an `Executor` of `loupe.pipeline.plan`, by the name that `--on` takes;
- `commands`: a click command. A feature adds to the group `help` where the command stands, `Section: summary`;
- `local_tables`: by the name of a table of `loupe.toml` that needs trust, a `LocalTable`
  (`engines/shared/local_settings.py`);
- `review_targets`: a module that says what else `loupe review` can open (`ReviewTarget` of
  `web/review/review_target.py`), without an attribute;
- `published`: a package whose folder holds published figures (`<benchmark>.toml`, as in `benchmarks/published/`);
- `verify_cases`: a package whose folder holds cases for `loupe verify` (`<benchmark>.jsonl`, as in `verify_cases/`);
- `report_pictures`: a function of a group of runs and of a function from sample to address that gives HTML (`Markup`)
  for the report, "" for none;
- `result_tables`: a function of a `Result` that gives tables (`loupe.results.tables.record`) to show below its own;
- `result_notes`: a function of the folder of a run that gives lines for a person, said under its result.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loupe.errors import LoupeError, in_words

if TYPE_CHECKING:
    from pathlib import Path

_FEATURES = "loupe.features"


class HookError(LoupeError):
    """An entry point that another distribution declares and that cannot be used."""

    exit_code = 4


class HookWarning(UserWarning):
    """An entry point that Loupe leaves out."""


@dataclass(frozen=True, slots=True)
class Hook:
    """An object that can be imported. `distribution` declares it; "" stands for Loupe itself."""

    name: str
    place: str
    distribution: str = ""

    @property
    def module(self) -> str:
        """The module in which the object is."""
        return self.place.partition(":")[0].strip()

    def load(self) -> Any:
        """Import and return the object, or the module if the place names no attribute.

        Raises HookError if the entry point of another distribution is broken.
        """
        attribute = self.place.partition(":")[2].partition("[")[0].strip()
        try:
            found: Any = importlib.import_module(self.module)
            for part in attribute.split(".") if attribute else ():
                found = getattr(found, part)
        except (Exception, SystemExit) as error:  # the border to packages of other people
            if not self.distribution:
                raise
            raise self.broken(in_words(error)) from error
        return found

    def call(self, *arguments: object) -> Any:
        """Call the object. Raises HookError if that of another distribution is broken or raises."""
        function = self.load()
        try:
            return function(*arguments)
        except (Exception, SystemExit) as error:  # the same border
            if not self.distribution or isinstance(error, LoupeError):
                raise
            raise self.broken(in_words(error)) from error

    def broken(self, reason: str) -> HookError:
        """Return the error that says why this entry point cannot be used, and what to do."""
        reason, package = " ".join(reason.split())[:200], self.distribution or "loupe-ocr"
        return HookError(
            f"{self.name!r} of the package {package} cannot be used ({self.place}): {reason}",
            hint=f"update the package: pip install -U {package}",
        )


def found(group: str, own: Collection[str] = ()) -> Mapping[str, Hook]:
    """Return what a group holds, by name: features first, then other distributions. Nothing is imported.

    `own` are names that the core has itself. A name that is taken is left out with a warning.
    """
    return _found(group, frozenset(own))


@functools.cache
def _found(group: str, own: frozenset[str]) -> Mapping[str, Hook]:
    hooks = {name: Hook(name, place) for name, place in feature_table(group).items()}
    for hook in _entry_points().get(group, ()):
        if hook.name in own or hook.name in hooks:
            message = f"{hook.name!r} of the package {hook.distribution} is left out: {group} already have this name"
            warnings.warn(message, HookWarning, stacklevel=3)
        else:
            hooks[hook.name] = hook
    return hooks


def loaded(group: str) -> Iterator[tuple[str, Any]]:
    """Yield the names and objects of a group. Those of other distributions that are broken are left out with a warning.

    The order is that of `found`.
    """
    for name, hook in found(group).items():
        try:
            yield name, hook.load()
        except HookError as error:
            left_out(error)


def folders(group: str) -> list[Path]:
    """Return the folders of the packages of a group."""
    from pathlib import Path

    return [Path(folder) for _, package in loaded(group) for folder in package.__path__]


def called(group: str, *arguments: object) -> Iterator[Any]:
    """Yield what the functions of a group return. Failing ones of other distributions are left out with a warning."""
    for hook in found(group).values():
        try:
            yield hook.call(*arguments)
        except HookError as error:
            left_out(error)


def left_out(error: HookError) -> None:
    """Warn, instead of failing, of what is left out because of an error."""
    warnings.warn(f"left out: {error.message}", HookWarning, stacklevel=3)


def feature_table(group: str) -> dict[str, str]:
    """Return the constants of one group from all features."""
    return {name: value for feature in _features() for name, value in feature.get(group, {}).items()}


@functools.cache
def _features() -> list[Mapping[str, Mapping[str, str]]]:
    """Return the hooks of every feature whose folder is there, in the order of their names."""
    package = importlib.import_module(_FEATURES)
    names = {name for folder in package.__path__ for name in os.listdir(folder) if _is_feature(folder, name)}
    return [importlib.import_module(f"{_FEATURES}.{name}").HOOKS for name in sorted(names)]


def _is_feature(folder: str, name: str) -> bool:
    return name.isidentifier() and os.path.isfile(os.path.join(folder, name, "__init__.py"))


@functools.cache
def _entry_points() -> Mapping[str, list[Hook]]:
    """Return the entry points of other distributions by group.

    The import of `importlib.metadata` takes 15 ms, so it is done only if a file of some distribution names a group.
    """
    if not any(map(_may_name_groups, sys.path)):
        return {}
    from importlib.metadata import distributions

    groups: dict[str, dict[str, Hook]] = {}
    for distribution in distributions():
        for point in distribution.entry_points:
            root, _, group = point.group.partition(".")
            if root == "loupe" and group:
                name = distribution.metadata["Name"]
                groups.setdefault(group, {}).setdefault(point.name, Hook(point.name, point.value, name))
    return {group: sorted(hooks.values(), key=lambda hook: hook.name) for group, hooks in groups.items()}


def _may_name_groups(folder: str) -> bool:
    """Return whether a distribution in a folder of `sys.path` may have entry points for Loupe; an archive may."""
    try:
        infos = [name for name in os.listdir(folder) if name.endswith((".dist-info", ".egg-info"))]
    except NotADirectoryError:
        return True
    except OSError:
        return False
    return any(_names_group(os.path.join(folder, name, "entry_points.txt")) for name in infos)


def _names_group(file: str) -> bool:
    try:
        with open(file, "rb", buffering=0) as opened:
            return b"[loupe." in opened.read()
    except OSError:
        return False


def summary_of(hook: Hook) -> str:
    """Return the line that describes the distribution of a hook in its metadata."""
    from importlib.metadata import metadata

    return f"From the package {hook.distribution}: {metadata(hook.distribution)['Summary'] or 'no description'}"
