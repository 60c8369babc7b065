"""Options that several commands share, and how they become an engine profile and a plan."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click
import msgspec

from loupe.benchmarks.registry import check_options, get_benchmark, is_own_folder
from loupe.cli.shared.api_key import API_KEY, API_KEY_FILE
from loupe.cli.shared.chosen_engines import engine_names, open_engines
from loupe.cli.shared.engine_settings import PROMPT_OPTIONS, split_options
from loupe.cli.shared.executor_options import NAMES, ON, SHARED_DATA, WORKER, open_executor
from loupe.cli.shared.flags import Flags
from loupe.cli.shared.lazy import in_group
from loupe.cli.shared.output import fresh_option, runs_option, shared_option
from loupe.cli.shared.repeated_runs import repeated
from loupe.cli.shared.run_paths import RunPath
from loupe.cli.shared.server_options import (
    SERVER_OPTIONS,
    in_server_order,
)
from loupe.cli.shared.suite_files import Entry
from loupe.engines.registry import Profile
from loupe.errors import UsageError, word
from loupe.types import Outcome

if TYPE_CHECKING:
    from loupe.pipeline import Plan

F = TypeVar("F", bound=Callable[..., Any])

_POSITIVE = click.IntRange(min=1)


def _number_or_auto(context: click.Context, option: click.Parameter, value: str | None) -> int | str | None:
    """A whole number from 1 on, or `auto`."""
    if value is None or value == "auto":
        return value
    if not value.isdecimal() or int(value) < 1:
        raise click.BadParameter(f"{value!r} is neither a whole number from 1 on nor auto", context, option)
    return int(value)


_FOLDER = click.Path(path_type=Path)


def _number_or_stratified(context: click.Context, option: click.Parameter, value: str | None) -> int | str | None:
    """A whole number from 1 on, or `stratified`."""
    if value is None or value == "stratified":
        return value
    if not value.isdecimal() or int(value) < 1:
        raise click.BadParameter(f"{value!r} is neither a whole number from 1 on nor stratified", context, option)
    return int(value)


SAMPLE = click.option(
    "--sample",
    callback=_number_or_stratified,
    metavar="N|stratified",
    help="Only N random samples, the same ones each time; stratified: --limit N in proportion to task and tags.",
)
SEED = click.option("--seed", type=click.IntRange(min=0), metavar="S", help="Seed of --sample. Default: 0.")

YES = click.option("--yes", is_flag=True, help="Send pages to a service without asking.")


def _group(name: str, *options: Callable[[Any], Any]) -> tuple[Callable[[Any], Any], ...]:
    return tuple(in_group(name, option) for option in options)


#: In the order of the help: the common ones, then those that `--help-all` explains.
_OPTIONS = (
    click.option("-e", "--engine", multiple=True, metavar="NAME", help="Engine or profile; again for more."),
    click.option("--base-url", multiple=True, metavar="URL", help="OpenAI-compatible server; again for several."),
    API_KEY_FILE,
    click.option("--model", metavar="ID", help="Model at the server. Default: its only model."),
    *SERVER_OPTIONS,
    click.option("--limit", type=_POSITIVE, metavar="N", help="Only the first N samples."),
    click.option(
        "-n",
        "--concurrency",
        callback=_number_or_auto,
        metavar="N|auto",
        help="Requests in flight; auto: raised while throughput improves.",
    ),
    click.option("--download", is_flag=True, help="Fetch missing data first (loupe data get)."),
    click.option(
        "-o",
        "--option",
        multiple=True,
        metavar="KEY=VALUE",
        help="Option of the benchmark (bench show), or setting of the engine (engine show). Of several benchmarks: "
        "BENCHMARK.KEY=VALUE.",
    ),
    runs_option,
    fresh_option,
    YES,
    *_group(
        "Engines and requests",
        click.option("--engines", default="", metavar="A,B", help="Engines as one comma-separated list."),
        API_KEY,
        *PROMPT_OPTIONS,
        click.option("--image", metavar="RULE", help="Image handling: none, fit2048, longest(N), smart(...)."),
        click.option("--max-tokens", type=_POSITIVE, metavar="N", help="Maximum tokens of an answer."),
        click.option("--temperature", type=click.FloatRange(min=0), metavar="T", help="Sampling temperature."),
        click.option(
            "--timeout", type=click.FloatRange(min=0, min_open=True), metavar="S", help="Seconds per request."
        ),
        click.option("--retries", type=click.IntRange(min=0), metavar="N", help="Retries after a temporary error."),
        click.option(
            "--retry-truncated",
            type=_POSITIVE,
            metavar="N",
            help="Ask once more with N tokens if an answer was cut off.",
        ),
    ),
    *_group(
        "Samples",
        SAMPLE,
        SEED,
        click.option(
            "--data",
            type=click.Path(exists=True, path_type=Path),
            metavar="DIR",
            help="Local copy of the data, in the upstream's layout.",
        ),
        click.option(
            "--redo",
            multiple=True,
            type=click.Choice(get_args(Outcome)),
            metavar="CLASS",
            help="Read samples of this class again (empty, truncated, repeated, …).",
        ),
        click.option(
            "--reuse",
            type=RunPath(exists=True, file_okay=False),
            metavar="RUN",
            help="Keep this run's answers to samples of your own folder that have not changed, and read only the "
            "others.",
        ),
    ),
    *_group(
        "The run",
        click.option(
            "--repeats",
            type=_POSITIVE,
            default=1,
            metavar="N",
            help="Run N times, as separate runs, and show the spread of their values.",
        ),
        click.option(
            "--name",
            default="",
            metavar="NAME",
            help="Name of a second configuration of the same engine; of several: NAME-ENGINE.",
        ),
        shared_option,
        click.option(
            "--max-cost",
            type=click.FloatRange(min=0, min_open=True),
            metavar="X",
            help="Stop before the cost exceeds this, at the profile's prices (docs/failures.md).",
        ),
        click.option("-j", "--jobs", type=_POSITIVE, metavar="N", help="Scoring processes. Default: one per core."),
    ),
    *_group("A cluster", ON, WORKER, SHARED_DATA),
)

allow_unverified = in_group(
    "Samples",
    click.option(
        "--allow-unverified", is_flag=True, help="Score your own folder against unverified drafts; results say so."
    ),
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
        "reuse",
        "max_cost",
        "jobs",
        "shared",
        "sample",
        "seed",
        "repeats",
        "on",
        "worker",
        "shared_data",
    }
)


#: Options for which samples are asked; `image` is a page where one is named.
_OF_SAMPLES = frozenset({"engine", "limit", "data", "download", "option", "image"})


#: Options that drafts have no use for: a folder is its own data, nothing is scored, and runs lie in it.
_NOT_OF_DRAFTS = frozenset({"data", "download", "jobs", "runs"})


def drafting_options(function: F) -> F:
    """Those of them that say how drafts are read."""
    return _without(_NOT_OF_DRAFTS, function)


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
    data = None if flags.data is None else str(flags.data)
    asked, flags = as_asked([Entry(benchmark=benchmark, data=data)], flags)
    engines = open_engines(flags)
    if flags.download:
        download_data(asked[0], flags)
    return plans_of(asked, engines, flags)


def as_asked(entries: Sequence[Entry], flags: Flags) -> tuple[list[Entry], Flags]:
    """Benchmarks with what the command line says of them, which counts more, and the flags with engines' settings.

    Raises UsageError for options that do not fit together, or that a benchmark does not have.
    """
    _check_part(flags)
    pairs, settings = split_options([each.benchmark for each in entries], flags.option, engine_names(flags))
    own = [each for each in entries if is_own_folder(each.benchmark)] or entries
    asked = []
    for entry in entries:
        options = entry.texts | split_pairs(
            pairs[entry.benchmark], hint=f"see its options: loupe bench show {word(entry.benchmark)}"
        )
        check_options(get_benchmark(entry.benchmark), options, called=entry.benchmark)
        options |= unverified_option(entry.benchmark, allowed=flags.allow_unverified and entry in own)
        asked.append(msgspec.structs.replace(entry, options=options, **_part_of(flags)))
    return asked, msgspec.structs.replace(flags, settings=settings)


def _part_of(flags: Flags) -> dict[str, int | str | None]:
    """Which samples the command line asks for; nothing where it says nothing."""
    if flags.limit is None and flags.sample is None:
        return {}
    return {"limit": flags.limit, "sample": flags.sample, "seed": flags.seed}


def plans_of(asked: Sequence[Entry], engines: Sequence[tuple[str, Profile]], flags: Flags) -> list[Plan]:
    """A plan for every engine on every benchmark, engine by engine, each as often as it is to be repeated."""
    from loupe.pipeline import Plan

    if flags.worker is not None and flags.on is None:
        raise UsageError("--worker goes with --on", hint=f"use --on {NAMES}")
    executor = open_executor(flags.on, shared_data=flags.shared_data, profiles=engines)
    plans = [
        Plan(
            benchmark=entry.benchmark,
            label=label,
            profile=profile,
            runs=flags.runs,
            # Each engine of several has a folder of its own.
            name=f"{flags.name}-{label}" if flags.name and len(engines) > 1 else flags.name,
            data=None if entry.data is None else Path(entry.data),
            options=entry.texts,
            limit=entry.limit,
            sample=entry.sample,
            seed=entry.seed or 0,
            fresh=flags.fresh,
            redo=frozenset(flags.redo),
            reuse=flags.reuse,
            jobs=flags.jobs,
            max_cost=flags.max_cost,
            shared=flags.shared,
            executor=executor,
            alone=len(engines) * len(asked) * flags.repeats == 1,
        )
        for label, profile in engines
        for entry in asked
    ]
    if flags.reuse is not None and not all(plan.alone for plan in plans):
        raise UsageError("--reuse goes with one engine and one benchmark", hint="give one -e, and one benchmark")
    if flags.max_cost is not None:
        from loupe.pipeline.spent import priced

        for plan in plans:
            priced(plan)
    return in_server_order(repeated(plans, flags.repeats))


def _check_part(flags: Flags) -> None:
    """Refuse two ways to choose samples, and a seed for none."""
    if flags.sample == "stratified":
        if flags.limit is None:
            raise UsageError("--sample stratified needs to know how many", hint="use --sample stratified --limit N")
    elif flags.limit is not None and flags.sample is not None:
        raise UsageError(
            "--limit and --sample cannot be combined", hint="use --limit for the first N, or --sample for N at random"
        )
    if flags.seed is not None and flags.sample is None:
        raise UsageError("--seed is for --sample", hint=f"use --sample N --seed {flags.seed}")


def unverified_option(benchmark: str, *, allowed: bool) -> dict[str, str]:
    """`--allow-unverified` as an option of the benchmark: only folders of one's own have truth of that kind."""
    if allowed and not is_own_folder(benchmark):
        raise UsageError(f"{benchmark}: --allow-unverified is for folders of your own", hint="leave it out")
    return {"allow_unverified": "true"} if allowed else {}


def download_data(entry: Entry, flags: Flags) -> None:
    """Fetch the data of a benchmark unless it is here; the only way in which a run uses the network for data."""
    from loupe.cli.shared.transfers import download_if_missing

    if flags.data:
        raise UsageError(
            "--download and --data cannot be combined", hint="download without a run: loupe data get BENCHMARK"
        )
    source = entry.texts.get("source", "")
    download_if_missing(entry.benchmark, source=source, plain=bool(os.environ.get("NO_COLOR")))


def parse_options(benchmark: str, pairs: tuple[str, ...]) -> dict[str, str]:
    """`key=value` pairs, checked against the parameters of the benchmark's `load`."""
    options = split_pairs(pairs, hint=f"see its options: loupe bench show {word(benchmark)}")
    check_options(get_benchmark(benchmark), options, called=benchmark)
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
