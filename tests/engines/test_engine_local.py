"""RapidOCR, Tesseract and PDF text on small pages drawn here, with the real programs and models."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from PIL import Image, ImageDraw

from loupe.engines.registry import engine_module, load_profile
from loupe.errors import EngineError, EngineTimeoutError, MissingToolError, PageError, RejectedError
from loupe.types import Engine, Output, PageSource, PdfPage, Request
from tests.support.pages import LINES, draw_page, write_pdf

needs_tesseract = pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed")
needs_rapidocr = pytest.mark.skipif(
    find_spec("rapidocr") is None or find_spec("onnxruntime") is None, reason="the extra rapidocr is not installed"
)
OCR = [pytest.param("rapidocr", marks=needs_rapidocr), pytest.param("tesseract", marks=needs_tesseract)]


def read(name: str, *pages: PageSource, **settings: Any) -> list[Output | BaseException]:
    """What engine `name` says of each page, or the error."""

    async def run(engine: Engine) -> list[Output | BaseException]:
        requests = [Request(id=str(i), images=(page,)) for i, page in enumerate(pages)]
        return await asyncio.gather(*map(engine.predict, requests), return_exceptions=True)

    return with_engine(name, run, **settings)


def with_engine(name: str, use: Callable[[Engine], Any], **settings: Any) -> Any:
    async def run() -> Any:
        _, profile = load_profile(name, {"concurrency": 1, **settings})
        async with engine_module(profile.kind).open_engine(profile) as engine:
            return await use(engine)

    return asyncio.run(run())


def texts(answers: list[Output | BaseException]) -> list[str]:
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return [" ".join(answer.text.split()) for answer in answers if isinstance(answer, Output)]


@pytest.mark.parametrize("name", OCR)
def test_a_page_is_read_in_every_format_and_a_blank_one_is_empty(name: str, tmp_path: Path) -> None:
    png = draw_page(tmp_path / "page.png")
    blank = tmp_path / "blank.png"
    Image.new("RGB", (600, 400), "white").save(blank)
    Image.open(png).save(tmp_path / "page.webp", lossless=True)
    Image.open(png).convert("P").save(tmp_path / "-page.gif")
    pdf = write_pdf(tmp_path / "page.pdf", "Nothing here", " \\ ".join(LINES))
    pages = [png, tmp_path / "page.webp", tmp_path / "-page.gif", PdfPage(pdf, 2)]
    *found, empty = texts(read(name, *pages, blank))
    assert found == [" ".join(LINES)] * 4
    assert empty == ""


@needs_rapidocr
def test_rapidocr_reads_pages_on_their_side_and_upside_down(tmp_path: Path) -> None:
    pages = [draw_page(tmp_path / f"{turn}.png", turn=turn) for turn in (90, 180, 270)]
    assert texts(read("rapidocr", *pages)) == [" ".join(LINES)] * 3


@needs_rapidocr
def test_rapidocr_leaves_a_turned_page_as_it_is_when_told_so(tmp_path: Path) -> None:
    page = draw_page(tmp_path / "page.png", turn=180)
    assert texts(read("rapidocr", page, upright=False)) != [" ".join(LINES)]


@needs_rapidocr
def test_rapidocr_reads_columns_one_after_the_other(tmp_path: Path) -> None:
    left = ["Left column first line", "goes on in its second", "and third line here", "until its very end."]
    right = ["Right column comes after", "the left one was read", "and it has four lines", "which end with this."]
    page = Image.new("RGB", (1000, 420), "white")
    for i, lines in enumerate((left, right)):
        column = Image.open(draw_page(tmp_path / f"{i}.png", lines, size=28)).crop((30, 0, 480, 360))
        page.paste(column, (20 + 480 * i, 20))
    page.save(tmp_path / "page.png")
    assert texts(read("rapidocr", tmp_path / "page.png")) == [" ".join(left + right)]


@needs_rapidocr
def test_rapidocr_uses_only_the_models_of_its_own_package() -> None:
    import rapidocr

    async def facts(engine: Engine) -> dict[str, str]:
        return dict(engine.facts)

    found = with_engine("rapidocr", facts)
    package = Path(rapidocr.__file__).parent
    assert {"rapidocr", "onnxruntime", "models"} <= set(found)
    assert all((package / "models" / f"{model}.onnx").is_file() for model in found["models"].split(", "))


@needs_rapidocr
def test_rapidocr_without_its_models_says_so_instead_of_downloading(tmp_path: Path) -> None:
    """A copy of the package without models, put first on the path."""
    import rapidocr

    package = Path(rapidocr.__file__).parent
    shutil.copytree(package, tmp_path / "rapidocr", ignore=shutil.ignore_patterns("*.onnx"))

    async def never(engine: Engine) -> None:
        raise AssertionError("it opened")

    sys.path.insert(0, str(tmp_path))
    try:
        with pytest.raises(MissingToolError, match="without its models"):
            with_engine("rapidocr", never)
    finally:
        sys.path.remove(str(tmp_path))


@needs_rapidocr
def test_a_broken_page_is_named_and_the_engine_goes_on(tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n broken")
    broken, missing, good = read(
        "rapidocr", tmp_path / "broken.png", tmp_path / "missing.png", draw_page(tmp_path / "page.png")
    )
    assert isinstance(broken, PageError)
    assert "broken.png" in broken.message
    assert isinstance(missing, PageError)
    assert isinstance(good, Output)


@needs_tesseract
def test_a_missing_language_is_named_with_those_that_are_there() -> None:
    with pytest.raises(MissingToolError, match=r"no language 'xyz'; installed: .*eng") as error:
        read("tesseract", languages="eng+xyz")
    assert "tesseract-ocr-xyz" in error.value.hint


def test_a_missing_program_names_the_command_that_installs_it() -> None:
    with pytest.raises(MissingToolError, match="no-tesseract-here") as error:
        read("tesseract", program="no-tesseract-here")
    assert "apt-get install tesseract-ocr" in error.value.hint
    assert "brew install tesseract" in error.value.hint


@needs_tesseract
def test_tesseract_is_stopped_at_the_time_limit(tmp_path: Path) -> None:
    (answer,) = read("tesseract", draw_page(tmp_path / "page.png", ["word " * 8] * 30), timeout=0.01)
    assert isinstance(answer, EngineTimeoutError | PageError)


@needs_tesseract
def test_what_tesseract_says_on_its_standard_output_is_in_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "tesseract"
    program.write_text(
        "#!/bin/sh\ncase $1 in --version) echo tesseract 5;; --list-langs) echo list; echo eng;;\n"
        "*) echo 'config is broken'; exit 1;; esac\n"
    )
    program.chmod(0o755)
    page = draw_page(tmp_path / "page.png")
    monkeypatch.chdir(tmp_path)
    for named in (str(program), "./tesseract"):
        (found,) = read("tesseract", page, program=named)
        assert isinstance(found, EngineError)
        assert found.message == "tesseract ended with 1: config is broken"


def test_tesseract_states_its_version() -> None:
    async def facts(engine: Engine) -> dict[str, str]:
        return dict(engine.facts)

    assert with_engine("tesseract", facts)["tesseract"][0].isdigit()


def test_the_text_layer_of_a_page_is_given_as_it_is(tmp_path: Path) -> None:
    pdf = write_pdf(tmp_path / "page.pdf", "First page", "Zweite Seite: äöü 中文", "")
    pages = [PdfPage(pdf, number) for number in (1, 2, 3)]
    assert texts(read("pdf_text", *pages)) == ["First page", "Zweite Seite: äöü 中文", ""]


def test_the_text_layer_ends_at_the_crop_box(tmp_path: Path) -> None:
    """What is cropped away is on no picture of the page: printer's marks, other pages, a hidden margin."""
    pdf = write_pdf(tmp_path / "page.pdf", "Top line #linebreak() Middle of the line #linebreak() Bottom line")
    document = pypdfium2.PdfDocument(pdf)
    width, height = document[0].get_size()
    (layer := document[0].get_textpage()).count_chars()
    whole = layer.get_text_range()
    at = layer.get_charbox(whole.index("Middle"), loose=True), layer.get_charbox(whole.index("the line"), loose=True)
    boxes = {
        "Middle of the line\nBottom line": (0, 0, width, at[0][3]),
        "Top line\nMiddle of": (0, at[0][1], at[1][0], height),
        "Middle of": (0, at[0][1], at[1][0], at[0][3]),
        "": (0, 0, 5, 5),
    }
    for number, box in enumerate(boxes.values()):
        document[0].set_cropbox(*box)
        document.save(tmp_path / f"{number}.pdf")
    document.close()
    found = read("pdf_text", *(PdfPage(tmp_path / f"{number}.pdf") for number in range(len(boxes))), PdfPage(pdf))
    lines = ["\n".join(line.strip() for line in one.text.splitlines()) for one in found if isinstance(one, Output)]
    assert lines == [*boxes, "Top line\nMiddle of the line\nBottom line"]


