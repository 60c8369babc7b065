"""Published against measured: the numbers side by side, and every setting that differs or that nobody knows.

A published figure is no target to be hit: it says what somebody got with settings of which few are ever printed.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import msgspec

from loupe import __version__
from loupe.benchmarks.registry import filed_as
from loupe.engines.registry import Profile, load_profile, slug
from loupe.errors import LoupeError, RunError, UsageError, word
from loupe.files.default_places import DefaultPlace
from loupe.inference.prompts import prompts_by_task
from loupe.results.deciding import DECIDING, deciding, said_of
from loupe.results.headline import why_nothing
from loupe.results.scored_here import NOT_HERE, marks, result_of
from loupe.results.sections import failed_count
from loupe.runs.folder import RunFolder, find_runs
from loupe.runs.info import RunInfo
from loupe.types import Benchmark, Estimate, PublishedRow, Result

Verdict: TypeAlias = Literal["same", "differs", "unknown"]

#: What decides about a number, in the words of the tables; the keys are those of `PublishedRow.settings`.
SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        **DECIDING,
        "way": "direct or pipeline",
        "layout": "layout detector",
        "model": "model",
        "prompt": "prompt",
        "image": "image rule",
        "max_tokens": "token limit",
        "sampling": "sampling",
        "server": "server",
        "timeout": "seconds per request",
        "post_processing": "post-processing",
        "samples": "samples",
        "data": "data",
        "options": "options of the benchmark",
        "evaluator": "evaluator",
    }
)
_DEFAULTS = "the defaults"
OWN_QUESTIONS = "each sample's own question"
#: Only listed where the source speaks of them: by themselves they change no answer.
_ONLY_IF_PUBLISHED = frozenset({"timeout", "options"})
#: Only listed where either side has one.
_ONLY_IF_KNOWN = frozenset({"layout", "data", *DECIDING})
_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "seed")


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting there and here; "" where it is not known."""

    name: str
    title: str
    published: str
    here: str
    verdict: Verdict


class Against(msgspec.Struct, frozen=True, kw_only=True):
    """One measure: `inside` says whether the published value lies in our 95 % interval (None: there is no interval).

    `not_computed` says why the run has no value.
    """

    measure: str
    unit: str
    published: float
    measured: Estimate | None = None
    difference: float | None = None
    inside: bool | None = None
    not_computed: str = ""


class Reproduction(msgspec.Struct, frozen=True, kw_only=True):
    """One published row against the run that comes closest, or the command that would make one.

    `part` says which samples the run has if these are not all that the published row is about.
    """

    published: PublishedRow
    measures: list[Against]
    settings: list[Setting]
    run: str = ""
    signature: str = ""
    failed: int = 0
    total: int = 0
    part: str = ""
    command: str = ""


def finished_runs(root: Path, engine: str, benchmark_id: str, version: str) -> list[RunFolder]:
    """Runs with a result, made here, for every sample that they asked for, newest first."""
    return sorted(
        (run for run in find_runs(root)[0] if _is_of(run.info, engine, benchmark_id, version) and _is_finished(run)),
        key=lambda run: run.info.created,
        reverse=True,
    )


def _is_of(info: RunInfo, engine: str, benchmark_id: str, version: str) -> bool:
    profile = str(info.profile.get("version", "")).partition("/")[0]
    return (info.benchmark_id, info.version) == (benchmark_id, version) and engine in (info.engine, profile)


def _is_finished(run: RunFolder) -> bool:
    try:
        result = result_of(run)
    except RunError:
        return False
    return bool(result and result.scored_here and not run.info.stopped and not result.outcomes.get("missing"))


