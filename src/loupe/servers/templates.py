"""Kinds of servers: templates.toml and the files of features and other packages, checked.

Source: docs/protocols/engines.md#server-templates.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from loupe.errors import UsageError, did_you_mean
from loupe.hooks import loaded
from loupe.typed import convert


class Probe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing to ask a starting server: `path` answers 200 within `seconds`, and its JSON names the model at `names`.

    `names` is a path through the JSON (`data.*.id`). `missing` is the hint for a server that will never name it.
    """

    path: str
    names: str = ""
    missing: str = ""
    seconds: float = 5.0

    def lists(self, name: str, body: Any) -> bool:
        """True if the JSON names the model; Ollama lists `name:latest` for `name`."""
        return not self.names or any(found in (name, f"{name}:latest") for found in _at(body, self.names.split(".")))


class Template(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of server.

    `program`, `arguments` and the values of `environment` hold placeholders: `{model}`, `{name}` (what clients call the
    model), `{port}`, `{python}`, `{here}` (the user's folder), `{model_flag}`, and those in `values`, which a profile
    may set. `named` is added where the name differs from the model, `embedding` where vectors are wanted (None: it
    gives none). `says` is what `discovery.identify` calls it. `health` is the path of the shallow check, `ready` what
    must hold before it is used. `gpus` is the argument for the number of GPUs. `neutral` are arguments that change no
    answer. `folder`: whose names its model and arguments are, the user's folder's or none's. `format`: what names of
    its models hold where it reads other files than those that a model's makers publish. `files` are arguments whose
    value is a file here. `memory` is the advice when memory runs out.
    """

    title: str
    program: list[str]
    port: int
    says: str
    health: str
    ready: list[Probe]
    install: str
    memory: str
    format: str = ""
    files: list[str] = []
    arguments: list[str] = []
    named: list[str] = []
    embedding: list[str] | None = None
    values: dict[str, int] = {}
    environment: dict[str, str] = {}
    module: str = ""
    gpus: str = ""
    neutral: list[str] = []
    folder: Literal["here", "own"] = "own"


@cache
def templates() -> dict[str, Template]:
    """Return every kind of server by its name."""
    added = [Path(folder) / "servers.toml" for _, place in loaded("server_kinds") for folder in place.__path__]
    files = [*added, Path(__file__).with_name("templates.toml")]  # the last one counts
    return {
        name: template
        for file in files
        for name, template in convert(tomllib.loads(file.read_text("utf-8")), dict[str, Template]).items()
    }


def server_kind(written: str) -> str:
    """The kind that is meant, `-` and `_` being the same. Raises UsageError for an unknown one."""
    for kind in templates():
        if written.replace("-", "_") == kind.replace("-", "_"):
            return kind
    raise UsageError(
        f"no kind of server {written!r}{did_you_mean(written, templates())}", hint=f"kinds: {', '.join(templates())}"
    )


def _at(value: Any, path: list[str]) -> Iterator[Any]:
    """The values at a path of JSON; `*` is every entry of a list."""
    if not path:
        yield value
    elif path[0] == "*":
        for entry in value if isinstance(value, list) else ():
            yield from _at(entry, path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from _at(value[path[0]], path[1:])
