"""Scoring answers that exist already, in every layout in which people have them."""

from __future__ import annotations

import codecs
import json
import os
import unicodedata
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from loupe.benchmarks import get_benchmark
from loupe.cli.score import names_of
from loupe.errors import UnsafeFileError, UsageError
from loupe.files.foreign import decode_text
from loupe.pipeline.answer_files import read_answer, read_answers
from loupe.pipeline.existing_answers import Answers, find_all, match_answers, nearly_named
from loupe.pipeline.plan import samples_of
from loupe.types import Prediction
from tests.support.command_line import loupe
from tests.support.shared import shared

LINES = [
    {"id": "a", "text": "first letter", "reference": "first letter"},
    {"id": "b/2.png", "text": "x", "reference": "second"},
    {"id": "c", "text": "x", "reference": "third one"},
]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "mydocs"
    folder.mkdir()
    (folder / "loupe.toml").write_text('[benchmark]\ntitle = "Letters"\ntask = "text"\n')
    (folder / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return tmp_path


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ("pages/a.md", "only the folder itself is searched; its answers are in out/pages"),
        ("a.MD", "'a.MD' would count as an answer if it were named 'a.md'"),
        ("A.txt", "'A.txt' would count as an answer if it were named 'a.md'"),
        ("b.md", ""),
    ],
)
def test_a_name_that_is_nearly_right_is_told(there: str, said: str) -> None:
    assert nearly_named(Path("out"), ["x.md", there], ["a.md"]) == said


def scored(here: Path, answers: str, benchmark: str = "mydocs") -> dict[str, Any]:
    done = loupe("score", benchmark, answers, "--json", cwd=here)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def value(result: dict[str, Any]) -> float:
    return float(result["measures"]["text_similarity"]["value"])


def write(here: Path, layout: str) -> str:
    answers = {"a": "first letter", "b/2.png": "second", "c": "third one"}
    if layout == "folder":
        for name, text in answers.items():
            file = here / "answers" / f"{name.removesuffix('.png')}.md"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return "answers"
    if layout == "lines":
        rows = [json.dumps({"sample_id": name, "prediction": text}) for name, text in answers.items()]
        (here / "answers.jsonl").write_text("\n".join(rows))
        return "answers.jsonl"
    rows_or_map = answers if layout == "map" else [{"id": name, "predict": text} for name, text in answers.items()]
    (here / "answers.json").write_text(json.dumps(rows_or_map))
    return "answers.json"


@pytest.mark.parametrize("layout", ["folder", "lines", "map", "list"])
def test_every_layout_gives_the_same_numbers(here: Path, layout: str) -> None:
    result = scored(here, write(here, layout))
    assert value(result) == 1.0
    assert result["outcomes"] == {"ok": 3}


def test_missing_extra_and_double_answers_are_counted_and_named(here: Path) -> None:
    rows = [("a", "wrong"), ("a", "first letter"), ("b/2.png", "second"), ("zz", "whose?")]
    (here / "answers.jsonl").write_text("\n".join(json.dumps({"id": name, "text": text}) for name, text in rows))
    result = scored(here, "answers.jsonl")
    assert value(result) == pytest.approx(2 / 3)
    warnings = " ".join(result["warnings"])
    assert "1 answer has no sample: zz" in warnings
    assert "several answers, the last one counts: a" in warnings
    assert result["failures"] == [{"sample": "c", "class": "missing", "error": "no answer in answers.jsonl"}]
    assert result["outcomes"] == {"ok": 2, "missing": 1}
    shown = loupe("score", "runs/answers/mydocs", "--plain", cwd=here).stdout
    assert "missing\t1 of 3\t33.3 %\tno answer" in shown and "ended with an error" not in shown
    again = loupe("score", "mydocs", "runs/answers/mydocs/predictions.jsonl", "--json", cwd=here)
    assert json.loads(again.stdout)["outcomes"] == result["outcomes"]


