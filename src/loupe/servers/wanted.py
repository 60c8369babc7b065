"""The server that an engine profile wants: its command line in layers, and what of it can change an answer.

`--serve KIND[:MODEL]` sets `serve` of the profile; `[servers.KIND]` of the profile holds the arguments that the model's
makers give, `--server-arg` adds to them. Source: docs/protocols/engines.md#server-templates: underscores become dashes,
true is a bare flag, false `--no-flag`, a table JSON.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from loupe.engines.chat.settings import Settings
from loupe.engines.registry import Profile
from loupe.engines.shared.model_names import refuse_folder_instead
from loupe.engines.shared.redaction import without_secret_arguments
from loupe.errors import MissingToolError, UsageError
from loupe.files.foreign import real_path
from loupe.helpers import for_children
from loupe.runs.info import digest_of
from loupe.servers.templates import Template, server_kind, templates
from loupe.typed import encode_json

#: Where a server listens is Loupe's business.
_OURS = {"port": "--server-port N", "host": "a server is bound to this machine only"}


@dataclass(frozen=True, slots=True)
class Argument:
    """A flag as written (`--max-model-len`, `-c`) and its values."""

    flag: str
    values: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The flag without dashes; `--no-x` and `--x` are the same, and so are `_` and `-`."""
        return self.flag.lstrip("-").replace("_", "-").removeprefix("no-")

    @property
    def words(self) -> list[str]:
        """The flag and its values, as they stand in a command line."""
        return [self.flag, *self.values]


def from_table(table: Mapping[str, Any]) -> list[Argument]:
    """Arguments from keys of a profile: `max_model_len = 16384` is `--max-model-len 16384`."""
    return [_from_key(key.replace("_", "-"), value) for key, value in table.items()]


def _from_key(flag: str, value: Any) -> Argument:
    if value is False:
        return Argument(f"--no-{flag}")
    if value is True or value is None:
        return Argument(f"--{flag}")
    if isinstance(value, dict):
        return Argument(f"--{flag}", (encode_json(value).decode(),))
    if isinstance(value, list):
        return Argument(f"--{flag}", tuple(map(str, value)))
    return Argument(f"--{flag}", (str(value),))


def from_words(words: Sequence[str]) -> list[Argument]:
    """Arguments from words, each an own one: `--flag`, `--flag=value`, `--flag value`, or a value of the one before.

    Raises UsageError for a value without a flag.
    """
    found: list[Argument] = []
    for word in words:
        if _is_flag(word):
            found.append(_split(word))
        elif found:
            found[-1] = Argument(found[-1].flag, (*found[-1].values, word))
        else:
            raise UsageError(f"server argument {word!r}: not an argument such as --max-model-len=8192")
    return found


def refuse_ours(arguments: Sequence[Argument]) -> None:
    """Raise UsageError for an argument that Loupe sets itself."""
    for argument in arguments:
        if argument.name in _OURS:
            raise UsageError(f"server argument {argument.flag} is set by Loupe", hint=_OURS[argument.name])


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and not word[1:2].isdigit()


def _split(word: str) -> Argument:
    """`--flag=value` or `--flag value`; a value may hold any further sign, as JSON does."""
    cut = min((place for sign in "= " if (place := word.find(sign)) > 0), default=-1)
    return Argument(word) if cut < 0 else Argument(word[:cut], (word[cut + 1 :].strip(),))


def merge(*layers: Sequence[Argument]) -> list[Argument]:
    """All arguments in order; one that a later layer has too is left out of the earlier one."""
    merged: list[Argument] = []
    for layer in layers:
        renewed = {argument.name for argument in layer}
        merged = [argument for argument in merged if argument.name not in renewed] + list(layer)
    return merged


def as_words(arguments: Sequence[Argument]) -> list[str]:
    """The words of a command line."""
    return [word for argument in arguments for word in argument.words]