@pytest.mark.parametrize("name", OCR)
def test_ocr_reads_dark_letters_on_a_transparent_ground(tmp_path: Path, name: str) -> None:
    page = Image.open(draw_page(tmp_path / "page.png")).convert("L")
    see_through = Image.new("RGBA", page.size, (0, 0, 0, 0))
    see_through.putalpha(page.point(lambda level: 255 - level))
    see_through.save(tmp_path / "see-through.png")
    (text,) = texts(read(name, tmp_path / "see-through.png"))
    assert "12345" in text and "99.50" in text


def test_an_image_has_no_text_layer_and_is_rejected_not_empty(tmp_path: Path) -> None:
    (answer,) = read("pdf_text", draw_page(tmp_path / "scan.png"))
    assert isinstance(answer, RejectedError)
    assert answer.message == "no text layer: scan.png is an image file"


def test_a_page_that_is_not_there_or_a_broken_pdf_is_an_error(tmp_path: Path) -> None:
    pdf = write_pdf(tmp_path / "page.pdf", "Only page")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    beyond, broken = read("pdf_text", PdfPage(pdf, 2), PdfPage(tmp_path / "broken.pdf", 1))
    assert isinstance(beyond, PageError)
    assert "has no page 2" in beyond.message
    assert isinstance(broken, PageError)


