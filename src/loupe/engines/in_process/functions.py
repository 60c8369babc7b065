"""What the caller's function is: what it wants to be given, whether it is awaited, its name and its digest."""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, EllipsisType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from loupe.engines.registry import Profile, slug
from loupe.errors import UsageError
from loupe.types import PageSource

if TYPE_CHECKING:
    from PIL.Image import Image

Wants: TypeAlias = Literal["page", "image", "request"]

#: Names in an annotation: what they stand for, or None for what no page is given as. Containers and `None` say nothing.
_GIVEN: Mapping[str, Wants | None] = {
    **{"Image": "image", "Page": "page", "Request": "request"},
    **dict.fromkeys(("str", "bytes", "Path", "ndarray", "Tensor")),
}
_NAME = re.compile(r"[\w.]+")


@dataclass(frozen=True, slots=True)
class Page:
    """What a function reads: one sample, without its right answer.

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
        from loupe.data.pages import load_page

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
    """What is stored of a function: its name, and a digest of its source."""

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
    """What the annotation of the only argument says. Raises UsageError for one that Loupe cannot give."""
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
