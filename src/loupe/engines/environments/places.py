"""Read the keys of an `environment` profile, and find the folder of its environment and what is known of it.

Keys: docs/engines/environments.md. Each environment is a folder in Loupe's cache, named after its lock.
"""

from __future__ import annotations

import hashlib
import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from loupe.data.user_folders import cache_folder
from loupe.engines.chat.discovery import check_addresses
from loupe.engines.registry import WHOLE_PAGES, Profile
from loupe.engines.shared.hosts import hosts_beyond
from loupe.errors import MissingToolError, ProfileError, word
from loupe.files.folder import Folder
from loupe.files.foreign import read_data
from loupe.quantities import size
from loupe.typed import json_decoder

#: What a reader takes: a picture, a PDF of one page, or a whole PDF for whose pages it gives one text each.
Reads: TypeAlias = Literal["image", "page", "document"]
#: Keys that change no answer; the lock and the reader's file count with their digests.
_NOT_DEFINING = frozenset(
    {"licence", "weights", "unproven", "programs", "python", "lock", "reader", "pass_env", "memory", "gpus"}
    | {"startup_timeout", "sends_to", "may_reach", "download", "model_server", "choices", "strict_network"}
)
#: Options that change no answer: where a server is, and how many of its answers are awaited at once.
_FREE_OPTIONS = frozenset({"base_url", "region_workers"})
#: Keys of few profiles, which define nothing in the others.
_OF_FEW = frozenset({"asks", "way", "joins", "margins"})
#: Options with a short name in a signature.
_SIGNED = {"max_tokens": "max", "temperature": "t"}
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_PYTHON = re.compile(r">=3\.(\d{1,2})(?:,<3\.(\d{1,2}))?")
_PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(\[[A-Za-z0-9._,-]+\])?==([A-Za-z0-9][A-Za-z0-9.!+_-]*)")