def checked_run(run: RunFolder, benchmark_id: str, version: str) -> RunFolder:
    """The run that somebody names. Raises UsageError for one of another benchmark, RunError for one without scores."""
    info = run.info
    if (info.benchmark_id, info.version) != (benchmark_id, version):
        raise UsageError(
            f"{run.path} is a run of {info.benchmark_id}@{info.version}, not of {benchmark_id}@{version}",
            hint="list your runs: loupe runs",
        )
    result = result_of(run)
    if result is None or not result.scored_here:
        what = "has no scores yet" if result is None else f"is {NOT_HERE}, so it reproduces nothing"
        raise RunError(f"{run.path} {what}", hint=f"score it: loupe score {word(run.path)}")
    return run


def reproduce(row: PublishedRow, benchmark: Benchmark, runs: Sequence[RunFolder], root: Path) -> Reproduction:
    """Return a published row next to the newest of these runs.

    Runs of all samples come first, then those with the same options of the benchmark.
    """
    alike = [run for run in runs if row.options.items() <= run.info.options.items()]
    run = next(iter([*(run for run in alike if not run.info.part), *alike, *runs]), None)
    part = _part(row, run.info) if run else ""
    result = result_of(run) if run else None
    # Without a run the engine that the row is about is the one to run, and not another one of the same model.
    here = _of_run(run.info) if run else _of_profile(row.engines[0], benchmark, row.benchmark)
    if result and (mark := marks(result, every=True)):
        here["data"] = mark
    return Reproduction(
        published=row,
        measures=_against(row, benchmark, result, whole=not part),
        settings=list(_settings(row, here)),
        run=str(run.path) if run else "",
        signature=result.signature if result else "",
        failed=failed_count(result) if result else 0,
        total=result.total if result else 0,
        part=part,
        command="" if run else command_for(row, root),
    )


def _part(row: PublishedRow, info: RunInfo) -> str:
    """Return which part of the benchmark a run has, as `first 20 of 1,000`; "" for all of it."""
    published = row.settings.get("samples", "").replace(",", "")
    if info.part or not published.isdecimal() or int(published) <= info.total:
        return info.part
    return f"{info.total:,} of {int(published):,}"


def _against(row: PublishedRow, benchmark: Benchmark, result: Result | None, *, whole: bool) -> list[Against]:
    """Compare value by value. A count over a part of the samples has no difference from one over all."""
    units = {measure.name: measure.unit for measure in benchmark.measures}
    found = []
    for name, published in row.values.items():
        estimate = result.measures.get(name) if result else None
        value, unit = estimate.value if estimate else None, units.get(name, "fraction")
        comparable = value is not None and (whole or unit != "count")
        found.append(
            Against(
                measure=name,
                unit=unit,
                published=published,
                measured=estimate if value is not None else None,
                difference=value - published if comparable and value is not None else None,
                inside=_inside(published, estimate) if comparable else None,
                not_computed=why_nothing(result, name) if result and value is None else "",
            )
        )
    return found


def _inside(published: float, estimate: Estimate | None) -> bool | None:
    if estimate is None or estimate.low is None or estimate.high is None:
        return None
    return estimate.low <= published <= estimate.high


def _settings(row: PublishedRow, here: Mapping[str, str]) -> Iterable[Setting]:
    published = {**row.settings}
    if "options" in here and (row.options or here["options"] != _DEFAULTS):
        published["options"] = _pairs(row.options) or _DEFAULTS
    if "data" in here:
        published["data"] = "the published set"
    for name, title in SETTINGS.items():
        theirs, ours = published.get(name, ""), here.get(name, "")
        if theirs or (ours and name in _ONLY_IF_KNOWN) or name not in _ONLY_IF_PUBLISHED | _ONLY_IF_KNOWN:
            yield Setting(name=name, title=title, published=theirs, here=ours, verdict=_verdict(theirs, ours))


def _verdict(theirs: str, ours: str) -> Verdict:
    if theirs == ours and theirs:
        return "same"
    # A server of the same kind, whose version one side does not tell, may be the same or not.
    return "unknown" if not theirs or not ours or ours.startswith(f"{theirs} ") else "differs"


