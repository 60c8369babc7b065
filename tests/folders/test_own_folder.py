"""The folder format: what opens, what is refused, and that every message names its line."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import tomllib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from PIL import Image

from loupe.benchmarks import get_benchmark
from loupe.benchmarks.folders.own import check_folder, not_in_samples, open_folder
from loupe.benchmarks.folders.own.config import Config
from loupe.errors import DatasetError, UsageError
from loupe.report.stored_facts import fields_of
from loupe.types import FAILED, PdfPage, Prediction, Score

Make = Callable[..., Path]
GOOD = {"id": "a", "image": "a.png", "reference": "hello"}


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write a folder: settings, then lines (objects, or raw bytes); a.png is a page that can be read."""

    def write(*lines: dict[str, Any] | bytes, config: str = 'title = "Mine"') -> Path:
        folder = tmp_path / "docs"
        folder.mkdir()
        (folder / "loupe.toml").write_text(f"[benchmark]\n{config}\n", encoding="utf-8")
        raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        (folder / "samples.jsonl").write_bytes(b"\n".join(raw))
        Image.new("RGB", (40, 30), "white").save(folder / "a.png")
        return folder

    return write


def messages(folder: Path) -> list[str]:
    """Problems without the folder in front, so that lines can be compared."""
    return [str(problem).removeprefix(f"{folder}/") for problem in check_folder(folder)]


def first_error(folder: Path) -> str:
    """What `load` stops with."""
    with pytest.raises(DatasetError) as caught:
        list(open_folder(folder).load())
    assert caught.value.hint
    return caught.value.message.removeprefix(f"{folder}/")


def save_pdf(path: Path, pages: int) -> None:
    document = pypdfium2.PdfDocument.new()
    for _ in range(pages):
        document.new_page(200, 100)
    document.save(path)
    document.close()


def png_header(width: int, height: int) -> bytes:
    """All of a PNG that is read before its pixels are."""
    chunk = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    checked = struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return b"\x89PNG\r\n\x1a\n" + checked + struct.pack(">I", 0) + b"IDAT"


def test_a_good_folder_opens_by_its_path_and_has_no_problem(make: Make) -> None:
    folder = make({**GOOD, "tags": {"kind": "note"}, "group": "g", "prompt": "Read."})
    benchmark = get_benchmark(str(folder))
    (sample,) = benchmark.load(None)
    assert check_folder(folder) == []
    assert (sample.id, sample.images, sample.truth) == ("a", (folder / "a.png",), "hello")
    assert (sample.tags, sample.group, sample.prompt, sample.task) == ({"kind": "note"}, "g", "Read.", "text")
    assert (benchmark.title, benchmark.headline_measure) == ("Mine", "text_similarity")


def test_a_folder_takes_no_other_data(make: Make, tmp_path: Path) -> None:
    folder = make(GOOD)
    with pytest.raises(UsageError, match=f"{folder.name}: a folder is its own data"):
        open_folder(folder).load(tmp_path)


def test_a_pdf_page_is_named_behind_the_file(make: Make) -> None:
    folder = make({**GOOD, "image": "scan.pdf#page=2"})
    save_pdf(folder / "scan.pdf", 2)
    (sample,) = open_folder(folder).load()
    assert sample.images == (PdfPage(folder / "scan.pdf", 2),)
    assert check_folder(folder) == []


def test_a_sample_may_have_several_pages_or_only_a_text(make: Make) -> None:
    pages, text = open_folder(
        make({"id": "p", "images": ["a.png", "a.png"], "reference": ""}, {"id": "t", "text": "in", "reference": "out"})
    ).load()
    assert (len(pages.images), text.images, text.text) == (2, (), "in")


def test_empty_lines_and_windows_line_ends_are_no_problem(make: Make) -> None:
    folder = make(json.dumps(GOOD).encode() + b"\r", b"", b"")
    assert check_folder(folder) == []
    assert len(list(open_folder(folder).load())) == 1


def test_profiles_in_the_same_file_are_left_alone(make: Make) -> None:
    folder = make(GOOD, config='title = "x"\n[engines.mine]\nkind = "openai"\nanything = 1')
    assert check_folder(folder) == []


