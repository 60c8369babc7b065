"""Which models are tried, and where each is served: lists from flags, a file, loupe.toml or this package.

Loupe starts a server for one model at a time, or asks an endpoint that runs already. Source: docs/select.md;
docs/protocols/engines.md#servers.
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import tomllib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from loupe.data.certificates import open_client
from loupe.data.toml import parse_toml
from loupe.engines.chat.discovery import (
    Addresses,
    addresses_of,
    identify,
    is_named,
    located,
    normalize_base_url,
    probe,
    shown,
)
from loupe.engines.chat.endpoints import STARTED, is_listed, key_for
from loupe.engines.chat.settings import Settings
from loupe.engines.registry import engine_module, load_profile, slug
from loupe.engines.shared.local_settings import LocalTable, read_settings
from loupe.errors import EngineUnavailableError, LoupeError, MissingToolError, RejectedError, UsageError
from loupe.features.select.benchmark import Phase
from loupe.files.foreign import decode_text, read_data
from loupe.servers.keeper import Keeper
from loupe.servers.processes import NOBODY, Patience, Watch
from loupe.servers.record import kept_folder
from loupe.servers.server import Server
from loupe.servers.templates import templates
from loupe.servers.wanted import wanted_server
from loupe.typed import convert, decode_json
from loupe.types import Engine

#: Seconds that may be chosen for one call, and what is taken where nobody chooses.
TIMEOUTS, USUAL_TIMEOUT = (10, 30, 60), 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Seconds for one call, for the warm-up, and until a dead endpoint is looked at again; counts of failures."""

    timeout: float = float(USUAL_TIMEOUT)
    warm_up: float = 600.0
    second_look: float = 5.0
    most_timeouts: int = 50
    errors_before_check: int = 3


_FILE = Path(__file__).with_name("candidates.toml")
#: The table of loupe.toml that replaces it.
_TABLE = "select"
LOCAL_TABLE = LocalTable(form="[select] with lists of models", does="`loupe select` tries the models")


