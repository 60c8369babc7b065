"""Pages that hang or crash their decoder: each costs its own sample, in every engine that decodes pages itself."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from loupe.engines.pages.page_images import encode, parse_rule
from loupe.engines.pages.page_reader import page_reader
from loupe.engines.registry import engine_module, load_profile
from loupe.errors import PageError
from loupe.types import Output, PageSource, PdfPage, Request
from loupe.workers.limits import ALLOW_LARGE
from tests.engines.test_isolation import children
from tests.support.bombs import pdf
from tests.support.chat_server import chat_server
from tests.support.pages import draw_page, write_pdf


def bomb(path: Path) -> PdfPage:
    """A PDF of a few kilobytes whose page draws ten million million rectangles."""
    draws = b" ".join([b"/F Do"] * 20)
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>"]
    objects += [b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</XObject<</F 5 0 R>>>>>>"]
    objects += [b"<</Length %d>>stream\n%s\nendstream" % (len(draws), draws)]
    for number in range(5, 14):
        inner = b"/Resources<</XObject<</F %d 0 R>>>>" % (number + 1)
        objects.append(
            b"<</Type/XObject/Subtype/Form/BBox[0 0 600 800]%s/Length %d>>stream\n%s\nendstream"
            % (inner, len(draws), draws)
        )
    objects.append(b"<</Type/XObject/Subtype/Form/BBox[0 0 600 800]/Length 15>>stream\n0 0 600 800 re f\nendstream")
    path.write_bytes(pdf(*objects))
    return PdfPage(path)


def good(folder: Path) -> PdfPage:
    return PdfPage(write_pdf(folder / "good.pdf", "Good"))


async def read_both(kind: str, pages: list[PageSource], **settings: Any) -> list[Output | BaseException]:
    """What an engine says of pages asked for at once, and that the loop was free meanwhile."""
    _, profile = load_profile(kind, {"timeout": 3.0, **settings})
    async with engine_module(profile.kind).open_engine(profile) as engine:
        requests = [Request(id=str(i), prompt="p", images=(page,)) for i, page in enumerate(pages)]
        return await asyncio.gather(*map(engine.predict, requests), return_exceptions=True)


@pytest.fixture
def much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bomb takes memory, too: on a fast machine 2 GiB in less than the 3 s that are tested here."""
    monkeypatch.setenv(ALLOW_LARGE, "800")


def check(found: list[Output | BaseException], began: float) -> None:
    hung, fine = found
    assert isinstance(hung, PageError)
    assert hung.message.endswith("bomb.pdf: cannot be decoded: no answer within 3 s on this page")
    assert isinstance(fine, Output)
    assert time.monotonic() - began < 40


@pytest.mark.usefixtures("much_memory")
@pytest.mark.parametrize(("kind", "settings"), [("command", {"command": ["/bin/ls", "{image}"]}), ("tesseract", {})])
def test_a_pdf_that_never_ends_costs_its_own_sample_of_a_program(
    kind: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    if kind == "tesseract" and shutil.which("tesseract") is None:
        pytest.skip("tesseract is not installed")
    began = time.monotonic()
    check(asyncio.run(read_both(kind, [bomb(tmp_path / "bomb.pdf"), good(tmp_path)], **settings)), began)


@pytest.mark.usefixtures("much_memory")
def test_a_pdf_that_never_ends_costs_its_own_sample_of_a_server(tmp_path: Path) -> None:
    async def run() -> list[Output | BaseException]:
        async with chat_server("read") as server:
            return await read_both("openai", [bomb(tmp_path / "bomb.pdf"), good(tmp_path)], base_url=server.url)

    began = time.monotonic()
    check(asyncio.run(run()), began)


def test_a_reader_that_is_killed_costs_its_own_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> tuple[BaseException, bytes]:
        async with page_reader(timeout=60, workers=1) as reader:
            page, rule = good(tmp_path), parse_rule("fit2048")
            await reader.encode(page, rule)
            (pid,) = (worker._process.pid for worker in reader._pool._alive)
            asking = asyncio.create_task(reader.encode(bomb(tmp_path / "bomb.pdf"), rule))
            await asyncio.sleep(0.5)
            os.kill(pid, 11)
            (error,) = await asyncio.gather(asking, return_exceptions=True)
            assert isinstance(error, PageError)
            return error, (await reader.encode(page, rule)).data

    error, data = asyncio.run(run())
    assert "bomb.pdf: cannot be decoded: the worker process died (SIGSEGV)" in str(error)
    assert data == encode(good(tmp_path), parse_rule("fit2048")).data


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_no_process_is_started_for_pages_that_travel_as_they_are(tmp_path: Path) -> None:
    before = children(os.getpid())
    during: list[list[int]] = []

    async def run(page: PageSource) -> None:
        async with chat_server("read") as server:
            _, profile = load_profile("openai", {"base_url": server.url})
            async with engine_module("openai").open_engine(profile) as engine:
                await engine.predict(Request(id="a", images=(page,)))
                during.append(children(os.getpid()))

    asyncio.run(run(draw_page(tmp_path / "page.png")))
    asyncio.run(run(good(tmp_path)))
    assert during[0] == before
    assert len(during[1]) == len(before) + 1
