"""OCRBench: the rules in words, and the layouts in which it is published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import loupe
from loupe.benchmarks import get_benchmark
from loupe.benchmarks.ocrbench import verify_case
from loupe.benchmarks.registry import check_options
from loupe.data.pages import load_page
from loupe.errors import DatasetError, UsageError
from loupe.types import Prediction, Sample

VERIFY = Path(loupe.__file__).parent / "verify_cases"
BENCHMARK = get_benchmark("ocrbench")
#: Words of ours in the shape of the published files; the id repeats, as it does there.
ROWS = [
    ("IIIT5K", "Regular Text Recognition", "what is written in the image?", "OPEN"),
    ("docVQA", "Doc-oriented VQA", "What is the total?", ["12.50", "$12.50"]),
    ("HME100k", "Handwritten Mathematical Expression Recognition", "Write the formula.", "\\frac { a } { b }\n"),
]


def shipped(ident: str) -> list[dict[str, Any]]:
    """The parity cases of a benchmark that come with the package."""
    lines = (VERIFY / f"{ident}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def published(root: Path) -> Path:
    """The layout of the GitHub repository."""
    objects = [
        {
            "dataset_name": name,
            "id": 7,
            "image_path": f"{name}/1.png",
            "question": asked,
            "answers": answers,
            "type": kind,
        }
        for name, kind, asked, answers in ROWS
    ]
    (root / "OCRBench.json").write_text(json.dumps(objects), encoding="utf-8")
    for row in objects:
        path = root / "OCRBench_Images" / str(row["image_path"])
        path.parent.mkdir(parents=True)
        Image.new("RGB", (30, 20), "white").save(path)
    return root


def load(root: Path, **options: Any) -> list[Sample]:
    return list(BENCHMARK.load(root, **options))


def points(sample: Sample, text: str, measure: str = "score") -> float:
    return next(s.counts[0] for s in BENCHMARK.score(sample, Prediction(text=text)) if s.measure == measure)


def question(answers: str | list[str], dataset: str = "docVQA", **tags: str) -> Sample:
    return Sample(id="q", truth=answers, tags={"dataset": dataset, **tags})


def test_the_published_json_is_read_with_its_images(tmp_path: Path) -> None:
    samples = load(published(tmp_path))
    assert [sample.id for sample in samples] == ["0000", "0001", "0002"]
    assert [(sample.prompt, sample.truth) for sample in samples] == [(asked, answers) for _, _, asked, answers in ROWS]
    assert all(load_page(sample.images[0]).size == (30, 20) for sample in samples)


def test_the_hubs_parquet_gives_the_same_samples(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    samples = load(published(tmp_path))
    pictures = [{"bytes": Path(str(sample.images[0])).read_bytes(), "path": "x.png"} for sample in samples]
    columns = {
        "dataset": [row[0] for row in ROWS],
        "question": [row[2] for row in ROWS],
        "question_type": [row[1] for row in ROWS],
        "answer": [[row[3]] if isinstance(row[3], str) else row[3] for row in ROWS],
        "image": pictures,
    }
    (tmp_path / "hub/data").mkdir(parents=True)
    parquet.write_table(pa.table(columns), tmp_path / "hub/data/test-00000-of-00001.parquet")
    found = load(tmp_path / "hub")
    assert [(each.id, each.prompt, each.tags) for each in found] == [
        (each.id, each.prompt, each.tags) for each in samples
    ]
    assert [points(sample, "it says OPEN") for sample in found] == [1, 0, 0]
    assert load_page(found[2].images[0]).size == (30, 20)


@pytest.mark.parametrize(
    "wrong", [{"question_type": [["a"]]}, {"dataset": [1]}, {"answer": [None]}, {"question": [None]}]
)
def test_columns_of_other_types_are_refused_with_their_row(tmp_path: Path, wrong: dict[str, list[object]]) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"dataset": ["d"], "question": ["q"], "question_type": ["t"], "answer": [["a"]], "image": [b"x"]} | wrong
    (tmp_path / "data").mkdir()
    parquet.write_table(pa.table(columns), tmp_path / "data/test-00000-of-00001.parquet")
    with pytest.raises(
        DatasetError, match=r"test-00000-of-00001.parquet, row \d+: dataset, question_type and question are"
    ):
        load(tmp_path)


def test_the_prepared_form_is_read_with_answers_as_a_list_or_as_json(tmp_path: Path) -> None:
    lines = [
        {
            "idx": index,
            "sample_id": f"q{index}",
            "ground_truth": json.dumps(answers) if index else answers,
            "metadata": {"dataset": name, "category": kind, "question": asked},
        }
        for index, (name, kind, asked, answers) in enumerate(ROWS[:2])
    ]
    (tmp_path / "metadata.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    samples = load(tmp_path)
    assert [sample.truth for sample in samples] == ["OPEN", ["12.50", "$12.50"]]
    assert [sample.tags["section"] for sample in samples] == ["Text Recognition", "Doc-oriented VQA"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"metadata": {"dataset": "HME100k"}}, "none of category, question_type, type"),
        ({"metadata": {"category": "Doc-oriented VQA"}}, "none of dataset, dataset_name"),
        ({"ground_truth": [1, 2]}, "neither a text nor a list of texts"),
        ({"ground_truth": None}, "neither a text nor a list of texts"),
    ],
)
def test_a_prepared_row_without_what_scoring_goes_by_is_refused(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    metadata = {"dataset": "docVQA", "category": "Doc-oriented VQA", "question": "?"}
    row = {"idx": 0, "sample_id": "q", "ground_truth": "a", "metadata": metadata, **changes}
    (tmp_path / "metadata.jsonl").write_text(json.dumps(row), encoding="utf-8")
    with pytest.raises(DatasetError, match=f"sample 'q': .*{said}"):
        load(tmp_path)


def test_a_failed_question_earns_nothing_even_if_its_answer_is_empty() -> None:
    for prediction, earned in ((Prediction(outcome="error"), 0.0), (Prediction(outcome="empty"), 1.0)):
        scores = BENCHMARK.score(question(""), prediction)
        assert {score.measure: score.counts[0] for score in scores}["score"] == earned


def test_a_folder_without_the_data_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"expected OCRBench\.json") as raised:
        load(tmp_path)
    assert raised.value.hint == "download it: loupe data get ocrbench"


@pytest.mark.parametrize("content", ["{}", '[{"question": 3}]', "no JSON"])
def test_a_json_of_another_shape_is_refused_by_name(tmp_path: Path, content: str) -> None:
    (tmp_path / "OCRBench.json").write_text(content, encoding="utf-8")
    with pytest.raises(DatasetError, match=r"OCRBench\.json: not the list"):
        load(tmp_path)


def test_an_image_path_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    file = published(tmp_path) / "OCRBench.json"
    file.write_text(file.read_text(encoding="utf-8").replace("IIIT5K/1.png", "../../1.png"), encoding="utf-8")
    with pytest.raises(DatasetError, match="leaves the folder"):
        load(tmp_path)


def test_an_unknown_variant_is_refused() -> None:
    with pytest.raises(UsageError, match="variant=offical"):
        check_options(BENCHMARK, {"variant": "offical"})


def test_the_variant_decides_the_points(tmp_path: Path) -> None:
    official, lenient = load(published(tmp_path)), load(tmp_path, variant="lmms_eval")
    assert points(official[0], "ＯＰＥＮ") == 0
    assert points(lenient[0], "ＯＰＥＮ") == 1


def test_case_counts_in_formulas_only() -> None:
    assert points(question("Total"), "TOTAL") == 1
    assert points(question("Total", dataset="HME100k"), "TOTAL") == 0


def test_vlmevalkit_knows_formulas_by_their_category() -> None:
    sample = question("a b", category="Handwritten Mathematical Expression Recognition")
    assert points(sample, "ab") == 0
    assert points(question("a b", **{**sample.tags, "variant": "vlmevalkit"}), "ab") == 1


def test_an_answer_inside_another_word_is_right_officially_but_no_word_match() -> None:
    sample = question("no")
    assert points(sample, "I do not know") == 1
    assert points(sample, "I do not know", "word_match") == 0
    assert points(sample, "No, it does not", "word_match") == 1


def test_a_failed_question_is_wrong_but_not_among_the_answered() -> None:
    scores = BENCHMARK.score(question("no"), Prediction(outcome="error", error="x"))
    assert {score.measure: score.counts for score in scores} == {
        "score": (0.0,), "accuracy": (0.0, 1.0), "word_match": (0.0, 1.0)
    }  # fmt: skip


@pytest.mark.parametrize("case", shipped("ocrbench"), ids=lambda case: case["id"])
def test_the_parity_cases_in_the_package_hold(case: dict[str, Any]) -> None:
    checked = verify_case(case)
    assert checked
    assert all(ours == official for ours, official in checked)