BAD_LINES: list[tuple[str, dict[str, Any] | bytes, str]] = [
    ("bad json", b'{"id": "b", }', "not JSON: "),
    ("a list", b'["b"]', "a list where an object should be"),
    ("not utf-8", b'{"id": "b\xff"}', "not UTF-8 (byte 10 of the line) (save the file as UTF-8)"),
    ("too deep", b"[" * 100_000, "not JSON that can be read: nested too deeply"),
    ("endless number", b'{"id": ' + b"9" * 5000 + b"}", "not JSON that can be read: a number with too many digits"),
    ("unknown key", {**GOOD, "id": "b", "refrence": "x"}, "unknown key 'refrence'; did you mean 'reference'?"),
    ("key twice", b'{"id": "b", "id": "c"}', "key 'id' appears twice in one object"),
    ("surrogate", b'{"id":"b","image":"a.png","reference":"\\ud800"}', "half of a surrogate pair"),
    ("no id", {"image": "a.png", "reference": ""}, "no id"),
    ("number id", {**GOOD, "id": 7}, "id is a number"),
    ("id twice", GOOD, "id 'a' was used in line 1"),
    ("id leaves", {**GOOD, "id": "../b"}, "id '../b' cannot be the name of a file"),
    ("id with colon", {**GOOD, "id": "b:1"}, "id 'b:1' cannot be the name of a file"),
    ("id too long", {**GOOD, "id": "b" * 300}, "cannot be the name of a file"),
    ("no page", {"id": "b", "reference": ""}, "neither image nor text"),
    ("missing page", {**GOOD, "id": "b", "image": "b.png"}, "'b.png': no such file; did you mean 'a.png'?"),
    ("page is folder", {**GOOD, "id": "b", "image": "."}, "a folder, not a file"),
    ("leaves folder", {**GOOD, "id": "b", "image": "../a.png"}, "path '../a.png' leaves the folder"),
    ("absolute", {**GOOD, "id": "b", "image": "/etc/passwd"}, "path '/etc/passwd' is absolute"),
    ("drive", {**GOOD, "id": "b", "image": "C:/a.png"}, "path 'C:/a.png' is absolute"),
    ("backslash", {**GOOD, "id": "b", "image": "x\\a.png"}, "has backslashes (write / between folders)"),
    ("image and images", {**GOOD, "id": "b", "images": ["a.png"]}, "both image and images"),
    ("images a string", {"id": "b", "images": "a.png", "reference": ""}, "images a list of paths"),
    ("page zero", {**GOOD, "id": "b", "image": "a.pdf#page=0"}, "'a.pdf#page=0': pages count from 1"),
    (
        "page of an image",
        {**GOOD, "id": "b", "image": "a.png#page=1"},
        "'a.png#page=1': only files named .pdf, .tif or .tiff have pages",
    ),
    ("page and text", {**GOOD, "id": "b", "text": "x"}, "both a page and text"),
    ("id in another case", {**GOOD, "id": "A"}, "id 'A' differs from 'a' in line 1 only in upper and lower case"),
    ("unknown task", {**GOOD, "id": "b", "task": "tabel"}, "unknown task \"tabel\"; did you mean 'table'?"),
    ("no reference", {"id": "b", "image": "a.png"}, 'no reference (task text: a string, "" for a blank page)'),
    ("text reference", {**GOOD, "id": "b", "reference": 3}, "reference is a number (task text: a string"),
    ("fields reference", {**GOOD, "id": "b", "task": "fields"}, "reference is a string (task fields: an object"),
    (
        "number field",
        {**GOOD, "id": "b", "task": "fields", "reference": {"n": 12.5}},
        'field \'n\' is a number (write "n": "12.5")',
    ),
    ("question alone", {**GOOD, "id": "b", "task": "question", "reference": ["x"]}, "a question without a prompt"),
    ("no answers", {**GOOD, "id": "b", "task": "question", "prompt": "?", "reference": []}, "reference is empty"),
    ("no table", {**GOOD, "id": "b", "task": "table"}, "reference holds no table that can be read"),
    ("number tag", {**GOOD, "id": "b", "tags": {"year": 1968}}, 'tag \'year\' is a number (write "year": "1968")'),
    ("group", {**GOOD, "id": "b", "group": 1}, "group is a number (group must be a string)"),
]


@pytest.mark.parametrize(("line", "message"), [case[1:] for case in BAD_LINES], ids=[case[0] for case in BAD_LINES])
def test_a_bad_line_is_named_with_its_number_and_stops_the_load(
    make: Make, line: dict[str, Any] | bytes, message: str
) -> None:
    folder = make(GOOD, line)
    (problem,) = [text for text in messages(folder) if message in text]
    assert problem.startswith("samples.jsonl:2: ")
    assert first_error(folder).startswith("samples.jsonl:2: ")


