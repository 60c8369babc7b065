"""Find the OpenAI-compatible server to ask: the one that is written, else a variable's, else the one on this machine.

Source: docs/protocols/engines.md#discovery. Only loopback is probed, all ports at once; 401 and 403 count as found.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from loupe.data.certificates import check_tls, open_client
from loupe.engines.shared.redaction import without_credentials
from loupe.errors import EngineUnavailableError, UsageError, word
from loupe.typed import decode_json

if TYPE_CHECKING:
    import aiohttp

#: vLLM and dots, SGLang, olmocr (2), llama-server and mlx, llama-server (2), Ollama, LM Studio, voice, PaddleX.
PORTS = (8000, 30000, 30024, 30044, 8080, 9931, 8090, 11434, 1234, 18000, 8118)
#: Environment variables that may name a server, most important first; the last one names a host without a path.
VARIABLES = ("LOUPE_BASE_URL", "OPENAI_BASE_URL", "VLLM_BASE_URL", "OLLAMA_HOST")
AUTO, AUTO_FIRST = "auto", "auto:first"
#: Stands before the address of a server that answered, but that nobody named: it is asked, and gets no key.
_FOUND = "auto:"

#: What an address ends with that somebody copied from a portal or a manual; `/models` alone is a base of Azure's.
_ENDING = re.compile(r"(?:/chat/completions|/embeddings|(?<=/v1)/(?:completions|responses|models))$")
#: The name of a deployment, which Azure has in the address.
_DEPLOYMENT = re.compile(r"/deployments/([^/?]+)")
_MOST_BYTES = 4_000_000


@dataclass(frozen=True, slots=True)
class Addresses:
    """The servers to ask; no URLs: the one that answers on this machine.

    `variable` is the environment variable that names them where neither command line nor profile does.
    """

    urls: tuple[str, ...] = ()
    variable: str = ""

    @property
    def are_named(self) -> bool:
        """True if a person named each of them."""
        return bool(self.urls) and all(map(is_named, self.urls))


@dataclass(frozen=True, slots=True)
class Patience:
    """The time to wait for a connection, and for a whole answer."""

    connect: float = 0.5
    total: float = 2.0


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A server that answered at `base_url`. `models` is None where it did not say (it may need a key)."""

    base_url: str
    models: tuple[Mapping[str, Any], ...] | None = None
    needs_key: bool = False
    status: int = 200
    server: str = ""

    @property
    def model_ids(self) -> list[str]:
        """Ids of the models that it offers."""
        return [str(model["id"]) for model in self.models or () if isinstance(model, Mapping) and model.get("id")]


@dataclass(frozen=True, kw_only=True)
class Server:
    """The kind of program that a server is, as far as it tells; `loaded` is the model it has in memory."""

    kind: str = "unknown"
    version: str = ""
    loaded: str = ""


async def located(addresses: Addresses, ports: Sequence[int] = PORTS) -> Addresses:
    """The same addresses, with the server on this machine, marked as found, in place of none and of `auto`.

    Raises EngineUnavailableError if there is none and UsageError if there are several.
    """
    url = addresses.urls[0] if addresses.urls else AUTO
    if not is_auto(url):
        return addresses
    found = choose(await discover(ports), first=url.strip() == AUTO_FIRST)
    return Addresses((as_found(found.base_url),), addresses.variable)


def addresses_of(written: str | Sequence[str], environment: Mapping[str, str]) -> Addresses:
    """The one rule of who is asked: what command line or profile have `written`, else what a variable names, else none.

    `auto` is written, too: it looks on this machine, whatever the variables say. Raises UsageError for a variable that
    holds no address; the later ones are not looked at.
    """
    if urls := tuple(url for url in ([written] if isinstance(written, str) else written) if url.strip()):
        return Addresses(urls)
    for variable in VARIABLES:
        if text := environment.get(variable, "").strip():
            return Addresses((_url_in(variable, text),), variable)
    return Addresses()


def _url_in(variable: str, text: str) -> str:
    """The base URL that a variable holds. Raises UsageError that names the variable."""
    if is_auto(text):
        return text
    try:
        return normalize_base_url(_of_ollama(text) if variable == VARIABLES[-1] else text)
    except ValueError as error:
        raise UsageError(
            str(error).replace("base_url", variable, 1),
            hint=f"export {variable}=http://HOST:PORT{'' if variable == VARIABLES[-1] else '/v1'}, or unset {variable}",
        ) from None