def test_answers_of_the_same_name_in_two_folders_make_two_runs(here: Path) -> None:
    for folder in ("x", "y"):
        (here / folder).mkdir()
        (here / folder / "pred.json").write_text(json.dumps({"a": "first letter" if folder == "x" else "?"}))
    done = loupe("score", "mydocs", "x/pred.json", "y/pred.json", "./x/../x/pred.json", "--plain", cwd=here)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (here / "runs").iterdir()) == ["x", "y"]
    header, first, second, *_ = (line.split("\t") for line in done.stdout.splitlines())
    assert header == ["engine", "text similarity ↑", "±", "failed"]
    assert (first[0], first[-1]) == ("x", "2 of 3") and (second[0], second[-1]) == ("y", "2 of 3")
    assert "loupe compare runs/x/mydocs runs/y/mydocs" in done.stderr


def test_a_folder_without_a_matching_file_costs_only_itself(here: Path) -> None:
    (here / "good").mkdir()
    (here / "good" / "a.txt").write_text("first letter")
    (here / "bad").mkdir()
    (here / "bad" / "zz.txt").write_text("first letter")
    done = loupe("score", "mydocs", "bad", "good", "--plain", cwd=here)
    assert done.returncode == 2
    assert "error: bad: no answer to any sample of mydocs; it has 'zz'" in done.stderr
    assert [path.name for path in (here / "runs").iterdir()] == ["good"] and "33.33" in done.stdout
    done = loupe("score", "mydocs", "bad", "gone", "--plain", cwd=here)  # none is left: both are named all the same
    assert done.returncode == 2 and done.stderr.count("error: ") == 2
    assert "error: bad: no answer to any sample" in done.stderr and "error: no answers at gone" in done.stderr


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["a.json", "b.json"], ["a", "b"]),
        (["m/x/out/pred.json", "m/y/out/pred.json"], ["x", "y"]),
        (["m/x/pred.json", "y.json", "m/y/pred.json", "m/z/pred.json"], ["x", "y", "y-pred", "z"]),
        (["m/a.json", "m/a.jsonl"], ["a.json", "a.jsonl"]),
        (["run.v2", "run.v3"], ["run.v2", "run.v3"]),
    ],
)
def test_runs_are_called_after_what_tells_their_answers_apart(
    files: list[str], names: list[str], tmp_path: Path
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if "run.v" in name:
            (tmp_path / name).mkdir()
        else:
            (tmp_path / name).touch()
    assert names_of([tmp_path / name for name in files]) == names


def test_the_same_answers_and_data_by_another_path_are_the_same_run(here: Path) -> None:
    write(here, "folder")
    (here / "linked").symlink_to("mydocs")
    (here / "mine").symlink_to(here / "answers")
    for benchmark, answers in (("mydocs", "answers"), (here / "mydocs", here / "answers"), ("linked", "./mine/")):
        done = loupe("score", benchmark, answers, "--name", "mine", "--json", cwd=here)
        assert done.returncode == 0, done.stderr
        done = loupe("run", benchmark, "-e", f"predictions:{answers}", "--name", "read", "--json", cwd=here)
        assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in here.glob("runs/*/*")) == ["mydocs", "mydocs"]


def test_other_answers_under_a_taken_name_are_refused_with_what_helps(here: Path) -> None:
    write(here, "map")
    assert loupe("score", "mydocs", "answers.json", "--name", "mine", cwd=here).returncode == 0
    (here / "other.json").write_text(json.dumps({"a": "?"}))
    done = loupe("score", "mydocs", "other.json", "--name", "mine", cwd=here)
    assert done.returncode == 2
    assert "use --name NAME to keep both, or remove runs/mine/mydocs" in " ".join(done.stderr.split())
    assert "--fresh" not in done.stderr


def test_corrected_answers_are_read_again(here: Path) -> None:
    (here / "answers.json").write_text(json.dumps({"a": "?", "b/2.png": "?", "c": "?"}))
    assert value(scored(here, "answers.json")) < 0.2
    assert value(scored(here, write(here, "map"))) == 1.0