def test_every_bad_line_is_listed_not_only_the_first(make: Make) -> None:
    folder = make({**GOOD, "image": "x.png"}, b"{", {**GOOD, "task": "x", "id": ""})
    assert [text.split(": ")[0] for text in messages(folder)] == [
        "samples.jsonl:1",
        "samples.jsonl:2",
        "samples.jsonl:3",
        "samples.jsonl:3",
    ]


def test_a_byte_order_mark_is_read_over_and_utf_16_is_refused(make: Make) -> None:
    folder = make(b"\xef\xbb\xbf" + json.dumps(GOOD).encode())
    assert messages(folder) == []
    (folder / "samples.jsonl").write_bytes(json.dumps(GOOD).encode("utf-16"))
    assert messages(folder) == ["samples.jsonl:1: not UTF-8 (byte 1 of the line) (save the file as UTF-8)"]


def test_ids_that_differ_only_in_their_unicode_form_are_refused(make: Make) -> None:
    [message] = messages(make({**GOOD, "id": "\u00dc"}, {**GOOD, "id": "U\u0308"}))
    assert r"id 'U\u0308' differs from '\xdc' in line 1 only in its Unicode form" in message


def test_a_link_out_of_the_folder_is_refused(make: Make, tmp_path: Path) -> None:
    folder = make({**GOOD, "image": "out.png"})
    Image.new("L", (5, 5)).save(tmp_path / "secret.png")
    (folder / "out.png").symlink_to(tmp_path / "secret.png")
    assert messages(folder) == [
        "samples.jsonl:1: 'out.png' leads out of the folder through a link (copy the file into the folder)"
    ]
    assert "leads out of the folder" in first_error(folder)


def test_pages_of_skipped_samples_are_needed_by_nobody(make: Make) -> None:
    skipped = {**GOOD, "reference": None, "truth": {"status": "skipped"}}
    folder = make(GOOD, {**skipped, "id": "broken", "image": "bad.png"}, {**skipped, "id": "c", "image": "gone.png"})
    (folder / "bad.png").write_bytes(b"no image")
    assert messages(folder) == []
    assert [sample.id for sample in open_folder(folder).load()] == [GOOD["id"]]
    assert "2 samples are skipped, and their pages are not opened" in not_in_samples(folder)


def test_an_empty_file_of_samples_is_refused(make: Make) -> None:
    folder = make()
    assert "no samples: the file is empty" in messages(folder)[0]
    assert "no samples" in first_error(folder)


def test_a_missing_file_of_samples_is_refused(make: Make) -> None:
    folder = make(GOOD)
    (folder / "samples.jsonl").unlink()
    assert "samples.jsonl: not found" in messages(folder)[0]
    with pytest.raises(DatasetError, match=r"samples\.jsonl: not found"):
        open_folder(folder)


def test_a_folder_without_settings_gets_a_command_that_writes_them(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"loupe\.toml: not found") as caught:
        open_folder(tmp_path)
    assert caught.value.hint.endswith(f"loupe init {tmp_path} --task text")
    (tmp_path / "samples.jsonl").touch()
    with pytest.raises(DatasetError) as caught:
        open_folder(tmp_path)
    assert caught.value.hint.startswith("printf '[benchmark]")


def test_every_mistake_in_the_settings_is_named_not_only_the_first(make: Make) -> None:
    folder = make(GOOD, config="version = 1\ntitel = 'x'\nignore_case = 'no'\n[engine.x]")
    assert [text.split(": ")[0] for text in messages(folder)] == [f"loupe.toml:{line}" for line in (5, 2, 3, 4)]


