"""Answers that exist already, as an engine: a folder of text files, or one JSON-lines file.

A sample without an answer is an error, never an empty answer: a forgotten file must not look like a blank page.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from loupe.engines.registry import Profile
from loupe.engines.shared.source_digests import short_digest
from loupe.errors import EngineError, EngineTimeoutError, RejectedError, UnsafeFileError, UsageError
from loupe.files.file_names import safe_name
from loupe.files.foreign import data_lines, is_inside, read_data, real_path
from loupe.typed import json_decoder
from loupe.types import FAILED, RETRIED, UNDECODABLE, Engine, Outcome, Output, Predict, Request

ARGUMENT = "folder"
_SUFFIXES = (".txt", ".md", ".html", ".json", ".mmd", ".tex")
_IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp", ".gif", ".pdf"})


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
        """Whether it holds no answer."""
        return self.outcome in FAILED or bool(self.error) or (self.text is None and self.prediction is None)


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine]:
    """Yield an engine that looks answers up. Raises UsageError if there is no such folder or a line is broken."""
    path = Path(settings.folder).expanduser()
    if path.is_dir():
        files = sorted(
            file for file in path.rglob("*") if file.suffix in _SUFFIXES and file.is_file() and is_inside(file, path)
        )
        source = await asyncio.to_thread(short_digest, files, below=path)
        yield Engine(predict=_from_folder(path), facts={"source": source})
    elif path.is_file():
        source = await asyncio.to_thread(short_digest, [path])
        yield Engine(predict=_from_lines(path, _read_lines(path)), facts={"source": source})
    else:
        raise UsageError(f"no folder or file of predictions at {path}")


def _from_folder(folder: Path) -> Predict:
    async def predict(request: Request) -> Output:
        for stem in _stems(request.id):
            for suffix in _SUFFIXES:
                # An id is data: it must not lead out of the folder.
                path = folder / f"{stem}{suffix}"
                if path.is_file() and not is_inside(path, folder):
                    raise EngineError(f"{path}: is a link out of the folder, and not read")
                if path.is_file():
                    return Output(text=await asyncio.to_thread(_read_text, path))
        raise EngineError(f"no file for sample {request.id!r} in {folder}")

    return predict


def _stems(ident: str) -> list[str]:
    """Names under which an answer may be filed: the id, as a safe name, and without the suffix of its image."""
    names = [ident, safe_name(ident)]
    path = PurePosixPath(ident)
    if path.suffix.lower() in _IMAGE_SUFFIXES:
        names += [str(path.with_suffix("")), safe_name(str(path.with_suffix("")))]
    return list(dict.fromkeys(names))


def _read_text(path: Path) -> str:
    try:
        return read_data(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise EngineError(f"{path}: not UTF-8 (byte {error.start})") from None
    except UnsafeFileError as error:
        raise EngineError(error.message) from None
    except OSError as error:
        raise EngineError(f"{path}: {error.strerror}") from None


def _from_lines(path: Path, lines: dict[str, _Line]) -> Predict:
    async def predict(request: Request) -> Output:
        line = lines.get(request.id)
        if line is None:
            raise EngineError(f"no line for sample {request.id!r} in {path}")
        if line.failed:
            raise _failure(line, f"{path}: sample {request.id!r} has no answer")
        return Output(
            text=(line.text if line.text is not None else line.prediction) or "",
            finish_reason=line.finish_reason or ("length" if line.outcome == "truncated" else None),
            input_tokens=line.input_tokens,
            output_tokens=line.output_tokens,
            reasoning=line.reasoning,
            seconds=line.seconds,
        )

    return predict


def _failure(line: _Line, message: str) -> EngineError:
    """The error that a line stands for, so that it ends in its class again."""
    if line.outcome not in FAILED:
        return EngineError(f"{message}: {line.error}" if line.error else message)
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
