"""The options of `loupe.run`, which have the names of the command line's, and the plan that they make."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, TypedDict, get_args

from loupe.api.runs import TemporaryFolder
from loupe.benchmarks.registry import benchmark_ids, check_options, full_name, get_benchmark, shown_options
from loupe.engines.registry import Profile, load_profile, profile_names, slug
from loupe.engines.shared.functions import Settings, function_of, open_function
from loupe.errors import UsageError, did_you_mean
from loupe.files.default_places import RUNS
from loupe.pipeline import Plan
from loupe.types import Engine, Outcome, Output

Text: TypeAlias = str | Output
#: From a page to its text; with `batch`, from a list of pages to a list of texts.
ReadFunction: TypeAlias = (
    Callable[[Any], Text]
    | Callable[[Any], Awaitable[Text]]
    | Callable[[Any], Sequence[Text]]
    | Callable[[Any], Awaitable[Sequence[Text]]]
)


class Reader(Protocol):
    """An object that reads: `predict` is a function from a page to its text."""

    predict: Callable[[Any], Any]


EngineLike: TypeAlias = str | os.PathLike[str] | ReadFunction | Reader | Engine

#: Calls of an async function that wait at the same time, unless `concurrency` says otherwise.
_AWAITED = 8
#: Settings of an engine that are options, by the key of its profile.
_SETTINGS = {
    **{name: name for name in ("base_url", "model", "concurrency", "timeout", "retries", "max_tokens", "temperature")},
    **{name: name for name in ("retry_truncated", "image", "serve", "server_port", "gpus", "startup_timeout")},
    "server_arg": "server_args",
}
#: What a function can be told of them.
_OF_FUNCTIONS = frozenset({"concurrency", "timeout", "retries"})


class DataOptions(TypedDict, total=False):
    """Options of samples and of the place where the run is filed; as on the command line.

    `limit` asks for the first N samples, `sample=N` for N at random by `seed`, `limit=N, sample="stratified"` for N in
    proportion to task and tags. `option` holds options of the benchmark, and settings of the engine that have no
    option. `runs=None` keeps the run in a temporary folder that lives as long as the `Run`.
    """

    limit: int | None
    sample: int | Literal["stratified"] | None
    seed: int
    data: str | os.PathLike[str] | None
    option: Mapping[str, Any]
    runs: str | os.PathLike[str] | None
    name: str
    jobs: int | None
    shared: bool
    allow_unverified: bool
    progress: bool


class ReadingOptions(DataOptions, total=False):
    """The options of `loupe.run`: those of `DataOptions`, how the engine is asked, and what is done again.

    `batch=N` calls a function with lists of up to N pages. `progress=False` shows no bar. `yes=True` lets pages be sent
    to a service that the engine's profile names; without it, such an engine is refused.
    """

    base_url: str | list[str]
    model: str
    concurrency: int | Literal["auto"]
    timeout: float
    retries: int
    max_tokens: int
    retry_truncated: int
    temperature: float
    image: str
    prompt: str
    serve: str
    server_arg: list[str]
    server_port: int | Literal["auto"]
    gpus: str
    startup_timeout: float
    fresh: bool
    redo: Sequence[str]
    reuse: str | os.PathLike[str] | None
    max_cost: float | None
    yes: bool
    batch: int | None


def checked(options: Mapping[str, Any], kind: type) -> dict[str, Any]:
    """The options that are given: None says nothing, except of `runs`.

    Raises UsageError for an option that there is not, and for numbers that count nothing.
    """
    known = kind.__annotations__
    for name in options:
        if name not in known:
            raise UsageError(f"no option {name!r}{did_you_mean(name, known)}", hint=f"options: {', '.join(known)}")
    options = {name: value for name, value in options.items() if value is not None or name == "runs"}
    if not isinstance(further := options.get("option", {}), Mapping):
        raise UsageError(f"option={further!r}: must be a dict", hint='option={"split": "test"}')
    options["option"] = {name: value for name, value in further.items() if value is not None}
    _check_values(options)
    return options


def _check_values(options: Mapping[str, Any]) -> None:
    for name in ("limit", "sample", "batch", "jobs"):
        value = options.get(name)
        whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
        if value is not None and not whole and (name, value) != ("sample", "stratified"):
            raise UsageError(f"{name}={value!r}: must be a whole number from 1 on")
    calls, retries, redo = options.get("concurrency"), options.get("retries"), options.get("redo", ())
    if isinstance(calls, bool) or (isinstance(calls, int) and calls < 1):
        raise UsageError(f"concurrency={calls!r}: must be a whole number from 1 on, or 'auto'")
    if retries is not None and (isinstance(retries, bool) or not isinstance(retries, int) or retries < 0):
        raise UsageError(f"retries={retries!r}: must be a whole number from 0 on")
    if isinstance(redo, str) or not set(redo) <= set(get_args(Outcome)):
        raise UsageError(f"redo={redo!r}: must be a list of outcomes", hint=f"of these: {', '.join(get_args(Outcome))}")
    if options.get("sample") == "stratified":
        if not options.get("limit"):
            raise UsageError("sample='stratified' needs to know how many", hint="limit=N")
    elif options.get("limit") and options.get("sample"):
        raise UsageError("limit and sample do not go together", hint="limit: the first N; sample: N at random")


def make_plan(benchmark: str, engine: EngineLike, options: dict[str, Any]) -> tuple[Plan, TemporaryFolder | None]:
    """The plan of a run, and the temporary folder that holds it. Raises LoupeError for all that does not fit."""
    options = checked(options, _all_options())
    if isinstance(engine, str) and engine in benchmark_ids() and benchmark in profile_names():
        raise UsageError("benchmark and engine are swapped", hint=f"write: loupe.run({engine!r}, {benchmark!r})")
    benchmark = named_benchmark(benchmark)
    found = get_benchmark(benchmark)
    known = shown_options(found)
    given = options["option"]
    asked = {_SETTINGS[name]: value for name, value in options.items() if name in _SETTINGS}
    settings = asked | {name: value for name, value in given.items() if name not in known}
    if "prompt" in options:
        settings["prompts"] = {"*": options["prompt"]}
    of_benchmark = texts_of({name: value for name, value in given.items() if name in known})
    check_options(found, of_benchmark, called=benchmark)
    if isinstance(engine, str | os.PathLike):
        if "batch" in options:
            raise UsageError("batch is for functions", hint="concurrency=N asks for several pages at once")
        label, profile = _named(os.fspath(engine), settings)
        if profile.services and not options.get("yes"):
            raise UsageError(f"{label} sends pages to {', '.join(profile.services)}", hint="yes=True allows it")
        opener, unnamed = None, False
    else:
        label, profile, opener = _in_process(engine, settings, options.get("batch"))
        unnamed = not options.get("name")
    plan, kept = file_plan(benchmark, of_benchmark, (label, profile), options)
    # Nobody sees from the code of a function which weights it holds: only a name says that it is the same one.
    fresh = options.get("fresh", False) or unnamed
    plan = _replaced(plan, fresh=fresh, opener=opener, redo=frozenset(options.get("redo", ())))
    reuse = Path(options["reuse"]) if options.get("reuse") else None
    return _replaced(plan, max_cost=options.get("max_cost"), reuse=reuse), kept


def named_benchmark(benchmark: object) -> str:
    """Return the full name of a benchmark. Raises UsageError for what is no name."""
    if not isinstance(benchmark, str | os.PathLike):
        raise UsageError(
            f"benchmark is {type(benchmark).__name__}: it must be an id, a folder or a Python file",
            hint="list the ids: loupe.benchmarks()",
        )
    return full_name(os.fspath(benchmark))


def _all_options() -> type:
    return type("_All", (), {"__annotations__": {**DataOptions.__annotations__, **ReadingOptions.__annotations__}})


def _replaced(plan: Plan, **changes: Any) -> Plan:
    from dataclasses import replace

    return replace(plan, **changes)


def file_plan(
    benchmark: str, of_benchmark: dict[str, str], engine: tuple[str, Profile], options: Mapping[str, Any]
) -> tuple[Plan, TemporaryFolder | None]:
    """A plan as these options file it, and the temporary folder that holds it where it is filed nowhere else."""
    if options.get("allow_unverified"):
        if not Path(benchmark).is_dir():
            raise UsageError(f"{benchmark}: allow_unverified is for folders of your own", hint="leave it out")
        of_benchmark = of_benchmark | {"allow_unverified": "true"}
    runs = options.get("runs", RUNS)
    kept = TemporaryFolder() if runs is None else None
    data = options.get("data")
    label, profile = engine
    plan = Plan(
        benchmark=benchmark,
        label=label,
        profile=profile,
        runs=kept.path if kept else runs if isinstance(runs, Path) else Path(runs),
        name=options.get("name", ""),
        data=None if data is None else Path(data),
        options=of_benchmark,
        limit=options.get("limit"),
        sample=options.get("sample"),
        seed=options.get("seed", 0),
        jobs=options.get("jobs"),
        shared=options.get("shared", False),
        lasting=kept is None,
    )
    return plan, kept


def texts_of(options: Mapping[str, Any]) -> dict[str, str]:
    """Return options of a benchmark as the command line spells them."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}


