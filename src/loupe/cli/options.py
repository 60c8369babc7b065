"""Options that several commands share, and how they become an engine profile and a plan."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import click
import msgspec

from loupe.benchmarks.registry import check_options, get_benchmark
from loupe.cli.api_key import API_KEY, API_KEY_FILE
from loupe.cli.engine_settings import PROMPT_OPTIONS, caution, differences, given_prompt, split_options
from loupe.cli.output import runs_option, say, shared_option
from loupe.cli.repeats import repeated
from loupe.cli.server_options import (
    SERVER_OPTIONS,
    SERVER_OVERRIDES,
    check_serve,
    check_server_settings,
    find_server,
    in_server_order,
    served_by,
    served_model,
)
from loupe.data.extras import install_command
from loupe.engines.registry import Profile, engine_kinds, load_profile, profile_names, slug
from loupe.errors import EngineUnavailableError, ProfileError, UsageError, word
from loupe.types import Outcome

if TYPE_CHECKING:
    from loupe.pipeline import Plan

F = TypeVar("F", bound=Callable[..., Any])

#: Option → the profile key that it overrides.
OVERRIDES = {
    "base_url": "base_url",
    "model": "model",
    "concurrency": "concurrency",
    "timeout": "timeout",
    "retries": "retries",
    "max_tokens": "max_tokens",
    "retry_truncated": "retry_truncated",
    "temperature": "temperature",
    "image": "image",
    **SERVER_OVERRIDES,
}

#: The engine of who names none and runs no server.
DEFAULT = "rapidocr"
#: Settings that speak of a server: with one of them, reading with a local engine would be a surprise.
SERVER_ONLY = frozenset({"model", "max_tokens", "retry_truncated", "temperature", "image"})


class Flags(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `run` and `infer`, as click hands them over; `settings` are those of `-o` that engines have."""

    engine: tuple[str, ...] = ()
    engines: str = ""
    base_url: tuple[str, ...] = ()
    model: str | None = None
    serve: str | None = None
    server_arg: tuple[str, ...] = ()
    server_port: int | str | None = None
    gpus: str | None = None
    startup_timeout: float | None = None
    concurrency: int | Literal["auto"] | None = None
    timeout: float | None = None
    retries: int | None = None
    max_tokens: int | None = None
    retry_truncated: int | None = None
    temperature: float | None = None
    image: str | None = None
    prompt: str | None = None
    prompt_file: Path | None = None
    limit: int | None = None
    sample: int | None = None
    seed: int | None = None
    repeats: int = 1
    data: Path | None = None
    download: bool = False
    option: tuple[str, ...] = ()
    settings: dict[str, Any] = {}
    runs: Path = Path("runs")
    name: str = ""
    fresh: bool = False
    redo: tuple[str, ...] = ()
    jobs: int | None = None
    allow_unverified: bool = False
    max_cost: float | None = None
    shared: bool = False


_POSITIVE = click.IntRange(min=1)


def _number_or_auto(context: click.Context, option: click.Parameter, value: str | None) -> int | str | None:
    """A whole number from 1 on, or `auto`."""
    if value is None or value == "auto":
        return value
    if not value.isdecimal() or int(value) < 1:
        raise click.BadParameter(f"{value!r} is neither a whole number from 1 on nor auto", context, option)
    return int(value)


_FOLDER = click.Path(path_type=Path)

SAMPLE = click.option(
    "--sample", type=_POSITIVE, metavar="N", help="Only N samples at random, the same ones each time."
)
SEED = click.option("--seed", type=click.IntRange(min=0), metavar="S", help="Seed of --sample. Default: 0.")

#: In the order of the help.
_OPTIONS = (
    click.option("-e", "--engine", multiple=True, metavar="NAME", help="Engine or profile; again for more."),
    click.option("--engines", default="", metavar="A,B", help="The same, as one list."),
    click.option("--base-url", multiple=True, metavar="URL", help="OpenAI-compatible server; again for several."),
    API_KEY_FILE,
    API_KEY,
    click.option("--model", metavar="ID", help="Model at the server. Default: the one it has."),
    *SERVER_OPTIONS,
    click.option("--limit", type=_POSITIVE, metavar="N", help="Only the first N samples."),
    SAMPLE,
    SEED,
    click.option(
        "--repeats",
        type=_POSITIVE,
        default=1,
        metavar="N",
        help="Ask each sample N times, as N runs beside each other, and show how far their values lie apart.",
    ),
    click.option(
        "-n",
        "--concurrency",
        callback=_number_or_auto,
        metavar="N|auto",
        help="Requests in flight; auto: as many as make the server faster.",
    ),
    click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="S", help="Seconds per request."),
    click.option("--retries", type=click.IntRange(min=0), metavar="N", help="Further attempts after a passing error."),
    click.option("--max-tokens", type=_POSITIVE, metavar="N", help="Longest answer, in tokens."),
    click.option(
        "--retry-truncated",
        type=_POSITIVE,
        metavar="N",
        help="Ask once more with N tokens where an answer was cut off.",
    ),
    click.option("--temperature", type=click.FloatRange(min=0), metavar="T", help="Sampling temperature."),
    click.option("--image", metavar="RULE", help="Image handling: none, fit2048, longest(N), smart(...)."),
    *PROMPT_OPTIONS,
    click.option(
        "--data",
        type=click.Path(exists=True, path_type=Path),
        metavar="DIR",
        help="Local copy of the data, in the upstream's layout.",
    ),
    click.option("--download", is_flag=True, help="Fetch the data first if it is not here (loupe data get)."),
    click.option(
        "-o",
        "--option",
        multiple=True,
        metavar="KEY=VALUE",
        help="Option of the benchmark (bench show), or setting of the engine (engine show).",
    ),
    runs_option,
    click.option("--name", default="", metavar="NAME", help="Name of a second configuration of the same engine."),
    click.option("--fresh", is_flag=True, help="Start over; the old folder is moved aside."),
    shared_option,
    click.option(
        "--redo",
        multiple=True,
        type=click.Choice(get_args(Outcome)),
        metavar="CLASS",
        help="Read samples of this class again (empty, truncated, repeated, …).",
    ),
    click.option(
        "--max-cost",
        type=click.FloatRange(min=0, min_open=True),
        metavar="X",
        help="Stop before the run costs more, at the prices of the profile (docs/runs.md).",
    ),
    click.option("-j", "--jobs", type=_POSITIVE, metavar="N", help="Processes that score. Default: one per core."),
)