def _of_ollama(host: str) -> str:
    """The address of a server whose OLLAMA_HOST this is, as Ollama's own client reads it (envconfig.Host).

    Raises ValueError for a port that is none.
    """
    scheme, mark, rest = ("https://ollama.com" if host == "ollama.com" else host).rpartition("://")
    place, _, path = rest.partition("/")
    user, at, place = place.rpartition("@")
    if place.count(":") > 1 and not place.startswith("["):
        place = f"[{place}]"
    try:
        parts = urlsplit(f"//{place}")
        port = parts.port or {"http": 80, "https": 443}.get(scheme, 11434)
    except ValueError:
        raise ValueError(f"base_url {shown(host)!r} is not an address such as http://127.0.0.1:11434") from None
    # Ollama servers listen on 0.0.0.0; clients cannot go there.
    name = {None: "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(parts.hostname, parts.hostname)
    netloc = f"{user}{at}{f'[{name}]' if ':' in str(name) else name}:{port}"
    path = path.rstrip("/").removesuffix("v1").rstrip("/")
    return f"{scheme if mark else 'http'}://{netloc}/{f'{path}/' if path else ''}v1"


def as_found(base_url: str) -> str:
    """A base URL with the mark that nobody named it."""
    return f"{_FOUND}{base_url}"


def address(base_url: str) -> str:
    """A base URL as people write it, without the mark that nobody named it."""
    text = base_url.strip()
    return text.removeprefix(_FOUND) if text.startswith((f"{_FOUND}http://", f"{_FOUND}https://")) else text


def check_addresses(urls: Sequence[str]) -> None:
    """Raise ValueError for what is no address, and for `auto` beside others."""
    for url in urls:
        if not is_auto(url):
            normalize_base_url(url)
        elif len(urls) > 1:
            raise ValueError(f"base_url {url} finds one server and cannot be combined with others")


def is_auto(base_url: str) -> bool:
    """True if this is no address, but asks to look for a server on this machine."""
    return base_url.strip() in (AUTO, AUTO_FIRST)


def is_named(base_url: str) -> bool:
    """True if a person named this server. One that merely answers at a usual port may be anybody's program."""
    text = base_url.strip()
    return bool(text) and not is_auto(text) and address(text) == text


def normalize_base_url(text: str) -> str:
    """Return a base URL without trailing slash; `host:port` gets its scheme, and a bare root the usual `/v1`.

    An ending that Loupe adds itself is taken off, with or without a query (Azure's "Target URI"); the query stays.
    Raises ValueError for anything that is no http address, `auto` too, for one that holds a password, and for one of
    the Responses API whose chat completions lie elsewhere.
    """
    text = address(text)
    parts = urlsplit(text if "://" in text else f"http://{text}")
    try:
        # `htp:/gpu1` is no host `htp` with a port left out.
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        valid = valid and not parts.netloc.endswith(":") and not is_auto(text)
    except ValueError:
        valid = False
    if not valid:
        raise ValueError(f"base_url {shown(text)!r} is not an address such as http://127.0.0.1:8000/v1")
    if parts.username or parts.password:
        raise ValueError("base_url holds a user name or password; pass secrets as the API key instead")
    path = _ENDING.sub("", parts.path.rstrip("/")).rstrip("/")
    if path.endswith("/responses"):
        raise ValueError(
            f"base_url {shown(text)!r} is for the Responses API, which Loupe does not speak; "
            "give the address that ends with /chat/completions (Azure: the Target URI of a chat deployment)"
        )
    return urlunsplit(parts._replace(path=path or "/v1", fragment=""))


def origin(base_url: str) -> tuple[str, str, int]:
    """Scheme, host and port: what tells one server from another. Raises ValueError for what is no address."""
    parts = urlsplit(normalize_base_url(base_url))
    return parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


async def discover(ports: Sequence[int] = PORTS) -> list[Endpoint]:
    """Every server that answers on loopback, in the order of `ports`; takes at most about two seconds."""
    async with open_client() as session:
        found = await asyncio.gather(*(probe(session, f"http://127.0.0.1:{port}/v1") for port in ports))
    return [
        endpoint for endpoint in found if endpoint is not None and (endpoint.needs_key or endpoint.models is not None)
    ]


async def probe(session: aiohttp.ClientSession, base_url: str, patience: Patience = Patience()) -> Endpoint | None:
    """Ask one server for its models. None if nothing answers there."""
    answer = await get_json(session, join_url(base_url, "models"), patience)
    if answer is None:
        return None
    status, body, server = answer
    listed = body.get("data") if isinstance(body, dict) and status == 200 else None
    models = tuple(model for model in listed if isinstance(model, dict)) if isinstance(listed, list) else None
    return Endpoint(base_url=base_url, models=models, needs_key=status in (401, 403), status=status, server=server)


async def get_json(
    session: aiohttp.ClientSession, url: str, patience: Patience = Patience()
) -> tuple[int, Any, str] | None:
    """Status, decoded body (None if it is no JSON) and Server header; None if nothing answers in time.

    Raises EngineUnavailableError if the server's certificate is not trusted.
    """
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=patience.total, sock_connect=patience.connect)
    try:
        async with session.get(url, timeout=timeout, allow_redirects=False) as response:
            server, data = response.headers.get("Server", ""), bytearray()
            async for chunk in response.content.iter_any():
                data += chunk
                if len(data) > _MOST_BYTES:
                    return response.status, None, server
            try:
                return response.status, decode_json(bytes(data)), server
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return response.status, None, server
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        check_tls(error, shown(url), EngineUnavailableError)
        return None