#: Keys of `[servers.KIND]` that are no arguments.
_MODEL = "model"
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A server to be started.

    `name` is what clients call the model, `asked` what the profile calls it; `port` 0: a free one.
    `program`, `arguments` and `environment` lack only the port; `given` are the arguments that are not the template's
    own, `values` the numbers that fill the template. `passed` names variables that the server gets beside the usual.
    """

    kind: str
    template: Template
    model: str
    name: str
    port: int
    program: Sequence[str]
    arguments: Sequence[Argument]
    environment: Mapping[str, str]
    values: Mapping[str, str]
    given: Sequence[Argument]
    asked: str
    startup_timeout: float
    passed: Sequence[str] = ()

    def command(self, port: int) -> list[str]:
        """The words of the command line for a port. Raises MissingToolError if the program is not installed."""
        return [_find_program(self), *self._words(port, here=str(Path.cwd()))]

    def shown(self, port: int) -> list[str]:
        """The command line for people and records, without keys and without the place of the program."""
        program = Path(self.program[0]).name.replace("{python}", "python")
        return without_secret_arguments([program, *self._words(port)])

    def _words(self, port: int, *, here: str = ".") -> list[str]:
        return [
            _fill(word, {"port": str(port), "here": here}) for word in (*self.program[1:], *as_words(self.arguments))
        ]

    def child_environment(self, port: int) -> dict[str, str]:
        """Return all that the server's process gets, what the profile passes on and the template adds included."""
        added = {name: _fill(value, {"port": str(port)}) for name, value in self.environment.items()}
        return {**for_children("servers", passed=self.passed), "PYTHONUNBUFFERED": "1", **added}

    @property
    def identity(self) -> str:
        """Equal for servers that can stand in for each other: everything but the port."""
        return digest_of([self.kind, self.model, self.name, self.shown(0), sorted(self.environment.items())])[:16]

    @property
    def defining(self) -> dict[str, Any]:
        """All that can change an answer: the program, the model, and arguments, but those known to change none."""
        neutral = self.template.neutral
        values = {name: self.values[name] for name in self.template.values if name not in neutral}
        words = [without_secret_arguments(argument.words) for argument in self.given if argument.name not in neutral]
        given = {flag.lstrip("-"): " ".join(rest) for flag, *rest in words}
        found: dict[str, Any] = {"server": self.kind, "server_arguments": {**values, **given}}
        return found | ({"server_model": self.model} if self.model != self.asked else {})

    @property
    def signature(self) -> dict[str, str]:
        """The part of a run's signature: the kind, and a digest of the arguments if there are any."""
        arguments = self.defining["server_arguments"]
        return {"server": f"{self.kind}+{digest_of([sorted(arguments.items())])[:8]}" if arguments else self.kind}


def wanted_server(profile: Profile, *, embedding: bool = False) -> Wanted | None:
    """The server that a profile wants started, None if it wants none; with `embedding` one that gives vectors.

    Raises UsageError for an unknown kind, for no model, and for arguments that make no sense.
    """
    if not (isinstance(profile, Settings) and profile.serve):
        return None
    written, _, model = profile.serve.partition(":")
    kind = server_kind(written)
    template = templates()[kind]
    table: dict[str, Any] = {}
    for name, settings in profile.servers.items():
        table |= settings if server_kind(name) == kind else {}
    usual = str(table.pop(_MODEL, ""))
    named = model or usual
    model = named or profile.model
    if not model:
        raise UsageError(f"--serve {kind}: which model?", hint=f"use --serve {kind}:MODEL, or -e ENGINE with a model")
    if not named and template.format.lower() not in model.lower():
        raise UsageError(
            f"{template.title} reads {template.format} files, but the name {model} does not mention that format",
            hint=f"use --serve {kind}:NAME/REPOSITORY-{template.format}, or {kind}:./FILE.{template.format.lower()}",
        )
    absolute = _as_it_is if template.folder == "here" else _absolute
    if template.folder == "own":
        refuse_folder_instead(model)
    model = absolute(model)
    if template.folder == "own" and _is_path(model):
        _refuse_missing(kind, model)
    # A server that takes no other name for its model is asked for the model as it is called.
    takes_names = bool(template.named) or any("{name}" in word for word in template.arguments)
    name = (profile.model or model) if takes_names else model
    values = {key: _count(key, table.pop(key, default)) for key, default in template.values.items()}
    gpus = [gpu.strip() for gpu in profile.gpus.split(",") if gpu.strip()]
    spread = [Argument(f"--{template.gpus}", (str(len(gpus)),))] if template.gpus and len(gpus) > 1 else []
    given = merge(spread, from_table(table), from_words([absolute(word) for word in profile.server_args]))
    refuse_ours(given)
    for argument in given:
        if argument.name in template.files:
            _refuse_missing(f"{kind} {argument.flag}", *argument.values)
    total = {"total_context": values["slots"] * values["context"]} if {"slots", "context"} <= values.keys() else {}
    names = {"model": model, "name": name, "model_flag": "-m" if model.endswith(".gguf") else "-hf"}
    texts = {key: str(value) for key, value in {**values, **total, **names}.items()}
    further = (*(template.named if name != model else ()), *(_embedding(kind) if embedding else ()))
    own = [_fill(word, texts) for word in (*template.arguments, *further)]
    return Wanted(
        kind=kind,
        template=template,
        model=model,
        name=name,
        port=_port(profile.server_port, template),
        program=[profile.server_program or template.program[0], *(_fill(word, texts) for word in template.program[1:])],
        arguments=merge(from_words(own), given),
        given=given,
        values={key: str(value) for key, value in values.items()},
        environment={key: _fill(text, texts) for key, text in template.environment.items()} | _environment(gpus),
        asked=profile.model,
        startup_timeout=profile.startup_timeout,
        passed=profile.pass_env,
    )


