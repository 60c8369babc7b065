"""Suites: benchmarks that are run together, each with its options, and the engines that read them (docs/suites.md).

A suite is a table `[suites.NAME]` in ./loupe.toml (used only where the user trusts that file), in
~/.config/loupe/suites.toml, or in suites.toml beside this file; the first of them that has the name counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from loupe.benchmarks.registry import benchmark_names, filed_as, full_name
from loupe.data.user_folders import config_files
from loupe.engines.shared.local_settings import FILE, SUITES, LocalSettings, read_settings
from loupe.errors import ProfileError, UsageError, did_you_mean
from loupe.typed import convert

SHIPPED = Path(__file__).with_name("suites.toml")
#: Among benchmarks: every installed one that is not named beside it.
ALL = "all"
_COPY = "docs/suites.md has one to copy"

_Count = Annotated[int, msgspec.Meta(ge=1)]
_Seed = Annotated[int, msgspec.Meta(ge=0)]


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One benchmark of a suite, with what is not as usual: its options, a part of its samples, where its data lies.

    `limit`, `sample` and `seed` say which part, as in `loupe.pipeline.Plan`.
    """

    benchmark: str
    options: Mapping[str, str | int | float | bool] = {}
    limit: _Count | None = None
    sample: _Count | Literal["stratified"] | None = None
    seed: _Seed | None = None
    data: str | None = None

    @property
    def texts(self) -> dict[str, str]:
        """The options as the command line has them."""
        return {name: _as_text(value) for name, value in self.options.items()}


class Suite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Benchmarks in the order in which they are run, and the engines that read them unless others are named."""

    benchmarks: Annotated[list[str | Entry], msgspec.Meta(min_length=1)]
    engines: list[str] = []
    title: str = ""


def find_suite(name: str) -> Suite:
    """The suite of this name. Raises UsageError where there is none, ProfileError for one that is written wrongly.

    Raises UntrustedError for a suite of a ./loupe.toml that the user has not trusted.
    """
    for place in _places():
        if name in (table := place.table(SUITES)):
            if place.path == FILE:
                place.need_trust(lasting_suites(), SUITES, name)
            return checked_suite(table[name], f"{place.path} [{SUITES}.{name}]")
    names = list(suite_places())
    raise UsageError(f"no suite {name!r}{did_you_mean(name, names)}", hint=f"suites: {', '.join(names)}")


def suite_places() -> dict[str, Path]:
    """Every suite by its name, sorted, with the file that counts; those of an untrusted ./loupe.toml are named, too."""
    found: dict[str, Path] = {}
    for place in _places():
        found |= {name: place.path for name in place.table(SUITES) if name not in found}
    return dict(sorted(found.items()))


def lasting_suites() -> frozenset[str]:
    """The names of the suites that do not depend on the working folder."""
    return frozenset(name for place in _places() if place.path != FILE for name in place.table(SUITES))


def _places() -> Iterator[LocalSettings]:
    for path in (FILE, *config_files("suites.toml"), SHIPPED):
        if (found := read_settings(path)) is not None:
            yield found


def entries_of(benchmarks: Sequence[str | Entry]) -> list[Entry]:
    """Benchmarks with their full names, each once, and `ALL` as what it stands for. Raises UsageError for one twice."""
    listed = [Entry(benchmark=each) if isinstance(each, str) else each for each in benchmarks]
    named = [msgspec.structs.replace(each, benchmark=full_name(each.benchmark)) for each in listed]
    idents = [filed_as(each.benchmark) for each in named if each.benchmark != ALL]
    if twice := next((ident for ident in idents if idents.count(ident) > 1), ""):
        raise UsageError(f"{twice} is named twice", hint="run the second one separately, with --name NAME")
    others = [Entry(benchmark=name) for name in benchmark_names() if name not in idents]
    return [one for each in named for one in (others if each.benchmark == ALL else [each])]


def checked_suite(table: object, where: str) -> Suite:
    """Return one suite. Raises ProfileError, naming the place, if it cannot be read."""
    try:
        suite = convert(table, Suite)
    except msgspec.ValidationError as error:
        raise ProfileError(f"{where}: {_explain(str(error))}", hint=_COPY) from None
    for entry in suite.benchmarks:
        if isinstance(entry, Entry) and (wrong := _impossible(entry)):
            raise ProfileError(f"{where}: {entry.benchmark}: {wrong}", hint=_COPY)
    return suite


def _impossible(entry: Entry) -> str:
    if entry.sample == "stratified":
        return "" if entry.limit is not None else 'sample = "stratified" needs limit'
    if entry.limit is not None and entry.sample is not None:
        return "limit and sample cannot be combined"
    return "seed is for sample" if entry.seed is not None and entry.sample is None else ""


def _explain(message: str) -> str:
    """msgspec's message with the place in front, and the nearest key where one is mistyped."""
    wrong, _, place = message.partition(" - at `$")
    if unknown := re.search(r"unknown field `([^`]*)`", wrong):
        known: Iterable[str] = Entry.__struct_fields__ if "[" in place else Suite.__struct_fields__
        wrong = f"unknown key {unknown[1]!r}{did_you_mean(unknown[1], known)}"
    elif missing := re.search(r"missing required field `([^`]*)`", wrong):
        wrong = f"no `{missing[1]}`"
    else:
        wrong = wrong[:1].lower() + wrong[1:]
    spelled = place.strip("`.")
    return f"{spelled}: {wrong}" if spelled else wrong


def _as_text(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