allow_unverified = click.option(
    "--allow-unverified", is_flag=True, help="Take drafts of your own folder for truth, with a mark."
)


def reading_options(function: F) -> F:
    """All options that say what is read, by which engine, and where to."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


#: Options for how a run is filed, scored and repeated.
_OF_RUNS = frozenset(
    {
        "engines",
        "concurrency",
        "retries",
        "retry_truncated",
        "runs",
        "name",
        "fresh",
        "redo",
        "max_cost",
        "jobs",
        "shared",
        "sample",
        "seed",
        "repeats",
    }
)


#: Options for which samples are asked; `image` is a page where one is named.
_OF_SAMPLES = frozenset({"engine", "limit", "data", "download", "option", "image"})


def asking_options(function: F) -> F:
    """Those of them that say what is asked of which engine, for commands that store no run."""
    return _without(_OF_RUNS, function)


def engine_options(function: F) -> F:
    """Those of them that say how an engine is asked that is named otherwise, and about a page that is named."""
    return _without(_OF_RUNS | _OF_SAMPLES, function)


def _without(names: frozenset[str], function: F) -> F:
    for option in reversed(_OPTIONS):
        [parameter] = click.command()(option(lambda: None)).params
        if parameter.name not in names:
            function = option(function)
    return function


def make_plans(benchmark: str, flags: Flags) -> list[Plan]:
    """One plan for each engine asked for. Everything a user can get wrong is found here, before anything is read."""
    _check_part(flags)
    pairs, settings = split_options(benchmark, flags.option, _engine_names(flags))
    options = parse_options(benchmark, pairs) | unverified_option(benchmark, allowed=flags.allow_unverified)
    flags = msgspec.structs.replace(flags, settings=settings)
    engines = choose_engines(flags)
    for label, profile in engines:
        for line in differences(profile):
            say(f"{label} is not as in {profile.version.partition('+')[0]}: {line}")
        if unproven := caution(profile):
            say(f"{label}: {unproven}")
    check_server_settings(override_table(flags), engines)
    if flags.download:
        download_data(benchmark, flags)
    from loupe.pipeline import Plan

    plans = [
        Plan(
            benchmark=benchmark,
            label=label,
            profile=profile,
            runs=flags.runs,
            name=flags.name,
            data=flags.data,
            options=options,
            limit=flags.limit,
            sample=flags.sample,
            seed=flags.seed or 0,
            fresh=flags.fresh,
            redo=frozenset(flags.redo),
            jobs=flags.jobs,
            max_cost=flags.max_cost,
            shared=flags.shared,
        )
        for label, profile in engines
    ]
    if flags.max_cost is not None:
        from loupe.pipeline.spending import priced

        for plan in plans:
            priced(plan)
    return in_server_order(repeated(plans, flags.repeats))


def _check_part(flags: Flags) -> None:
    """Refuse two ways to choose samples, and a seed for none."""
    if flags.limit is not None and flags.sample is not None:
        raise UsageError("--limit and --sample do not go together", hint="--limit: the first N; --sample: N at random")
    if flags.seed is not None and flags.sample is None:
        raise UsageError("--seed is for --sample", hint=f"--sample N --seed {flags.seed}")


def unverified_option(benchmark: str, *, allowed: bool) -> dict[str, str]:
    """`--allow-unverified` as an option of the benchmark: only folders of one's own have truth of that kind."""
    if allowed and not Path(benchmark).is_dir():
        raise UsageError(f"{benchmark}: --allow-unverified is for folders of your own", hint="leave it out")
    return {"allow_unverified": "true"} if allowed else {}


