"""Open a function of the caller's as an engine, in this very process: a model that is loaded already stays there.

Plain functions are asked in a thread of their own, one call at a time; with a batch, with whole lists of pages.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import inspect
import re
import sys
import textwrap
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from types import CodeType, EllipsisType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from loupe.data.pages import load_page
from loupe.engines.registry import Profile, slug
from loupe.errors import EngineError, EngineTimeoutError, UsageError, in_words, self_cancelled
from loupe.typed import encode_json, json_decoder
from loupe.types import Engine, Output, PageSource, Request

if TYPE_CHECKING:
    from PIL.Image import Image


__all__ = ["Function", "Page", "Settings", "function_of", "open_function"]


Wants: TypeAlias = Literal["page", "image", "request"]

#: Names in an annotation: what they stand for, or None for what no page is given as. Containers and `None` say nothing.
_GIVEN: Mapping[str, Wants | None] = {
    **{"Image": "image", "Page": "page", "Request": "request"},
    **dict.fromkeys(("str", "bytes", "Path", "ndarray", "Tensor")),
}
_NAME = re.compile(r"[\w.]+")


@dataclass(frozen=True, slots=True)
class Page:
    """The page that a function reads: one sample, without its right answer.

    `prompt` is what the benchmark asks, `text` the input of samples without a picture, `images` where their pictures
    are: paths of image files, pages of PDFs, images inside data files.
    """

    id: str
    prompt: str = ""
    text: str = ""
    task: str = ""
    images: tuple[PageSource, ...] = ()

    @property
    def image(self) -> Image:
        """The picture of the page, upright and in RGB, whatever file it is in. Raises UsageError without one."""

        return load_page(self._first)

    @property
    def path(self) -> Path:
        """The file of the picture: an image, or the PDF or data file that it is in."""
        return self._first if isinstance(self._first, Path) else self._first.path

    @property
    def _first(self) -> PageSource:
        if not self.images:
            raise UsageError(f"{self.id} has no picture", hint="its input is page.text")
        return self.images[0]


class Settings(Profile, frozen=True, kw_only=True):
    """The facts that are stored about a function: its name, and a digest of its source."""

    kind: str = "function"
    function: str
    source: str

    def signature(self) -> dict[str, str]:
        """Says that a function has read, and which: `function:3fa2c1d0`."""
        return {"function": self.source}


@dataclass(frozen=True, slots=True)
class Function:
    """A function that reads pages, one by one or in lists. `call` is what the caller gave, or its `predict`."""

    call: Callable[[Any], Any]
    name: str
    source: str
    wants: Wants
    is_async: bool


def function_of(given: Any) -> Function | None:
    """The function that was given, or that of an object with `predict`; None for anything else.

    >>> def read(page): return page.prompt
    >>> found = function_of(read)
    >>> found.name, found.wants, found.is_async
    ('read', 'page', False)
    """
    method = getattr(given, "predict", None)
    call = method if callable(method) else given
    if not callable(call) or isinstance(given, type):
        return None
    outer = call.func if isinstance(call, functools.partial) else call
    plain = inspect.unwrap(outer)
    if not inspect.isroutine(plain):
        plain = type(plain).__call__  # an object that is called like a function
    subject = type(given) if call is method else plain
    name = slug(str(getattr(given, "name", "") or getattr(subject, "__name__", type(given).__name__)))
    called = outer if inspect.isroutine(outer) else type(outer).__call__
    digest = _digest(subject, call if isinstance(call, functools.partial) else None)
    return Function(call, name, digest, _wants(call, name), inspect.iscoroutinefunction(called))


def _wants(call: Callable[[Any], Any], name: str) -> Wants:
    """Return what the annotation of the only argument asks for. Raises UsageError for one that Loupe cannot give."""
    try:
        signature = _signature(call)
        signature.bind(object())
    except ValueError:
        return "page"  # written in C: nothing is known
    except TypeError as error:
        raise UsageError(f"{name} must take one argument, the page ({error})", hint="def read(page): ...") from None
    first = next(iter(signature.parameters.values()))
    said = first.annotation if isinstance(first.annotation, str) else inspect.formatannotation(first.annotation)
    found = {_GIVEN[last] for each in _NAME.findall(said) if (last := each.rpartition(".")[2]) in _GIVEN}
    if len(found) > 1 or found == {None}:
        raise UsageError(
            f"{name}({first.name}: {said}): Loupe gives no such page",
            hint=f"{first.name}: loupe.Page, or PIL.Image.Image for the picture; with batch=N, lists of them",
        )
    return found.pop() or "page" if found else "page"


def _signature(call: Callable[[Any], Any]) -> inspect.Signature:
    """The signature, its annotations evaluated where their names are known, else as they are written."""
    with suppress(Exception):  # annotations are the caller's: some name what only type checkers import
        return inspect.signature(call, eval_str=True)
    if sys.version_info >= (3, 14):
        import annotationlib

        return inspect.signature(call, annotation_format=annotationlib.Format.STRING)
    return inspect.signature(call)


def _digest(subject: Any, bound: functools.partial[Any] | None = None) -> str:
    """A digest of the source, with what a partial binds; of the byte code where nobody has the source."""
    try:
        text = textwrap.dedent(inspect.getsource(subject))
    except (OSError, TypeError):
        parts = [getattr(subject, name, None) for name in ("__code__", "__defaults__", "__kwdefaults__")]
        text = _stable(parts) if parts[0] else getattr(subject, "__qualname__", type(subject).__qualname__)
    if bound is not None:
        text += repr([_stable(one) for one in (*bound.args, *sorted(bound.keywords.items()))])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _stable(value: Any) -> str:
    """A value in words that are the same in every process: no address, sets in order; of any other object, its type."""
    match value:
        case None | str() | bytes() | int() | float() | complex() | EllipsisType():
            return repr(value)
        case CodeType():  # of a function, and of those inside it
            return _stable((value.co_code, value.co_names, value.co_consts))
        case tuple() | list():
            return repr([_stable(one) for one in value])
        case set() | frozenset():
            return f"set{sorted(_stable(one) for one in value)!r}"
        case dict():
            return repr({_stable(name): _stable(one) for name, one in value.items()})
        case slice():
            return f"slice{_stable((value.start, value.stop, value.step))}"
        case _:
            return type(value).__qualname__


#: The last pages of a run fill no batch: after so many seconds without another page it is not waited for.
PATIENCE = 0.05
Answer: TypeAlias = "asyncio.Future[Output]"
Work: TypeAlias = "tuple[Callable[[], Any], asyncio.Future[Any]]"


@asynccontextmanager
async def open_function(
    function: Function, *, batch: int | None = None, calls: int = 1, timeout: float | None = None
) -> AsyncIterator[Engine]:
    """The engine that asks this function, with up to `calls` calls at a time. `timeout` ends calls that are awaited."""
    threads = [] if function.is_async else [_Thread() for _ in range(calls)]
    caller = _Caller(function, threads, timeout)
    try:
        if batch is None:
            yield Engine(predict=caller.one)
            return
        batches = _Batches(caller, batch, asyncio.Semaphore(calls))
        yield Engine(predict=batches.predict)
    finally:
        for thread in threads:
            thread.end()


class _Thread:
    """A thread that calls one function after another. A daemon: a call that never ends does not keep Python from it."""

    def __init__(self) -> None:
        self._work: SimpleQueue[Work | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._run, name="loupe-function", daemon=True).start()

    def do(self, call: Callable[[], Any]) -> asyncio.Future[Any]:
        """The value of a call, or what it raises."""
        found: asyncio.Future[Any] = self._loop.create_future()
        self._work.put((call, found))
        return found

    def end(self) -> None:
        """Take no more calls."""
        self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            call, found = work
            if found.cancelled():
                continue
            try:
                value, error = call(), None
            except BaseException as raised:  # noqa: BLE001 - the border of a thread: it is raised where it is awaited
                value, error = None, raised
            try:
                self._loop.call_soon_threadsafe(_settle, found, value, error)
            except RuntimeError:  # the run was given up, and its loop is closed
                return


def _settle(found: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if found.done():
        return
    if error is None:
        found.set_result(value)
    elif isinstance(error, Exception) and not isinstance(error, StopIteration):
        found.set_exception(error)
    else:
        found.set_exception(EngineError(in_words(error)))


@dataclass(slots=True)
class _Caller:
    """Calls the function with what it wants, and makes outputs of what it returns."""

    function: Function
    threads: list[_Thread]
    timeout: float | None
    _free: asyncio.Queue[_Thread] = field(default_factory=asyncio.Queue)

    def __post_init__(self) -> None:
        for thread in self.threads:
            self._free.put_nowait(thread)

    async def one(self, request: Request) -> Output:
        """The answer to one page."""
        return self._output(await self._call(lambda: given(request, self.function.wants)))

    async def many(self, requests: Sequence[Request]) -> list[Output]:
        """The answers to a list of pages, in its order. Raises EngineError where there are more or fewer."""
        found = await self._call(lambda: [given(each, self.function.wants) for each in requests])
        if isinstance(found, str) or not isinstance(found, Sequence):
            raise EngineError(f"{self.function.name} got {len(requests)} pages and returned no list of texts")
        if len(found) != len(requests):
            raise EngineError(f"{self.function.name} got {len(requests)} pages and returned {len(found)} texts")
        return [self._output(each) for each in found]

    async def _call(self, argument: Callable[[], Any]) -> Any:
        if not self.threads:
            # Pictures are loaded in a thread, so that they hold nobody up.
            value = argument() if self.function.wants != "image" else await asyncio.to_thread(argument)
            try:
                return await asyncio.wait_for(self._awaited(value), self.timeout)
            except TimeoutError as error:
                within = f"within {self.timeout:g} s" if self.timeout else f"({error or 'TimeoutError'})"
                raise EngineTimeoutError(f"no answer {within}") from None
            except asyncio.CancelledError as error:
                raise self_cancelled(error) from None
        thread = await self._free.get()
        try:
            return await thread.do(lambda: self.function.call(argument()))
        finally:
            self._free.put_nowait(thread)

    async def _awaited(self, value: Any) -> Any:
        try:
            return await self.function.call(value)
        except (Exception, asyncio.CancelledError, GeneratorExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - such as SystemExit: of one page, and it would end the loop
            raise EngineError(in_words(error)) from None

    def _output(self, found: Any) -> Output:
        if isinstance(found, str):
            return Output(text=str.__str__(found))  # a subclass, such as numpy's, cannot be stored
        if isinstance(found, Output):
            return self._checked(found)
        if inspect.iscoroutine(found):
            found.close()
            raise UsageError(f"{self.function.name} returned a coroutine", hint="write it as async def")
        raise EngineError(f"{self.function.name} returned {type(found).__name__}, not a str")

    def _checked(self, found: Output) -> Output:
        """Return what can be stored of an output. Raises EngineError for one that cannot."""
        try:
            return json_decoder(Output).decode(encode_json(found))
        except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
            raise EngineError(f"{self.function.name} returned an invalid Output: {error}") from None


def given(request: Request, wants: Wants) -> Any:
    """Return the argument that the function is called with for one page."""
    if wants == "request":
        return request
    page = Page(request.id, request.prompt, request.text, request.task, request.images)
    return load_page(page._first) if wants == "image" else page


@dataclass(slots=True)
class _Batches:
    """Collects pages until a batch is full, or no further one comes."""

    caller: _Caller
    size: int
    places: asyncio.Semaphore
    _waiting: deque[tuple[Request, Answer]] = field(default_factory=deque)
    _timer: asyncio.TimerHandle | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def predict(self, request: Request) -> Output:
        """The answer to a page, which comes with those of others."""
        loop = asyncio.get_running_loop()
        answer: Answer = loop.create_future()
        self._waiting.append((request, answer))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if len(self._waiting) >= self.size:
            self._send()
        else:
            self._timer = loop.call_later(PATIENCE, self._send)
        return await answer

    def _send(self) -> None:
        batch = [self._waiting.popleft() for _ in range(min(self.size, len(self._waiting)))]
        if batch:
            task = asyncio.create_task(self._ask(batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _ask(self, batch: Sequence[tuple[Request, Answer]]) -> None:
        async with self.places:
            wanted = [(request, answer) for request, answer in batch if not answer.done()]
            if not wanted:
                return
            try:
                outputs: list[Output] = await self.caller.many([request for request, _ in wanted])
            except Exception as error:  # noqa: BLE001 - the border to the caller's function: one page must not cost others
                await self._one_by_one(wanted, error)
                return
            for (_, answer), output in zip(wanted, outputs, strict=True):
                if not answer.done():
                    answer.set_result(output)

    async def _one_by_one(self, batch: Sequence[tuple[Request, Answer]], error: Exception) -> None:
        for request, answer in batch:
            if answer.done():
                continue
            try:
                if len(batch) == 1:
                    raise error
                [output] = await self.caller.many([request])
                answer.set_result(output)
            except Exception as raised:  # noqa: BLE001 - the same border: it is the error of this page
                if not answer.done():
                    answer.set_exception(raised)
