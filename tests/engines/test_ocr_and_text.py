"""Questions to documents: engines that only read are refused; OCR and a text model, as one engine, answer them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from loupe.benchmarks.folders.own.config import FieldType
from loupe.benchmarks.folders.own.folder_files import find_documents
from loupe.benchmarks.folders.own.starting import Beginning, begin
from loupe.cli import main
from loupe.engines.ocr_and_text import _Both
from loupe.engines.registry import engine_kinds, engine_module, known_names, load_profile
from loupe.errors import ProfileError, UsageError
from loupe.types import Engine, Output, Request
from tests.support.chat_server import Received, Reply, in_thread
from tests.support.command_line import loupe
from tests.support.pages import write_pdf

FIELDS: dict[str, FieldType] = {"total": "amount"}
#: Engines that give what stands on a page, whatever they are asked.
READERS = ["rapidocr", "tesseract", "pdf_text", "glm-ocr-pipeline", "paddleocr-vl-pipeline"]
READERS += ["glm-ocr-sdk", "paddleocr-vl-sdk", "mineru"]


@pytest.fixture
def bills(tmp_path: Path) -> Path:
    """Two documents with text layers, one of two pages, asked for their total."""
    folder = tmp_path / "bills"
    folder.mkdir()
    write_pdf(folder / "a.pdf", "Invoice 7", "Total 12.50")
    write_pdf(folder / "b.pdf", "Total 3.00")
    begin(folder, find_documents(folder), Beginning(task="fields", fields=FIELDS))
    return folder


def verified(folder: Path) -> None:
    """What a person would do in `loupe review`."""
    file = folder / "samples.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row, total in zip(rows, ("12.50", "3.00"), strict=True):
        row |= {"reference": {"total": total}, "truth": {"status": "verified"}}
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("engine", [name for name in READERS if name in known_names()])
@pytest.mark.parametrize("command", ["draft", "run", "infer"])
def test_an_engine_that_only_reads_is_refused_before_the_first_page(
    bills: Path, command: str, engine: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(bills.parent)
    if command != "draft":
        verified(bills)

    code = main([command, "bills", "-e", engine])

    assert capsys.readouterr().err.splitlines()[-2:] == [
        f"error: {engine} only reads the text of a page and gives no fields",
        f"hint: OCR and a text model as one engine: -e ocr_and_text:{engine} --base-url URL; "
        "or a vision model: --base-url URL (or -e NAME)",
    ]
    assert code == 2 and not (bills.parent / "runs").exists() and not (bills / ".loupe").exists()


def test_tables_are_drafted_by_pipelines_and_not_by_plain_ocr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_pdf(tmp_path / "a.pdf", "1 2")
    begin(tmp_path, find_documents(tmp_path), Beginning(task="table"))

    assert main(["draft", str(tmp_path), "-e", "pdf_text"]) == 2
    said = capsys.readouterr().err
    assert "pdf_text only reads the text of a page and gives no tables\nhint: a vision model: --base-url URL" in said


def answer(request: Received) -> Reply:
    """What a text model finds in the words after `Total`."""
    assert not request.images
    return Reply(text=json.dumps({"total": request.prompt.rpartition("Total ")[2].split()[0]}))


def test_ocr_and_a_text_model_draft_fields_and_run_on_them(bills: Path) -> None:
    here = bills.parent
    with in_thread(answer) as server:
        words = ("-e", "ocr_and_text:pdf_text", "--base-url", server.url, "--json")
        drafted = loupe("draft", "bills", *words, cwd=here)
        [asked] = [request.prompt for request in server.requests if "Invoice 7" in request.prompt]
        verified(bills)
        ran = loupe("run", "bills", *words, cwd=here)

    assert drafted.returncode == 0, drafted.stderr
    assert json.loads(drafted.stdout)["engines"]["ocr_and_text-pdf_text"]["drafted"] == ["a", "b"]
    assert asked.startswith("Extract the following fields") and "total" in asked
    assert asked.endswith("The text of the document, as OCR read it:\n\nInvoice 7\n\nTotal 12.50")
    result = json.loads(ran.stdout)
    assert ran.returncode == 0 and result["measures"]["field_accuracy"]["value"] == 1.0, ran.stderr
    assert "|ocr:pdf_text" in result["signature"]
    info = json.loads((Path(here, result["run"]) / "run.json").read_text())
    assert info["defining"]["ocr"]["kind"] == "pdf_text" and "ocr_pypdfium2" in info["facts"], info
    lines = (Path(here, result["run"]) / "predictions.jsonl").read_text().splitlines()
    assert "Invoice 7\n\nTotal 12.50" in [json.loads(line)["response"]["ocr_text"] for line in lines]


@pytest.mark.parametrize(("pages", "told"), [(1, [["Total 5", 0.1, 0.2, 0.3, 0.4]]), (2, None)])
def test_where_the_lines_of_a_single_page_stand_is_kept(pages: int, told: object) -> None:
    async def read(request: Request) -> Output:
        return Output(text="Total 5", response={"lines": [["Total 5", 0.1, 0.2, 0.3, 0.4]]})

    async def answer(request: Request) -> Output:
        return Output(text="5", response={"id": "x"})

    both = _Both(Engine(predict=read), Engine(predict=answer), [], asyncio.Semaphore(1))
    request = Request(id="a", prompt="What is the total?", images=(b"page",) * pages)
    response = asyncio.run(both.predict(request)).response
    assert response is not None and (response["id"], response.get("lines")) == ("x", told)


def test_an_engine_that_names_itself_as_its_ocr_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(f'kind = "ocr_and_text"\nocr = "{file}"\n')
    with pytest.raises(ProfileError, match="is not an OCR engine"):
        load_profile(str(file))


def test_pages_are_read_once_although_the_model_is_asked_again(bills: Path) -> None:
    reader = "import pathlib\ndef read(request):\n    pathlib.Path('read').open('a').write('x')\n    return 'Total 5'\n"
    (bills.parent / "reader.py").write_text(reader)
    replies = [Reply(status=503), Reply(status=503), Reply(text='{"total": "5"}')]
    with in_thread(replies) as server:
        words = ("-e", "ocr_and_text:python:reader.py:read", "-n", "1", "--limit", "1", "--base-url", server.url)
        done = loupe("draft", "bills", *words, cwd=bills.parent)

    assert done.returncode == 0 and len(server.requests) == 3, done.stderr
    assert (bills.parent / "read").read_text() == "xx", "two pages"


def test_text_is_what_was_read_and_the_model_is_not_asked(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    write_pdf(folder / "a.pdf", "Total 12.50")
    begin(folder, find_documents(folder), Beginning(task="text"))
    words = ("-e", "ocr_and_text:pdf_text")
    with in_thread(answer) as server:
        words += ("--base-url", server.url)
        done = loupe("draft", "texts", *words, cwd=tmp_path)
        drafted = json.loads((folder / "samples.jsonl").read_text())["reference"]
        assert (done.returncode, drafted, server.requests) == (0, "Total 12.50", []), done.stderr
        own = ("--image", folder / "a.pdf", "--prompt", "What is the total?")
        asked = loupe("engine", "test", *words[1:2], *own, *words[2:], cwd=tmp_path)

    assert asked.stdout == '{"total": "12.50"}\n' and "What is the total?" in server.requests[0].prompt, asked.stderr


def test_only_engines_that_read_can_be_the_ocr() -> None:
    with pytest.raises(ProfileError, match="ocr = 'glm-ocr' is not an OCR engine"):
        load_profile("ocr_and_text", {"ocr": "glm-ocr"})
    with pytest.raises(UsageError, match="no engine 'rapidoc'; did you mean 'rapidocr'"):
        load_profile("ocr_and_text:rapidoc")


def test_another_ocr_or_another_setting_of_it_is_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "german.toml").write_text('kind = "tesseract"\nlanguages = "deu"\n')
    monkeypatch.chdir(tmp_path)
    profiles = [load_profile("ocr_and_text", {"ocr": ocr})[1] for ocr in ("rapidocr", "tesseract", "german.toml")]
    assert len({msgspec.json.encode(profile.defining()) for profile in profiles}) == 3
    assert [profile.signature()["ocr"] for profile in profiles] == ["rapidocr", "tesseract", "german.toml"]


def test_every_kind_says_whether_it_only_reads() -> None:
    """A new kind is asked everything unless it says what it gives: that is decided here, by name."""
    reading = {kind for kind in engine_kinds() if engine_module(kind).Settings.gives is not None}
    asked = {"openai", "ocr_and_text", "command", "python", "predictions"}
    assert reading | asked == set(engine_kinds()) and not reading & asked
