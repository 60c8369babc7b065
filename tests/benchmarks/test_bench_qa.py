"""Question sets: what is asked, what is grouped, layouts of the authors, hidden test sets, faults of form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loupe.benchmarks import get_benchmark
from loupe.errors import DatasetError
from loupe.types import Benchmark, Prediction, Sample
from tests.data.test_data_layouts import feature, parquet, picture
from tests.support.command_line import complaint, loupe

READER = "def read(page):\n    return {'7': 'one', '8': ' x1 '}[page.id]\n"


def write(root: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return root


def loaded(name: str, root: Path, **options: str) -> list[Sample]:
    return list(get_benchmark(name).load(root, **options))


@pytest.fixture
def hidden(tmp_path: Path) -> Path:
    """A test split of DocVQA, as the hub has it."""
    shard = parquet(questionId=["7", "8"], question=["a?", "b?"], answers=[None, None], image=feature(2))
    return write(tmp_path, {"data/DocVQA/test-00000-of-00001.parquet": shard, "reader.py": READER.encode()})


def test_docvqa_and_infovqa_are_read_as_their_authors_publish_them(tmp_path: Path) -> None:
    entry = {"questionId": 7, "question": "a?", "answers": ["1"], "docId": 3, "question_types": ["form", "layout"]}
    images = {"spdocvqa_images/p.png": picture(50), "infographicsvqa_images/i.jpeg": picture(50, "JPEG")}
    name = "infographicsVQA_val_v1.0_withQT.json"
    info = {"questionId": 7, "question": "a?", "answers": ["1"], "image_local_name": "i.jpeg", "answer_type": ["x"]}
    files = {"val_v1.0_withQT.json": {"data": [entry | {"image": "p.png"}]}, name: {"data": [info]}, **images}
    (first,) = loaded("docvqa", write(tmp_path, files))
    assert (first.id, first.group, first.tags) == ("7", "3", {"question_type": "form + layout"})
    assert first.prompt == "a?\nAnswer the question using a single word or phrase."
    assert first.truth == {"question": "a?", "answers": ["1"]}
    (second,) = loaded("infovqa", tmp_path)
    assert second.images == (tmp_path / "infographicsvqa_images" / "i.jpeg",) and second.tags == {"answer_type": "x"}
    assert loaded("infovqa", tmp_path / name) == [second]


def test_chartqa_is_read_as_its_repository_has_it(tmp_path: Path) -> None:
    entries = [{"imgname": "a.png", "query": "how many?", "label": "3"}]
    files: dict[str, Any] = {f"test/test_{kind}.json": entries for kind in ("human", "augmented")}
    found = loaded("chartqa", write(tmp_path, files | {"test/png/a.png": picture(50)}))
    assert [(one.id, one.tags["type"], one.group) for one in found] == [
        ("00000", "human_test", "a.png"),
        ("00001", "augmented_test", "a.png"),
    ]
    assert {one.images for one in found} == {(tmp_path / "test/png/a.png",)}


def test_textvqa_is_read_as_its_authors_publish_it(tmp_path: Path) -> None:
    entry = {"question_id": 34, "image_id": "00a", "question": "what Brand is IT?", "answers": ["one"] * 10}
    files = {"TextVQA_0.5.1_val.json": {"data": [entry]}, "train_images/00a.jpg": picture(50, "JPEG")}
    (found,) = loaded("textvqa", write(tmp_path, files), variant="lmms_eval")
    assert (found.id, found.group, found.images) == ("34", "00a", (tmp_path / "train_images/00a.jpg",))
    assert found.prompt.startswith("What brand is it?\n") and found.truth["question"] == "what Brand is IT?"
    assert loaded("textvqa", tmp_path, prompt="question")[0].prompt == "what Brand is IT?"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[", "not JSON"),
        ({"data": 3}, "no list of questions"),
        ({"data": [3]}, "entry 0: not an object"),
        ({"data": [{"image": "../../x.png", "question": "a"}]}, "leaves the folder"),
        ({"data": [{"image": "x.png", "question": None}]}, "question is no text"),
        ({"data": [{"image": "x.png", "question": "a", "answers": [1]}]}, "neither a text nor a list of texts"),
        ({"data": [{"question": "a"}]}, "image is no text"),
    ],
)
def test_what_is_no_question_is_named(tmp_path: Path, content: Any, said: str) -> None:
    with pytest.raises(DatasetError, match=said):
        loaded("docvqa", write(tmp_path, {"val_v1.0_withQT.json": content}))


def test_questions_about_the_same_picture_belong_together(tmp_path: Path) -> None:
    one, other = feature(2)
    shard = parquet(type=["human_test"] * 3, question=["a?"] * 3, answer=["1"] * 3, image=[one, other, one])
    first, second, third = loaded("chartqa", write(tmp_path, {"data/test-00000-of-00001.parquet": shard}))
    assert first.group == third.group != second.group


def test_another_program_decides_and_asks_unless_the_prompt_is_kept(tmp_path: Path) -> None:
    shard = parquet(type=["human_test"], question=["a {question}?"], answer=["3"], image=feature(1))
    root = write(tmp_path, {"data/test-00000-of-00001.parquet": shard})
    (other,) = loaded("chartqa", root, variant="evalscope")
    assert "ANSWER: [ANSWER]" in other.prompt and "a {question}?" in other.prompt
    (kept,) = loaded("chartqa", root, variant="evalscope", prompt="vlmevalkit")
    assert kept.prompt == loaded("chartqa", root)[0].prompt and kept.scoring == {"variant": "evalscope"}
    assert earned(get_benchmark("chartqa"), kept, "3") == 0.0
    assert earned(get_benchmark("chartqa"), kept, "ANSWER: 3") == 1.0


def earned(benchmark: Benchmark, sample: Sample, text: str, measure: str = "") -> float:
    scores = benchmark.score(sample, Prediction(text=text))
    assert isinstance(scores, list)
    return next(each.counts[0] for each in scores if each.measure == (measure or benchmark.headline_measure))


@pytest.mark.parametrize(
    ("text", "reference", "measure"),
    [
        ("1950", "2019", "year_within_5_percent"),
        ("102", "100", "within_5_percent"),
        ("12", "12%", "percent_mismatch"),
        ("12 %", "12", "percent_mismatch"),
        ("1,200", "1200", "unread_number"),
        ("$1200", "1200", "unread_number"),
    ],
)
def test_chartqa_counts_what_the_rule_gives_and_takes(text: str, reference: str, measure: str) -> None:
    benchmark = get_benchmark("chartqa")
    sample = Sample(id="s", truth={"question": "?", "answers": reference})
    assert earned(benchmark, sample, text, measure) == 1.0
    assert earned(benchmark, sample, reference, measure) == 0.0
    assert earned(benchmark, sample, "nothing of the kind", measure) == 0.0


def test_a_failed_answer_earns_nothing_where_nothing_is_right() -> None:
    sample = Sample(id="s", truth={"question": "?", "answers": [""]})
    benchmark = get_benchmark("docvqa")
    assert earned(benchmark, sample, "") == 1.0
    assert benchmark.score(sample, Prediction(text="", outcome="error"))[0].counts == (0.0, 1.0)  # type: ignore[index]


def test_a_hidden_test_split_gives_the_file_for_its_server_and_no_number(hidden: Path) -> None:
    words = ("docvqa", "--data", "data", "-o", "split=test", "-e", "python:reader.py:read")
    done = loupe("run", *words, cwd=hidden)
    assert done.returncode == 0, done.stderr
    assert "its answers are not public" in done.stdout
    run = "runs/python-reader.py_read/docvqa"
    assert json.loads((hidden / run / "result.json").read_text())["measures"]["anls"]["value"] is None
    done = loupe("export", run, "--to", "submission", cwd=hidden)
    assert (done.returncode, done.stdout) == (0, "submission.json\n"), done.stderr
    rows = json.loads((hidden / "submission.json").read_text())
    assert rows == [{"questionId": 7, "answer": "one"}, {"questionId": 8, "answer": "x1"}]


def test_what_no_server_takes_is_refused(hidden: Path) -> None:
    shard = parquet(questionId=["7"], question=["a?"], answers=[["one"]], image=feature(1))
    write(hidden, {"data/DocVQA/validation-00000-of-00001.parquet": shard})
    engine = ("-e", "python:reader.py:read", "--data", "data")
    assert loupe("infer", "docvqa", *engine, cwd=hidden).returncode == 0
    part = loupe("infer", "docvqa", *engine, "-o", "split=test", "--limit", "1", "--name", "part", cwd=hidden)
    assert part.returncode == 0
    said = complaint(loupe("export", "runs/python-reader.py_read/docvqa", "--to", "submission", cwd=hidden))
    assert said == ("the answer to 7 is public; the server takes those to the test split", "-o split=test")
    said = complaint(loupe("export", "runs/part/docvqa", "--to", "submission", cwd=hidden))
    assert said[0] == "runs/part/docvqa has read a part of docvqa, and the server wants every answer"
    assert not (hidden / "submission.json").exists()


@pytest.mark.parametrize("text", ["", "Baker Street", "1,23", "12...", '"a" and "b"', "answers", "x" * 30_000 + "."])
def test_lint_leaves_plain_answers_alone(text: str) -> None:
    assert not any(fault.edits(text) for fault in get_benchmark("chartqa").faults)