def _named(name: str, settings: dict[str, Any]) -> tuple[str, Profile]:
    """An engine by its name, its profile, its address or its command."""
    if name.startswith(("http://", "https://")):
        label, profile = load_profile("openai", {**settings, "base_url": [name]})
        return slug(str(settings.get("model") or label)), profile
    return load_profile(name, settings)


def _in_process(engine: Any, settings: dict[str, Any], batch: int | None) -> tuple[str, Profile, Callable[[], Any]]:
    """A function, an object with `predict` or an opened engine, and what opens it."""
    opened = isinstance(engine, Engine)
    found = function_of(engine)
    if found is None:
        raise UsageError(
            f"engine is {type(engine).__name__}: neither a name nor a function nor an object with predict",
            hint="loupe.engines() lists the names; def read(page): return page.prompt",
        )
    allowed = _OF_FUNCTIONS | {"prompts", "adapters"}
    if wrong := next((name for name in settings if name not in allowed), ""):
        raise UsageError(f"{wrong} is no setting of a function", hint=f"settings: {', '.join(sorted(_OF_FUNCTIONS))}")
    if "timeout" in settings and not found.is_async:
        raise UsageError("timeout: nobody can end a call in this process", hint="write it as async def, or -e python:…")
    calls = settings.pop("concurrency", _AWAITED if found.is_async or opened else 1)
    if not isinstance(calls, int):
        raise UsageError(f"concurrency={calls!r}: a function needs a number")
    profile = Settings(
        function=found.name,
        source=found.source,
        # While one batch is read the next one fills.
        concurrency=calls * (2 * batch if batch else 1),
        **{"retries": 0, **settings},
    )
    if opened:
        return found.name, profile, partial(_as_it_is, engine)
    limit = profile.timeout if "timeout" in settings else None
    return found.name, profile, partial(open_function, found, batch=batch, calls=calls, timeout=limit)


def _as_it_is(engine: Engine) -> Any:
    from contextlib import nullcontext

    return nullcontext(engine)