def test_the_predictions_of_a_run_keep_their_class(here: Path) -> None:
    rows = [
        {"sample": "a", "text": "first letter", "class": "truncated", "finish_reason": "length"},
        {"sample": "b/2.png", "text": "", "class": "timeout", "error": "slow"},
        {"sample": "c", "text": "third one", "class": "ok"},
        {"sample": "c", "text": "", "class": "error", "error": "later"},
    ]
    (here / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert scored(here, "predictions.jsonl")["outcomes"] == {"truncated": 1, "timeout": 1, "ok": 1}


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("answers.json", '{"zz": "x"}', "no answer to any sample of mydocs; it has 'zz'"),
        ("answers.json", "[1]", "answers.json, entry 1: not an object"),
        ("answers.json", "{", "answers.json: "),
        ("answers.jsonl", '{"text": "x"}', "answers.jsonl, line 1: no `id`"),
        (
            "answers.jsonl",
            '{"id": "a", "txt": "x"}',
            "line 1: no text; it has `id`, `txt`; did you mean 'text'?\nhint: ",
        ),
        (
            "answers.json",
            '[{"smaple": "a", "text": "x"}]',
            "entry 1: no `id`; did you mean 'sample'?\nhint: one of: sample",
        ),
        ("answers.csv", "a,b", "neither a folder nor a .json or .jsonl file"),
    ],
)
def test_a_file_in_no_known_layout_is_refused_in_one_line(here: Path, name: str, content: str, complaint: str) -> None:
    (here / name).write_text(content)
    done = loupe("score", "mydocs", name, cwd=here)
    assert done.returncode == 2
    assert complaint in done.stderr and "Traceback" not in done.stderr


def test_an_answer_is_matched_by_its_exact_name_first() -> None:
    answers = [Prediction(sample="1.png", text="image"), Prediction(sample="1", text="plain")]
    found = match_answers(answers, ["1", "1.png"], ["1", "1.png"]).found
    assert (found["1"].text, found["1.png"].text) == ("plain", "image")


def official_answers(folder: Path, rows: list[dict[str, Any]], *, samples: int = 1000) -> list[Prediction]:
    known = list(get_benchmark("ocrbench").load(shared("data/ocrbench")))[:samples]
    (folder / "answers.json").write_text(json.dumps(rows))
    return list(read_answers("ocrbench", folder / "answers.json", samples=lambda: known))


def answered_questions() -> list[dict[str, Any]]:
    questions: list[dict[str, Any]] = json.loads((shared("data/ocrbench/OCRBench.json")).read_text())
    for question in questions[::2]:
        answers = question["answers"]
        question["predict"] = answers[0] if isinstance(answers, list) else answers
    return questions


def test_the_official_json_of_ocrbench_is_matched_by_place_because_its_ids_repeat(tmp_path: Path) -> None:
    questions = answered_questions()
    found = official_answers(tmp_path, questions)
    assert [answer.sample for answer in found] == [f"{index:04d}" for index in range(0, 1000, 2)]
    with pytest.raises(UsageError, match="all 999 questions"):
        official_answers(tmp_path, questions, samples=999)


def test_an_official_json_of_ocrbench_in_another_order_is_refused_by_its_first_strange_entry(tmp_path: Path) -> None:
    questions = answered_questions()
    questions[700], questions[701] = questions[701], questions[700]
    with pytest.raises(UsageError, match="entry 701 asks"):
        official_answers(tmp_path, questions)
    with pytest.raises(UsageError, match="entry 1 asks None"):
        official_answers(tmp_path, [{"id": 1, "predict": "x"}] * 1000)


@pytest.mark.parametrize(
    ("answers", "known", "found", "extra"),
    [
        # A stale copy in another folder, before and after the right one.
        ({"page1": "right", "zz/page1": "stale"}, ["page1"], {"page1": "right"}, ["zz/page1"]),
        ({"old/page1": "stale", "page1": "right"}, ["page1"], {"page1": "right"}, ["old/page1"]),
        ({"a/1": "right", "c/1": "wrong"}, ["a/1", "b/1"], {"a/1": "right"}, ["c/1"]),
        ({"1": "whose?"}, ["a/1", "b/1"], {}, ["1"]),
        ({"1": "whose?"}, ["1.png", "1.jpg"], {}, ["1"]),
        ({"c/1": "one", "d/1": "two"}, ["a/1"], {}, ["c/1", "d/1"]),
        ({"1.png": "exact", "1": "loose"}, ["1.png"], {"1.png": "exact"}, ["1"]),
        # What people have: no folders, other folders, other image suffixes.
        ({"1": "x", "out/2": "y"}, ["a/1.png", "b/2"], {"a/1.png": "x", "b/2": "y"}, []),
        ({"3.jpg": "z"}, ["3.png"], {"3.png": "z"}, []),
    ],
)
def test_a_loose_match_neither_replaces_a_close_one_nor_guesses(
    answers: dict[str, str], known: list[str], found: dict[str, str], extra: list[str]
) -> None:
    matched = match_answers([Prediction(sample=name, text=text) for name, text in answers.items()], known, known)
    assert {ident: each.text for ident, each in matched.found.items()} == found
    assert (matched.extra, matched.double) == (extra, [])


