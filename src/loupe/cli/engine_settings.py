"""Settings of engines on the command line: prompts, `-o key=value`, and what they change in a profile, in words."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import click

from loupe.benchmarks.registry import check_options, get_benchmark
from loupe.engines.registry import Profile, built_in, changed_settings, engine_module, load_profile
from loupe.errors import LoupeError, UntrustedError, UsageError, did_you_mean, word
from loupe.types import Benchmark

F = TypeVar("F", bound=Callable[..., Any])

#: In the order of the help.
PROMPT_OPTIONS = (
    click.option("--prompt", metavar="TEXT", help="Ask this instead of the prompt of profile and benchmark."),
    click.option(
        "--prompt-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="The same, as it stands in a file.",
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
        raise UsageError("--prompt and --prompt-file do not go together", hint="leave one of them out")
    try:
        found = file.read_text(encoding="utf-8-sig")
    except (UnicodeDecodeError, OSError) as error:
        raise UsageError(f"--prompt-file {file}: {error}", hint="a text file in UTF-8") from None
    if not found.strip():
        raise UsageError(f"--prompt-file {file}: nothing in it", hint='--prompt "" asks without any prompt')
    return found


def split_options(
    benchmark: str, pairs: Sequence[str], engines: Iterable[str]
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """`key=value` pairs that are for the benchmark, and as a table those that the engines have a setting for.

    What both have goes to whom the value fits, to both if it fits both: `mode=small` says how pages of `fox` are
    counted and how DeepSeek-OCR reads them. Raises UsageError for a name that is only a slip away from a setting.
    """
    if not pairs:
        return (), {}
    loaded = get_benchmark(benchmark)
    known = list(inspect.signature(loaded.load).parameters)[1:]
    fields = {name for each in (list(engines) or ["openai"]) for name in _settings_of(each)} - _NOT_SET
    kept: list[str] = []
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if equals and key in fields and key not in known:
            settings[key] = _value(value)
        elif equals and key in fields and value in _choices(key, engines):
            settings[key] = value
            kept += [pair] if _fits(loaded, key, value) else []
        elif key not in known and not did_you_mean(key, known) and (meant := did_you_mean(key, fields)):
            raise UsageError(
                f"{loaded.title} has no option {key!r}, and the engine no setting{meant}",
                hint=f"loupe bench show {word(benchmark)}; loupe engine show NAME",
            )
        else:
            kept.append(pair)
    return tuple(kept), settings


def _settings_of(engine: str) -> tuple[str, ...]:
    """Names of the settings that an engine has; none for an engine that is not there, which is said elsewhere."""
    try:
        return load_profile(engine)[1].__struct_fields__
    except UntrustedError:
        raise
    except LoupeError:
        return engine_module("openai").Settings.__struct_fields__ if engine == "openai" else ()


def _choices(key: str, engines: Iterable[str]) -> set[str]:
    """The values that a setting of these engines may have, if they can be counted."""
    found: set[str] = set()
    for engine in engines:
        if key in _settings_of(engine):
            hint = get_type_hints(type(load_profile(engine)[1]))[key]
            found |= set(get_args(hint)) if get_origin(hint) is Literal else set()
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
    """What of an engine has never been tried, as its kind says it in `UNPROVEN`; "" where nothing is left to say."""
    return str(getattr(engine_module(profile.kind), "UNPROVEN", ""))


def differences(profile: Profile) -> list[str]:
    """What differs from the profile whose version this one bears, one line for each setting."""
    base = built_in(profile.version)
    if base is None:
        # A profile of the user's own: what the command line changed of it stands in its version.
        return profile.version.split("+")[1:]
    return [f"{key}: {_short(old)} → {_short(new)}" for key, (old, new) in changed_settings(profile, base).items()]


def _short(value: Any) -> str:
    from loupe.cli.engine_show import as_toml

    if isinstance(value, dict) and list(value) == ["*"]:
        value = value["*"]
    if isinstance(value, dict) and len(as_toml(value)) > _LONGEST_VALUE:
        value = f"those of {', '.join(value)}"
    shown = as_toml(value) if isinstance(value, dict | list | bool) else str(value)
    text = " ".join(("nothing" if value in (None, "", [], {}) else shown).split())
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"
