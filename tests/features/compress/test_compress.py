"""`loupe compress`: tokens from image headers, answers over real HTTP, the paper beside them, and the curve."""

from __future__ import annotations

import base64
import gzip
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from PIL import Image

from loupe.engines.registry import load_profile
from loupe.errors import DatasetError, UsageError
from loupe.features.compress import fox
from loupe.features.compress.command import command
from loupe.features.compress.fox import expected_precision, token_bin
from loupe.features.compress.measure import (
    CompressionPage,
    PageCompression,
    estimated_tokens,
    find_pages,
    measure,
    pages_of_benchmark,
)
from loupe.features.compress.picture import Curve, curve_svg, curves
from loupe.features.compress.tables import sections
from loupe.pipeline import Plan, score_run
from loupe.report.html import write_report
from loupe.scoring.summary import Origin, summarise
from loupe.types import Prediction, Result, Sample, SampleScores
from tests.support.answered import answered_run
from tests.support.chat_server import Reply, in_thread
from tests.support.command_line import complaint, loupe, make_folder

TEXT = "The quick brown fox jumps over the lazy dog. " * 60


def test_a_photo_is_measured_upright(tmp_path: Path) -> None:
    image = Image.new("RGB", (1200, 900), "white")
    exif = image.getexif()
    exif[0x0112] = 6
    image.save(tmp_path / "photo.jpg", exif=exif)
    (row,) = measure([CompressionPage(image=tmp_path / "photo.jpg", name="photo.jpg")], ["gundam"])
    assert (row.width, row.height, row.tiles) == (900, 1200, (2, 3))


@pytest.mark.parametrize(
    ("tokens", "nominal", "ratio", "expected"),
    [
        (826, 64, 826 / 64, 0.838),
        (826, 100, 8.26, 0.968),
        (826, 256, 3.2, 0.97),
        (None, 100, 10.29, 0.90),
        (1500, 100, 15.0, 0.80),
        (1300, 64, 20.3, 0.60),
        (None, 100, 13.0, None),
        (None, 100, None, None),
    ],
)
def test_the_paper_is_asked_by_tokens_then_by_ratio(
    tokens: int | None, nominal: int, ratio: float | None, expected: float | None
) -> None:
    assert expected_precision(tokens, nominal, ratio)[0] == expected


def test_an_estimate_of_tokens_follows_deepseeks_rule_of_thumb() -> None:
    assert [estimated_tokens(text) for text in ("", "a" * 1000, "页" * 1000, "页" * 500 + "a" * 500)] == [
        0,
        300,
        600,
        450,
    ]


# --- pages and their texts


def write_pages(folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for one in names:
        Image.new("RGB", (1275, 1650), "white").save(folder / one)
    return folder


def test_texts_are_found_by_name_in_a_folder_and_in_the_json_of_fox(tmp_path: Path) -> None:
    pages = write_pages(tmp_path / "pages", "en_1.png", "en_2.png")
    (pages / "en_1.txt").write_text("one")
    (pages / "en_2.md").write_text("two")
    assert [page.truth.text for page in find_pages(pages, pages) if page.truth] == ["one", "two"]
    items = [
        {"image": f"en_{n}.png", "len": 600 + n, "conversations": [{"from": "gpt", "value": f"text {n}"}]}
        for n in (1, 2, 3)
    ]
    (tmp_path / "en_page_ocr.json").write_text(json.dumps(items))
    found = measure(find_pages(pages, tmp_path / "en_page_ocr.json"), ["small"])
    assert [(row.gt_tokens, row.gt_tokens_source, row.compression_gt) for row in found] == [
        (601, "given", 6.01),
        (602, "given", 6.02),
    ]


def test_what_is_missing_or_does_not_fit_is_one_clear_line(tmp_path: Path) -> None:
    pages = write_pages(tmp_path / "pages", "a.png", "b.png")
    text = tmp_path / "gt.txt"
    text.write_text("  \n")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    (tmp_path / "other.json").write_text("{}")
    one = pages / "a.png"
    for image, truth, message in [
        (tmp_path / "nope.png", None, "no such file"),
        (one, tmp_path / "nope.txt", "no such file"),
        (one, text, "ground truth of a.png is empty"),
        (one, tmp_path / "latin.txt", "not a text in UTF-8"),
        (one, tmp_path / "other.json", "not the list of image"),
        (pages, pages, "no text for a.png and 1 more"),
    ]:
        with pytest.raises(DatasetError, match=message):
            find_pages(image, truth)
    with pytest.raises(UsageError, match="one text for 2 pages"):
        find_pages(pages, text)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match="no image in this folder"):
        find_pages(tmp_path / "empty")