def _embedding(kind: str) -> Sequence[str]:
    """The arguments that make a kind of server give vectors. Raises UsageError if nothing does."""
    found = templates()[kind].embedding
    if found is None:
        able = ", ".join(each for each, template in templates().items() if template.embedding is not None)
        raise UsageError(f"--serve {kind}: {templates()[kind].title} gives no embeddings", hint=f"kinds: {able}")
    return found


def _port(wanted: int | str | None, template: Template) -> int:
    """The port to listen on, 0 for one that is free."""
    if wanted is None:
        return template.port
    return 0 if isinstance(wanted, str) else wanted


def _count(key: str, value: object) -> int:
    if not isinstance(value, int) or value < 1:
        raise UsageError(f"[servers] {key} = {value!r}: must be a whole number from 1")
    return value


def _environment(gpus: Sequence[str]) -> dict[str, str]:
    """The GPUs that the server sees. Who names some shares the machine: then its libraries take one thread each."""
    if not gpus:
        return {}
    threads = {} if "OMP_NUM_THREADS" in os.environ else {"OMP_NUM_THREADS": "1"}
    return {"CUDA_VISIBLE_DEVICES": ",".join(gpus), **threads}


def _as_it_is(word: str) -> str:
    return word


def _absolute(word: str) -> str:
    """A path in the user's folder, as the server finds it from its own: `./x`, `x.gguf`, or `--flag=./x`."""
    flag, sign, value = word.partition("=") if word.startswith("-") else ("", "", word)
    path = Path(value)
    if ("/" in value or _is_path(value)) and not path.is_absolute() and path.exists():
        return f"{flag}{sign}{real_path(path)}"
    return word


def _is_path(model: str) -> bool:
    """True if a model is surely a place on this machine, and no name on a hub."""
    return model.startswith((".", "/", "~")) or model.endswith(".gguf")


def _refuse_missing(what: str, *places: str) -> None:
    """Raise UsageError for a file or folder that is not there: the server would start, and end without it."""
    for place in places:
        if not Path(place).exists():
            raise UsageError(f"--serve {what}: no file {place}", hint="its path from this folder, or the whole path")


def _fill(word: str, values: Mapping[str, str]) -> str:
    """The word with these placeholders filled in; other braces (JSON) stay."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), word)


def _find_program(wanted: Wanted) -> str:
    """The path of the program. Raises MissingToolError, with what to install."""
    template, program = wanted.template, wanted.program[0]
    if program == "{python}":
        if template.module and find_spec(template.module) is None:
            raise MissingToolError(f"{template.title} is not installed", hint=f"install it: {template.install}")
        return sys.executable
    found = shutil.which(program)
    if found is None:
        raise MissingToolError(
            f"{template.title} is not installed: no program {program!r}", hint=f"install it: {template.install}"
        )
    return str(Path(found).absolute())