def test_null_in_a_json_object_is_no_answer(here: Path) -> None:
    (here / "answers.json").write_text(json.dumps({"a": "first letter", "b/2.png": None, "c": "third one"}))
    assert scored(here, "answers.json")["outcomes"] == {"ok": 2, "missing": 1}


def test_suffixes_in_capitals_are_read_and_other_files_named(here: Path) -> None:
    (here / write(here, "folder") / "a.md").rename(here / "answers" / "a.TXT")
    for name in ("a.docx", ".DS_Store"):
        (here / "answers" / name).touch()
    result = scored(here, "answers")
    assert value(result) == 1.0
    assert "1 file was not read: a.docx" in " ".join(result["warnings"])


def test_the_sample_predictions_of_pubtabnet_get_the_official_mean(tmp_path: Path) -> None:
    folder = shared("data/pubtabnet")
    data = ("--data", str(folder / "sample_gt.json"), "--json")
    done = loupe("score", "pubtabnet", str(folder / "sample_pred.json"), *data, cwd=tmp_path)
    measures = json.loads(done.stdout)["measures"]
    assert measures["teds_official"]["value"] == pytest.approx(0.899678114795296, abs=1e-9)


def write_folder(root: Path, samples: dict[str, str], answers: dict[str, bytes], *, images: dict[str, str]) -> Path:
    """A folder of samples (id → reference) with pages (id → image, else a text), and answers beside it."""
    folder = root / "own"
    folder.mkdir()
    (folder / "loupe.toml").write_text('\ufeff[benchmark]\ntitle = "Own"\ntask = "text"\n')
    rows = [
        {"id": ident, "reference": text, **({"image": images[ident]} if ident in images else {"text": "x"})}
        for ident, text in samples.items()
    ]
    (folder / "samples.jsonl").write_bytes(
        b"\xef\xbb\xbf" + b"".join(json.dumps(row).encode() + b"\r\n" for row in rows)
    )
    for image in images.values():  # as macOS writes names
        page = folder / unicodedata.normalize("NFD", image.partition("#")[0])
        page.parent.mkdir(exist_ok=True)
        page.write_bytes(b"not looked at")
    for name, data in answers.items():
        file = root / "answers" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return folder


def found_in(folder: Path, answers: Path) -> Answers:
    """The answers to a folder, found as `loupe score` finds them."""
    samples = partial(samples_of, get_benchmark(str(folder)), None, {})
    known = [sample.id for sample in samples()]
    return find_all(str(folder), answers, samples, known, known)