# --- the command


def test_the_dry_run_shows_all_modes_of_a_folder_and_keeps_a_broken_page_apart(tmp_path: Path) -> None:
    pages = write_pages(tmp_path / "pages", "a.png")
    (pages / "bad.png").write_bytes(b"no image")
    done = loupe("compress", "--image", "pages", "--dry-run", "--json", cwd=tmp_path)
    rows = json.loads(done.stdout)["pages"]
    assert done.returncode == 0, done.stderr
    assert [(row["mode"], row["vision_tokens"]) for row in rows[:5]] == [
        ("tiny", 64),
        ("small", 100),
        ("base", 197),
        ("large", 309),
        ("gundam", 797),
    ]
    assert all("not an image" in row["error"] for row in rows[5:])
    error, _hint = complaint(loupe("compress", "--image", "pages/bad.png", "--dry-run", cwd=tmp_path))
    assert "not an image" in error


def test_a_path_with_a_slash_is_a_folder_though_a_benchmark_is_called_like_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_folder(tmp_path, name="fox")
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(command, ["./fox", "--dry-run"]).exception
    assert isinstance(refused, UsageError) and refused.message == f"{tmp_path}/fox: no page images"


def test_a_server_is_asked_and_its_answer_measured(tmp_path: Path) -> None:
    write_pages(tmp_path, "page.png")
    (tmp_path / "gt.txt").write_text(TEXT)
    answer = TEXT[:-27].replace("quick", "quack")
    usage = {"prompt_tokens": 921, "completion_tokens": 1029}
    models = {"data": [{"id": "deepseek-ai/DeepSeek-OCR"}]}
    tokenized = {"count": 826, "max_model_len": 8192, "tokens": list(range(826))}
    with in_thread(Reply(text=answer, usage=usage), models=models, get={"/tokenize": tokenized}) as server:
        words = ("--image", "page.png", "--ground-truth", "gt.txt", "--mode", "small", "--base-url", server.url)
        done = loupe("compress", *words, "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    (row,) = found["pages"]
    assert done.returncode == 0, done.stderr
    assert server.requests[0].prompt == "Free OCR."
    edits = 60 + 27  # one letter in every sentence, and the end is missing
    assert row["edits"] == edits
    assert row["precision"] == pytest.approx(1 - edits / len(TEXT))
    assert (row["output_tokens"], row["output_tokens_source"], row["compression_output"]) == (1029, "usage", 10.29)
    assert (row["gt_tokens"], row["gt_tokens_source"], row["compression_gt"]) == (826, "server's tokenizer", 8.26)
    assert (row["expected"], row["expected_for"]) == (0.968, "table 2: 800-900 tokens of text in 100")
    assert ["reads in another mode; gundam with up to 6 tiles" in warning for warning in found["warnings"]] == [True]


def test_a_tokenizer_that_finds_nothing_in_a_text_counts_nothing(tmp_path: Path) -> None:
    """As llama-server, whose /tokenize has another key for the text."""
    write_pages(tmp_path, "page.png")
    (tmp_path / "gt.txt").write_text(TEXT)
    words = ("--image", "page.png", "--ground-truth", "gt.txt", "--mode", "small", "-e", "openai", "--base-url")
    with in_thread(TEXT, get={"/tokenize": {"tokens": []}}) as server:
        done = loupe("compress", *words, server.url, "--json", cwd=tmp_path)
    (row,) = json.loads(done.stdout)["pages"]
    assert row["gt_tokens"] > 0 and row["gt_tokens_source"].startswith("estimate")


def test_any_engine_reads_a_folder_and_a_failed_page_is_no_quiet_zero(tmp_path: Path) -> None:
    write_pages(tmp_path / "pages", "a.png", "b.png")
    for stem in "ab":
        (tmp_path / f"pages/{stem}.txt").write_text(TEXT)
    (tmp_path / "reader.py").write_text(
        "def read(request):\n"
        "    if request.images[0].stem == 'b':\n"
        "        raise ValueError('smudged')\n"
        f"    return {TEXT!r}\n"
    )
    words = ("--image", "pages", "--ground-truth", "pages", "--mode", "tiny", "-e", "python:reader.py:read")
    done = loupe("compress", *words, "--strict", "--json", "--plot", "curve.svg", cwd=tmp_path)
    first, second = json.loads(done.stdout)["pages"]
    assert done.returncode == 3, done.stderr
    assert (first["precision"], first["output_tokens_source"][:8]) == (pytest.approx(1, abs=1e-3), "estimate")
    assert (second["precision"], second["outcome"], "smudged" in second["error"]) == (0, "error", True)
    assert json.loads(done.stdout)["means"]["precision"]["n"] == 2
    assert "n=2" in (tmp_path / "curve.svg").read_text()
    error, _ = complaint(loupe("compress", "--image", "pages", "-e", "python:reader.py:read", cwd=tmp_path))
    assert error.startswith("--mode is missing")


def test_the_text_of_a_page_is_shown_with_what_differs_marked(tmp_path: Path) -> None:
    write_pages(tmp_path, "page.png")
    (tmp_path / "gt.txt").write_text("Invoice 12346\nfrom the\tharbour, paid\n")
    (tmp_path / "reader.py").write_text("def read(request):\n    return 'Invoice 12345 from the harbour\x1b[2J!'\n")
    words = ("--image", "page.png", "--mode", "tiny", "-e", "python:reader.py:read")
    marked = loupe("compress", *words, "--ground-truth", "gt.txt", cwd=tmp_path).stdout
    assert "what was read, against the ground truth: [-missing-] {+not there+}\n" in marked
    assert marked.splitlines()[-1].startswith("Invoice [-12346-]{+12345+} from the harbour{+")
    assert "\x1b[2J" not in marked
    plain = loupe("compress", *words, "--plain", cwd=tmp_path).stdout
    assert "\nwhat was read\nInvoice 12345 from the harbour" in plain
    (row,) = json.loads(loupe("compress", *words, "--ground-truth", "gt.txt", "--json", cwd=tmp_path).stdout)["pages"]
    assert (row["text"][:13], row["reference"][:13]) == ("Invoice 12345", "Invoice 12346")


def test_pages_stand_in_a_report_beside_what_was_read(tmp_path: Path) -> None:
    write_pages(tmp_path / "pages", "a.png", "b.png")
    for stem in "ab":
        (tmp_path / f"pages/{stem}.txt").write_text(f"The harbour {stem}")
    (tmp_path / "reader.py").write_text("def read(request):\n    return '<script>alert(1)</script> The harbour a'\n")
    words = ("--image", "pages", "--mode", "tiny", "-e", "python:reader.py:read")
    done = loupe("compress", *words, "--ground-truth", "pages", "--report", "out.html", cwd=tmp_path)
    page = (tmp_path / "out.html").read_text()
    assert done.returncode == 0, done.stderr
    assert "Pages in mode tiny" in page and "<script>alert(1)" not in page
    payloads = [
        json.loads(gzip.decompress(base64.b64decode(found)))
        for found in re.findall(r'id="d\d+">([^<]+)</script>', page)
    ]
    assert [each["reference"]["text"] for each in payloads] == ["The harbour a", "The harbour b"]
    assert [each["answers"][0]["text"][-13:] for each in payloads] == ["The harbour a"] * 2
    assert loupe("compress", *words, "--report", "bare.html", cwd=tmp_path).returncode == 0
    assert "No ground truth was given" in (tmp_path / "bare.html").read_text()
    hinted = loupe("compress", *words, cwd=tmp_path)
    assert "to see the text beside each page: --report FILE.html" in hinted.stderr
    error, _ = complaint(loupe("compress", *words, "--dry-run", "--report", "out.html", cwd=tmp_path))
    assert error == "--report shows what an engine reads now"


# --- the picture


def result_of(pages: list[tuple[int, str]], nominal: int) -> Result:
    """A run over pages of so many tokens, with these answers to the text "abcd"."""
    rows = []
    for number, (tokens, answer) in enumerate(pages):
        tags = {"words": "none", "vision_tokens": f"{nominal}/{nominal}", "gt_tokens": token_bin(tokens)}
        sample = Sample(id=str(number), truth=fox.FoxPage(text="abcd", tokens=tokens), tags=tags)
        scores = fox.score(sample, Prediction(text=answer, output_tokens=tokens))
        rows.append(SampleScores(sample=sample.id, tags=tags, scores=scores))
    return summarise(fox.benchmark, rows, Origin(benchmark="fox", engine="e", signature="s", total=len(rows)), draws=50)


def test_the_curve_is_well_formed_and_shows_counts_intervals_and_the_paper() -> None:
    result = result_of([(650, "abcd"), (660, "abcx"), (1250, "ab"), (1260, "abcd")], nominal=64)
    drawn = curves([("<b>&evil", result)])
    picture = curve_svg(drawn, background="#ffffff")
    root = ElementTree.fromstring(picture)
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("n=2") == 2
    assert "<b>" not in picture and any(text and text.startswith("<b>&evil") for text in texts)
    assert "paper 96.5 %" in picture and "stroke-dasharray" in picture
    assert "style=" not in picture and "<style" not in picture  # the report's policy admits neither


def test_without_ratios_there_is_no_picture() -> None:
    result = result_of([(650, "abcd")], nominal=64)
    bare = {label: {"precision": one["precision"]} for label, one in result.slices["gt_tokens"].items()}
    assert curves([("e", msgspec.structs.replace(result, slices={"gt_tokens": bare}))]) == []
    assert curve_svg([]) == ""
    assert curve_svg([Curve(name="e", points=curves([("e", result)])[0].points)]) != ""


def test_whole_runs_have_a_curve_in_the_command_and_in_the_report(tmp_path: Path) -> None:
    folder = tmp_path / "focus_benchmark_test"
    pages = write_pages(tmp_path / "pages", "en_1.png", "en_2.png", "en_3.png")
    folder.mkdir()
    pages.rename(folder / "en_pdf_png")
    items = [
        {"image": f"en_{n}.png", "len": tokens, "conversations": [{"from": "gpt", "value": TEXT}]}
        for n, tokens in ((1, 640), (2, 660), (3, 1250))
    ]
    (folder / "en_page_ocr.json").write_text(json.dumps(items))
    runs = {}
    for mode in ("tiny", "none"):
        plan = Plan(
            benchmark="fox",
            label="reader",
            name=f"reader-{mode}",
            profile=load_profile("tesseract")[1],
            runs=tmp_path / "runs",
            data=tmp_path,
            options={"mode": mode, "words": "none", "language": "en"},
        )
        answers = [Prediction(sample=f"en_{n}", text=TEXT[: 600 * n], output_tokens=700) for n in (1, 2, 3)]
        runs[mode] = answered_run(plan, answers)
    score_run(runs["tiny"], jobs=1)
    drawn = show(runs["tiny"], tmp_path / "curve.svg")
    assert [(row["label"], row["pages"], row["expected"]) for row in drawn] == [
        ("600-700", 2, 0.965),
        ("1200-1300", 1, 0.591),
    ]
    assert "n=2" in (tmp_path / "curve.svg").read_text()
    write_report([runs["tiny"]], tmp_path / "report.html")
    report = (tmp_path / "report.html").read_text()
    assert "Precision against compression" in report and "reader-tiny (3 pages)" in report
    found = measure(pages_of_benchmark("fox", tmp_path, {"language": "en"}), ["tiny"])
    assert [(row.page, row.gt_tokens, row.compression_gt) for row in found] == [
        ("en_1", 640, 10.0),
        ("en_2", 660, 10.31),
        ("en_3", 1250, 19.53),
    ]
    with pytest.raises(UsageError, match="without a mode"):
        show(runs["none"], None)


def show(run: Path, plot: Path | None) -> list[dict[str, Any]]:
    """What `loupe compress RUN --json` prints of its curve."""
    shown = CliRunner().invoke(command, [str(run), "--json", *(["--plot", str(plot)] if plot else [])])
    if shown.exception is not None:
        raise shown.exception
    points: list[dict[str, Any]] = json.loads(shown.stdout)["curves"][0]["points"]
    return points


def test_a_sample_with_fewer_tokens_of_text_than_of_the_page_has_no_ratio_and_nothing_of_the_paper() -> None:
    question, page = (
        PageCompression(page="q", mode="tiny", vision_tokens=64, gt_tokens=tokens, compression_gt=ratio, expected=None)
        for tokens, ratio in ((2, 0.03), (640, 10.0))
    )
    (table,) = (one for one in sections([question, page], None) if one.header)
    cells = [row[list(table.header).index("gt/nominal")] for row in table.rows]
    assert cells == ["–", "10.00x"]