class ModelServer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The model server that a reader asks, at the option `base_url`.

    It asks one if an address is given, if there is a `usual` one, or with an option `backend` among `backends`. `start`
    is the command that starts such a server. A host that ends with one of `never` is refused.
    """

    usual: str = ""
    start: str = ""
    backends: list[str] = []
    never: list[str] = []


class Settings(Profile, frozen=True, kw_only=True):
    """Keys of an `environment` profile.

    `environment` names the environment, which several profiles may share; `packages` are its exact pins, `lock` a file
    with the digests of all that is installed ("": the one that comes with Loupe, else one is made while installing).
    `python` are the versions it runs on. `reader` is a reader of Loupe's by name, or a file (docs/engines/
    environments.md), and `options` is what it is given, `choices` the values that some of these may have. `reads` says
    what it takes; `asks`: it answers the question that a page comes with. `variables` are set for its process,
    `pass_env` handed on beside the usual ones, `programs` must be on the PATH. Pages go to the host `sends_to`, if any,
    or to a `model_server`; the process may connect to these, to `may_reach`, and to nothing else outside this machine.
    With `strict_network` an attempt ends the run, else it costs its page. `download` lets the reader fetch weights
    while it is loaded. `memory` is the limit of one worker in GB (None: its share of the machine; no limit with `gpus`
    or for 0); each GPU of `gpus` gets a worker. `licence`, `weights` and `unproven` are shown before it is installed
    and used. `way`, `joins` and `margins` say how the package makes a page (docs/reproduce.md).
    """

    #: Settings that are no keys, but stand in this table of the profile, go there.
    settings_in: ClassVar[str] = "options"

    environment: str
    packages: list[str]
    reader: str
    reads: list[Reads]
    lock: str = ""
    python: str = ">=3.11"
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    choices: dict[str, list[str]] = msgspec.field(default_factory=dict)
    model_server: ModelServer | None = None
    asks: bool = False
    way: Literal["", "pipeline", "direct"] = ""
    joins: str = ""
    margins: str = ""
    download: bool = False
    strict_network: bool = False
    variables: dict[str, str] = msgspec.field(default_factory=dict)
    pass_env: list[str] = msgspec.field(default_factory=list)
    programs: list[str] = msgspec.field(default_factory=list)
    sends_to: str = ""
    may_reach: list[str] = msgspec.field(default_factory=list)
    licence: str = ""
    weights: str = ""
    unproven: str = ""
    dpi: float = 144.0
    longest: int | None = None
    memory: float | None = None
    gpus: str = ""
    startup_timeout: float = 600.0
    concurrency: int | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.environment):
            raise ValueError(f"environment = {self.environment!r}: must be lowercase letters, digits, - and _")
        for package in self.packages:
            if not _PIN.fullmatch(package):
                raise ValueError(f"packages: {package!r} is no exact version, such as 'pdfplumber==0.11.10'")
        if not _PYTHON.fullmatch(self.python):
            raise ValueError(f"python = {self.python!r}: must be like '>=3.11' or '>=3.11,<3.14'")
        if not (self.packages and self.reads):
            raise ValueError(f"{'reads' if self.packages else 'packages'} is empty")
        for key in ("dpi", "startup_timeout", "memory", "longest"):
            value = getattr(self, key)
            if value is not None and not 0 < value <= 1e6 and (key, value) != ("memory", 0):
                raise ValueError(f"{key} = {value}: must be above 0, and at most a million")
        if self.concurrency is None:  # One worker for each GPU; else one, which may need all of the machine.
            msgspec.structs.force_setattr(self, "concurrency", len(self.gpu_list) or 1)
        for key, allowed in self.choices.items():
            if (value := self.options.get(key)) not in allowed:
                raise ValueError(f"{key} = {value!r}: must be one of {', '.join(allowed)}")
        # Packages write addresses into their messages.
        check_addresses(self._addresses)
        if any(urlsplit(url).query for url in self._addresses):
            raise ValueError("base_url holds a query, which no package can take")

    @property
    def gives(self) -> frozenset[str] | None:  # type: ignore[override]  # of most kinds it is the same for all
        """A reader that is not told the question only reads."""
        return None if self.asks else WHOLE_PAGES

    @property
    def base_url(self) -> str | list[str]:
        """The address of the model server. Raises AttributeError for a reader that asks none."""
        if "base_url" not in self.options:
            raise AttributeError("base_url")
        found: str | list[str] = self.options["base_url"]
        return found

    @property
    def services(self) -> tuple[str, ...]:
        """The host that pages are sent to because the profile says so."""
        place = re.sub(r"\{(\w+)\}", lambda found: str(self.options.get(found[1], "")), self.sends_to)
        return hosts_beyond(str(self.options.get("endpoint") or place)) if place else ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """With the server that an engine's model runs on, where the user names one on another machine."""
        named = (str(self.options.get("server", "")), *self._addresses)
        return tuple(dict.fromkeys((*self.services, *hosts_beyond(named))))

    @property
    def asks_server(self) -> bool:
        """True if the reader asks a model server with these options."""
        wanted = self.model_server
        return wanted is not None and bool(
            self._addresses or wanted.usual or self.options.get("backend") in wanted.backends
        )

    @property
    def _addresses(self) -> list[str]:
        """The addresses that are given for the model server."""
        given = self.options.get("base_url", [])
        return [url for url in ([given] if isinstance(given, str) else given) if url]

    @property
    def fetches(self) -> bool:
        """True if the reader fetches its weights itself, once it may: `weights` then says from where."""
        return self.weights.startswith("downloaded from ")

    @property
    def pins(self) -> dict[str, str]:
        """The packages by their normalised names, with their versions."""
        found = [_PIN.fullmatch(package) for package in self.packages]
        return {normal(each[1]): each[3] for each in found if each}

    def runs_on(self, minor: int) -> bool:
        """True if it runs on Python 3.`minor`."""
        found = _PYTHON.fullmatch(self.python)
        return bool(found and int(found[1]) <= minor and (found[2] is None or minor < int(found[2])))

    @property
    def gpu_list(self) -> list[str]:
        """The GPUs named in `gpus`."""
        return [gpu.strip() for gpu in self.gpus.split(",") if gpu.strip()]

    def signature(self) -> dict[str, str]:
        """The form in which the page is given, and the packages that decide the text."""
        image = f"dpi{self.dpi:g}" + (f"longest{self.longest}" if self.longest else "")
        how = "+".join(image if each == "image" else f"pdf{'' if each == 'page' else 's'}" for each in self.reads)
        packages = "+".join(f"{name}{version}" for name, version in self.pins.items())
        named = {key: self.options[key] for key in (*self.choices, *_SIGNED) if key in self.options}
        chosen = {
            _SIGNED.get(key, key): f"{each:g}" if isinstance(each, float) else str(each) for key, each in named.items()
        }
        return {"img": how, "pkg": packages, **chosen}

    def defining(self) -> dict[str, Any]:
        """Without what says how it is installed and run; the reader's options stand among the others."""
        found = super().defining()
        options = {key: value for key, value in found.pop("options").items() if key not in _FREE_OPTIONS}
        left_out = _NOT_DEFINING | {"environment"} | {key for key in _OF_FEW if not found[key]}
        return {key: value for key, value in found.items() if key not in left_out} | options

    def own_file(self, name: str) -> Path:
        """A file that the profile names."""
        return Path(name).expanduser().absolute()


def normal(package: str) -> str:
    """A package's name as indexes compare it.

    >>> normal("PyMuPDF_Layout")
    'pymupdf-layout'
    """
    return re.sub(r"[-_.]+", "-", package).lower()


