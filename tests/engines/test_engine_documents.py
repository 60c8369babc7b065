"""Programs that convert whole documents: `{pdf}`, `{page}` and `{output}` of the kind `command`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from loupe.data.pages import load_page
from loupe.engines.pages import whole_documents
from loupe.engines.pages.whole_documents import Conversions, Document, told_apart
from loupe.engines.registry import engine_module, load_profile
from loupe.errors import EngineError, EngineTimeoutError, PageError, ProfileError
from loupe.types import Output, PageSource, PdfPage, Request
from tests.support.command_line import loupe
from tests.support.pages import draw_page, write_pdf

MARKER = "\n\n{%d}" + "-" * 48 + "\n\n"
#: Writes a line to `calls`, then each page between form feeds; the argument behind the path, if any, goes in front.
CONVERTER = """
import sys, time, pypdfium2
open(sys.argv[1], "a").write("call\\n")
document = pypdfium2.PdfDocument(sys.argv[2])
time.sleep(0.2)
for page in document:
    print(page.get_textpage().get_text_range(), end="\\f")
"""


def ask(command: list[str] | str, *pages: PageSource, **settings: Any) -> list[Output | BaseException]:
    async def run() -> list[Output | BaseException]:
        _, profile = load_profile("command", {"command": command, **settings})
        async with engine_module("command").open_engine(profile) as engine:
            requests = [Request(id=str(number), images=(page,)) for number, page in enumerate(pages)]
            return await asyncio.gather(*map(engine.predict, requests), return_exceptions=True)

    return asyncio.run(run())


def texts(command: list[str] | str, *pages: PageSource, **settings: Any) -> list[str]:
    found = ask(command, *pages, **settings)
    for each in found:
        if isinstance(each, BaseException):
            raise each
    return [each.text for each in found if isinstance(each, Output)]


def program(body: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", body, *arguments]


def document(tmp_path: Path, *pages: str, name: str = "a report; $(touch x).pdf") -> list[PdfPage]:
    path = write_pdf(tmp_path / name, *pages)
    return [PdfPage(path, number) for number in range(1, len(pages) + 1)]


# ---- telling pages apart


@pytest.mark.parametrize(
    "text",
    [
        "one\f\fthree\f",
        "one\f\fthree",
        f"{MARKER % 0}one{MARKER % 1}{MARKER % 2}three",
        f"{MARKER % 1}one{MARKER % 2}{MARKER % 3}three",
        "one\n\n--- end of page=0 ---\n\n\n--- end of page=1 ---\n\nthree\n--- end of page=2 ---\n\n",
        "one\n--- end of page.page_number=1 ---\n--- end of page.page_number=2 ---\nthree\n"
        "--- end of page.page_number=3 ---\n",
        "<!-- page 1 / 3 -->\none\n<!-- page 2 / 3 -->\n<!-- page 3 / 3 -->\nthree",
        "one\n<!-- page-break -->\n\n<!-- PageBreak -->\nthree",
        "one\n<--- Page Split --->\n\n<--- Page Split --->\nthree\n<--- Page Split --->\n",
    ],
)
def test_pages_are_told_apart_by_the_marks_of_usual_converters(text: str) -> None:
    assert told_apart(text, 3) == ["one", "", "three"]
    assert told_apart(text.replace("\n", "\r\n"), 3) == ["one", "", "three"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("one two three", "no page marks"),
        ("one\ftwo\f", "2 x form feeds"),  # three pages, of which one was left out, or the last is blank
        ("one\ftwo\fthree\ffour", "3 x form feeds"),
        (f"{MARKER % 0}one{MARKER % 1}two", r"2 x \{0\}----"),
        (f"{MARKER % 0}one{MARKER % 2}two{MARKER % 3}three", r"3 x \{0\}----"),
        (f"cover{MARKER % 0}one{MARKER % 1}two{MARKER % 2}three", r"3 x \{0\}----"),
        ("one\n---\ntwo\n---\nthree", "no page marks"),  # a rule is no page mark unless somebody says so
    ],
)
def test_pages_are_never_guessed(text: str, found: str) -> None:
    with pytest.raises(EngineError, match=rf"^{found} in the text of 3 pages: name \{{page\}} in the command"):
        told_apart(text, 3)


def test_a_mark_of_ones_own_ends_pictures_too_and_lines_may_end_with_a_carriage_return(tmp_path: Path) -> None:
    Image.new("RGB", (30, 20), "white").save(tmp_path / "page.png")
    [page] = document(tmp_path, "one")
    command = program("print('Hello', '=PAGE=', sep=chr(13) + chr(10))", "{pdf}")
    pictures = (page, tmp_path / "page.png", PdfPage(page.path, 1, "rotate90"))
    assert texts(command, *pictures, page_break="=PAGE=") == ["Hello"] * 3


def test_a_mark_of_ones_own_is_a_line(tmp_path: Path) -> None:
    text = "| a |\n|---|\n| b |\n---\ntwo\n---\n---c"
    assert told_apart(text, 3, page_break="---") == ["| a |\n|---|\n| b |", "two", "---c"]
    with pytest.raises(EngineError, match=r"^3 x '---' in"):
        told_apart("a\n---\n---\n---\nb", 3, page_break="---")


def test_a_single_page_and_an_empty_text_need_no_marks() -> None:
    assert told_apart("a\fb\n\f", 1) == ["a\fb"]
    assert told_apart(f"{MARKER % 6}seven", 1) == ["seven"]
    assert told_apart(" \n", 3) == ["", "", ""]


@given(st.lists(st.text(st.characters(exclude_characters="\f\r\n")), min_size=1, max_size=6))
def test_what_form_feeds_end_comes_back_page_by_page(pages: list[str]) -> None:
    assert told_apart("".join(f"{page}\f" for page in pages), len(pages)) == pages


@pytest.mark.parametrize("piece", ["{0}" + "-" * 39, "<!--", "<!-- page 1", "--- end of page=", "-" * 100, "\n\n"])
def test_a_hostile_text_takes_no_time(piece: str) -> None:
    began = time.perf_counter()
    with pytest.raises(EngineError):
        told_apart(piece * (3_000_000 // len(piece)) + "x", 7)
    assert time.perf_counter() - began < 5


# ---- whole documents


def test_a_document_is_converted_once_for_all_its_pages(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    pages = document(tmp_path, "First", "", "Third")
    assert texts(program(CONVERTER, str(calls), "{pdf}"), *pages, *pages, concurrency=4) == ["First", "", "Third"] * 2
    assert calls.read_text() == "call\n"
    assert not (tmp_path / "x").exists()


def test_a_page_takes_its_share_of_the_time(tmp_path: Path) -> None:
    found = ask(program(CONVERTER, str(tmp_path / "calls"), "{pdf}"), *document(tmp_path, "A", "B"))
    seconds = [each.seconds for each in found if isinstance(each, Output)]
    assert seconds[0] == seconds[1] and 0.1 <= (seconds[0] or 0) < 10


def test_documents_that_are_asked_differently_are_converted_each(tmp_path: Path) -> None:
    async def run() -> list[str]:
        command = program("import sys; print(*sys.argv[2:])", "{pdf}", "{prompt}")
        _, profile = load_profile("command", {"command": command})
        page = document(tmp_path, "A")[0]
        async with engine_module("command").open_engine(profile) as engine:
            requests = [Request(id=name, prompt=name, images=(page,)) for name in ("one", "two")]
            return [(await engine.predict(each)).text for each in requests]

    assert asyncio.run(run()) == ["one", "two"]


def test_a_failed_document_fails_all_its_pages_and_is_tried_once(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    body = "import sys; open(sys.argv[1], 'a').write('call\\n'); sys.exit('no such font')"
    found = ask(program(body, str(calls), "{pdf}"), *document(tmp_path, "A", "B"))
    assert [str(each) for each in found] == [f"{Path(sys.executable).name} ended with 1: no such font"] * 2
    assert calls.read_text() == "call\n"


def test_a_document_has_the_time_of_its_pages_and_is_one_timeout(tmp_path: Path) -> None:
    body = "import time; time.sleep(600)"
    found = ask(program(body, "{pdf}"), *document(tmp_path, "A", "B"), timeout=0.5)
    assert sorted(((type(each), str(each)) for each in found), key=lambda each: each[1]) == [
        (EngineError, "its document was not converted: no answer within 1 s"),
        (EngineTimeoutError, "no answer within 1 s"),
    ]


def test_no_program_outlives_a_run_that_is_given_up(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    body = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"

    async def run() -> None:
        _, profile = load_profile("command", {"command": program(body, str(mark), "{pdf}")})
        async with engine_module("command").open_engine(profile) as engine:
            asking = asyncio.create_task(engine.predict(Request(id="a", images=(document(tmp_path, "A", "B")[0],))))
            async with asyncio.timeout(60):
                while not mark.exists() or not mark.read_text():  # noqa: ASYNC110  another process writes it
                    await asyncio.sleep(0.01)
            asking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asking

    asyncio.run(run())
    assert not Path(f"/proc/{mark.read_text()}").exists()


def test_long_documents_are_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_documents, "_KEPT", 10)
    made: list[str] = []

    async def run() -> None:
        documents = Conversions()
        for name in "abcba":

            async def convert(name: str = name) -> Document:
                made.append(name)
                return Document([name * 4], 0.0)

            assert (await documents.get(name, convert)).pages == [name * 4]
        await documents.close()

    asyncio.run(run())
    assert made == ["a", "b", "c", "a"]


# ---- pages, pictures, files


def test_a_program_reads_one_page_where_the_command_names_it(tmp_path: Path) -> None:
    pages = document(tmp_path, "A", "B")
    assert texts(program("import sys; print(*sys.argv[2:], end='\\f')", "{pdf}", "page={page}"), *pages) == [
        "page=1",
        "page=2",
    ]
    with pytest.raises(PageError, match=r"has no page 3 \(pages 1 to 2\)"):
        texts(program("", "{pdf}"), PdfPage(pages[0].path, 3))


def _drawn(path: str) -> Image.Image:
    return pypdfium2.PdfDocument(path)[0].render(scale=2).to_pil().convert("RGB")


@pytest.mark.parametrize("more", [[], ["{page}"]])
def test_an_image_becomes_a_pdf_of_one_page_pixel_for_pixel(tmp_path: Path, more: list[str]) -> None:
    image = draw_page(tmp_path / "page.png")
    copy = tmp_path / "copy.pdf"
    body = "import shutil, sys; shutil.copy(sys.argv[1], sys.argv[2]); print(sys.argv[1])"
    (path,) = texts(program(body, "{pdf}", str(copy), *more), image, dpi=144)
    assert not Path(path).exists()
    assert _drawn(str(copy)).tobytes() == Image.open(image).tobytes()


def test_a_page_that_was_turned_is_handed_over_turned(tmp_path: Path) -> None:
    page = PdfPage(document(tmp_path, "Upright")[0].path, 1, "rotate90")
    copy = tmp_path / "copy.pdf"
    texts(program("import shutil, sys; shutil.copy(sys.argv[1], sys.argv[2])", "{pdf}", str(copy)), page)
    assert _drawn(str(copy)).tobytes() == load_page(page).tobytes()


def test_a_program_may_write_its_answer_into_a_folder(tmp_path: Path) -> None:
    body = (
        "import pathlib, sys; folder = pathlib.Path(sys.argv[2], 'auto'); folder.mkdir(); print(folder)\n"
        "(folder / 'content.json').write_text('{}'); (folder / 'name.md').write_text('# A\\fB')"
    )
    assert texts(program(body, "{pdf}", "{output}"), *document(tmp_path, "A", "B")) == ["# A", "B"]
    assert texts(program(body, "{image}", "{output}"), draw_page(tmp_path / "page.png")) == ["# A\fB"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "wrote no text into {output}: one file .md, .mmd, .txt, .html is looked for"),
        ("(folder / 'a.md').write_text(''); (folder / 'b.MD').write_text('')", "wrote 2 .md files into {output}"),
        ("(folder / 'a.md').symlink_to('/etc/hostname')", "is a link to /etc/hostname"),
        ("(folder / 'a.md').write_bytes(b'\\xff')", "the output is not UTF-8"),
        (
            "import os\nos.chdir(folder)\nfor _ in range(1500): os.mkdir('a'); os.chdir('a')",
            "nested more than 20 deep",
        ),
    ],
)
def test_what_is_no_answer_in_the_folder_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, message: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (found,) = ask(
        program(f"import pathlib, sys; folder = pathlib.Path(sys.argv[2])\n{body}", "{image}", "{output}"),
        draw_page(tmp_path / "page.png"),
    )
    assert message in str(found)
    assert not list(tmp_path.glob("loupe-output-*"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"command": "cat {pdf} {image}"}, r"command names both \{image\} and \{pdf\}"),
        ({"command": "cat {image} {page}"}, r"command names \{page\} without \{pdf\}"),
        ({"command": "cat {output}"}, "has no placeholder for the page"),
        ({"command": "cat {file}"}, r"no placeholder \{file\}"),
        ({"command": "cat {pdf} {page}", "page_break": "---"}, r"page_break is for commands with \{pdf\}"),
    ],
)
def test_a_command_that_cannot_work_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ProfileError, match=message):
        ask(**settings)


# ---- the whole way


def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    folder.mkdir()
    document(folder, "First page", "Second page", "Third page", name="-report.pdf")
    rows = [
        {"id": f"p{number}", "image": f"-report.pdf#page={number}", "reference": f"{name} page"}
        for number, name in enumerate(("First", "Second", "Third"), 1)
    ]
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "loupe.toml").write_text('[benchmark]\ntitle = "own"\nversion = "1"\ntask = "text"\n')
    return folder


def test_a_document_that_was_half_read_is_read_to_its_end(tmp_path: Path) -> None:
    folder, calls = _folder(tmp_path), tmp_path / "calls"
    (tmp_path / "converter.py").write_text(f"import sys; sys.argv.insert(1, {str(calls)!r})\n{CONVERTER}")
    engine = f"command:{sys.executable} converter.py {{pdf}}"
    arguments = ("run", str(folder), "-e", engine, "-n", "3")
    assert loupe(*arguments, "--limit", "1", cwd=tmp_path).returncode == 0
    assert loupe(*arguments, cwd=tmp_path).returncode == 0
    again = loupe(*arguments, cwd=tmp_path)
    assert calls.read_text() == "call\n" * 2
    assert "100.00 %" in again.stdout and "|img:pdf|" in again.stdout


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="pdftotext (poppler-utils) is not installed")
@pytest.mark.parametrize("command", ["pdftotext {pdf} -", "pdftotext -f {page} -l {page} {pdf} -"])
def test_pdftotext_reads_documents_and_images_have_no_text(tmp_path: Path, command: str) -> None:
    pages = document(tmp_path, "First", "", "Third *page*", name="-f.pdf")
    assert texts(command, *pages, draw_page(tmp_path / "page.png")) == ["First", "", "Third page", ""]
