"""Which models are tried: the lists that come with Loupe, or the user's own from flags, a file, or loupe.toml.

Source: docs/select.md.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from loupe.benchmarks.folders.selection.questions import Phase
from loupe.data.toml import parse_toml
from loupe.engines.shared.local_settings import SELECT, read_settings
from loupe.errors import MissingToolError, UsageError
from loupe.files.foreign import decode_text, read_data
from loupe.typed import convert, decode_json

_FILE = Path(__file__).with_name("candidates.toml")


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
        raise UsageError(f"{path}: {error.strerror}", hint="--models FILE") from None
    return _checked(_decoded(path, data), str(path))


def configured_models() -> ModelFile:
    """What `[select]` of ./loupe.toml says; empty lists where there is none.

    Raises UntrustedError where it says something and the user has not trusted the file.
    """
    local = read_settings()
    if local is None or not local.tables.get(SELECT):
        return ModelFile()
    models = _checked(local.tables[SELECT], f"{local.path} [{SELECT}]")
    local.need_trust((), SELECT)
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
        raise MissingToolError(f"{path}: reading YAML needs PyYAML", hint="pip install pyyaml, or write TOML") from None
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
