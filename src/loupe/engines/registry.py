"""Engine profiles: TOML files that turn an engine kind (a Python module here) into a named, pinned configuration.

Looked for, in this order: `[engines.NAME]` in ./loupe.toml (used only where the user trusts that file),
~/.config/loupe/engines/NAME.toml, profiles of Loupe, its features and other packages, a path to a TOML file, and
`KIND:ARGUMENT` as shorthand (`python:mymodule:read`, `predictions:./answers`).
Unknown keys are refused with the place where they stand.
"""

from __future__ import annotations

import functools
import math
import pkgutil
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Literal, get_args, get_type_hints

import msgspec

from loupe.data.toml import parse_toml
from loupe.data.user_folders import config_files
from loupe.engines.shared.hosts import hosts_beyond
from loupe.engines.shared.local_settings import ENGINES, FILE, LocalSettings, read_settings
from loupe.engines.shared.prices import Price
from loupe.engines.shared.redaction import redacted
from loupe.errors import ProfileError, UsageError, did_you_mean, word
from loupe.files.foreign import decode_text, read_data
from loupe.hooks import Hook, folders, found
from loupe.typed import convert, encode_json, wrong_type

BUILT_IN = Path(__file__).parent / "profiles"


#: A folder may have 255 bytes, and some names are made of two of these with a date.
_LONGEST_NAME = 180
#: Whole numbers of a profile that must not be smaller than this.
_LEAST = {"concurrency": 1, "retries": 0, "max_tokens": 1, "max_timeouts": 1, "errors_before_check": 1}

#: Keys that change no answer, or (prompts) are compared as they are asked.
_NOT_DEFINING = frozenset(
    {
        "title",
        "version",
        "sources",
        "licence",
        "needs",
        "concurrency",
        "timeout",
        "retries",
        "max_timeouts",
        "errors_before_check",
        "price",
        "prompts",
        "worker",
    }
)


#: What plain OCR gives of a page, and what pipelines give that find tables and formulas.
PLAIN_TEXT = frozenset({"text", "markdown"})
WHOLE_PAGES = PLAIN_TEXT | {"table", "formula"}

#: Texts of ours and of the user's, which are shown as they are.
_SAID = frozenset({"title", "sources", "licence", "needs", "prompts"})


