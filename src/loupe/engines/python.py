"""Any Python function as an engine: it gets a `loupe.types.Request` and returns a text or a `loupe.types.Output`.

The function runs in worker processes that import it once each; what it keeps at module level (a model) is loaded once.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

import msgspec

from loupe.data.digests import short_digest
from loupe.data.python_file import load_python_file
from loupe.engines.registry import Profile
from loupe.errors import EngineError, UsageError
from loupe.files.foreign import real_path
from loupe.helpers import for_own_program
from loupe.types import Engine, Output, Request
from loupe.workers.child import Loaded
from loupe.workers.pool import worker_pool

ARGUMENT = "function"

Read: TypeAlias = Callable[[Request], str | Output | Awaitable[str | Output]]


class Settings(Profile, frozen=True, kw_only=True):
    """Keys of the kind `python`.

    `function` is `path/to/file.py:function`, whose folder can be imported from, or `module:function`: an installed
    module, else one of the current folder. `concurrency` is the number of worker processes: each imports the module, so
    a model is in memory that many times. `pass_env` names variables that the function gets beside
    the usual ones (docs/security.md#helper-programs).
    """

    function: str
    concurrency: int | None = 1
    pass_env: list[str] = msgspec.field(default_factory=list)


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine]:
    """Import the function in a worker, then yield the engine. Raises UsageError if there is no such function."""
    # Absolute, because a worker may outlive a change of the working folder.
    arguments = {"function": settings.function, "folder": str(Path.cwd())}
    workers, environment = settings.concurrency or 1, for_own_program(settings.pass_env)
    async with worker_pool("loupe.engines.python:load", arguments, workers=workers, environment=environment) as pool:

        async def predict(request: Request) -> Output:
            return await pool.ask(request, timeout=settings.timeout)

        yield Engine(predict=predict, facts=pool.facts)


def load(function: str, folder: str) -> Loaded:
    """The engine as a worker uses it."""
    target, _, name = function.rpartition(":")
    if not target or not name:
        raise UsageError(f"function = {function!r} is not module:function or file.py:function")
    module = _from_file(Path(target)) if target.endswith(".py") else _from_module(target, folder)
    read = getattr(module, name, None)
    if not callable(read):
        raise UsageError(f"{target} has no function {name!r}")
    _check_signature(read, function)
    runner = asyncio.Runner()

    def answer(request: Request) -> Output | str:
        found = read(request)
        if inspect.isawaitable(found):
            found = runner.run(_await(found))
        if not isinstance(found, str | Output):
            raise EngineError(f"{function} returned {type(found).__name__}, not a str or an Output")
        return found

    facts = {"function": function, "source": _source(module), **_package_version(target)}
    return Loaded(read=answer, facts=facts)


def _source(module: ModuleType) -> str:
    """A digest of the module's own file: another text may give other answers."""
    return short_digest([Path(module.__file__)]) if module.__file__ else "unknown"


async def _await(found: Awaitable[str | Output]) -> str | Output:
    return await found


def _from_module(name: str, folder: str) -> ModuleType:
    if find_spec(name.partition(".")[0]) is None:
        # Behind all that is installed: whatever else lies in the folder hides no module of Python's or of a package.
        sys.path.append(folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        what = f"no module {name!r}" if name.startswith(missing) else f"{name} needs the missing module {missing!r}"
        raise UsageError(what, hint="name it from the current folder, or as path/to/file.py:function") from None


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"no file {path}")
    sys.path.append(str(real_path(path).parent))
    return load_python_file(real_path(path), path.stem)


def _check_signature(read: Read, function: str) -> None:
    """Raises UsageError for a function that cannot be called with one request."""
    try:
        inspect.signature(read).bind(object())
    except ValueError:
        return
    except TypeError as error:
        raise UsageError(f"{function} must take one argument, a loupe.types.Request ({error})") from None


def _package_version(target: str) -> dict[str, str]:
    package = target.partition(".")[0]
    try:
        return {package: version(package)}
    except (PackageNotFoundError, ValueError):
        return {}
