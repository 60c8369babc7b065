"""Answers in the formats of other programs: taken as the engine of the service takes them, or refused by name."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

import loupe
from loupe.engines.adapters.service_json import service_json
from loupe.engines.shared.foreign_formats import foreign_format
from loupe.errors import UsageError
from tests.support.cloud_services import textract_blocks
from tests.support.command_line import complaint
from tests.support.command_line import loupe as command

TEXT = "The harbour office opens at nine\nand closes at six"
LINES = [{"BlockType": "LINE", "Text": line, "Id": line[:3]} for line in TEXT.splitlines()]
AZURE = {"status": "succeeded", "analyzeResult": {"apiVersion": "2024-11-30", "content": f"{TEXT}<!-- PageBreak -->"}}

#: Answers of services whose text an engine of Loupe takes.
TAKEN: dict[str, Any] = {
    "azure": AZURE,
    "azure SDK": {"apiVersion": "2024-11-30", "modelId": "prebuilt-read", "content": TEXT, "pages": []},
    "textract": {"DocumentMetadata": {"Pages": 1}, "Blocks": [{"BlockType": "PAGE", "Id": "0"}, *LINES]},
    "textract in parts": [{"Blocks": LINES[:1], "NextToken": "x"}, {"Blocks": LINES[1:]}],
    "mistral": {"pages": [{"index": 0, "markdown": TEXT, "images": []}], "model": "mistral-ocr"},
    "docling-serve": {"document": {"md_content": TEXT, "json_content": None}, "status": "success"},
    "ocr-space": {"ParsedResults": [{"ParsedText": TEXT}], "OCRExitCode": 1},
    "paddlex": {"result": {"layoutParsingResults": [{"markdown": {"text": TEXT}}]}, "errorCode": 0},
}
#: Formats that are refused, by the beginning of their names.
REFUSED: dict[str, list[Any]] = {
    "JSON of Google Vision": [
        {"responses": [{"fullTextAnnotation": {"text": TEXT, "pages": []}}]},
        {"responses": [{"textAnnotations": [{"description": TEXT}]}]},
        {"full_text_annotation": {"text": TEXT}},
    ],
    "JSON of Google Document AI": [
        {"document": {"text": TEXT, "pages": [{"layout": {"textAnchor": {}}}]}},
        {"documentLayout": {"blocks": []}},
    ],
    "JSON of Docling": [{"schema_name": "DoclingDocument", "texts": []}],
    "JSON of Azure Read": [{"status": "succeeded", "analyzeResult": {"readResults": [{"lines": [{"text": TEXT}]}]}}],
    "JSON of PaddleOCR": [{"res": {"rec_texts": [TEXT]}}, {"parsing_res_list": []}],
    "JSON of MinerU": [[{"type": "text", "text": TEXT, "page_idx": 0}], {"pdf_info": []}],
    "JSON of Marker": [{"block_type": "Document", "children": []}],
    "JSON of Surya": [{"scan": [{"text_lines": [{"text": TEXT}]}]}],
    "JSON of a service that is cut off": [json.dumps(AZURE)[:90]],
    "hOCR": [
        f'<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0"><html><div class="ocr_page" id="1">{TEXT}</div></html>',
        f"<span class='ocrx_word'>{TEXT}</span>",
    ],
    "ALTO XML": [
        f'<?xml version="1.0"?>\n<!-- a > b --><alto:alto xmlns:alto="x"><String CONTENT="{TEXT}"/></alto:alto>'
    ],
    "PAGE XML": [f'\ufeff<PcGts xmlns="http://schema.primaresearch.org/PAGE"><Unicode>{TEXT}</Unicode></PcGts>'],
    "ABBYY XML": ['<document xmlns="http://www.abbyy.com/FineReader_xml/FineReader10-schema-v1.xml"></document>'],
    "a TSV table of Tesseract": [
        "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\n1\t1\t0\t0\t0\t0\t0"
    ],
}
#: Boxes that do not overlap.
AWAY = {
    kind: {"Left": left, "Top": 0, "Width": 0.1, "Height": 0.1} for kind, left in (("LAYOUT_TABLE", 0), ("TABLE", 0.5))
}
#: What models and people answer.
ANSWERS = (
    json.dumps({"total": "12.50", "content": "x", "pages": "3", "text": "y", "layout": "z"}),
    json.dumps([{"bbox": [1, 2, 3, 4], "category": "Text", "text": TEXT}]),
    json.dumps({"elements": [{"category": "paragraph", "content": {"text": TEXT}}]}),
    json.dumps({"natural_text": TEXT, "is_table": False}),
    "<html><body><h1 class='title'>A page</h1><p>about ALTO and hOCR: class ocr_page</p></body></html>",
    "<table><tr><td>alto</td></tr></table>",
    json.dumps({"responses": ["yes", "no"]}),
    json.dumps({"responses": [{"question": 1, "answer": "yes"}]}),
    json.dumps({"status": "failed", "error": "none", "total": "3"}),
    json.dumps({"status": "running", "error": {"code": "1", "message": "x"}, "total": "3"}),
    json.dumps({"Blocks": [], "total": "3"}),
    json.dumps({"pages": [], "model": "T4"}),
    '```json\n{"total": "12.50"}\n```',
    '[Note] "analyzeResult" and "BlockType" are keys',
    "<document><p>ABBY</p></document>",
    "{",
    "",
)


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "loupe.toml").write_text('[benchmark]\ntask = "text"\n')
    rows = [{"id": ident, "text": "x", "reference": TEXT} for ident in ("p1", "p2")]
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "answers").mkdir()
    return tmp_path


def test_the_text_of_a_service_is_that_which_its_engine_takes() -> None:
    for name, value in TAKEN.items():
        assert service_json(as_text(value)) == TEXT, name
        assert foreign_format(as_text(value)) is None, name
    layout = service_json(json.dumps({"Blocks": textract_blocks()}))
    assert layout.startswith("# Annual Report") and "<table>" in layout


def test_replies_without_text_are_known_by_their_envelope() -> None:
    usage = {"pages": [], "model": "mistral-ocr-latest", "usage_info": {"pages_processed": 1}}
    page = {"DocumentMetadata": {"Pages": 1}, "Blocks": [{"BlockType": "PAGE", "Id": "0"}]}
    for empty in ({"Blocks": []}, page, usage, {"result": {"layoutParsingResults": []}, "errorCode": 0}):
        assert service_json(as_text(empty)) == "" and foreign_format(as_text(empty)) is None, empty
    failed = {"status": "failed", "error": {"code": "InternalServerError", "message": "x"}}
    for name, value in (
        ("JSON of Google Vision without text", {"responses": [{}]}),
        ("JSON of Google Vision without text", {"responses": [{"error": {"code": 3, "message": "Bad image data."}}]}),
        ("a failed reply of a service", failed),
        ("a failed reply of a service", {"status": "running", "createdDateTime": "2024-05-06T00:00:00Z"}),
        ("JSON of Amazon Textract that is broken", {"Blocks": [{"BlockType": "LINE"}]}),
    ):
        found = foreign_format(as_text(value))
        assert found and found.name.startswith(name), value
    for fence, value in (("json", AZURE), ("", AZURE), ("JSON", TAKEN["textract"])):
        assert service_json(f"```{fence}\n{as_text(value)}\n```\n") == TEXT
    for text in (REFUSED["hOCR"][0], REFUSED["ALTO XML"][0], as_text(failed)):
        assert foreign_format(f"```xml\n{text}\n```") == foreign_format(text) is not None


def test_formats_without_a_reader_are_known_by_their_content_and_answers_are_none_of_them() -> None:
    for name, texts in REFUSED.items():
        for text in texts:
            found = foreign_format(as_text(text))
            assert found and found.name.startswith(name) and ": " in found.advice, name
            assert service_json(as_text(text)) == as_text(text), name
    for text in ANSWERS:
        assert foreign_format(text) is None and service_json(text) == text, text


def test_the_json_of_a_service_is_scored_as_its_text_and_the_signature_says_so(here: Path) -> None:
    (here / "answers/p1.json").write_text(as_text(AZURE))
    (here / "answers/p2.txt").write_text(TEXT)
    run = loupe.score(here / "own", here / "answers")
    assert run["text_similarity"].value == 1.0 and "adapter:service_json" in run.signature
    assert "answers: 1 of 2 answers are JSON of a service; the step service_json takes their text" in run.warnings


def test_foreign_formats_alone_are_refused_with_what_helps(here: Path) -> None:
    (here / "answers/p1.html").write_text(REFUSED["hOCR"][0])
    error, hint = complaint(command("score", "own", "answers", cwd=here))
    assert error == "answers: the answers are not text: answers/p1.html: hOCR"
    assert hint == "write text: tesseract PAGE.png PAGE txt"
    for name, rows in (("rows.jsonl", [{"id": "p1", "text": REFUSED["JSON of Docling"][0]}]), ("p1.json", [AZURE])):
        (here / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        with pytest.raises(UsageError, match=r"JSON of (Docling|a service)"):
            loupe.score(here / "own", here / name)


@pytest.mark.parametrize(("ending", "kind"), [("hocr", "hOCR"), ("xml", "ALTO XML"), ("ALTO", "ALTO XML")])
def test_foreign_formats_under_endings_of_their_own_are_refused_alike(here: Path, ending: str, kind: str) -> None:
    for file in (here / "answers").iterdir():
        file.unlink()
    (here / f"answers/p1.{ending}").write_text(REFUSED[kind][0])
    with pytest.raises(UsageError, match=rf"answers/p1\.{ending}: {kind}\n"):
        loupe.score(here / "own", here / "answers")


def test_a_foreign_file_fails_its_page_and_never_replaces_a_text(here: Path) -> None:
    (here / "answers/p1.md").write_text(TEXT)
    for name in ("p1.json", "p1.txt.json", "p2.json"):
        (here / "answers" / name).write_text(as_text(REFUSED["JSON of Docling"][0]))
    run = loupe.score(here / "own", here / "answers")
    assert run["text_similarity"].value == 0.5
    [failure] = run.failures
    assert failure.sample == "p2" and "p2.json: JSON of Docling, not text; write Markdown: docling" in failure.error
    assert "1 answer is ignored" in " ".join(run.warnings) and "p1.json (a text counts)" in " ".join(run.warnings)


def test_what_an_engine_answers_in_such_a_format_is_a_warning(here: Path) -> None:
    answers = iter([as_text(AZURE), REFUSED["ALTO XML"][0]])
    run = loupe.run(here / "own", lambda request: next(answers), runs=here / "runs", jobs=1)
    said = " ".join(run.warnings)
    assert "1 of 2 answers looked at are ALTO XML, not text" in said
    assert "1 of 2 answers looked at are JSON of a service, not text: the step service_json takes it" in said
    assert run["text_similarity"].value < 0.5


def names(*idents: str, kind: str = "CHILD") -> list[dict[str, Any]]:
    return [{"Type": kind, "Ids": list(idents)}]


def test_a_block_of_textract_is_written_once_however_many_name_it() -> None:
    at = {"RowIndex": 1, "ColumnIndex": 1}
    line = {"BlockType": "LINE", "Id": "l", "Text": "x" * 5_000}
    word = {"BlockType": "WORD", "Id": "w", "Text": "y" * 5_000}
    cell = {"BlockType": "CELL", "Id": "c", **at, "RowSpan": 10**4_000, "Relationships": names("w", "w")}
    merged = {"BlockType": "MERGED_CELL", "Id": "m", **at, "Relationships": names("d")}
    covered = {"BlockType": "CELL", "Id": "d", **at, "Relationships": names("w")}
    entry = {"BlockType": "LAYOUT_TEXT", "Id": "e", "Relationships": names("l", "l")}
    relations = names("c", "c", "d") + names("m", "m", kind="MERGED_CELL")
    for block in (
        {"BlockType": "LAYOUT_TEXT", "Relationships": names("l", "l")},
        {"BlockType": "LAYOUT_LIST", "Relationships": names("e", "e")},
        {"BlockType": "TABLE", "Relationships": relations},
    ):
        blocks = [line, word, cell, merged, covered, entry, *({**block, "Id": f"b{n}"} for n in range(300))]
        text = json.dumps({"Blocks": blocks})
        taken = service_json(text)
        assert len(taken) < len(text) and max(map(taken.count, (line["Text"], word["Text"]))) == 1, block


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(
            {
                "Blocks": [{"BlockType": kind, "Id": "1", "Geometry": {"BoundingBox": AWAY[kind]}} for kind in AWAY]
                * 5_000
            }
        ),
        '{"Blocks": ' + "[" * 200_000 + '"BlockType"',
        "<!--" * 250_000,
        "`" * 500_000 + "\n{" + "`" * 499_999,
        "```\n{" + "``` " * 300_000 + "x",
        "<a class" + " " * 1_000_000,
        "[" + '{"BlockType": "LINE", "Text": "a"},' * 30_000 + "{}]",
        '{"analyzeResult": {"content": ["x"]}, "pages": ' + "[" * 900 + "]" * 900 + "}",
        '{"Blocks": [{"BlockType": "LAYOUT_TEXT", "Id": 1, "Relationships": [{"Type": "CHILD", "Ids": [1]}]}]}',
    ],
)
def test_hostile_answers_are_looked_at_in_little_time(text: str) -> None:
    began = time.process_time()
    foreign_format(text)
    service_json(text)
    assert time.process_time() - began < 1.5