class Candidate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model that may be tried. `kind` "ocr": trained to transcribe; `thinking`: it thinks before it answers."""

    id: str
    kind: Literal["", "ocr"] = ""
    thinking: bool = False
    sources: list[str] = []
    note: str = ""


class ModelFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Lists of models as people write them: an id, or a table; `served_as` says what a server calls an id."""

    vlm: list[str | Candidate] = []
    textllm: list[str | Candidate] = []
    served_as: dict[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelList:
    """The models of one phase, and where the list comes from."""

    models: tuple[Candidate, ...]
    source: str

    @property
    def first(self) -> Candidate:
        """The one that drafts ground truth unless another is named."""
        return self.models[0]


def default_models() -> ModelFile:
    """The lists that come with Loupe."""
    return convert(tomllib.loads(_FILE.read_text(encoding="utf-8")), ModelFile)


def read_models(path: Path) -> ModelFile:
    """A file of models: TOML, JSON or YAML by its suffix. Raises UsageError where it is wrong."""
    try:
        data = read_data(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", hint="use --models FILE") from None
    return _checked(_decoded(path, data), str(path))


def configured_models() -> ModelFile:
    """What `[select]` of ./loupe.toml says; empty lists where there is none.

    Raises UntrustedError where it says something and the user has not trusted the file.
    """
    local = read_settings()
    if local is None or not local.tables.get(_TABLE):
        return ModelFile()
    models = _checked(local.tables[_TABLE], f"{local.path} [{_TABLE}]")
    local.need_trust((), _TABLE)
    return models


def choose_models(phase: Phase, flags: Sequence[str], file: ModelFile, configured: ModelFile) -> ModelList:
    """The models of a phase: those of the flags, else of the file, else of loupe.toml, else the default list."""
    key = "vlm" if phase == "a" else "textllm"
    known = {each.id: each for each in _candidates(getattr(default_models(), key))}
    sources: tuple[tuple[str, Sequence[str | Candidate]], ...] = (
        ("override", flags),
        ("override", getattr(file, key)),
        ("loupe.toml", getattr(configured, key)),
        ("default", list(known.values())),
    )
    source, chosen = next((name, models) for name, models in sources if models)
    # What is known of an id stays known when it is named alone.
    models = {
        each.id: known.get(each.id, each) if each == Candidate(id=each.id) else each for each in _candidates(chosen)
    }
    return ModelList(models=tuple(models.values()), source=source)


def candidate(phase: Phase, ident: str) -> Candidate:
    """One model by its id, with what is known of it."""
    return choose_models(phase, [ident], ModelFile(), ModelFile()).first


def _candidates(models: Sequence[str | Candidate]) -> list[Candidate]:
    return [Candidate(id=each) if isinstance(each, str) else each for each in models]


def _decoded(path: Path, data: bytes) -> Any:
    try:
        if path.suffix.lower() in (".yaml", ".yml"):
            return msgspec.yaml.decode(data)
        if path.suffix.lower() == ".json":
            return decode_json(data)
        return parse_toml(decode_text(data))
    except ImportError:
        raise MissingToolError(
            f"{path}: reading YAML needs PyYAML", hint="write TOML, or install it: pip install pyyaml"
        ) from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: {error}", hint='vlm = ["ID", …] and textllm = ["ID", …]') from None


def _checked(table: Any, where: str) -> ModelFile:
    try:
        models = convert(table, ModelFile)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {error}", hint='vlm = ["ID", …] and textllm = ["ID", …]') from None
    if any(not each.id.strip() for each in _candidates([*models.vlm, *models.textllm])):
        raise UsageError(f"{where}: a model has an empty id", hint='vlm = ["ID", …] and textllm = ["ID", …]')
    return models


#: The server of each phase where the back end has one for each.
_MLX: dict[Phase, str] = {"a": "mlx_vlm", "b": "mlx_lm"}
#: Servers that take `chat_template_kwargs`; others refuse what they do not know.
_TEMPLATE_KEYWORDS = frozenset({"vllm", "sglang", "llama-server", "llama_server", "mlx_vlm", "mlx_lm", "mlx"})
#: A server that died is started again once.
ONE_RESTART = Patience(backoff=(5.0,))
_NO_THINKING = {"chat_template_kwargs": {"enable_thinking": False}}


class UnavailableModelError(LoupeError):
    """This model cannot be had: it is not served, or its server does not start with it."""


class DeadServerError(LoupeError):
    """The server of this model does not answer, and cannot be brought back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """How models are served: by servers of a `kind` that Loupe starts, or at `base_url`, which is of that kind.

    `variable` names that endpoint where the command line does not. `served_as` says what the server calls a model,
    `offered` what an endpoint lists (nothing: it does not say).
    """

    kind: str
    base_url: str = ""
    variable: str = ""
    offered: Sequence[str] = ()
    served_as: Mapping[str, str] = field(default_factory=dict)

    def server_kind(self, phase: Phase) -> str:
        """The template of the server for a phase, "" for an endpoint."""
        if self.base_url:
            return ""
        return _MLX[phase] if self.kind == "mlx" else self.kind

    def name_of(self, model: str) -> str:
        """What the server calls a model."""
        return self.served_as.get(model, model)

    def describe(self, phase: Phase) -> str:
        """Where the models of a phase are, for people."""
        return shown(self.base_url) or self.server_kind(phase)


def is_apple_silicon() -> bool:
    """Whether MLX runs here."""
    return sys.platform == "darwin" and platform.machine() == "arm64"


async def choose_backend(kind: str, base_url: str, served_as: Mapping[str, str]) -> Backend:
    """The back end that was asked for, else a variable's endpoint, else MLX on Apple silicon.

    An endpoint, which `kind` may name, must answer. Raises UsageError where none fits this machine,
    EngineUnavailableError where nobody answers.
    """
    named = addresses_of(base_url, os.environ if kind in ("", "openai") else {})
    if named.urls and (base_url or is_named(named.urls[0])):
        return await _endpoint(kind, named, served_as)
    kind = kind or ("mlx" if is_apple_silicon() else "")
    if not kind or kind == "openai":
        raise UsageError(
            "no model server named", hint="use --base-url http://HOST:PORT/v1, or --backend vllm (docs/select.md)"
        )
    if kind == "mlx" and not is_apple_silicon():
        raise UsageError(
            "the back end mlx needs macOS on Apple silicon",
            hint="use --base-url http://HOST:PORT/v1 of a server that has the models, or --backend vllm",
        )
    return Backend(kind=kind, served_as=served_as)


async def _endpoint(kind: str, named: Addresses, served_as: Mapping[str, str]) -> Backend:
    """An endpoint that runs already. Raises what `choose_backend` raises."""
    try:
        url = normalize_base_url((await located(named)).urls[0])
    except ValueError as error:
        raise UsageError(str(error), hint="use --base-url http://HOST:PORT/v1") from None
    headers = {"Authorization": f"Bearer {key_for(named, '', os.environ)}"}
    async with open_client(headers=headers) as session:
        endpoint = await probe(session, url)
        if endpoint is None:
            by = f", which {named.variable} names" if named.variable else ""
            raise EngineUnavailableError(
                f"no server answers at {shown(url)}{by}", hint=f"start it, or correct {named.variable or '--base-url'}"
            )
        # Not every server says what it is: who names it knows.
        found = kind if kind not in ("", "openai") else (await identify(session, endpoint)).kind
    return Backend(kind=found, base_url=url, variable=named.variable, served_as=served_as, offered=endpoint.model_ids)


def foreign_list(models: ModelList, phase: Phase, backend: Backend) -> str:
    """What to say where nobody named models, and the endpoint lists none of Loupe's own; "" where all is well.

    No error: some servers answer to names that they do not list.
    """
    names = [backend.name_of(each.id) for each in models.models]
    if models.source != "default" or not backend.offered or any(is_listed(each, backend.offered) for each in names):
        return ""
    flag = "--vlm" if phase == "a" else "--textllm"
    offered = ", ".join(backend.offered[:10]) + (", …" if len(backend.offered) > 10 else "")
    return (
        f"{shown(backend.base_url)} lists none of the {len(names)} models of Loupe's own list; it offers {offered}: "
        f"{flag} {backend.offered[0]}, again for more"
    )


def backends() -> list[str]:
    """What `--backend` takes."""
    return ["mlx", "openai", *(kind for kind in templates() if not kind.startswith("mlx"))]


@dataclass(slots=True)
class Served:
    """An opened model: its engine, the settings that a run is filed with, and its server if it is ours."""

    engine: Engine
    profile: Settings
    server: Server | None
    limits: Limits

    async def revive(self, watch: Watch = NOBODY) -> None:
        """After errors in a row: return if the server is well; start it again, once, if it is ours and dead.

        Raises DeadServerError where it stays dead.
        """
        if self.server is None:
            for pause in (0.0, self.limits.second_look):
                await asyncio.sleep(pause)
                if self.engine.healthy is None or await self.engine.healthy():
                    return
            raise DeadServerError("the server does not answer any more")
        if await self._is_well(self.server):
            return
        try:
            await self.server.restart(watch)
        except LoupeError as error:
            raise DeadServerError(error.message.splitlines()[0]) from None

    async def _is_well(self, server: Server) -> bool:
        """Slow twice in a row is dead."""
        verdict = await server.health()
        return (await server.health() if verdict == "slow" else verdict) == "ok"


@asynccontextmanager
async def open_model(
    model: Candidate, phase: Phase, backend: Backend, keeper: Keeper, limits: Limits, watch: Watch = NOBODY
) -> AsyncIterator[Served]:
    """Start the server of a model if it is ours to start, and open the engine that asks it.

    Raises UnavailableModelError or DeadServerError; MissingToolError where the server's program is not installed.
    """
    profile = _profile(model, phase, backend, limits)
    server = await _start(profile, phase, model, keeper, watch)
    if server is not None:
        profile = msgspec.structs.replace(profile, base_url=server.base_url, model=server.wanted.name)
    opening = engine_module("openai").open_engine(profile)
    try:
        engine = await opening.__aenter__()
    except EngineUnavailableError as error:
        raise DeadServerError(error.message) from None
    except (UsageError, RejectedError) as error:
        raise UnavailableModelError(error.message) from None
    try:
        yield Served(engine, profile, None if server is None or server.external else server, limits)
    finally:
        await opening.__aexit__(None, None, None)


async def _start(profile: Settings, phase: Phase, model: Candidate, keeper: Keeper, watch: Watch) -> Server | None:
    wanted = wanted_server(profile)
    if wanted is None:
        return None
    # Not in the user's folder: nothing is written there; but where the next selection finds what a killed one left.
    folder = kept_folder(f"select-{slug(model.id)}", "vlm" if phase == "a" else "textllm")
    folder.create()
    try:
        return await keeper.server_for(wanted, folder, key=key_for(STARTED, "", os.environ), watch=watch)
    except (EngineUnavailableError, UsageError) as error:
        raise UnavailableModelError(error.message) from None


def _profile(model: Candidate, phase: Phase, backend: Backend, limits: Limits) -> Settings:
    """How a model is asked: temperature 0, pictures as they were prepared, no retries, one request at a time.

    The engine waits as long as a warm-up may take; who asks sets the limit of each call.
    """
    kind, name = backend.server_kind(phase), backend.name_of(model.id)
    settings: dict[str, Any] = {
        "model": name,
        "image": "none",
        "timeout": limits.warm_up,
        "retries": 0,
        "concurrency": 1,
        "adapters": [],
    }
    if kind:
        settings |= {"serve": f"{kind}:{name}", "server_port": None if kind == "ollama" else "auto"}
    elif not backend.variable:  # The engine knows the variable itself, and which keys do not go with it.
        settings["base_url"] = backend.base_url
    if model.thinking and (kind or backend.kind) in _TEMPLATE_KEYWORDS:
        settings["extra_body"] = _NO_THINKING
    _, profile = load_profile("openai", settings)
    assert isinstance(profile, Settings)
    return profile