@pytest.mark.parametrize(
    ("pages", "name", "ident"),
    [
        # Ids as `loupe init` makes them, answers as programs name them after the page file.
        ({"page1": "page1.jpg", "page1-png": "page1.png"}, "page1.png.txt", "page1-png"),
        ({"page1": "page1.jpg", "page1-png": "page1.png"}, "page1.jpg.txt", "page1"),
        ({"page1": "page1.jpg", "page1-png": "page1.png"}, "page1.JPG.txt", "page1"),
        ({"Rechnung- 1": "Rechnung: 1.png"}, "Rechnung: 1.txt", "Rechnung- 1"),
        *(({"s": f"x y{suffix}"}, "x y.txt", "s") for suffix in (".pbm", ".jpe", ".J2K", ".hif", ".pdf#page=1")),
        ({"a/x": "a/ x .png"}, "a/ x .md", "a/x"),
        # Separators of Windows, one folder more or fewer, whole paths.
        ({"a/p1": "a/p1.png", "b/p1": "b/p1.png"}, "b\\p1.txt", "b/p1"),
        ({"a/p1": "a/p1.png", "b/p1": "b/p1.png"}, "out\\b\\p1.png.txt", "b/p1"),
        # macOS decomposes letters, and does not tell large ones from small ones.
        ({"\u00dcbersicht": "x.png"}, "U\u0308bersicht.txt", "\u00dcbersicht"),
        ({"U\u0308bersicht": "x.png"}, "\u00dcbersicht.txt", "U\u0308bersicht"),
        ({"p-1": "\uac00.png"}, "\u1100\u1161.png.txt", "p-1"),
        ({"page1": "Page1.png"}, "PAGE1.TXT", "page1"),
        # Pages of a document.
        ({"scan-p1": "scan.pdf#page=1", "scan-p2": "scan.pdf#page=2"}, "scan.pdf#page=2.txt", "scan-p2"),
        ({"scan-p1": "scan.pdf#page=1", "scan-p2": "scan.pdf#page=2"}, "scan_p2.md", "scan-p2"),
        ({"scan-p1": "scan.pdf#page=1", "scan-p2": "scan.pdf#page=2"}, "Scan_Page_0002.txt", "scan-p2"),
        ({"scan-p1": "scan.pdf#page=1", "scan-p2": "scan.pdf#page=2"}, "scan-2.png.txt", "scan-p2"),
        ({"scan-p1": "scan.pdf#page=1", "scan-p2": "scan.pdf#page=2"}, "out/scan/page_2.txt", "scan-p2"),
        ({"a/scan-p2": "a/scan.pdf#page=2", "b/scan-p2": "b/scan.pdf#page=2"}, "b/scan.pdf_2.txt", "b/scan-p2"),
    ],
)
def test_an_answer_finds_the_page_it_is_named_after(
    tmp_path: Path, pages: dict[str, str], name: str, ident: str
) -> None:
    folder = write_folder(tmp_path, dict.fromkeys(pages, ""), {name: b"here"}, images=pages)
    found = found_in(folder, tmp_path / "answers")
    assert {each: found.found[each].text for each in found.found} == {ident: "here"}
    assert found.missing == [each for each in pages if each != ident] and not found.extra


@pytest.mark.parametrize(
    ("pages", "names"),
    [
        ({"a/p1": "a/p1.png", "b/p1": "b/p1.png"}, ["p1.png", "c\\p1"]),
        ({"x": "x.tif"}, ["x.jpg", "x.png"]),  # Two pictures of one page, and no way to tell.
        ({"A": "1.png", "a.b": "2.png"}, ["A.B.png.c", "\x1b[31mA", "..", "A" * 4000, "\u202eA", "\U0001f600"]),
        # Counted from 0 or from 1? Which of two documents? A page that there is not.
        ({"s-p1": "s.pdf#page=1", "s-p2": "s.pdf#page=2"}, ["s_0", "s_1"]),
        ({"s-p1": "s.pdf#page=1", "t-p1": "x/s.pdf#page=1"}, ["out/s_1"]),
        ({"s-p1": "s.pdf#page=1", "s-p2": "s.pdf#page=2"}, ["s", "s_3", "s_1_of_2", "s_2a", "s_0000000002"]),
        ({"s-p2": "s.pdf#page=2", "r": "s-2.pdf#page=1", "q": "s-2.pdf#page=3"}, ["s-2"]),
    ],
)
def test_a_name_that_could_mean_two_pages_means_none(tmp_path: Path, pages: dict[str, str], names: list[str]) -> None:
    folder = write_folder(tmp_path, dict.fromkeys(pages, ""), {}, images=pages)
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps({"id": name, "text": "?"}) + "\n" for name in names))
    found = found_in(folder, tmp_path / "answers.jsonl")
    assert (dict(found.found), found.extra, found.missing) == ({}, names, list(pages))