def choose(endpoints: Sequence[Endpoint], *, first: bool = False) -> Endpoint:
    """The only endpoint, or the first of several if asked so."""
    if not endpoints:
        raise EngineUnavailableError(
            "no model server answers on this machine",
            hint="start one, or name it: --base-url http://HOST:PORT/v1; without a server: -e rapidocr",
        )
    if len(endpoints) > 1 and not first:
        raise UsageError(
            f"{len(endpoints)} model servers answer on this machine:",
            listed=[_describe(endpoint) for endpoint in endpoints],
            hint=f"use --base-url {endpoints[0].base_url}, or --base-url {AUTO_FIRST} for the first",
        )
    return endpoints[0]


def _describe(endpoint: Endpoint) -> str:
    if endpoint.needs_key:
        return f"{endpoint.base_url} (needs an API key)"
    return f"{endpoint.base_url} ({', '.join(endpoint.model_ids[:5]) or 'no models'})"


async def identify(session: aiohttp.ClientSession, endpoint: Endpoint, patience: Patience = Patience()) -> Server:
    """Identify the server program. SGLang and llama-server also answer Ollama's questions, so they are asked first."""
    name, _, version = endpoint.server.partition("/")
    paths = ("/get_server_info", "/server_info", "/props", "/version", "/api/version", "/health", "/api/ps")
    answers = await asyncio.gather(
        *(get_json(session, beside_url(endpoint.base_url, path), patience) for path in paths)
    )
    facts = {path: answer[1] for path, answer in zip(paths, answers, strict=True) if answer and answer[0] == 200}
    given = {path: fact for path, fact in facts.items() if isinstance(fact, dict)}
    if name == "loupe":
        return Server(kind="loupe", version=version)
    if name == "mlx_vlm":
        return Server(kind="mlx_vlm", version=version, loaded=_text(given.get("/health"), "loaded_model"))
    for path in ("/get_server_info", "/server_info"):
        if "model_path" in given.get(path, {}) or "version" in given.get(path, {}):
            return Server(kind="sglang", version=_text(given[path], "version"))
    if name == "llama.cpp" or {"default_generation_settings", "build_info"} & given.get("/props", {}).keys():
        return Server(kind="llama_server", version=_text(given.get("/props"), "build_info"))
    if "version" in given.get("/version", {}):
        return Server(kind="vllm", version=_text(given["/version"], "version"))
    if "version" in given.get("/api/version", {}):
        running = given.get("/api/ps", {}).get("models")
        loaded = running[0] if isinstance(running, list) and running else None
        return Server(kind="ollama", version=_text(given["/api/version"], "version"), loaded=_text(loaded, "name"))
    return Server()


def _text(table: Any, key: str) -> str:
    value = table.get(key) if isinstance(table, dict) else None
    return str(value) if value is not None else ""


def choose_model(endpoint: Endpoint, server: Server) -> str:
    """The model id to send when none was named. Raises EngineUnavailableError or UsageError, listing what there is."""
    ids = endpoint.model_ids
    if server.loaded:
        return server.loaded
    if len(ids) == 1:
        return ids[0]
    if not ids and (deployment := _DEPLOYMENT.search(endpoint.base_url)):
        return deployment[1]
    if not ids:
        raise EngineUnavailableError(f"{shown(endpoint.base_url)} lists no models", hint="name one: --model ID")
    listed = ", ".join(ids[:10]) + (f" and {len(ids) - 10} more" if len(ids) > 10 else "")
    raise UsageError(
        f"{shown(endpoint.base_url)} offers {len(ids)} models: {listed}", hint=f"use --model {word(ids[0])}"
    )


def join_url(base_url: str, path: str) -> str:
    """The address of `path` below `base_url`, keeping a query (`?api-version=…`)."""
    parts = urlsplit(base_url)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{path}"))


def shown(base_url: str) -> str:
    """The URL without its query, user name and password, which may be keys."""
    return without_credentials(base_url)


def beside_url(base_url: str, path: str) -> str:
    """Return the address of `path` beside the `/v1` of a base URL, keeping its query."""
    parts = urlsplit(base_url)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/").removesuffix("/v1") + path))
