"""`loupe.benchmarks()` and `loupe.engines()`: what is installed here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from loupe.api import display

if TYPE_CHECKING:
    from loupe.engines.registry import Profile

T = TypeVar("T", bound="BenchmarkEntry | EngineEntry")


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkEntry:
    """An installed benchmark; `loupe.benchmarks.<id>.benchmark` is the whole record."""

    id: str
    version: str
    title: str
    task: str
    headline: str
    measures: tuple[str, ...]
    samples: int | None
    paper: str = ""

    def _repr_html_(self) -> str:
        return display.entry_html(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineEntry:
    """An engine that can be named; `kind` is how it is asked."""

    id: str
    kind: str
    title: str
    place: str
    state: str = ""

    def _repr_html_(self) -> str:
        return display.entry_html(self)


class Listing(list[T], Generic[T]):
    """A list that a notebook shows as a table; `["id"]` finds one by its id."""

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, str):
            found = next((one for one in self if one.id == place), None)
            if found is None:
                from loupe.errors import UsageError, did_you_mean

                raise UsageError(f"nothing here is called {place!r}{did_you_mean(place, [one.id for one in self])}")
            return found
        return super().__getitem__(place)

    def _repr_html_(self) -> str:
        return display.listing_html(self)


def benchmarks() -> Listing[BenchmarkEntry]:
    """List the benchmarks that are installed. A folder of your own pages is one, too: `loupe.run("./mydocs", …)`.

    >>> import loupe
    >>> loupe.benchmarks()["iam_lines"].headline
    'cer'
    """
    from loupe.benchmarks.registry import benchmark_names, get_benchmark

    found: Listing[BenchmarkEntry] = Listing()
    for name in benchmark_names():
        one = get_benchmark(name)
        found.append(
            BenchmarkEntry(
                id=name,
                version=one.version,
                title=one.title,
                task=one.task,
                headline=one.headline_measure,
                measures=tuple(measure.name for measure in one.measures),
                samples=one.published_total or None,
                paper=one.paper,
            )
        )
    return found


def engines() -> Listing[EngineEntry]:
    """List the engines that have a name. Any server, program or Python function is one, too.

    >>> import loupe
    >>> loupe.engines()["tesseract"].kind
    'tesseract'
    """
    return Listing(EngineEntry(**row) for row in engine_rows())


def engine_rows() -> list[dict[str, str]]:
    """Every profile by name, then the kinds that have none; one that cannot be used says why in its title.

    `state` tells of engines with an environment of their own whether that is installed.
    """
    from loupe.engines.registry import engine_kinds, engine_module, is_built_in, load_profile, profile_names
    from loupe.errors import ProfileError, UntrustedError
    from loupe.hooks import HookError

    rows = []
    for name, path in profile_names().items():
        state = ""
        try:
            profile = load_profile(name)[1]
            kind, title, state = profile.kind, profile.title, state_of(profile)
        except UntrustedError as error:
            kind, title = "–", f"not trusted: {error.hint.rpartition(': ')[2]}"
        except (ProfileError, HookError) as error:
            kind, title = "–", f"unusable: {error.message}"
        place = "loupe" if is_built_in(path) else str(path)
        rows.append({"id": name, "kind": kind, "title": title, "place": place, "state": state})
    named = {row["id"] for row in rows}
    for kind in engine_kinds():
        if kind not in named:
            try:
                summary = (engine_module(kind).__doc__ or "").strip().partition("\n")[0]
            except HookError as error:
                summary = f"unusable: {error.message}"
            rows.append({"id": kind, "kind": kind, "title": summary, "place": "kind", "state": ""})
    return rows


def state_of(profile: Profile) -> str:
    """The state of an engine's environment, with its size; "" for an engine that needs none."""
    from loupe.engines.environments.places import Settings, state, wanted

    return state(wanted(profile)) if isinstance(profile, Settings) else ""