def test_names_that_differ_only_in_their_unicode_form_are_said(tmp_path: Path) -> None:
    answers = {"\u00dcbersicht.txt": b"right", "U\u0308bersicht.txt": b"other", "._x.txt": b"\x00\x05\x16"}
    answers |= {os.fsdecode(b"\xff.txt"): b"stray", "\x1b[31m\u202e.txt": b"stray"}
    answers |= {f"{name}.{end}": b"right" for name in ("\xc4rger", "A\u0308rger") for end in ("md", "txt")}
    samples = {"\u00dcbersicht": "right", "s": "right"}
    folder = write_folder(tmp_path, samples, answers, images={"s": "\xc4rger.png"})
    result = scored(tmp_path, "answers", folder.name)
    assert value(result) == 0.5
    [said] = [warning for warning in result["warnings"] if "Unicode form" in warning]
    assert r"'U\u0308bersicht' and '\xdcbersicht'" in said and "x.txt" not in " ".join(result["warnings"])
    assert "7 answers have no sample: " in " ".join(result["warnings"]) and r"\x1b[31m\u202e" in " ".join(
        result["warnings"]
    )


#: German, Russian and Japanese: the last two have NULs in UTF-16 only for their spaces and digits.
TEXTS = ("Gr\u00f6\u00dfe", "\u041f\u0440\u0438\u0432\u0435\u0442, 12 \u043a\u0433", "\u5408\u8a08 1,200 \u5186")


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "utf-32", "utf-16-le/-", "utf-16-be/-"])
def test_a_byte_order_mark_is_no_character_of_an_answer(tmp_path: Path, encoding: str, text: str) -> None:
    mark = codecs.BOM_UTF16_BE if encoding == "utf-16-be" else b""
    encoding, document = encoding.removesuffix("/-"), json.dumps({"a": f"\ufeff{text}"}, ensure_ascii=False)
    folder = write_folder(tmp_path, {"a": text}, {"a.txt": mark + (text + "\r\n").encode(encoding)}, images={})
    assert found_in(folder, tmp_path / "answers").found["a"].text == text + "\r\n"
    (tmp_path / "a.json").write_bytes(mark + document.encode(encoding))
    if encoding != "utf-32":
        assert found_in(folder, tmp_path / "a.json").found["a"].text == text
    (tmp_path / "a.jsonl").write_bytes(mark + (json.dumps({"id": "a", "text": text}) + "\n").encode(encoding))
    if encoding == "utf-8-sig":
        assert found_in(folder, tmp_path / "a.jsonl").found["a"].text == text
    else:
        with pytest.raises(UnsafeFileError, match=r"UTF-(16|32)-(LE|BE), but lines are read as UTF-8") as refused:
            found_in(folder, tmp_path / "a.jsonl")
        assert refused.value.hint.startswith("convert it: iconv -f UTF-")


def test_stray_nuls_make_no_utf_16_of_an_answer() -> None:
    for data in (
        b"Total\0",
        b"Total\0\0",
        b"ab\0",
        b"one \0 in a text",
        b"\0a \0b \0 c\0",
        b"a\0b c\0def",
        b"a\0b c\0defg",
        b"a\0b c\0de\n",
    ):
        assert decode_text(data) == data.decode()


def test_an_official_evaluator_reads_no_utf_16(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes("Total 12".encode("utf-16-le"))
    answer = read_answer("a", tmp_path / "a.md", as_official=True)
    assert answer.failed and answer.error.endswith("a.md: UTF-16-LE, but this benchmark's answers are read as UTF-8")


def test_answers_as_an_engine_are_found_by_the_id_and_never_twice(tmp_path: Path) -> None:
    names = {
        "A\u030a\u0323.txt": b"one",
        "\xc5\u0323.txt": b"two",
        "U\u0308.txt": b"\xef\xbb\xbfright",
        "s.png.TXT": "right".encode("utf-16"),
        "page1.jpg.txt": b"right",
    }
    pages = {"a": "a/page1.jpg", "b": "b/page1.jpg", "question": "a/page1.jpg"}
    twins = dict.fromkeys(("twin.jpg", "twin.png"), "right")
    samples = {"\u00dc": "right", "\u1ea0\u030a": "right", "s.png": "right", **twins, **dict.fromkeys(pages, "right")}
    folder = write_folder(tmp_path, samples, {**names, "twin.txt": b"right"}, images=pages)
    done = loupe("run", folder, "-e", "predictions:answers", "--json", cwd=tmp_path)
    outcomes = json.loads(done.stdout)["outcomes"]
    assert outcomes == {"ok": 3, "rejected": 1, "error": 4}, done.stderr