@pytest.mark.parametrize("name", [*OCR, "pdf_text"])
def test_a_sample_without_a_page_is_rejected(name: str) -> None:
    async def ask(engine: Engine) -> Output:
        return await engine.predict(Request(id="text only", text="some text"))

    with pytest.raises(RejectedError, match="not 0"):
        with_engine(name, ask)


@pytest.mark.parametrize(
    ("name", "turn"),
    [
        *(pytest.param("rapidocr", turn, marks=needs_rapidocr) for turn in (0, 90, 180, 270)),
        pytest.param("tesseract", 0, marks=needs_tesseract),
    ],
)
def test_lines_are_told_with_their_places_on_the_page_as_it_was_given(name: str, turn: int, tmp_path: Path) -> None:
    page = draw_page(tmp_path / "page.png", turn=turn)
    (found,) = read(name, page)
    assert isinstance(found, Output) and found.response is not None
    lines = found.response["lines"]
    assert sorted(text for text, *_ in lines) == sorted(LINES)
    ink = Image.open(page).convert("L").point(lambda grey: 255 * (grey < 128))
    for _, left, top, right, bottom, confidence in lines:
        assert 0.3 < confidence <= 1
        box = (left * ink.width, top * ink.height, right * ink.width, bottom * ink.height)
        assert ink.crop(tuple(round(end) for end in box)).getbbox() is not None, "there is ink in the box"
        ImageDraw.Draw(ink).rectangle((box[0] - 6, box[1] - 6, box[2] + 6, box[3] + 6), fill=0)
    assert ink.getbbox() is None, "and none outside of all boxes"
