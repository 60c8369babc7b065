"""Tesseract: the installed program, one process per page.

Source: https://tesseract-ocr.github.io/tessdoc/Command-Line-Usage.html. Each process gets one thread: Tesseract's own
threads cost more than they bring, and pages run side by side instead (docs/engines/local.md).
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import fmean
from typing import ClassVar

import msgspec

from loupe.engines.pages.page_reader import page_file, page_reader, single_page
from loupe.engines.registry import PLAIN_TEXT, Profile
from loupe.engines.shared.placed_text import PlacedLine, placed_line
from loupe.errors import EngineError, MissingToolError
from loupe.helpers import environment as helper_environment
from loupe.helpers import said_by
from loupe.types import Engine, Output, Request
from loupe.workers.limits import cores
from loupe.workers.programs import run_program

#: What every build of Tesseract reads; other formats are handed over as PNG.
_FORMATS = frozenset({"PNG", "JPEG"})
#: The head of the table with the place of every page, line and word, and one row of it: its level, the place of its
#: line, its box, and its text.
_HEADER = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n"
_ROW = re.compile(r"([1-5])\t(\d+\t\d+\t\d+\t\d+)\t\d+\t(-?\d+)\t(-?\d+)\t(\d+)\t(\d+)\t(-?[\d.]+)\t([^\n]*)\n")
_INSTALL = "apt-get install tesseract-ocr (Debian, Ubuntu), brew install tesseract (macOS)"


class Settings(Profile, frozen=True, kw_only=True):
    """Keys of the kind `tesseract`.

    `languages` as Tesseract writes them (`eng+deu`). `psm` is its page segmentation mode, 3 = automatic. `dpi` is for
    PDF pages; `longest` limits the longer side in pixels.
    """

    gives: ClassVar[frozenset[str] | None] = PLAIN_TEXT

    concurrency: int | None = msgspec.field(default_factory=cores)
    languages: str = "eng"
    psm: int = 3
    dpi: float = 300.0
    longest: int | None = None
    program: str = "tesseract"

    def __post_init__(self) -> None:
        if not 0 <= self.psm <= 13:
            raise ValueError(f"psm = {self.psm}: Tesseract has the modes 0 to 13")

    def signature(self) -> dict[str, str]:
        """The languages, and what the image is made of."""
        image = f"dpi{self.dpi:g}" + (f"longest{self.longest}" if self.longest else "")
        return {"lang": self.languages, "psm": str(self.psm), "img": image}


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine]:
    """Check that the program and the languages are there, then yield the engine. Raises MissingToolError if not."""
    program = shutil.which(settings.program)
    if program is None:
        raise MissingToolError(f"the program {settings.program!r} is not installed", hint=_INSTALL)
    version = await asyncio.to_thread(_first_line, program, "--version")
    await asyncio.to_thread(_check_languages, program, settings.languages)
    environment = helper_environment("compute") | {"OMP_THREAD_LIMIT": "1"}
    options = ["stdout", "-l", settings.languages, "--psm", str(settings.psm)]
    options += ["-c", "tessedit_create_txt=1", "-c", "tessedit_create_tsv=1"]

    async def predict(request: Request) -> Output:
        page = single_page(request)
        async with page_file(page, longest=settings.longest, dpi=settings.dpi, formats=_FORMATS, reader=reader) as path:
            finished = await run_program(
                [program, str(path), *options], timeout=settings.timeout, environment=environment
            )
        if finished.code != 0:
            raise EngineError(f"tesseract ended with {finished.code}: {finished.complaint or finished.last_output}")
        text, lines = _told_apart(finished.output.decode("utf-8", errors="replace"))
        # Tesseract ends each page with a form feed.
        return Output(text=text.rstrip("\f"), finish_reason="stop", response={"lines": lines} if lines else None)

    async with page_reader(timeout=settings.timeout, workers=settings.concurrency) as reader:
        yield Engine(predict=predict, facts={"tesseract": version.removeprefix("tesseract ")})


def _told_apart(output: str) -> tuple[str, list[PlacedLine]]:
    """The text, and the lines of the table that is printed with it, with their boxes as fractions of the page."""
    before, header, after = output.partition(_HEADER)
    rows, end = [], 0
    while header and (row := _ROW.match(after, end)):
        rows.append(row.groups())
        end = row.end()
    width, height = next(((float(row[4]), float(row[5])) for row in rows if row[0] == "1"), (0.0, 0.0))
    words: dict[str, list[str]] = {}
    sure: dict[str, list[float]] = {}
    for level, place, *_, confidence, word in rows:
        if level == "5":
            words.setdefault(place, []).append(word)
            sure.setdefault(place, []).append(_share(confidence))
    lines = []
    for level, place, left, top, wide, high, *_ in rows:
        if level == "4" and place in words and width and height:
            x, y = float(left), float(top)
            ends = (x / width, y / height, (x + float(wide)) / width, (y + float(high)) / height)
            lines.append(placed_line(" ".join(words[place]), ends, fmean(sure[place])))
    return before + after[end:], lines


def _share(percent: str) -> float:
    """A confidence in percent as a share."""
    try:
        return min(1.0, max(0.0, float(percent) / 100))
    except ValueError:
        return 0.0


def _check_languages(program: str, wanted: str) -> None:
    """Raises MissingToolError for a language whose data is not installed, naming those that are."""
    listed = _run(program, "--list-langs").splitlines()[1:]
    installed = [line.strip() for line in listed if line.strip()]
    missing = [name for name in wanted.split("+") if name.lstrip("~") not in installed]
    if missing:
        package = re.sub(r"[^a-z0-9]+", "-", missing[0].lower())
        raise MissingToolError(
            f"tesseract has no language {missing[0]!r}; installed: {', '.join(installed) or 'none'}",
            hint=f"apt-get install tesseract-ocr-{package} (Debian, Ubuntu), brew install tesseract-lang (macOS)",
        )


def _first_line(program: str, option: str) -> str:
    return _run(program, option).partition("\n")[0].strip()


def _run(program: str, option: str) -> str:
    try:
        finished = said_by([program, option])
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingToolError(f"{program} {option} failed: {error}", hint=_INSTALL) from None
    return finished.stdout or finished.stderr