class WorkerNeeds(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The share that one worker of an engine takes of a node of a cluster (`--on`); parts of a GPU are possible."""

    cpus: float = 1.0
    gpus: float = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.cpus < math.inf and 0 <= self.gpus < math.inf):
            raise ValueError(f"cpus = {self.cpus:g}, gpus = {self.gpus:g}: must be above 0, gpus at least 0")
        if self.gpus > 1 and self.gpus != int(self.gpus):
            raise ValueError(f"gpus = {self.gpus:g}: a part of one GPU, or whole ones")


class Profile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Keys that every engine kind has. Each kind's module extends this class as `Settings`.

    `version` names a published set of settings (`glm-ocr/1`), followed by the settings that differ from it; `sources`
    says where they come from, `licence` what the weights are under. `needs` says what a usual server lacks, with
    the command that starts the right one. `prompts` is keyed by benchmark id or by task. `adapters` names the steps
    that prepare a raw answer for scoring.
    `concurrency` is how many requests are in flight; "auto" follows what makes a server faster.
    `timeout` is in seconds per request; `retries` counts further attempts after a transient error. After
    `errors_before_check` errors in a row the server's health is checked; `max_timeouts` timeouts end the benchmark.
    `price` turns tokens, pages and hours into money. `worker` is what one worker needs where a cluster reads.
    """

    #: Whether `prompts` are for the regions of a page, by their task; samples' own questions are not asked then.
    asks_regions: ClassVar[bool] = False
    #: The tasks whose answers an engine gives that only reads, whatever it is asked; None: it is asked, and may answer.
    gives: ClassVar[frozenset[str] | None] = None
    #: Tasks that need no question: what stands on the page is the answer, unless somebody asks something of their own.
    unasked: ClassVar[frozenset[str]] = frozenset()
    #: The table for settings that are no keys of the kind, but stand in this table of the profile; "" for none.
    settings_in: ClassVar[str] = ""

    kind: str
    title: str = ""
    version: str = ""
    sources: list[str] = []
    licence: str = ""
    needs: list[str] = []
    prompts: dict[str, str] = {}
    adapters: list[str] = []
    concurrency: int | Literal["auto"] | None = None
    timeout: float = 300.0
    retries: int = 2
    max_timeouts: int = 50
    errors_before_check: int = 3
    price: Price | None = None
    worker: WorkerNeeds | None = None

    @property
    def services(self) -> tuple[str, ...]:
        """Hosts that pages are sent to because a profile says so: somebody must agree."""
        return ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """All hosts beyond this machine that pages are sent to, those included that the user has named as servers."""
        return hosts_beyond(getattr(self, "base_url", ()))

    def for_benchmark(self, benchmark_id: str) -> Profile:
        """The same settings, with what depends on the benchmark decided."""
        del benchmark_id
        return self

    def signature(self) -> dict[str, str]:
        """The short settings that stand in a signature (`img`, `max`, `t`); a kind adds its own."""
        return {}

    def stored(self) -> dict[str, Any]:
        """The profile as it is written into run.json and shown: without what looks like a key."""
        settings: dict[str, Any] = msgspec.to_builtins(self)
        return {key: value if key in _SAID else redacted({key: value})[key] for key, value in settings.items()}

    def defining(self) -> dict[str, Any]:
        """The settings that can change an answer; a run is only continued with the same ones. Keys are none of them."""
        return {key: value for key, value in self.stored().items() if key not in _NOT_DEFINING}


def engine_kinds() -> list[str]:
    """Engine kinds: the modules beside this one (sub-packages are support), of features, and of other packages."""
    return sorted(_kinds())


@functools.cache
def _kinds() -> Mapping[str, Hook]:
    names = {info.name for info in pkgutil.iter_modules([str(Path(__file__).parent)]) if not info.ispkg} - {"registry"}
    own = {name: Hook(name, f"loupe.engines.{name}") for name in names}
    return {**own, **found("engines", own)}


def engine_module(kind: str) -> ModuleType:
    """The module of one kind. Raises ProfileError for an unknown kind, HookError for a broken one."""
    if kind not in _kinds():
        raise ProfileError(
            f"no engine kind {kind!r}{did_you_mean(kind, engine_kinds())}", hint="list the engines: loupe engine list"
        )
    module: ModuleType = _kinds()[kind].load()
    if not hasattr(module, "Settings") or not hasattr(module, "open_engine"):
        raise _kinds()[kind].broken("it has no Settings or no open_engine")
    return module


def profile_names() -> dict[str, Path]:
    """Every named profile and the file it comes from; the user's own win over the built-in ones.

    Those of ./loupe.toml are named whether it is trusted or not: `load_profile` refuses them until it is.
    """
    local = read_settings()
    return _lasting_profiles() | (dict.fromkeys(local.table(ENGINES), FILE) if local else {})


def _lasting_profiles() -> dict[str, Path]:
    """The profiles that do not depend on the working folder."""
    return {path.stem: path for path in (*packaged_profiles(), *config_files("engines/*.toml"))}


@functools.cache
def packaged_profiles() -> tuple[Path, ...]:
    """Return the profiles of Loupe, its features and other packages, by their paths below the folders of these."""
    places = [BUILT_IN, *folders("profiles")]
    placed = [(path.relative_to(place), path) for place in places for path in place.rglob("*.toml")]
    return tuple(path for _, path in sorted(placed))


def is_built_in(path: Path) -> bool:
    """Return whether a profile comes with Loupe."""
    return path.is_relative_to(Path(__file__).parents[1])


def known_names() -> frozenset[str]:
    """The names of engines, wherever one is defined: to define such a name means to replace it."""
    return frozenset([*_lasting_profiles(), *engine_kinds()])


def load_profile(name: str, overrides: Mapping[str, Any] | None = None) -> tuple[str, Profile]:
    """The name to file runs under and the checked settings of engine `name`, with `overrides` applied.

    Raises UsageError for an unknown name, ProfileError for a bad file, both naming the place, and UntrustedError for a
    profile of ./loupe.toml that the user has not trusted.
    """
    label, written, where = _find(name)
    given = {key: value for key, value in (overrides or {}).items() if value is not None}
    profile = checked_profile({**_for_server(written, given), **_placed(written, given, where)}, where)
    return label, _with_differences(profile, written)


def checked_profile(table: Mapping[str, Any], where: str) -> Profile:
    """Return the settings of an engine. Raises ProfileError, naming the place, if they cannot be read."""
    if "kind" not in table:
        raise ProfileError(f"{where}: no `kind`", hint=f"kinds: {', '.join(engine_kinds())}")
    settings: type[Profile] = engine_module(str(table["kind"])).Settings
    try:
        profile = convert(table, settings)
    except msgspec.ValidationError as error:
        raise ProfileError(f"{where}: {_explain(str(error), table, settings)}") from None
    for mistake in _impossible_numbers(profile):
        raise ProfileError(f"{where}: {mistake}")
    return profile


def _placed(written: Mapping[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The settings `given`, those in the profile's table of further settings if they stand there."""
    kind = str(written.get("kind", ""))
    name = engine_module(kind).Settings.settings_in if kind in _kinds() else ""
    table, more = written.get(name), given.get(name, {})
    if not (name and isinstance(table, Mapping) and isinstance(more, Mapping)):
        return dict(given)
    inside = {key: value for key, value in given.items() if key in table}
    for key, value in inside.items():
        for type_ in (bool, int | float, dict, list):
            if isinstance(table[key], type_):
                if not isinstance(value, type_) or isinstance(value, bool) != isinstance(table[key], bool):
                    raise ProfileError(f"{where}: {key} = {encode_json(value).decode()}: must be like {table[key]!r}")
                break
    placed = {key: value for key, value in given.items() if key not in table}
    return {**placed, name: {**table, **more, **inside}} if inside or name in given else placed


def _for_server(written: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A profile for the server that is `given`: its key is for its own `base_url`, and stays behind elsewhere."""
    elsewhere = _listed(given.get("base_url", ())) not in ([], _listed(written.get("base_url", ())))
    starts = "serve" in given and "base_url" in written
    return {key: value for key, value in written.items() if key != "api_key_env" or not (elsewhere or starts)}


def _listed(urls: Any) -> list[Any]:
    return [urls] if isinstance(urls, str) else list(urls)


def _with_differences(profile: Profile, written: Mapping[str, Any]) -> Profile:
    """The profile with a version that names what differs from it: `glm-ocr/1+image+max_tokens`."""
    if not profile.version:
        return profile
    # A copy of somebody's own that still bears our version is compared with ours.
    base = built_in(profile.version) or convert(written, type(profile))
    changed = changed_settings(profile, base)
    return msgspec.structs.replace(profile, version="+".join([profile.version, *changed])) if changed else profile


def built_in(version: str) -> Profile | None:
    """The packaged profile that bears a version such as `glm-ocr/1` (what follows a `+` does not count)."""
    version = version.partition("+")[0]
    path = next((path for path in packaged_profiles() if path.stem == version.partition("/")[0]), None)
    if path is None:
        return None
    table = _read_toml(path)
    settings: type[Profile] = engine_module(table["kind"]).Settings
    return convert(table, settings) if table.get("version") == version else None


def changed_settings(profile: Profile, base: Profile) -> dict[str, tuple[Any, Any]]:
    """Return the settings that can change an answer and are not as in `base`: before and after, by name."""
    before, after = ({**each.defining(), "prompts": each.prompts} for each in (base, profile))
    return {
        key: (before.get(key), after.get(key))
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    }


def _find(name: str) -> tuple[str, dict[str, Any], str]:
    local = read_settings()
    if local and name in local.table(ENGINES):
        return name, *_local_profile(local, name)
    known = _lasting_profiles()
    if name in known:
        return name, _read_toml(known[name]), str(known[name])
    path = Path(name)
    if path.suffix == ".toml":
        return path.stem, _read_toml(path), str(path)
    # `mine=command:…` says what the runs of such an engine are called.
    given = named[1] if (named := re.match(r"([\w.@+-]+)=(?=\w+:)", name)) else ""
    kind, colon, argument = name.removeprefix(f"{given}=").partition(":")
    if kind in engine_kinds():
        if not colon:
            return kind, {"kind": kind}, f"engine {kind!r}"
        module = engine_module(kind)
        key = getattr(module, "ARGUMENT", None)
        if key is None:
            raise UsageError(f"engine kind {kind!r} takes no argument, got {argument!r}")
        called = module.label(argument) if hasattr(module, "label") else f"{kind}-{Path(argument).name}"
        return given or slug(called), {"kind": kind, key: argument}, f"engine {name!r}"
    if "," in name:
        raise UsageError(f"no engine {name!r}: each has an -e of its own", hint=f"use --engines {word(name)}")
    raise UsageError(
        f"no engine {name!r}{did_you_mean(name, [*profile_names(), *engine_kinds()])}",
        hint="list the engines: loupe engine list; profiles of your own are ~/.config/loupe/engines/NAME.toml",
    )


def _local_profile(local: LocalSettings, name: str) -> tuple[dict[str, Any], str]:
    """A profile of ./loupe.toml and its place. Raises UntrustedError where the user has not trusted the file."""
    where = f"{local.path} [{ENGINES}.{name}]"
    table = local.table(ENGINES)[name]
    if not isinstance(table, dict):
        raise ProfileError(f"{where}: not a table", hint=f'[engines.{name}] with kind = "…"')
    local.need_trust(known_names(), ENGINES, name)
    return table, where


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(decode_text(read_data(path)))
    except FileNotFoundError:
        raise UsageError(f"no engine profile at {path}", hint="list the engines: loupe engine list") from None
    except (ValueError, RecursionError, OSError) as error:
        raise ProfileError(f"{path}: {error}") from None


def _impossible_numbers(profile: Profile) -> Iterator[str]:
    """Yield the mistakes that msgspec cannot know; checked here because a kind may declare these keys anew, with its
    own default.
    """
    for key, least in _LEAST.items():
        value = getattr(profile, key, None)
        if isinstance(value, (int, float)) and value < least:
            yield f"{key} = {value}: must be at least {least}"
    if not (profile.timeout > 0 and math.isfinite(profile.timeout)):
        yield f"timeout = {profile.timeout:g}: must be above 0 seconds and finite"


def _explain(message: str, table: Mapping[str, Any], settings: type[Profile]) -> str:
    """msgspec's message with the setting in front, or with the nearest known key where one was mistyped."""
    unknown = re.search(r"unknown field `([^`]*)`(?: - at `\$\.([a-z_]+)`)?", message)
    if unknown:
        known = _keys_of_table(settings, unknown[2]) if unknown[2] else settings.__struct_fields__
        where = f"{unknown[2]}: " if unknown[2] else ""
        return f"{where}unknown key {unknown[1]!r}{did_you_mean(unknown[1], known)}"
    missing = re.search(r"missing required field `([^`]*)`", message)
    if missing:
        return f"no `{missing[1]}`"
    wrong, _, place = message.partition(" - at `$.")
    place = place.rstrip("`")
    if types := wrong_type(wrong):
        wrong = f"must be {types[0]}, not {types[1]}"
    given = encode_json(redacted({place: table.get(place)})[place]).decode()
    setting = f"{place} = {given}" if place in table else place
    return f"{setting}: {wrong[:1].lower()}{wrong[1:]}" if place else wrong


def _keys_of_table(settings: type[Profile], name: str) -> tuple[str, ...]:
    """The keys that a table inside a profile may have, if they are fixed."""
    hint = get_type_hints(settings).get(name)
    return next((each.__struct_fields__ for each in (hint, *get_args(hint)) if hasattr(each, "__struct_fields__")), ())


def slug(name: str, *, hint: str = "choose a shorter one: --name NAME") -> str:
    """Return a name that is safe as a folder name: `/`, `:` and anything unusual become `_`.

    Raises UsageError with the hint if it is too long.
    """
    safe = re.sub(r"[^A-Za-z0-9._@+-]", "_", name).strip("._") or "engine"
    if len(safe) > _LONGEST_NAME:
        raise UsageError(
            f"the name {safe[:40]}… is too long for a folder: {len(safe)} characters, at most {_LONGEST_NAME}",
            hint=hint,
        )
    return safe
