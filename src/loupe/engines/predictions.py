"""Answers that exist already, as an engine: a folder of text files, or one JSON-lines file.

A sample without an answer is an error, never an empty answer: a forgotten file must not look like a blank page.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from loupe.data.digests import short_digest
from loupe.engines.registry import Profile
from loupe.engines.shared.foreign_formats import foreign_format
from loupe.errors import EngineError, EngineTimeoutError, NoAnswerError, RejectedError, UnsafeFileError, UsageError
from loupe.files.file_names import safe_names, same_form, without_image_suffix
from loupe.files.foreign import data_lines, decode_text, is_inside, read_data, real_path
from loupe.typed import json_decoder
from loupe.types import FAILED, RETRIED, UNDECODABLE, Engine, Outcome, Output, Predict, Request

ARGUMENT = "folder"
_SUFFIXES = (".txt", ".md", ".html", ".json", ".mmd", ".tex")


class Settings(Profile, frozen=True, kw_only=True):
    """Keys of the kind `predictions`: `folder` holds `<sample id>.txt` (or .md, .html, .json), or is a `.jsonl` file.

    Each line of such a file has `id` (or `sample`) and `text` (or `prediction`). The `predictions.jsonl` of a run fits;
    what was truncated or failed there stays so.
    """

    folder: str
    concurrency: int | None = 8

    def defining(self) -> dict[str, Any]:
        """The answers by the place where they really are, whatever path leads there."""
        return {**Profile.defining(self), "folder": str(real_path(Path(self.folder).expanduser()))}


class _Line(msgspec.Struct, rename={"outcome": "class"}):
    """A line; `outcome` and what follows it only stand in the predictions of a run."""

    id: str = ""
    sample: str = ""
    text: str | None = None
    prediction: str | None = None
    error: str | None = None
    outcome: Outcome | None = None
    finish_reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning: str | None = None
    seconds: float | None = None

    @property
    def failed(self) -> bool:
        """True if it holds no answer."""
        return self.outcome in FAILED or bool(self.error) or (self.text is None and self.prediction is None)


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine]:
    """Yield an engine that looks answers up. Raises UsageError if there is no such folder or a line is broken."""
    path = Path(settings.folder).expanduser()
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in _SUFFIXES and file.is_file())
        source = await asyncio.to_thread(short_digest, [file for file in files if is_inside(file, path)], below=path)
        yield Engine(predict=_from_folder(path, files), facts={"source": source})
    elif path.is_file():
        source = await asyncio.to_thread(short_digest, [path])
        yield Engine(predict=_from_lines(path, _read_lines(path)), facts={"source": source})
    else:
        raise UsageError(f"no folder or file of predictions at {path}")


def _from_folder(folder: Path, files: Sequence[Path]) -> Predict:
    # The first suffix of a name counts.
    ordered = sorted(files, key=lambda file: _SUFFIXES.index(file.suffix.lower()), reverse=True)
    exact = {file.relative_to(folder).with_suffix("").as_posix(): file for file in ordered}
    forms: dict[str, list[str]] = {}
    for name in exact:
        forms.setdefault(same_form(name), []).append(name)
    answered: dict[Path, str] = {}

    async def predict(request: Request) -> Output:
        found = (exact.get(stem) or _only(folder, exact, forms.get(same_form(stem), ())) for stem in _stems(request.id))
        path = next(filter(None, found), None)
        if path is None:
            raise EngineError(f"no file for sample {request.id!r} in {folder}")
        # Of a looser name than the id, only the samples that were asked for can tell whose it is.
        other = answered.setdefault(path, request.id)
        if request.id != other and path is not exact.get(request.id):
            raise RejectedError(f"{path}: answers sample {other!r} already; name it after one sample")
        # An id is data, and so is a link: neither must lead out of the folder.
        if not is_inside(path, folder):
            raise EngineError(f"{path} is a link out of the folder, and not read")
        return Output(text=await asyncio.to_thread(_read_text, path), seconds=0.0)

    return predict


def _only(folder: Path, files: Mapping[str, Path], names: Sequence[str]) -> Path | None:
    """Return the file of the only name, None without one. Raises EngineError for several."""
    if len(names) > 1:
        alike = " and ".join(map(ascii, names))
        raise EngineError(f"{folder}: {alike} differ only in their Unicode form; keep one of them")
    return files[names[0]] if names else None


def _stems(ident: str) -> list[str]:
    """Names under which an answer may be filed: the id, a safe name, and both without an image's suffix.

    The page file is none: several samples can ask about one, and pages in two folders can have one name.
    """
    bare = without_image_suffix(ident)
    return list(dict.fromkeys((*safe_names(ident), *safe_names(bare))))


def _read_text(path: Path) -> str:
    try:
        text = decode_text(read_data(path))
    except UnicodeDecodeError as error:
        raise EngineError(f"{path}: not UTF-8 (byte {error.start})") from None
    except UnsafeFileError as error:
        raise EngineError(error.message) from None
    except OSError as error:
        raise EngineError(f"{path}: {error.strerror}") from None
    return _only_text(text, str(path))


def _only_text(text: str, place: str) -> str:
    """Return the answer. Raises EngineError for one in the format of another program."""
    if (found := foreign_format(text)) is not None:
        raise EngineError(f"{place}: {found.name}, not text; {found.advice}")
    return text


def _from_lines(path: Path, lines: dict[str, _Line]) -> Predict:
    async def predict(request: Request) -> Output:
        line = lines.get(request.id)
        if line is None:
            raise EngineError(f"no line for sample {request.id!r} in {path}")
        if line.failed:
            raise _failure(line, f"{path}: sample {request.id!r} has no answer")
        return Output(
            text=_only_text((line.text if line.text is not None else line.prediction) or "", f"{path}, {request.id!r}"),
            finish_reason=line.finish_reason or ("length" if line.outcome == "truncated" else None),
            input_tokens=line.input_tokens,
            output_tokens=line.output_tokens,
            reasoning=line.reasoning,
            seconds=line.seconds or 0.0,
        )

    return predict


def _failure(line: _Line, message: str) -> EngineError:
    """The error that a line stands for, so that it ends in its class again."""
    if line.outcome not in FAILED:
        return EngineError(f"{message}: {line.error}" if line.error else message)
    if line.outcome in ("refused", "unfinished"):
        return NoAnswerError(line.error or message, outcome=line.outcome)
    kinds: dict[str, type[EngineError]] = {"timeout": EngineTimeoutError, "rejected": RejectedError}
    return kinds.get(line.outcome or "", EngineError)(line.error or message)


def _read_lines(path: Path) -> dict[str, _Line]:
    """Lines by sample; of several lines of a sample the last good one counts, else the last one."""
    lines: dict[str, _Line] = {}
    decoder = json_decoder(_Line)
    of_a_run = False
    for number, raw in data_lines(path):
        try:
            line = decoder.decode(raw)
        except UNDECODABLE as error:
            if of_a_run and not raw.endswith(b"\n"):
                # The run was killed while it wrote this line; nobody was told that it was there.
                break
            raise UsageError(f"{path}, line {number}: {error}") from None
        ident = line.id or line.sample
        if not ident:
            raise UsageError(f"{path}, line {number}: no `id`")
        of_a_run = of_a_run or line.outcome is not None
        if ident not in lines or lines[ident].outcome in (None, *RETRIED) or line.outcome not in RETRIED:
            lines[ident] = line
    return lines