def test_a_missing_folder_is_one_problem(tmp_path: Path) -> None:
    assert [problem.message for problem in check_folder(tmp_path / "no")] == ["no such folder"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("titel = 'x'", "loupe.toml:2: unknown key 'titel'; did you mean 'title'?"),
        ("title = 'x'\ntask = 'tabel'", "loupe.toml:3: task: 'tabel' is not known; did you mean 'table'?"),
        ("title = 3", 'loupe.toml:2: title: write it in quotes: title = "3"'),
        ("version = 1.5", 'loupe.toml:2: version: write it in quotes: version = "1.5"'),
        ("max_tokens = '9'", "loupe.toml:2: max_tokens: write a whole number without quotes: max_tokens = 4096"),
        ("labels = ['a', 1]", 'loupe.toml:2: labels: write a list of texts: labels = ["invoice", "letter"]'),
        ("title = ", "loupe.toml:2: not TOML: Invalid value"),
        ("title = 'x'\n[benchmrk]", "loupe.toml:3: unknown key or table 'benchmrk'; did you mean 'benchmark'?"),
        ("max_tokens = " + "9" * 5000, "loupe.toml: not TOML that can be read: too deep, or a number too long"),
        ("headline = 'cre'", "loupe.toml: headline: no measure 'cre' here; did you mean 'cer'?"),
    ],
)
def test_a_mistake_in_the_settings_is_named_with_its_line(make: Make, config: str, message: str) -> None:
    folder = make(GOOD, config=config)
    assert messages(folder)[0].startswith(message)
    with pytest.raises(DatasetError) as caught:
        open_folder(folder)
    assert caught.value.message.endswith(message)


def test_pages_that_cannot_be_read_are_found_by_the_check(make: Make) -> None:
    names = ["broken.png", "cut.jpg", "huge.png", "broken.pdf", "locked.pdf", "two.pdf", "two.pdf#page=3"]
    folder = make(*({"id": f"s{i}", "image": name, "reference": ""} for i, name in enumerate(names)))
    (folder / "broken.png").write_text("no image")
    Image.effect_noise((300, 300), 60).save(folder / "cut.jpg")
    (folder / "cut.jpg").write_bytes((folder / "cut.jpg").read_bytes()[:9000])
    (folder / "huge.png").write_bytes(png_header(30_000, 30_000))
    (folder / "broken.pdf").write_text("%PDF-1.7 no more")
    (folder / "locked.pdf").write_bytes(ENCRYPTED_PDF)
    save_pdf(folder / "two.pdf", 2)
    found = dict(text.removeprefix("samples.jsonl:").split(": ", 1) for text in messages(folder))
    assert list(found) == ["1", "2", "3", "4", "5", "6", "7"]
    assert "30,000 x 30,000 pixels" in found["3"]
    assert "password" in found["5"] or "encrypted" in found["5"]
    assert "has 2 pages; name one: two.pdf#page=1" in found["6"]
    assert "3" in found["7"]


def test_an_empty_page_file_stops_the_load(make: Make) -> None:
    folder = make({**GOOD, "image": "empty.pdf"})
    (folder / "empty.pdf").touch()
    assert first_error(folder) == "samples.jsonl:1: 'empty.pdf' is empty (0 bytes)"


def test_a_folder_of_one_task_has_the_measures_of_that_task(make: Make) -> None:
    benchmark = open_folder(make({**GOOD, "reference": "x"}, config='task = "formula"'))
    assert [measure.name for measure in benchmark.measures] == ["formula_similarity"]
    assert (benchmark.task, benchmark.summarize) == ("formula", None)


def test_a_mixed_folder_is_ranked_by_the_mean_of_its_tasks(make: Make) -> None:
    benchmark = open_folder(make(GOOD, {**GOOD, "id": "b", "task": "class"}))
    assert benchmark.headline_measure == "overall"
    assert benchmark.summarize is not None
    assert benchmark.summarize({"text_similarity": 0.5, "cer": 3.0, "accuracy": 1.0}) == {"overall": 0.75}
    assert benchmark.summarize({"text_similarity": 0.5, "accuracy": float("nan")}) == {"overall": 0.5}
    assert benchmark.summarize({}) == {}


@pytest.mark.parametrize(
    ("rule", "measure", "answer", "earned"),
    [
        ("anls", "anls", "13 boat", 7 / 8),
        ("relaxed", "relaxed_accuracy", " 1,5 ", 0.0),
        ("relaxed", "relaxed_accuracy", "12.4\n", 1.0),
        ("relaxed", "relaxed_accuracy", "13 BOATS", 1.0),
        ("exact", "exact_match", " 13 Boats", 1.0),
        ("exact", "exact_match", "13 boats.", 0.0),
        ("contains", "contains", "I see 13\nboats there.", 1.0),
        ("contains", "contains", "12 boats", 1.0),
        ("contains", "contains", "13 ships", 0.0),
    ],
)
def test_a_folder_says_what_makes_an_answer_to_a_question_right(
    make: Make, rule: str, measure: str, answer: str, earned: float
) -> None:
    line = {**GOOD, "task": "question", "prompt": "How many?", "reference": ["12", "13 boats"]}
    benchmark = open_folder(make(line, config=f'version = "7"\nquestions = "{rule}"'))
    assert benchmark.headline_measure == measure
    assert benchmark.version == ("7" if rule == "anls" else f"7+questions={rule}")
    (sample,) = benchmark.load(None)
    (score,) = benchmark.score(sample, Prediction(text=answer))
    assert isinstance(score, Score)
    assert (score.measure, score.counts) == (measure, (pytest.approx(earned), 1.0))


