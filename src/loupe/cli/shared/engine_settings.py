"""Settings of engines on the command line: prompts, `-o key=value`, and what they change in a profile, in words."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import click

from loupe.benchmarks.registry import benchmark_id, check_options, filed_as, get_benchmark, is_installed, shown_options
from loupe.data.toml import as_toml
from loupe.engines.registry import Profile, built_in, changed_settings, engine_kinds, engine_module, load_profile
from loupe.errors import LoupeError, UntrustedError, UsageError, completed, did_you_mean, word
from loupe.files.foreign import decode_text
from loupe.types import Benchmark

F = TypeVar("F", bound=Callable[..., Any])

#: In the order of the help.
PROMPT_OPTIONS = (
    click.option("--prompt", metavar="TEXT", help="Prompt to use instead of that of the profile or benchmark."),
    click.option(
        "--prompt-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="File with the prompt.",
    ),
)


def prompt_options(function: F) -> F:
    """`--prompt` and `--prompt-file`."""
    for option in reversed(PROMPT_OPTIONS):
        function = option(function)
    return function


#: What a profile is, and what has an option or a place of its own.
_NOT_SET = frozenset({"kind", "title", "version", "sources", "prompts"})
_LONGEST_VALUE = 60


def given_prompt(text: str | None, file: Path | None) -> str | None:
    """The prompt of the command line, None if there is none. Raises UsageError for two, and for a file without text."""
    if file is None:
        return text
    if text is not None:
        raise UsageError("--prompt and --prompt-file cannot be combined", hint="leave one of them out")
    try:
        found = decode_text(file.read_bytes())
    except (UnicodeDecodeError, OSError) as error:
        raise UsageError(f"--prompt-file {file}: {error}", hint="give a text file in UTF-8") from None
    if not found.strip():
        raise UsageError(f"--prompt-file {file}: nothing in it", hint='use --prompt "" to ask without a prompt')
    return found


def split_options(
    benchmarks: Sequence[str], pairs: Sequence[str], engines: Iterable[str]
) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """`key=value` pairs that are for benchmarks, by benchmark, and as a table those that engines have a setting for.

    `BENCHMARK.key=value` is for one of several benchmarks; without that word, only a single one is meant. What it and
    the engines both have goes to whom the value fits, to both if it fits both: one name may say
    how a benchmark counts pages and how an engine reads them. Raises UsageError for a name that is only a slip away
    from a setting.
    """
    found: dict[str, list[str]] = {each: [] for each in benchmarks}
    idents = {filed_as(each): each for each in benchmarks}
    left: list[str] = []
    for pair in pairs:
        ident, dot, rest = _parted(pair.partition("=")[0])
        # The usual version may be named, too: `omnidocbench@1.5.cdm`.
        named = filed_as(ident) if is_installed(ident) else completed(ident, idents)
        benchmark = idents.get(named) if dot else None
        if benchmark is None:
            left.append(pair)
        else:
            found[benchmark].append(f"{rest}={pair.partition('=')[2]}" if "=" in pair else rest)
    if not left:
        return found, {}
    fields = {name for each in (list(engines) or ["openai"]) for name in settings_of(each)} - _NOT_SET
    if len(benchmarks) > 1:
        return found, {key: _value(value) for key, value in (_of_engines(pair, fields, idents) for pair in left)}
    kept, settings = _of_one(benchmarks[0], left, engines, fields)
    found[benchmarks[0]] += kept
    return found, settings


def _parted(name: str) -> tuple[str, str, str]:
    """`BENCHMARK.key` at its dot, which a version has too: `omnidocbench@1.6.cdm`."""
    return name.rpartition(".") if "@" in name else name.partition(".")


def _of_engines(pair: str, fields: Collection[str], idents: Mapping[str, str]) -> tuple[str, str]:
    """A setting of the engines and its value. Raises UsageError for what is none, but an option of a benchmark, say."""
    key, equals, value = pair.partition("=")
    if equals and key in fields:
        return key, value
    ident, dot, _ = _parted(key)
    if dot:
        raise UsageError(f"-o {pair}: {ident} is not one of the benchmarks", hint=f"benchmarks: {', '.join(idents)}")
    having = [ident for ident, name in idents.items() if key in shown_options(get_benchmark(name))]
    raise UsageError(
        f"-o {pair}: the engine has no such setting; for one of several benchmarks, put its name in front",
        hint=f"-o {next(iter(having or idents))}.{pair}",
    )


def _of_one(
    benchmark: str, pairs: Sequence[str], engines: Iterable[str], fields: Collection[str]
) -> tuple[list[str], dict[str, Any]]:
    """The pairs that are for a single benchmark, and the settings of the engines."""
    loaded, ident = get_benchmark(benchmark), benchmark_id(benchmark)
    known = list(shown_options(loaded))
    kept: list[str] = []
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if equals and key in fields and key not in known:
            settings[key] = _value(value)
        elif equals and key in fields and value in _choices(key, engines):
            settings[key] = value
            kept += [pair] if _fits(loaded, key, value) else []
        elif equals and key not in known:
            meant = did_you_mean(key, known) or did_you_mean(key, fields)
            raise UsageError(
                f"{ident} has no option {key!r}, and the engine no setting{meant}",
                hint=f"options of {ident}: {', '.join(known) or 'none'}; settings of "
                f"{', '.join(engines) or 'the engine'}: {', '.join(sorted(fields))}",
            )
        else:
            kept.append(pair)
    return kept, settings


def settings_from(pairs: Sequence[str], engine: str) -> dict[str, Any]:
    """Read the `key=value` pairs of one engine. Raises UsageError for what is no setting of it."""
    known, found = set(settings_of(engine)) - _NOT_SET, {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or key not in known:
            raise UsageError(
                f"engine {engine!r} has no setting for -o {pair}",
                hint=f"see its settings: loupe engine show {word(engine)}",
            )
        found[key] = _value(value)
    return found


def settings_of(engine: str) -> tuple[str, ...]:
    """Names of the settings that an engine has; none for an engine that is not there, which is said elsewhere."""
    found = _loaded(engine)
    further = getattr(found, found.settings_in, {}) if found and found.settings_in else {}
    return (*found.__struct_fields__, *(further if isinstance(further, dict) else ())) if found else ()


def _loaded(engine: str) -> Profile | type[Profile] | None:
    """The profile; the class of a kind that needs a setting to be loaded, which has its settings anyway."""
    try:
        return load_profile(engine)[1]
    except UntrustedError:
        raise
    except LoupeError:
        found: type[Profile] | None = engine_module(engine).Settings if engine in engine_kinds() else None
        return found


def _choices(key: str, engines: Iterable[str]) -> set[str]:
    """The values that a setting of these engines may have, if they can be counted."""
    found: set[str] = set()
    for engine in engines:
        settings = _loaded(engine)
        if settings and key in settings.__struct_fields__:
            hint = get_type_hints(settings if isinstance(settings, type) else type(settings))[key]
            found |= set(get_args(hint)) if get_origin(hint) is Literal else set()
        elif isinstance(settings, Profile):
            found |= set(getattr(settings, "choices", {}).get(key, ()))
    return found


def _fits(benchmark: Benchmark, key: str, value: str) -> bool:
    try:
        check_options(benchmark, {key: value})
    except UsageError:
        return False
    return True


def _value(text: str) -> Any:
    """A value as TOML has it (`0.2`, `true`, `["strip"]`); anything else is a text, a number without end too."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def caution(profile: Profile) -> str:
    """Say what of an engine has never been tried, as the profile or its kind's `UNPROVEN` says; "" for nothing."""
    return str(getattr(profile, "unproven", "") or getattr(engine_module(profile.kind), "UNPROVEN", ""))


def differences(profile: Profile) -> list[str]:
    """List what differs from the profile whose version this one bears, one line for each setting."""
    base = built_in(profile.version)
    if base is None:
        # A profile of the user's own: what the command line changed of it stands in its version.
        return profile.version.split("+")[1:]
    return [f"{key}: {_short(old)} → {_short(new)}" for key, (old, new) in changed_settings(profile, base).items()]


def _short(value: Any) -> str:
    if isinstance(value, dict) and list(value) == ["*"]:
        value = value["*"]
    if isinstance(value, dict) and len(as_toml(value)) > _LONGEST_VALUE:
        value = f"those of {', '.join(value)}"
    shown = as_toml(value) if isinstance(value, dict | list | bool) else str(value)
    text = " ".join(("nothing" if value in (None, "", [], {}) else shown).split())
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"
