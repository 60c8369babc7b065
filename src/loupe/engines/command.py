"""Any program as an engine: a page in, text out on standard output.

No shell takes part, ever: the command is a list of arguments, and placeholders are filled in argument by argument.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from loupe.engines.registry import Profile
from loupe.engines.shared.child_environment import without_keys
from loupe.engines.shared.page_files import page_file, single_page
from loupe.engines.shared.page_reader import page_reader
from loupe.engines.shared.programs import run_program
from loupe.engines.shared.source_digests import short_digest
from loupe.errors import EngineError, MissingToolError, ProfileError
from loupe.types import Engine, Output, Request

ARGUMENT = "command"
_PLACEHOLDER = re.compile(r"\{(image|prompt|text)\}")
_ANY_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_FORMATS = frozenset({"PNG", "JPEG"})


class Settings(Profile, frozen=True, kw_only=True):
    """Keys of the kind `command`.

    `command` is a list of arguments, or one text that is split as a shell would, without being one. `{image}` is the
    path of the page as PNG or JPEG, `{prompt}` what is asked, `{text}` the input of a sample without image. `dpi` is
    for PDF pages; `longest` limits the longer side in pixels. `pass_env` names keys in the environment that the program
    may see although they are Loupe's own (HF_TOKEN, OPENAI_API_KEY).
    """

    command: list[str] | str
    pass_env: list[str] = msgspec.field(default_factory=list)
    dpi: float = 144.0
    longest: int | None = None
    concurrency: int | None = None

    def signature(self) -> dict[str, str]:
        """What the image is made of."""
        return {"img": f"dpi{self.dpi:g}" + (f"longest{self.longest}" if self.longest else "")}


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine]:
    """Check the command and that its program is there, then yield the engine."""
    arguments = _arguments(settings.command)
    program = shutil.which(arguments[0])
    if program is None:
        raise _missing(arguments[0])
    # Absolute, because a program from a relative entry of PATH would change with the working folder.
    arguments[0] = str(Path(program).absolute())
    source = short_digest(Path(word) for word in arguments if Path(word).is_file())
    environment = without_keys(settings.pass_env)
    wants_image = any("{image}" in argument for argument in arguments)

    async def run(request: Request, image: str) -> Output:
        filled = fill(arguments, {"image": image, "prompt": request.prompt, "text": request.text})
        finished = await run_program(filled, timeout=settings.timeout, environment=environment)
        if finished.code != 0:
            ended = f"was killed by signal {-finished.code}" if finished.code < 0 else f"ended with {finished.code}"
            raise EngineError(f"{Path(program).name} {ended}: {finished.complaint or 'no message'}")
        try:
            return Output(text=finished.output.decode("utf-8"), finish_reason="stop")
        except UnicodeDecodeError as error:
            raise EngineError(f"{Path(program).name}: the output is not UTF-8 (byte {error.start})") from None

    async def predict(request: Request) -> Output:
        if not wants_image:
            return await run(request, "")
        page = single_page(request)
        async with page_file(page, longest=settings.longest, dpi=settings.dpi, formats=_FORMATS, reader=reader) as path:
            return await run(request, str(path))

    async with page_reader(timeout=settings.timeout, workers=settings.concurrency) as reader:
        yield Engine(predict=predict, facts={"program": program, "source": source})


def _missing(program: str) -> MissingToolError:
    path = Path(program)
    if path.is_file():
        return MissingToolError(f"{program} is not executable", hint=f"chmod +x {shlex.quote(program)}")
    return MissingToolError(f"the program {program!r} is not there", hint="check the PATH")


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


def _arguments(command: list[str] | str) -> list[str]:
    try:
        arguments = shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError as error:
        raise ProfileError(f"command = {command!r}: {error}") from None
    if not arguments:
        raise ProfileError("command is empty", hint='command = ["program", "{image}"]')
    for name in (found for argument in arguments for found in _ANY_PLACEHOLDER.findall(argument)):
        if name not in ("image", "prompt", "text"):
            raise ProfileError(f"command: no placeholder {{{name}}}", hint="placeholders: {image}, {prompt}, {text}")
    if not any(_PLACEHOLDER.search(argument) for argument in arguments):
        raise ProfileError(
            "command never says where the page goes", hint=f'command = "{shlex.join(arguments)} {{image}}"'
        )
    return arguments