def test_a_rule_for_questions_that_does_not_exist_is_named(make: Make) -> None:
    (said,) = messages(make(GOOD, config='questions = "exactly"'))
    assert said == "loupe.toml:2: questions: 'exactly' is not known; did you mean 'exact'?"


def test_settings_that_change_scores_change_the_version(make: Make) -> None:
    config = 'version = "7"\nignore_case = true\nwhitespace = "ignore"'
    benchmark = open_folder(make(GOOD, config=config))
    (sample,) = benchmark.load()
    assert benchmark.version == "7+ignore_case+whitespace=ignore"
    assert benchmark.score(sample, Prediction(text="HEL LO"))[0].counts == (1.0, 1.0)


def test_questions_about_fields_and_classes_name_what_is_asked_for(make: Make) -> None:
    fields, label = open_folder(
        make(
            {**GOOD, "task": "fields", "reference": {"total": "1", "tax": ""}},
            {**GOOD, "id": "b", "task": "class", "reference": "form"},
            config='labels = ["letter", "form"]',
        )
    ).load()
    assert "these keys: total, tax\n" in fields.prompt
    assert label.prompt.startswith("Which of these labels fits this document best: letter, form?")


def test_a_label_outside_the_list_is_a_problem(make: Make) -> None:
    folder = make({**GOOD, "task": "class", "reference": "from"}, config='labels = ["letter", "form"]')
    assert "label 'from' is not one of labels; did you mean 'form'?" in messages(folder)[0]


def test_the_example_of_the_documentation_runs_as_it_stands(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs/own-data.md"
    example = page.read_text(encoding="utf-8").split("```sh\n")[1].split("```")[0]
    assert "loupe run mydocs" in example
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["sh", "-ec", example], cwd=tmp_path, env={"PATH": path, "HOME": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "no problem found" in done.stderr
    scores = (tmp_path / "runs/pdf_text/mydocs/scores.jsonl").read_text(encoding="utf-8").splitlines()
    assert {"measure": "cer", "counts": [0.0, 561.0], "unit": "", "tags": {}} in json.loads(scores[-1])["scores"]


def test_the_settings_of_the_documentation_are_all_there_are() -> None:
    page = Path(__file__).parents[2] / "docs/own-data.md"
    settings = tomllib.loads(page.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0])["benchmark"]
    assert tuple(settings) == Config.__struct_fields__


#: One empty page behind a password (RC4, 40 bit; the keys are arbitrary, so no password opens it).
ENCRYPTED_PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\n"
    b"4 0 obj<</Filter/Standard/V 1/R 2/P -44/O<" + b"11" * 32 + b">/U<" + b"22" * 32 + b">>>endobj\n"
    b"trailer<</Root 1 0 R/Encrypt 4 0 R/ID[<00><00>]/Size 5>>\n%%EOF\n"
)


@pytest.mark.parametrize(
    ("task", "reference"),
    [("text", ""), ("markdown", ""), ("formula", ""), ("fields", {"tax": ""})],
)
def test_a_failed_sample_earns_nothing_where_nothing_is_the_right_answer(
    task: str, reference: object, make: Make
) -> None:
    folder = make({"id": "a", "image": "a.png", "reference": reference}, config=f'title = "Mine"\ntask = "{task}"')
    benchmark = open_folder(folder)
    sample = next(iter(benchmark.load(None)))
    headline = benchmark.headline_measure

    def earned(prediction: Prediction) -> float:
        found = benchmark.score(sample, prediction)
        assert isinstance(found, list)
        return next(score.counts[0] for score in found if score.measure == headline)

    assert earned(Prediction(text='{"tax": ""}' if task == "fields" else "")) == 1.0
    assert {earned(Prediction(outcome=outcome)) for outcome in FAILED} == {0.0}
    if benchmark.fields:
        [judged] = fields_of(benchmark, sample, Prediction(outcome="timeout"), adapters=())
        assert (judged.value, judged.rule) == (0.0, "no answer")
