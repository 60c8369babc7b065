"""`loupe.toml` of the working folder: tables that say what runs are used only if the user trusts the file.

The folder may come from somebody else. What configures data (`[benchmark]`, `[fields]`) needs no trust and is read
elsewhere (`benchmarks/folders/own/config.py`).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loupe.data import trust
from loupe.data.toml import parse_toml
from loupe.engines.shared.redaction import redacted
from loupe.errors import ProfileError, UntrustedError
from loupe.files.foreign import decode_text
from loupe.hooks import found

FILE = Path("loupe.toml")
#: The tables that say what runs, or what is asked.
ENGINES, SUITES = "engines", "suites"
#: How each is written, and what one entry is called. Features have tables of their own: `LocalTable`.
_TABLES = {ENGINES: '[engines.NAME] with kind = "…"', SUITES: "[suites.NAME] with benchmarks = […]"}
_KINDS = {ENGINES: "engine", SUITES: "suite"}
#: What a key of an engine does, where that is more than a setting.
_DOES = {
    "command": "runs the program",
    "program": "runs the program",
    "function": "runs the Python code",
    "packages": "installs and runs the packages",
    "lock": "installs what is locked in",
    "reader": "reads with",
    "variables": "sets the environment variables",
    "sends_to": "sends pages to",
    "may_reach": "may reach",
    "options": "gives it the options",
    "server_program": "starts the program",
    "serve": "starts a server of",
    "server_args": "starts it with",
    "servers": "starts servers with",
    "config": "takes settings from",
    "folder": "reads",
    "detector_model": "loads the model",
    "base_url": "sends pages, and the API key if you have set one, to",
    "api_key_env": "sends the secret in the environment variable",
    "pass_env": "hands on the environment variables",
    "secrets": "sends the secrets in the environment variables",
    "optional_secrets": "sends the secrets, if set, in the environment variables",
}
#: Bytes that are read, and characters of a value that are shown in one line.
_LARGEST = 10**6
_SHOWN = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTable:
    """A table of a feature or another distribution (hook `local_tables`).

    `form` says how it is written; `does`, what Loupe does with the values, which follow it.
    """

    form: str
    does: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSettings:
    """One `loupe.toml`: where it is, what stands in it to the byte, and its tables."""

    path: Path
    content: bytes
    tables: Mapping[str, Any]

    def table(self, name: str) -> Mapping[str, Any]:
        """One of its tables, empty if there is none. Raises ProfileError for what is none."""
        found = self.tables.get(name, {})
        if not isinstance(found, dict):
            raise ProfileError(f"{self.path} [{name}]: not a table", hint=_form(name))
        return found

    def effects(self, table: str, known: Collection[str] = (), only: str = "") -> Iterator[str]:
        """Describe what one of its tables would do, a line for each engine or suite (`only` this one); `known` are
        replaced.
        """
        found = self.table(table)
        if table not in _KINDS:
            yield from [f"{_added(table).does} {_short(found)}"] if found else []
            return
        for name, settings in found.items():
            if only in ("", name):
                replaced = " (instead of the one that Loupe has)" if name in known else ""
                does = _running(settings) if table == SUITES else _doing(settings)
                yield _one_line(f"{_KINDS[table]} {name}{replaced} {does}")

    def need_trust(self, known: Collection[str], table: str, name: str = "") -> None:
        """Raises UntrustedError, saying what an entry of a table would do, unless the user trusts the file."""
        if not trust.is_trusted(self.path, self.content):
            effects = "; ".join(self.effects(table, known, name))
            raise UntrustedError(self.path, effects, changed=trust.was_trusted(self.path))


def local_tables() -> list[str]:
    """Return the names of all tables that need trust."""
    return sorted({*_TABLES, *found("local_tables")})


def _added(name: str) -> LocalTable:
    table: LocalTable = found("local_tables", _TABLES)[name].load()
    return table


def _form(name: str) -> str:
    return _TABLES.get(name) or (_added(name).form if name in local_tables() else "")


def read_settings(path: Path = FILE) -> LocalSettings | None:
    """The file of a folder, None where there is none. Raises ProfileError for one that cannot be read."""
    if not os.path.isfile(path):  # noqa: PTH113  False if it may not be read
        return None
    try:
        with path.open("rb") as stream:
            content = stream.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise ProfileError(f"{path}: longer than {_LARGEST // 10**6} MB")
        tables = parse_toml(decode_text(content))
    except (ValueError, RecursionError, OSError) as error:
        raise ProfileError(f"{path}: {error}") from None
    return LocalSettings(path=path, content=content, tables=tables)


def _doing(table: object) -> str:
    if not isinstance(table, dict):
        return "is no table"
    done = [f"{does} {_short(_variables(key, table[key]))}" for key, does in _DOES.items() if table.get(key)]
    return " and ".join(done) or f"reads with {_short(table.get('kind', 'nothing'))}"


def _variables(key: str, value: object) -> object:
    """The value of a key; of a table with secrets the names of the variables, which are none themselves."""
    return list(value.values()) if key.endswith("secrets") and isinstance(value, dict) else value


def _running(table: object) -> str:
    """Name which benchmarks a suite runs, and which engines; of a Python file among them the code runs."""
    if not isinstance(table, dict):
        return "is no table"
    named = table.get("engines")
    engines = f" with {_short(named)}" if named else ""
    return f"runs {_short(_names(table.get('benchmarks')))}{engines}"


def _names(benchmarks: object) -> list[str]:
    """The benchmarks of a suite by name; of a Python file that its code runs, and where data lies that is named."""
    listed = benchmarks if isinstance(benchmarks, list) else [benchmarks]
    tables = [each if isinstance(each, dict) else {"benchmark": each} for each in listed]
    return [_named(str(table.get("benchmark")), table.get("data")) for table in tables]


def _named(benchmark: str, data: object) -> str:
    code = " (Python code)" if benchmark.endswith(".py") else ""
    return f"{benchmark}{code}" + (f" (data in {_short(data)})" if data else "")


def _short(value: Any) -> str:
    """A value in one line, without what looks like a key."""
    shown = redacted({"value": value})["value"]
    words = shown if isinstance(shown, str) else " ".join(map(str, shown)) if isinstance(shown, list) else str(shown)
    text = _one_line(words)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _one_line(text: str) -> str:
    return " ".join(text.split())
