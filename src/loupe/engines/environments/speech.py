"""Loupe's side of the frames that `foreign_worker.py` reads and writes (docs/engines/environments.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec

from loupe.engines.shared.placed_text import PlacedLine, page_text, placed_line
from loupe.typed import encode_json, json_decoder
from loupe.types import Output
from loupe.workers.child import Reply

#: How the worker begins what it says where a reader cannot be loaded.
NOT_LOADED = "the engine cannot be loaded: "
WORKER = Path(__file__).parent / "foreign_worker.py"
#: What no page has, and what would take minutes to put into reading order.
_MOST_LINES = 10_000
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=10**12)]
_Pixels: TypeAlias = Annotated[float, msgspec.Meta(ge=1, le=1e7)]
#: Boxes of regions run from 0 to this, regardless of the page's size.
_WHOLE = 1000
#: What an exception of a reader says of its page, and the error of Loupe's that it becomes.
_ERRORS = {
    "rejected": "RejectedError",
    "transient": "TransientEngineError",
    "busy": "TransientEngineError",
    "unavailable": "EngineUnavailableError",
    "timeout": "EngineTimeoutError",
    "usage": "UsageError",
}


class Start(msgspec.Struct, kw_only=True):
    """The first message: which reader to load, with what, and what its process may take and reach.

    `memory` is in bytes. `download`: the network is open until the reader is loaded. `strict_network`: a page that
    failed because the reader wanted to reach somebody else ends the run.
    """

    reader: str
    options: dict[str, Any]
    packages: list[str]
    hosts: list[str]
    memory: int | None = None
    download: bool = False
    strict_network: bool = False


class Page(msgspec.Struct, kw_only=True):
    """A page as it is asked for: a file, what that is (`image`, `page`, `document`), and the question, if any."""

    path: str
    type: str
    prompt: str = ""
    pages: int = 1


class Line(msgspec.Struct):
    """A line of text and its corners in pixels: four from the upper left one on, or any two or more of its outline."""

    text: str
    box: list[tuple[float, float]]
    score: float | None = None


class Region(msgspec.Struct, kw_only=True):
    """An area of the page: a box in units of which the page has `size`, and how sure the package is of it (0 to 1)."""

    label: Any = ""
    native_label: Any = ""
    content: Any = ""
    box: Any = None
    score: Any = None


class Answer(msgspec.Struct, kw_only=True):
    """The answer that comes back: facts after loading, a text, the texts of a document's pages, lines on a picture, or
    an error.

    `size` is the page's width and height in the units of `lines` or `regions`. `counts` is kept with the answer.
    `finish_reason` is null if the package does not say how the text ended.
    """

    facts: dict[str, str] = {}
    text: str | None = None
    pages: list[str] | None = None
    lines: list[Line] | None = None
    regions: list[Region] | None = None
    counts: dict[str, _Count] = {}
    finish_reason: str | None = "stop"
    size: tuple[_Pixels, _Pixels] | None = None
    input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    error: str = ""
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class ForeignInterpreter:
    """A reader in another Python's process; `hint` goes with an engine that cannot be loaded."""

    python: Path
    start: Start
    folder: Path
    hint: str = ""
    bounded: bool = False

    def command(self, descriptor: int) -> list[str]:
        """Isolated (-I): no PYTHONPATH, no packages of the user's, nothing from the working folder."""
        return [str(self.python), "-I", str(WORKER), str(descriptor)]

    def greeting(self) -> bytes:
        """The reader and its options."""
        return encode_json(self.start)

    def message(self, request: object) -> bytes:
        """A `Page`."""
        return encode_json(request)

    def reply(self, message: bytes) -> Reply:
        """An `Answer`, checked. Raises msgspec.MsgspecError for anything else."""
        answer = json_decoder(Answer).decode(message)
        if answer.error:
            kind = _ERRORS.get(answer.outcome, "")
            hint = self.hint if answer.error.startswith(NOT_LOADED) else ""
            return Reply(error=answer.error, kind=kind, hint=hint, busy=answer.outcome == "busy")
        if answer.facts:
            return Reply(facts=answer.facts)
        return Reply(output=_output(answer))


def _output(answer: Answer) -> Output:
    """Raises msgspec.ValidationError if the answer has neither text nor lines."""
    if answer.pages is not None:
        return Output(text="", finish_reason="stop", response={"pages": answer.pages})
    text = answer.text
    placed: dict[str, Any] | None = None
    if answer.lines is not None:
        _check(answer.lines)
        text = text or page_text([_quad(line) for line in answer.lines], [line.text for line in answer.lines])
        placed = {"lines": _placed(answer.lines, answer.size)} if answer.size else None
    if text is None:
        raise msgspec.ValidationError("no text")
    if answer.regions is not None:
        placed = {"regions": _regions(answer.regions, answer.size or (_WHOLE, _WHOLE)), **answer.counts}
    return Output(
        text=text,
        finish_reason=answer.finish_reason,
        response=placed,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
    )


def _check(lines: Sequence[Line]) -> None:
    """Raises msgspec.ValidationError for a box that is none, and for more lines than a page has."""
    if len(lines) > _MOST_LINES:
        raise msgspec.ValidationError(f"{len(lines):,} lines, and {_MOST_LINES:,} is the most")
    for line in lines:
        if len(line.box) < 2 or not all(math.isfinite(value) and abs(value) < 1e7 for xy in line.box for value in xy):
            raise msgspec.ValidationError(f"no box: {line.box}")


def _quad(line: Line) -> list[tuple[float, float]]:
    """Four corners from the upper left one on; of an outline with more or fewer, its upright box."""
    if len(line.box) == 4:
        return line.box
    xs, ys = [x for x, _ in line.box], [y for _, y in line.box]
    return [(min(xs), min(ys)), (max(xs), min(ys)), (max(xs), max(ys)), (min(xs), max(ys))]


def _placed(lines: Sequence[Line], size: tuple[float, float]) -> list[PlacedLine]:
    found = []
    for line in lines:
        xs, ys = [x / size[0] for x, _ in line.box], [y / size[1] for _, y in line.box]
        found.append(placed_line(line.text, (min(xs), min(ys), max(xs), max(ys)), line.score))
    return found


def _regions(regions: Sequence[Region], size: tuple[float, float]) -> list[dict[str, Any]]:
    """The areas in the one form that embeddings and the report read; a package's odd value is left out."""
    if len(regions) > _MOST_LINES:
        raise msgspec.ValidationError(f"{len(regions):,} regions, and {_MOST_LINES:,} is the most")
    return [
        {
            "index": index,
            "label": str(each.label),
            "content": each.content if isinstance(each.content, str) else "",
            "bbox_2d": _thousandths(each.box, size),
            **({"score": round(each.score, 4)} if isinstance(each.score, int | float) and 0 <= each.score <= 1 else {}),
            **({"native_label": str(each.native_label)} if each.native_label else {}),
        }
        for index, each in enumerate(regions)
    ]


def _thousandths(box: object, size: tuple[float, float]) -> list[int] | None:
    """Left, top, right and bottom in thousandths of width and height; None for what is not a box."""
    if not isinstance(box, list) or len(box) != 4:
        return None
    try:
        return [int(float(side) * _WHOLE / whole) for side, whole in zip(box, size * 2, strict=True)]
    except (TypeError, ValueError, OverflowError):
        return None
