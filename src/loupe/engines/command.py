"""Any program as an engine: a page or a document in, text out on standard output or in a file.

No shell takes part, ever: the command is a list of arguments, and placeholders are filled in argument by argument.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shlex
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import msgspec

from loupe.data.digests import short_digest
from loupe.engines.pages.page_reader import PageReader, page_file, page_reader, single_page
from loupe.engines.pages.whole_documents import Conversions, Document, conversions, told_apart
from loupe.engines.registry import Profile
from loupe.engines.shared.foreign_formats import error_reply
from loupe.errors import EngineError, MissingToolError, NoAnswerError, PageError, ProfileError
from loupe.files.folder import Folder
from loupe.files.foreign import decode_text
from loupe.files.scratch import scratch_folder
from loupe.helpers import PASS_ON, for_own_program, said_by
from loupe.types import Engine, Output, PageSource, PdfPage, Request
from loupe.workers.programs import OUTPUT_LIMIT, run_program

ARGUMENT = "command"
_KNOWN = ("image", "pdf", "page", "output", "prompt", "text")
_PLACEHOLDERS = ", ".join(f"{{{name}}}" for name in _KNOWN)
_PLACEHOLDER = re.compile(rf"\{{({'|'.join(_KNOWN)})\}}")
_ANY_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_FORMATS = frozenset({"PNG", "JPEG"})
#: What the answer may be among what a program writes into its folder: the first kind that is there.
_TEXT_FILES = (".md", ".mmd", ".txt", ".html")
#: Nobody looks for an answer among more files, or deeper.
_MOST_FILES, _DEEPEST = 10_000, 20


class Settings(Profile, frozen=True, kw_only=True):
    """Keys of the kind `command`.

    `command` is a list of arguments, or one text that is split as a shell would, without being one. `{image}` is the
    path of the page as PNG or JPEG, `{prompt}` what is asked, `{text}` the input of a sample without image. `{pdf}` is
    the path of the document: with `{page}`, the number of the page, it is read page by page, else converted once as a
    whole; `page_break` is what stands between its pages then (unset: the marks of usual converters). `{output}` is an
    empty folder, in whose one text file the answer stands. `dpi` is for PDF pages, and for images that become a PDF of
    one page; `longest` limits the longer side in pixels. `pass_env` names variables that the program gets beside the
    usual ones (docs/security.md#helper-programs).
    """

    command: list[str] | str
    page_break: str = ""
    pass_env: list[str] = msgspec.field(default_factory=list)
    dpi: float = 144.0
    longest: int | None = None
    concurrency: int | None = None

    def signature(self) -> dict[str, str]:
        """The form of what the program gets: an image and what it is made of, or a PDF."""
        image = f"dpi{self.dpi:g}" + (f"longest{self.longest}" if self.longest else "")
        return {"img": "pdf" if "{pdf}" in str(self.command) else image}


def label(command: str) -> str:
    """Return the name for runs of a command: its program, and a digest that tells it from other commands of that
    program.

    >>> label("pdftotext -layout {pdf} -")
    'pdftotext-8f13'
    """
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()  # Opening the engine says what is wrong with it.
    digest = hashlib.sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{Path(words[0]).name if words else 'command'}-{digest[:4]}"


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine]:
    """Check the command and that its program is there, then yield the engine."""
    arguments = _arguments(settings)
    program = shutil.which(arguments[0])
    if program is None:
        raise _missing(arguments[0])
    # Absolute, because a program from a relative entry of PATH would change with the working folder.
    arguments[0] = str(Path(program).absolute())
    source = short_digest(Path(word) for word in arguments if Path(word).is_file())
    async with (
        page_reader(timeout=settings.timeout, workers=settings.concurrency) as reader,
        conversions() as documents,
    ):
        command = _Command(settings, arguments, reader, documents)
        yield Engine(predict=command.predict, facts={"program": program, "source": source})


@dataclass(frozen=True, slots=True)
class _Command:
    """The program of one engine."""

    settings: Settings
    arguments: list[str]
    reader: PageReader
    documents: Conversions

    async def predict(self, request: Request) -> Output:
        """Return what the program says of a page, or what it said of this page when it converted the document."""
        values = {"prompt": request.prompt, "text": request.text}
        if self._names("image"):
            page = single_page(request)
            longest, dpi = self.settings.longest, self.settings.dpi
            async with page_file(page, longest=longest, dpi=dpi, formats=_FORMATS, reader=self.reader) as path:
                return _answer(await self._run(values | {"image": str(path)}))
        if not self._names("pdf"):
            return _answer(await self._run(values))
        page = single_page(request)
        if not isinstance(page, PdfPage) or page.variant:
            return _answer(await self._of_picture(page, values))
        count = await self.reader.count(page.path)
        if not 1 <= page.page <= count:
            raise PageError(f"{page.path}: has no page {page.page} (pages 1 to {count})")
        values["pdf"] = str(page.path.absolute())
        if self._names("page"):
            (text,) = told_apart(await self._run(values | {"page": str(page.page)}), 1)
            return _answer(text)
        key = tuple(value for name, value in values.items() if self._names(name))
        document = await self.documents.get(key, partial(self._convert, values, count))
        return replace(_answer(document.pages[page.page - 1]), seconds=document.seconds)

    async def _of_picture(self, page: PageSource, values: dict[str, str]) -> str:
        """The text of an image, or of a page that was turned or made worse, as a PDF of one page."""
        with scratch_folder("loupe-page-") as folder:
            longest, dpi = self.settings.longest, self.settings.dpi
            path = await self.reader.one_page_pdf(page, folder, longest=longest, dpi=dpi)
            text = await self._run(values | {"pdf": str(path), "page": "1"})
            return told_apart(text, 1, page_break=self.settings.page_break)[0]

    async def _convert(self, values: dict[str, str], count: int) -> Document:
        """A whole document; it may take as long as its pages may one by one."""
        began = time.monotonic()
        text = await self._run(values, pages=count)
        pages = await asyncio.to_thread(told_apart, text, count, page_break=self.settings.page_break)
        return Document(pages, round((time.monotonic() - began) / count, 4))

    async def _run(self, values: dict[str, str], *, pages: int = 1) -> str:
        """Return what the program writes to standard output, or into its folder."""
        name = Path(self.arguments[0]).name
        with _new_folder() if self._names("output") else nullcontext("") as folder:
            filled = fill(self.arguments, values | {"output": folder})
            environment = for_own_program(self.settings.pass_env)
            finished = await run_program(filled, timeout=pages * self.settings.timeout, environment=environment)
            if finished.code != 0:
                ended = f"was killed by signal {-finished.code}" if finished.code < 0 else f"ended with {finished.code}"
                raise EngineError(f"{name} {ended}: {finished.complaint or 'no message'}", hint=PASS_ON)
            output = _only_text(Folder(Path(folder)), name) if folder else finished.output
        try:
            text = decode_text(output)
        except UnicodeDecodeError as error:
            raise EngineError(f"{name}: the output is not UTF-8 (byte {error.start})") from None
        if said := error_reply(text):
            raise NoAnswerError(f"{name}: the output is an error: {said}")
        return text

    def _names(self, placeholder: str) -> bool:
        return any(f"{{{placeholder}}}" in argument for argument in self.arguments)


@contextmanager
def _new_folder() -> Iterator[str]:
    with scratch_folder("loupe-output-") as folder:
        output = folder / "output"
        output.mkdir()
        try:
            yield str(output)
        finally:
            try:
                shutil.rmtree(output, ignore_errors=True)
            except RecursionError:  # The program has put folders into folders, deeper than Python goes.
                said_by(["rm", "-rf", "--", str(output)])


def _only_text(folder: Folder, program: str) -> bytes:
    """The one text file that a program wrote. Raises EngineError where there is none, or nobody can tell which."""
    names = sorted(_files_below(folder.path, program))
    for suffix in _TEXT_FILES:
        found = [name for name in names if name.lower().endswith(suffix)]
        if len(found) > 1:
            raise EngineError(f"{program} wrote {len(found)} {suffix} files into {{output}}; expected one")
        if found:
            return folder.read(found[0], limit=OUTPUT_LIMIT)
    raise EngineError(f"{program} wrote no text into {{output}}: one file {', '.join(_TEXT_FILES)} is looked for")


def _files_below(folder: Path, program: str) -> list[str]:
    """The files of a program's folder. Raises EngineError where there are more than anybody reads."""
    found: list[str] = []
    for place, folders, files in os.walk(folder):
        inside = Path(place).relative_to(folder)
        found += [(inside / name).as_posix() for name in files if (Path(place) / name).is_file()]
        if len(found) > _MOST_FILES or (folders and len(inside.parts) >= _DEEPEST):
            limits = f"more than {_MOST_FILES:,} files, or folders nested more than {_DEEPEST} deep"
            raise EngineError(f"{program} wrote {limits}, into {{output}}")
    return found


def _answer(text: str) -> Output:
    return Output(text=text, finish_reason="stop")


def _missing(program: str) -> MissingToolError:
    path = Path(program)
    if path.is_file():
        return MissingToolError(f"{program} is not executable", hint=f"chmod +x {shlex.quote(program)}")
    return MissingToolError(f"the program {program!r} was not found", hint="check the PATH")


def fill(arguments: list[str], values: dict[str, str]) -> list[str]:
    """The arguments with placeholders replaced, each once: a prompt that says `{image}` stays as it is.

    Raises EngineError for a value that would become an option of the program, or that no argument can hold.

    >>> fill(["ocr", "--ask={prompt}", "{image}"], {"prompt": "{image}?", "image": "/a b.png", "text": ""})
    ['ocr', '--ask={image}?', '/a b.png']
    """
    filled = []
    for argument in arguments:
        value = _PLACEHOLDER.sub(lambda found: values[found[1]], argument)
        if value.startswith("-") and not argument.startswith("-"):
            raise EngineError(f"{argument} starts with '-' on this sample and would be taken for an option")
        if "\0" in value:
            raise EngineError(f"{argument} holds a zero byte on this sample")
        filled.append(value)
    return filled


def _arguments(settings: Settings) -> list[str]:
    command = settings.command
    try:
        arguments = shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError as error:
        raise ProfileError(f"command = {command!r}: {error}") from None
    if not arguments:
        raise ProfileError("command is empty", hint='command = ["program", "{image}"]')
    named = {found for argument in arguments for found in _ANY_PLACEHOLDER.findall(argument)}
    for name in sorted(named - {*_KNOWN}):
        raise ProfileError(f"command: no placeholder {{{name}}}", hint=f"placeholders: {_PLACEHOLDERS}")
    if {"image", "pdf"} <= named:
        raise ProfileError("command names both {image} and {pdf}", hint="{image} is a page, {pdf} its document")
    if "page" in named and "pdf" not in named:
        raise ProfileError("command names {page} without {pdf}", hint="{image} is the page as an image")
    if settings.page_break and ("pdf" not in named or "page" in named):
        raise ProfileError("page_break is for commands with {pdf} and without {page}", hint="leave page_break out")
    if not named - {"output"}:
        raise ProfileError(
            "command has no placeholder for the page", hint=f'command = "{shlex.join(arguments)} {{image}}"'
        )
    return arguments
