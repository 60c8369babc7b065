"""The keys of an `environment` profile (docs/engines/environments.md)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

from loupe.engines.registry import WHOLE_PAGES, Profile
from loupe.engines.shared.hosts import hosts_beyond

#: What a reader takes: a picture, a PDF of one page, or a whole PDF for whose pages it gives one text each.
Reads: TypeAlias = Literal["image", "page", "document"]
#: Keys that change no answer; the lock and the reader's file count with their digests.
_NOT_DEFINING = frozenset(
    {"licence", "weights", "unproven", "programs", "python", "lock", "reader", "pass_env", "memory", "gpus"}
    | {"startup_timeout", "sends_to", "may_reach"}
)
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_PYTHON = re.compile(r">=3\.(\d{1,2})(?:,<3\.(\d{1,2}))?")
_PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(\[[A-Za-z0-9._,-]+\])?==([A-Za-z0-9][A-Za-z0-9.!+_-]*)")


class Settings(Profile, frozen=True, kw_only=True):
    """Keys of an `environment` profile.

    `environment` names the environment, which several profiles may share; `packages` are its exact pins, `lock` a file
    with the digests of all that is installed ("": the one that comes with Loupe, else one is made while installing).
    `python` are the versions it runs on. `reader` is a reader of Loupe's by name, or a file (docs/engines/
    environments.md), and `options` is what it is given. `reads` says what it takes. `variables` are set for its
    process, `pass_env` handed on beside the usual ones, `programs` must be on the PATH. Pages go to the host
    `sends_to`, if any; the process may connect to it, to `may_reach`, and to nothing else outside this machine.
    `memory` is the limit of one worker in GB (None: its share of the machine; no limit with `gpus`); each GPU of `gpus`
    gets a worker. `licence`, `weights` and `unproven` are shown before it is installed and used.
    """

    gives: ClassVar[frozenset[str] | None] = WHOLE_PAGES

    environment: str
    packages: list[str]
    reader: str
    reads: list[Reads]
    lock: str = ""
    python: str = ">=3.11"
    options: dict[str, Any] = msgspec.field(default_factory=dict)
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
            if value is not None and not 0 < value <= 1e6:
                raise ValueError(f"{key} = {value}: must be above 0, and at most a million")
        if self.concurrency is None:  # One worker for each GPU; else one, which may need all of the machine.
            msgspec.structs.force_setattr(self, "concurrency", len(self.gpu_list) or 1)

    @property
    def services(self) -> tuple[str, ...]:
        """The host that pages are sent to because the profile says so."""
        place = re.sub(r"\{(\w+)\}", lambda found: str(self.options.get(found[1], "")), self.sends_to)
        return hosts_beyond(str(self.options.get("endpoint") or place)) if place else ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """With the server that an engine's model runs on, where the user names one on another machine."""
        return (*self.services, *hosts_beyond(str(self.options.get("server", ""))))

    @property
    def fetches(self) -> bool:
        """Whether the reader fetches its weights itself, once it may: `weights` then says from where."""
        return self.weights.startswith("downloaded from ")

    @property
    def pins(self) -> dict[str, str]:
        """The packages by their normalised names, with their versions."""
        found = [_PIN.fullmatch(package) for package in self.packages]
        return {normal(each[1]): each[3] for each in found if each}

    def runs_on(self, minor: int) -> bool:
        """Whether it runs on Python 3.`minor`."""
        found = _PYTHON.fullmatch(self.python)
        return bool(found and int(found[1]) <= minor and (found[2] is None or minor < int(found[2])))

    @property
    def gpu_list(self) -> list[str]:
        """The GPUs named in `gpus`."""
        return [gpu.strip() for gpu in self.gpus.split(",") if gpu.strip()]

    def signature(self) -> dict[str, str]:
        """What the page is given as, and the packages that decide the text."""
        image = f"dpi{self.dpi:g}" + (f"longest{self.longest}" if self.longest else "")
        how = "+".join(image if each == "image" else f"pdf{'' if each == 'page' else 's'}" for each in self.reads)
        return {"img": how, "pkg": "+".join(f"{name}{version}" for name, version in self.pins.items())}

    def defining(self) -> dict[str, Any]:
        """Without what says how it is installed and run; `environment` stands for nothing but a folder."""
        return {key: value for key, value in super().defining().items() if key not in _NOT_DEFINING | {"environment"}}

    def own_file(self, name: str) -> Path:
        """A file that the profile names."""
        return Path(name).expanduser().absolute()


def normal(package: str) -> str:
    """A package's name as indexes compare it.

    >>> normal("PyMuPDF_Layout")
    'pymupdf-layout'
    """
    return re.sub(r"[-_.]+", "-", package).lower()