def download_data(benchmark: str, flags: Flags) -> None:
    """Fetch the data of a benchmark unless it is here; the only way in which a run uses the network for data."""
    from loupe.cli.transfers import download_if_missing

    if flags.data:
        raise UsageError("--download and --data do not go together", hint="loupe data get fetches without a run")
    download_if_missing(benchmark, plain=bool(os.environ.get("NO_COLOR")))


def parse_options(benchmark: str, pairs: tuple[str, ...]) -> dict[str, str]:
    """`key=value` pairs, checked against the parameters of the benchmark's `load`."""
    options = split_pairs(pairs, hint=f"loupe bench show {word(benchmark)}")
    check_options(get_benchmark(benchmark), options)
    return options


def split_pairs(pairs: Iterable[str], *, hint: str) -> dict[str, str]:
    """`key=value` pairs, unchecked. Raises UsageError for a word without `=`."""
    options = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"-o {pair}: not KEY=VALUE", hint=hint)
        options[key] = value
    return options


def _engine_names(flags: Flags) -> list[str]:
    return [*flags.engine, *(name.strip() for name in flags.engines.split(",") if name.strip())]


def choose_engines(flags: Flags) -> list[tuple[str, Profile]]:
    """The engines named, with overrides applied; with none named, the server given or found here, else `DEFAULT`."""
    names = _engine_names(flags)
    overrides = override_table(flags)
    check_serve(overrides)
    if names:
        return [configure(name, overrides) for name in dict.fromkeys(names)]
    if flags.serve:
        model = flags.model or served_by(flags.serve)
        _, profile = configure("openai", {**overrides, "model": model})
        return [(_run_label(slug(model)), profile)]
    if "base_url" not in overrides:
        try:
            overrides["base_url"] = find_server()
        except EngineUnavailableError as error:
            if overrides.keys() & SERVER_ONLY or flags.settings:
                error.hint = error.hint.partition("; without a server")[0]  # these settings speak of one
                raise
            if find_spec(DEFAULT) is None:
                error.hint += f", which comes with: {install_command(DEFAULT)}"
                raise
            say(
                f"no model server answers on this machine: reading with {DEFAULT} (-e NAME or --base-url URL to choose)"
            )
            return [configure(DEFAULT, overrides)]
    label, profile = configure("openai", overrides)
    model = slug(flags.model or served_model(overrides["base_url"]) or label)
    return [(model if model == label else _run_label(model), profile)]


def _run_label(model: str) -> str:
    """What to file the runs of a served model under: those of `loupe serve tesseract` are not the local engine's."""
    return f"{model}-server" if model in profile_names() or model in engine_kinds() else model


def override_table(flags: Flags) -> dict[str, Any]:
    """Profile keys that the command line sets."""
    given = {key: getattr(flags, option) for option, key in OVERRIDES.items()}
    table = {key: list(value) if isinstance(value, tuple) else value for key, value in given.items()}
    table = {key: value for key, value in table.items() if value not in (None, [])}
    if twice := next((key for key in flags.settings if key in table), None):
        raise UsageError(f"-o {twice} and --{_flag(twice)} set the same", hint="leave one of them out")
    prompt = given_prompt(flags.prompt, flags.prompt_file)
    return table | flags.settings | ({} if prompt is None else {"prompts": {"*": prompt}})


def _flag(key: str) -> str:
    return next(flag for flag, each in OVERRIDES.items() if each == key).replace("_", "-")


def configure(name: str, overrides: Mapping[str, Any]) -> tuple[str, Profile]:
    """One engine with overrides. Raises UsageError for an option that this kind of engine does not have."""
    try:
        return load_profile(name, overrides)
    except ProfileError as error:
        option = next((key for key in overrides if f"unknown key {key!r}" in error.message), None)
        if option is None:
            raise _blaming_the_option(error, overrides) or error from None
    except UsageError as error:
        raise _misplaced_profile(name) or error from None
    given = f"--{_flag(option)}" if option in OVERRIDES.values() else f"-o {option}"
    raise UsageError(f"engine {name!r} has no setting for {given}", hint=f"loupe engine show {word(name)}")


def _blaming_the_option(error: ProfileError, overrides: Mapping[str, Any]) -> UsageError | None:
    """The error without the profile's file where the command line gave the value that is wrong."""
    _, _, wrong = error.message.partition(": ")
    given = re.match(r"[a-z_]+", wrong)
    if given is None or given[0] not in overrides:
        return None
    said = f"--{_flag(given[0])}: {wrong}" if given[0] in OVERRIDES.values() else f"-o {wrong}"
    return UsageError(said, hint=error.hint)


def _misplaced_profile(name: str) -> UsageError | None:
    """The complaint about a profile that stands in loupe.toml under [engine.NAME], where nobody looks for it."""
    from loupe.engines.shared.local_settings import read_settings

    try:
        local = read_settings()
    except ProfileError:
        return None
    if local is None or name not in local.table("engine"):
        return None
    return UsageError(
        f"no engine {name!r}; loupe.toml has a table [engine.{name}], but profiles stand under [engines.NAME]",
        hint="sed -i.old 's/^\\[engine\\./[engines./' loupe.toml",
    )
