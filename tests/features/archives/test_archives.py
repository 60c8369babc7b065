"""`loupe score GROUND_TRUTH ANSWERS` with folders and files of PAGE, ALTO, hOCR and text."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from loupe.cli import main
from loupe.features.archives.tables import shown_units
from tests.transcripts.test_transcript_reading import PAGES, oracle

ENDINGS = {"page": ".page.xml", "alto": ".xml", "hocr": ".hocr", "txt": ".txt"}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")


def score(*words: object, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["score", *map(str, words), "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def folders(here: Path) -> Path:
    """Twelve pages of all formats in any pairing, in sub-folders, some of them in gzip."""
    for number, case in enumerate(PAGES[:12]):
        for side in ("gt", "ocr"):
            name = f"{side}/v{number % 2}/{case['id']}{ENDINGS[case[side]['format']]}"
            if number % 5 == 0:
                (here / name).parent.mkdir(parents=True, exist_ok=True)
                (here / f"{name}.gz").write_bytes(gzip.compress(case[side]["data"].encode()))
            else:
                write(here / name, case[side]["data"])
    return here


def value(result: dict[str, Any], measure: str) -> float:
    return float(result["measures"][measure]["value"])


@pytest.mark.parametrize(("profile", "key"), [("dinglehopper", "region"), ("dinglehopper-line", "line")])
def test_a_folder_has_the_rates_of_dinglehopper(
    folders: Path, capsys: pytest.CaptureFixture[str], profile: str, key: str
) -> None:
    result = score("gt", "ocr", "-o", f"profile={profile}", capsys=capsys)
    reports = [
        case["expected"].get(f"dinglehopper_{key}") or case["expected"]["dinglehopper"]
        for case in PAGES[:12]
        if case["ocr"]["format"] != "hocr" and case["gt"]["format"] != "hocr"
    ]
    lines = [json.loads(line) for line in (folders / "runs/ocr/gt/scores.jsonl").read_text("utf-8").splitlines()]
    found = {line["sample"].rpartition("/")[2]: line for line in lines}
    compared = 0
    for case, expected in zip(
        [case for case in PAGES[:12] if "hocr" not in (case["ocr"]["format"], case["gt"]["format"])],
        reports,
        strict=True,
    ):
        counts = next(each["counts"] for each in found[case["id"]]["scores"] if each["measure"] == "cer")
        assert counts[1] == expected["n_characters"]
        if counts[1]:
            assert counts[0] / counts[1] == expected["cer"]
            compared += 1
    assert compared >= 4 and f"opt:profile={profile}" in result["signature"]


def test_one_run_is_scored_under_another_profile_without_its_files(
    folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = score("gt", "ocr", capsys=capsys)
    for file in (folders / "ocr").rglob("*.*"):
        file.unlink()
    second = score("runs/ocr/gt", "-o", "profile=jiwer", capsys=capsys)
    assert value(first, "cer") != value(second, "cer")
    assert value(second, "wer") > value(first, "wer")  # words that touch a line break or a sign


def test_two_files_are_compared_whatever_their_names(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(here / "truth.xml", PAGES[0]["gt"]["data"])
    write(here / "tesseract.xml", PAGES[0]["ocr"]["data"])
    result = score("truth.xml", "tesseract.xml", capsys=capsys)
    assert result["total"] == 1 and value(result, "cer") > 0
    assert main(["score", "truth.xml", "truth.xml", "--json"]) == 0
    assert value(json.loads(capsys.readouterr().out), "cer") == 0


def test_pages_of_one_file_are_samples_of_one_group(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = "<Page><TextBlock><TextLine><String CONTENT='{}'/></TextLine></TextBlock></Page>"
    for side, words in (("gt", ("one", "two")), ("ocr", ("one", "too"))):
        write(here / side / "book.xml", f"<alto><Layout>{''.join(map(page.format, words))}</Layout></alto>")
    score("gt", "ocr", capsys=capsys)
    lines = [json.loads(line) for line in (here / "runs/ocr/gt/scores.jsonl").read_text("utf-8").splitlines()]
    assert [(line["sample"], line["group"], line["scores"][0]["counts"]) for line in lines] == [
        ("book#page=1", "book", [0, 3]),
        ("book#page=2", "book", [1, 3]),
    ]


def test_what_has_no_partner_or_cannot_be_read_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b", "c"):
        write(here / "gt" / f"{name}.gt.txt", "Wort\n")
    write(here / "ocr" / "a.txt", "Wort")
    write(here / "ocr" / "b.xml", "<PcGts><Page></PcGts>")
    write(here / "ocr" / "z.txt", "Rest")
    result = score("gt", "ocr", capsys=capsys)
    assert result["outcomes"] == {"error": 1, "missing": 1, "ok": 1}
    assert any("1 answer has no sample: z.txt" in warning for warning in result["warnings"])
    lines = [json.loads(line) for line in (here / "runs/ocr/gt/scores.jsonl").read_text("utf-8").splitlines()]
    broken = next(line["error"] for line in lines if line["sample"] == "b")
    assert "b.xml: broken XML at line 1, column" in broken


def test_broken_ground_truth_stops_with_one_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(here / "gt" / "a.xml", "<!DOCTYPE x [<!ENTITY a 'b'>]><PcGts>&a;</PcGts>")
    write(here / "ocr" / "a.xml", "<PcGts/>")
    assert main(["score", "gt", "ocr"]) != 0
    said = capsys.readouterr().err
    assert "gt/a.xml: line 1 declares entities" in said and "Traceback" not in said


def test_latin_1_is_read_when_it_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for side in ("gt", "ocr"):
        (here / side).mkdir()
        (here / side / "a.txt").write_bytes("Würde".encode("latin-1"))
    assert main(["score", "gt", "ocr"]) != 0
    assert "gt/a.txt: not text in the encoding utf-8" in capsys.readouterr().err
    result = score("gt", "ocr", "-o", "encoding=latin-1", capsys=capsys)
    assert value(result, "cer") == 0 and result["outcomes"] == {"ok": 1}


def test_confusions_stand_below_the_result(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = oracle("texts")[0]
    write(here / "gt" / "a.txt", case["gt"])
    write(here / "ocr" / "a.txt", case["ocr"])
    assert main(["score", "gt", "ocr", "--plain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    expected = oracle("confusions")[0]
    assert expected["id"] == case["id"]
    wanted, found, count = max(expected["expected"]["pairs"], key=lambda each: int(each[2]))
    total = sum(each[2] for each in expected["expected"]["pairs"])
    row = f"{shown_units(wanted)}\t{shown_units(found)}\t{count}\t{100 * count / total:.1f} %"
    assert row in lines


def test_json_lines_and_markdown_are_answers_too(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(here / "gt" / "a.xml", PAGES[0]["gt"]["data"])
    text = "\n".join("\n".join(region) for region in PAGES[0]["expected"]["gt"]["loupe"])
    write(here / "answers.jsonl", json.dumps({"id": "a", "text": text}) + "\n")
    write(here / "ocr" / "a.md", text)
    assert value(score("gt", "answers.jsonl", capsys=capsys), "cer") == 0
    assert value(score("gt", "ocr", capsys=capsys), "cer") == 0


def test_a_copy_of_the_ground_truth_elsewhere_is_the_same_ground_truth(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for side in ("gt", "ocr"):
        write(here / side / "a.txt", "Wort")
    score("gt", "ocr", capsys=capsys)
    (here / "gt").rename(here / "moved")
    assert value(score("runs/ocr/gt", "--data", "moved", capsys=capsys), "cer") == 0


def test_a_second_file_of_a_page_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.page.xml", "a.txt"):
        write(here / "gt" / name, "<PcGts><Page/></PcGts>" if name.endswith("xml") else "Wort")
    write(here / "ocr" / "a.txt", "Wort")
    warnings = score("gt", "ocr", capsys=capsys)["warnings"]
    assert "not read, because another file of the ground truth has this page: a.txt" in warnings


@pytest.mark.parametrize("beside", ["scan.png", "samples.jsonl", "run.json"])
def test_notes_beside_scans_or_other_data_are_no_ground_truth(
    here: Path, capsys: pytest.CaptureFixture[str], beside: str
) -> None:
    write(here / "folder" / beside, "{}")
    write(here / "folder" / "README.txt", "notes")
    assert main(["score", "folder", "folder"]) != 0
    assert "README" not in capsys.readouterr().err


def test_a_folder_without_transcripts_is_still_asked_for_settings(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(here / "scans" / "a.csv", "x")
    assert main(["score", "scans", "scans"]) != 0
    assert "loupe init" in capsys.readouterr().err


def test_a_folder_of_transcripts_is_described_and_a_run_without_pages_says_so(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(here / "gt" / "a.xml", PAGES[0]["gt"]["data"])
    assert main(["bench", "show", "gt"]) == 0
    assert "profile=nfc|nfkc|historical" in capsys.readouterr().out
    assert main(["run", "gt", "-e", "pdf_text"]) != 0
    said = capsys.readouterr().err
    assert "gt: no page image found, not even gt/a.png" in said and "loupe score gt ANSWERS" in said
    assert main(["bench", "check", "gt"]) != 0
    assert "loupe score gt ANSWERS" in capsys.readouterr().err