def _of_run(info: RunInfo) -> dict[str, str]:
    """Return what a run says of itself."""
    server = " ".join(info.facts[key] for key in ("server", "server_version") if key in info.facts)
    return {
        **_common(str(info.profile.get("kind", "")), info.defining, info.parts, info.prompts),
        **deciding(str(info.profile.get("kind", "")), info.defining, info.adapters),
        **({"model": info.facts["model"]} if "model" in info.facts else {}),
        "server": server,
        "timeout": f"{timeout:g}" if isinstance(timeout := info.profile.get("timeout"), int | float) else "",
        "post_processing": " ".join(info.adapters) or "none",
        "samples": str(info.total),
        "options": _pairs(info.options) or _DEFAULTS,
        "evaluator": f"loupe {info.packages.get('loupe', __version__)}",
    }


def _of_profile(engine: str, benchmark: Benchmark, benchmark_id: str) -> dict[str, str]:
    """Say what a run with the engine's profile would say, as far as that is known before it; {} without one."""
    try:
        profile = load_profile(engine)[1]
    except LoupeError:
        return {"evaluator": f"loupe {__version__}"}
    asked = prompts_by_task([benchmark.task], profile=profile, benchmark=benchmark, benchmark_id=benchmark_id)
    defining = profile.defining()
    if "max_tokens" in defining and defining["max_tokens"] is None:
        defining["max_tokens"] = benchmark.max_tokens
    return {
        **_common(profile.kind, defining, profile.signature(), {task: text for task, text in asked.items() if text}),
        **deciding(profile.kind, defining, profile.adapters),
        "timeout": f"{profile.timeout:g}",
        "post_processing": " ".join(profile.adapters) or "none",
        "evaluator": f"loupe {__version__}",
    }


def _common(
    kind: str, defining: Mapping[str, Any], parts: Mapping[str, str], prompts: Mapping[str, str]
) -> dict[str, str]:
    asked = [text for text in prompts.values() if text]
    several = "; ".join(f"{task}: {text}" for task, text in prompts.items())
    sampling = [f"{key} {defining[key]}" for key in _SAMPLING if defining.get(key) is not None]
    return {
        "way": said_of(kind, "WAY", defining),
        "layout": parts.get("layout", ""),
        "model": str(defining.get("model") or ""),
        "prompt": (asked[0] if len(set(asked)) == 1 else several) if asked else OWN_QUESTIONS,
        "image": parts.get("img", ""),
        "max_tokens": str(defining.get("max_tokens") or ""),
        "sampling": ", ".join(sampling),
    }


def _pairs(options: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in sorted(options.items()))


def command_for(row: PublishedRow, root: Path) -> str:
    """The command that makes a run to compare with a published row, by the engine that it is about.

    An engine without a profile here is anybody's: then it is the command that takes its answers.
    """
    engine, benchmark = row.engines[0], filed_as(f"{row.benchmark}@{row.version}")
    profile = _profile_of(engine)
    if profile is None:
        words = ["loupe", "score", benchmark, "ANSWERS"]
    else:
        words = ["loupe", "run", benchmark, "-e", engine, *_server_words(profile)]
    for key, value in row.options.items():
        words += ["-o", f"{key}={value}"]
    # A run with other options than the usual one needs a folder of its own.
    if profile is None or row.options:
        words += ["--name", slug("-".join([engine, *row.options.values()]))]
    words += ["--limit", str(row.limit)] if row.limit else []
    words += ["--download"] if profile is not None else []
    words += ["--runs", str(root)] if not isinstance(root, DefaultPlace) else []
    return shlex.join(words)


def _server_words(profile: Profile) -> list[str]:
    """The server as the profile has it, else one that runs; nothing for an engine that needs none."""
    if servers := getattr(profile, "servers", None):
        return ["--serve", next(iter(servers))]
    return ["--base-url", "http://127.0.0.1:8000/v1"] if hasattr(profile, "base_url") else []


def _profile_of(engine: str) -> Profile | None:
    try:
        return load_profile(engine)[1]
    except LoupeError:
        return None
