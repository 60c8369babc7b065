"""Command lines of servers: arguments of template, profile and user in layers, the later ones winning.

Source: docs/protocols/engines.md#server-templates: underscores become dashes, true is a bare flag, false `--no-flag`, a
table JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loupe.errors import UsageError
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
