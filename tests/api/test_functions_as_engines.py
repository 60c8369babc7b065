"""Functions as engines: what their annotations say, what their digests depend on, and how they may fail."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Optional

import pytest
from PIL import Image
from PIL.Image import Image as Picture

import loupe
from loupe.engines.shared.functions import function_of
from loupe.types import Engine, Output, Request

PictureOrNone = Picture | None


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def gives_up(page: loupe.Page) -> str:
    if page.id == "blank":
        raise asyncio.CancelledError("the client of the model closed")
    return page.id


async def gives_up_in_a_batch(pages: list[loupe.Page]) -> list[str]:
    return [await gives_up(page) for page in pages]


class Opened:
    """What `Engine` holds: asked by the scheduler itself."""

    @staticmethod
    async def predict(request: Request) -> Output:
        return Output(text=await gives_up(loupe.Page(request.id)))


@pytest.mark.parametrize(
    ("engine", "options"),
    [
        (gives_up, {}),
        (gives_up, {"timeout": 60.0}),
        (gives_up, {"concurrency": 1}),
        (gives_up_in_a_batch, {"batch": 4}),
        (Engine(predict=Opened.predict), {}),
    ],
)
def test_a_function_that_cancels_itself_costs_its_own_sample(engine: Any, options: dict[str, Any]) -> None:
    run = loupe.run("sample_pages", engine, runs=None, progress=False, name="mine", **options)
    assert [(one.sample, one.outcome) for one in run.failures] == [("blank", "error")]
    assert run.failures[0].error == "CancelledError: the client of the model closed"


def test_a_run_that_is_cancelled_is_still_cancelled() -> None:
    async def cancel() -> None:
        begun = asyncio.Event()

        async def read(page: loupe.Page) -> str:
            begun.set()
            await asyncio.Event().wait()
            return ""

        task = asyncio.create_task(loupe.arun("sample_pages", read, runs=None, progress=False))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(cancel(), 30))


def wants(annotation: object) -> str:
    def read(page: Any) -> str:
        return ""

    read.__annotations__["page"] = annotation
    found = function_of(read)
    assert found is not None
    return found.wants


@pytest.mark.parametrize(
    "annotation",
    [
        Picture,
        Picture | None,
        Optional[Picture],  # noqa: UP045 - as people write it
        list[Picture],
        Sequence[Picture] | None,
        list[Picture | None],
        Annotated[Picture, "in RGB"],
        "Picture | None",
        "Image.Image | None",
        "Optional['Image.Image']",
        "PictureOrNone",
        "Unknown.Image | None",
    ],
)
def test_a_picture_is_understood_however_it_is_written(annotation: object) -> None:
    assert wants(annotation) == "image"


@pytest.mark.parametrize("annotation", [loupe.Page, "loupe.Page | None", list[loupe.Page], Any, object, "Unknown"])
def test_a_page_is_what_everybody_else_gets(annotation: object) -> None:
    assert wants(annotation) == "page"


@pytest.mark.parametrize("annotation", [Request, "Request | None"])
def test_a_request_is_given_to_who_asks_for_one(annotation: object) -> None:
    assert wants(annotation) == "request"


@pytest.mark.parametrize(
    "annotation", [Picture | loupe.Page, "Image.Image | str", bytes, "str", "list[Path]", "np.ndarray"]
)
def test_what_no_page_is_given_as_is_refused_in_one_line(annotation: object) -> None:
    with pytest.raises(loupe.LoupeError, match=r"(?m)^read\(page: .+\): Loupe gives no such page$") as refusal:
        wants(annotation)
    assert "Image" in refusal.value.hint and "\n" not in str(refusal.value)


def test_a_further_argument_with_a_default_is_left_alone() -> None:
    def read(page: Image.Image | None, option: str | None = None) -> str:
        assert page is not None
        return f"{page.width} {option}"

    assert loupe.run("sample_pages", read, limit=1, runs=None).samples[0].text.endswith(" None")


@pytest.mark.parametrize(
    "options",
    [{"option": None}, {"option": {"version": None}}, {"redo": None, "name": None, "seed": None, "fresh": None}],
)
def test_options_that_are_none_are_options_that_are_not_given(options: dict[str, Any]) -> None:
    assert loupe.run("sample_pages", lambda page: "", limit=1, runs=None, **options).result.total == 1
    given = {name: value for name, value in options.items() if name in {"option", "name", "seed"}}
    assert loupe.score("sample_pages", {"prose": ""}, limit=1, **given).result.total == 1


def test_an_option_that_is_no_mapping_is_refused() -> None:
    with pytest.raises(loupe.LoupeError, match="option='split=test': must be a dict"):
        loupe.run("sample_pages", lambda page: "", option="split=test")  # type: ignore[arg-type]
    with pytest.raises(loupe.LoupeError, match="option='split=test': must be a dict"):
        loupe.score("sample_pages", {}, option="split=test")  # type: ignore[arg-type]


#: A function that nobody has the source of, as in a notebook whose cell is gone: with a set, an inner function, and an
#: object among its constants.
SOURCELESS = """
import functools
from loupe.engines.shared.functions import function_of
space = {}
exec('''
def read(page):
    def inner(text):
        return text in {"alpha", "beta", "gamma", "delta", ("%s", 1.5)}
    return str(inner(page.prompt)) if page.%s in {"x", "y", "z", b"w", None, ...} else "OBJECT"
''', space)
read = space["read"]
class Model:
    pass
consts = tuple(Model() if one == "OBJECT" else one for one in read.__code__.co_consts)
read.__code__ = read.__code__.replace(co_consts=consts)
table = {"a": {"k", "l"}, "b": Model()}
sets = functools.partial(lambda page, kinds, table: "", kinds={"one", "two", "three"}, table=table)
print(function_of(read).source, function_of(sets).source)
"""


def digests(word: str = "epsilon", attribute: str = "text", *, seed: str) -> list[str]:
    code = SOURCELESS % (word, attribute)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    return done.stdout.split()


def test_the_digest_of_a_function_without_source_is_the_same_in_every_process() -> None:
    found = [digests(seed=seed) for seed in ("1", "2", "3")]
    assert found[0] == found[1] == found[2]


def test_the_digest_of_a_function_without_source_tells_its_changes() -> None:
    first, *others = digests(seed="1")[0], digests("eps", seed="1")[0], digests(attribute="task", seed="1")[0]
    assert len({first, *others}) == 3


def compiled(source: str) -> Callable[[Any], str]:
    space: dict[str, Any] = {}
    exec(source, space)
    return space["read"]  # type: ignore[no-any-return]


def test_a_default_and_a_line_number_are_told_apart() -> None:
    one, other, same = (
        function_of(compiled(source))
        for source in (
            "def read(page, n=1): return n",
            "def read(page, n=2): return n",
            "\n\ndef read(page, n=1): return n",
        )
    )
    assert one and other and same and one.source == same.source != other.source