LOCKS = Path(__file__).parent / "locks"
READERS = Path(__file__).parent / "readers"
#: Beside the packages: what was installed. It is written last, so an environment without it is not finished.
RECORD = "loupe.json"
LOCKED = "locked.txt"
_LOCK_LINE = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[A-Za-z0-9.!+_-]+)(?: ; [^\\#\n]+?)?")
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_TO_DOWNLOAD = re.compile(r"To download [^\n]*?: (\d+) bytes")
_FOLDER = re.compile(r"(?P<name>[a-z0-9][a-z0-9_-]*)-[0-9a-f]{12}")


class Record(msgspec.Struct, kw_only=True):
    """The parts of an environment: the Python in it, the digest of its lock, bytes on disk, seconds to make it."""

    environment: str
    python: str
    lock: str
    size: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment as a profile wants it, installed or not."""

    folder: Path
    lock: bytes | None

    @property
    def python(self) -> Path:
        """The Python in it."""
        return self.folder / "bin" / "python"

    @property
    def record(self) -> Record | None:
        """The record of what was installed; None if it was not, or not to the end, or if its Python has gone."""
        return _record(self.folder)

    @property
    def download(self) -> int:
        """Bytes to download on Linux x86-64, as the lock says; 0 where nobody knows."""
        found = _TO_DOWNLOAD.search((self.lock or b"")[:200].decode("ascii", "replace"))
        return int(found[1]) if found else 0


def root() -> Path:
    """The folder of all environments."""
    return cache_folder("environments")


def wanted(settings: Settings) -> Environment:
    """The environment of a profile. Raises ProfileError for a lock that is none, or does not hold its packages."""
    lock = _lock_of(settings)
    content = lock if lock is not None else "\n".join(sorted(settings.packages)).encode()
    made_for = f"\0{sys.platform}\0{platform.machine()}\0{settings.python}".encode()
    digest = hashlib.sha256(content + made_for).hexdigest()[:12]
    return Environment(root() / f"{settings.environment}-{digest}", lock)


def installed(settings: Settings) -> tuple[Environment, Record]:
    """The environment of a profile as it was made. Raises MissingToolError where it is not installed."""
    environment = wanted(settings)
    record = environment.record
    if record is None:
        raise MissingToolError(
            f"the environment {settings.environment} is not installed",
            hint=f"run: loupe engine install {settings.environment}",
        )
    return environment, record


def made() -> Iterator[tuple[str, Path, Record | None]]:
    """Every environment on disk: its name, its folder, and what is in it."""
    for name in Folder(root()).names():
        if found := _FOLDER.fullmatch(name):
            yield found["name"], root() / name, _record(root() / name)


def state(environment: Environment) -> str:
    """State of an environment: installed and how large, or what there is to download."""
    if record := environment.record:
        return f"installed, {size(record.size)}"
    return f"not installed ({size(environment.download)})" if environment.download else "not installed"


def locked(lock: bytes) -> dict[str, set[str]]:
    """The packages of a lock with the versions it has of each.

    Raises ValueError for any line but `name==version` and digests: a lock names no index, no address and no file.
    """
    found: dict[str, set[str]] = {}
    text = lock.decode("utf-8")
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        package, *hashes = " ".join(line.split()).split(" --hash=")
        match = _LOCK_LINE.fullmatch(package)
        if match is None or not hashes or not all(map(_HASH.fullmatch, hashes)):
            raise ValueError(f"{package[:100]!r} is no `name==version` with digests")
        found.setdefault(normal(match["name"]), set()).add(match["version"])
    return found


def reader_of(settings: Settings) -> Path:
    """The file of a profile's reader. Raises ProfileError where there is none."""
    if re.fullmatch(r"[a-z][a-z0-9_]*", settings.reader):
        path = READERS / f"{settings.reader}.py"
        known = sorted(each.stem for each in READERS.glob("[a-z]*.py"))
        hint = f"a file, or one of Loupe's: {', '.join(known)}"
    else:
        path, hint = settings.own_file(settings.reader), "reader = a path to a Python file"
    if not path.is_file():
        raise ProfileError(f"reader = {settings.reader!r}: no such file", hint=hint)
    return path


def _lock_of(settings: Settings) -> bytes | None:
    """The content of the lock: the profile's own, or the one that comes with Loupe if it is for these packages."""
    path = settings.own_file(settings.lock) if settings.lock else LOCKS / f"{settings.environment}.txt"
    if not settings.lock and not path.is_file():
        return None
    try:
        content = read_data(path)
        versions = locked(content)
    except (OSError, ValueError) as error:
        raise ProfileError(f"lock {path}: {error}") from None
    for name, version in settings.pins.items():
        if version not in versions.get(name, ()):
            if not settings.lock:
                return None  # Packages of the user's own under one of our names: locked anew, in a folder of their own.
            has = ", ".join(versions.get(name, ())) or "nothing"
            raise ProfileError(
                f"lock {path}: has {has} of {name}, and packages say {version}", hint=_anew(settings, path)
            )
    return content


def _anew(settings: Settings, path: Path) -> str:
    pins = " ".join(map(word, settings.packages))
    return f"printf '%s\\n' {pins} | uv pip compile --universal --generate-hashes --no-annotate -o {word(path)} -"


def _record(folder: Path) -> Record | None:
    try:
        record = json_decoder(Record).decode(Folder(folder).read(RECORD, limit=1 << 16))
    except (OSError, msgspec.MsgspecError):
        return None
    return record if (folder / "bin" / "python").exists() else None
