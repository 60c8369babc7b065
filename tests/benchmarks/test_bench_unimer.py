"""UniMER-Test: the official numbers, case by case, and the layouts in which it is published."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from loupe.benchmarks.registry import get_benchmark
from loupe.benchmarks.unimer_test import SUBSETS, benchmark, load, strip_dollars, text_counts, verify_case
from loupe.data.pages import load_page
from loupe.errors import DatasetError
from loupe.metrics import (
    bleu_of_sums,
    corpus_bleu,
    normalize_latex_like_unimernet,
    normalized_edit_distance,
    strip_formula_wrapping,
    tokenize_13a,
)
from loupe.pipeline.plan import survey
from loupe.types import Prediction, Sample
from tests.support.shared import cases

TOLERANCE = 1e-9
FORMULAS = {
    "spe": ["x ^ { 2 }", "", "a + b"],
    "cpe": ["\\frac { a } { b }\u2028 + 1", "y", "z"],
    "sce": ["\\alpha"],
    "hwe": ["\\sum _ { i }", "n !"],
}


def near(value: float) -> Any:
    return pytest.approx(value, abs=TOLERANCE, rel=0)


def name(case: dict[str, Any]) -> str:
    return str(case["id"])


def values(gt: str, pred: str) -> dict[str, tuple[float, ...]]:
    return text_counts(Sample(id="f", truth=gt), Prediction(text=pred))


@pytest.mark.parametrize("case", cases("oracles/unimer/cases.jsonl"), ids=name)
def test_a_formula_scores_as_in_the_official_script(case: dict[str, Any]) -> None:
    gt, pred, expected = case["input"]["gt"], case["input"]["pred"], case["expected"]
    assert normalize_latex_like_unimernet(pred) == expected["norm_pred"]
    assert normalize_latex_like_unimernet(gt) == expected["norm_gt"]
    assert tokenize_13a(expected["norm_pred"]) == expected["tokens_13a_norm_pred"]
    found = values(gt, pred)
    assert found["edit_distance"][0] == near(expected["edit"])
    assert found["exprate"][0] == float(expected["exact"])
    # Where the official metric divides by zero we report 0.
    assert float(bleu_of_sums(found["bleu"])) == near(expected["bleu_single"].get("bleu", 0.0))
    assert normalized_edit_distance(pred, gt) == near(expected["edit_raw"])


@pytest.mark.parametrize("case", cases("oracles/unimer/corpus_cases.jsonl"), ids=name)
def test_a_corpus_scores_as_in_the_official_script(case: dict[str, Any]) -> None:
    expected = case["expected"]
    rows = [values(pair["gt"], pair["pred"]) for pair in case["input"]["pairs"]]
    sums = [sum(column) for column in zip(*(row["bleu"] for row in rows), strict=True)]
    assert float(bleu_of_sums(sums)) == near(expected["corpus"].get("bleu", 0.0))
    assert sum(row["edit_distance"][0] for row in rows) / len(rows) == near(expected["edit_mean"])
    assert sum(row["exprate"][0] for row in rows) / len(rows) == near(expected["exact_rate"])


@pytest.mark.parametrize("case", cases("oracles/unimer/corpus_cases.jsonl"), ids=name)
def test_the_swapped_bleu_of_omnidocbench_is_that_with_its_arguments_swapped(case: dict[str, Any]) -> None:
    pairs = case["input"]["pairs"]
    predictions = [normalize_latex_like_unimernet(pair["pred"]) for pair in pairs]
    references = [normalize_latex_like_unimernet(pair["gt"]) for pair in pairs]
    expected = case["expected"]["corpus_swapped"].get("bleu", 0.0)
    assert corpus_bleu(references, predictions) == near(expected)


def test_fences_and_dollar_signs_cost_in_the_official_measures_only() -> None:
    found = values("x ^ 2 + y", "```latex\n$$x^2+y$$\n```")
    assert found["edit_distance"][0] > 0
    assert found["edit_distance_unwrapped"][0] == 0
    assert found["exprate"] == (0.0, 1.0)
    assert found["exprate_unwrapped"] == (1.0, 1.0)


@pytest.mark.parametrize(
    ("answer", "formula"),
    [
        ("$x$", "x"),
        ("\\[ x \\]", "x"),
        ("\\(x\\)", "x"),
        ("```\nx\n```", "x"),
        ("$x$ and $y$", "$x$ and $y$"),
        ("\\(x\\) or \\(y\\)", "\\(x\\) or \\(y\\)"),
        ("$", "$"),
        ("", ""),
        ("x", "x"),
    ],
)
def test_only_wrapping_around_the_whole_answer_is_removed(answer: str, formula: str) -> None:
    assert strip_formula_wrapping(answer) == formula


def test_outer_dollars_go_and_inner_blanks_stay() -> None:
    assert strip_dollars(" $$ x ^ 2 $$ ") == "x ^ 2"


def test_a_failed_answer_scores_as_an_empty_one() -> None:
    failed = text_counts(Sample(id="f", truth="x"), Prediction(outcome="timeout"))
    assert failed == values("x", "")
    assert failed["edit_distance"] == (1.0, 1.0)


@pytest.mark.parametrize("hostile", [" " * 200_000, "\\text {" * 30_000, "1 " * 100_000, "\\ " * 100_000, "\0\udc80"])
def test_hostile_answers_end_soon(hostile: str) -> None:
    assert values("x ^ 2", hostile)["edit_distance"][0] > 0.5


@given(st.text(st.sampled_from("ab1 \t\n\\{}^_é中"), max_size=30))
def test_normalised_text_is_a_fixed_point_without_its_commands(text: str) -> None:
    once = normalize_latex_like_unimernet(text)
    assert normalize_latex_like_unimernet(once) == once
    assert len(once) <= len(text)
    assert [each for each in once if not each.isspace()] == [each for each in text if not each.isspace()]


# --- data in its published layouts, with formulas of our own


def png(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 6), "white").save(path)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The layout of UniMERNet's test script."""
    folder = tmp_path / "UniMER-Test"
    for subset, labels in FORMULAS.items():
        for index, label in enumerate(labels):
            if label:
                png(folder / subset / f"{index:07d}.png")
        (folder / f"{subset}.txt").write_text("\n".join(labels) + "\n", encoding="utf-8")
    return tmp_path


def test_labels_and_images_are_paired_by_number_and_blank_lines_are_no_samples(tree: Path) -> None:
    samples = list(load(tree))
    assert [sample.id for sample in samples][:3] == ["spe_0000000", "spe_0000002", "cpe_0000000"]
    assert [sample.tags["subset"] for sample in samples] == ["spe"] * 2 + ["cpe"] * 3 + ["sce"] + ["hwe"] * 2
    assert samples[1].truth == "a + b"
    assert samples[1].images == (tree / "UniMER-Test" / "spe" / "0000002.png",)


def test_a_separator_of_unicode_inside_a_label_does_not_end_its_line(tree: Path) -> None:
    labels = [sample.truth for sample in load(tree, subset="cpe")]
    assert labels == FORMULAS["cpe"]


def test_a_label_without_an_image_is_no_sample_and_moves_no_other(tree: Path) -> None:
    (tree / "UniMER-Test" / "cpe" / "0000001.png").unlink()
    assert [sample.truth for sample in load(tree, subset="cpe")] == [FORMULAS["cpe"][0], "z"]


def test_an_image_without_a_label_is_an_error_that_names_it(tree: Path) -> None:
    png(tree / "UniMER-Test" / "sce" / "0000007.png")
    with pytest.raises(DatasetError, match=r"1 files in sce/ have no label.*0000007\.png"):
        list(load(tree, subset="sce"))


def test_a_subset_that_is_not_here_is_named_with_the_option_and_existing_answers_need_no_images(tree: Path) -> None:
    folder = tree / "UniMER-Test"
    with_images = list(load(tree, subset="spe"))
    shutil.rmtree(folder / "hwe")
    with pytest.raises(DatasetError, match="no images in hwe/") as refused:
        list(load(tree))
    assert refused.value.hint.startswith("-o subset=spe reads one subset alone")
    for subset in ("spe", "cpe", "sce"):
        shutil.rmtree(folder / subset)
    assert list(load(tree, subset="spe")) == with_images
    assert survey(benchmark, "unimer_test", tree, {}).gone == folder / "spe" / "0000000.png"
    (folder / "hwe.txt").unlink()
    with pytest.raises(DatasetError, match=r"hwe\.txt cannot be read") as refused:
        list(load(tree))
    assert refused.value.hint.startswith("-o subset=spe reads")


def test_the_folder_itself_will_do(tree: Path) -> None:
    assert len(list(load(tree / "UniMER-Test"))) == 8


def test_the_zip_gives_the_same_samples_as_the_folder(tree: Path) -> None:
    expected = [(sample.id, sample.truth, sample.tags) for sample in load(tree)]
    packed = tree / "packed"
    packed.mkdir()
    with zipfile.ZipFile(packed / "UniMER-Test.zip", "w") as archive:
        for path in sorted((tree / "UniMER-Test").rglob("*")):
            archive.write(path, path.relative_to(tree))
    samples = list(load(packed))
    assert [(sample.id, sample.truth, sample.tags) for sample in samples] == expected
    assert load_page(samples[0].images[0]).size == (8, 6)


def test_parquet_shards_are_read_in_stored_order(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    png(tmp_path / "a.png")
    image = {"bytes": (tmp_path / "a.png").read_bytes(), "path": "a.png"}
    table = arrow.table({"image": [image] * 3, "text": ["x", "y ", "z"]})
    (tmp_path / "data").mkdir()
    parquet.write_table(table, tmp_path / "data" / "test-00000-of-00001.parquet")
    samples = list(load(tmp_path))
    assert [(sample.id, sample.truth) for sample in samples] == [
        ("unimernet_0", "x"),
        ("unimernet_1", "y"),
        ("unimernet_2", "z"),
    ]
    assert load_page(samples[2].images[0]).size == (8, 6)
    with pytest.raises(DatasetError, match="do not name the subsets"):
        load(tmp_path, subset="hwe")


def test_the_prepared_form_is_read_with_its_subsets(tmp_path: Path) -> None:
    rows = [
        {"idx": i, "sample_id": f"s{i}", "ground_truth": "x", "metadata": {"subset": s}} for i, s in enumerate(SUBSETS)
    ]
    (tmp_path / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert [sample.id for sample in load(tmp_path)] == ["s0", "s1", "s2", "s3"]
    assert [sample.id for sample in load(tmp_path, subset="sce")] == ["s2"]


def test_a_folder_without_the_data_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"no UniMER-Test here; expected .*spe\.txt") as caught:
        load(tmp_path)
    assert caught.value.hint == "download it: loupe data get unimer_test"


def test_a_label_file_that_is_missing_or_not_utf8_is_named(tree: Path) -> None:
    (tree / "UniMER-Test" / "hwe.txt").write_bytes(b"x^2\xe9")
    with pytest.raises(DatasetError, match=r"hwe\.txt is not UTF-8"):
        list(load(tree))
    (tree / "UniMER-Test" / "hwe.txt").unlink()
    with pytest.raises(DatasetError, match=r"hwe\.txt cannot be read"):
        list(load(tree))


def test_the_registry_knows_it_and_its_first_measure_ranks() -> None:
    assert get_benchmark("unimer_test") is benchmark
    assert benchmark.headline_measure == "edit_distance"


def test_the_shipped_parity_cases_hold() -> None:
    import loupe

    path = Path(loupe.__file__).parent / "verify_cases" / "unimer_test.jsonl"
    shipped = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(shipped) >= 30
    for case in shipped:
        for ours, official in verify_case(case):
            assert ours == pytest.approx(official, abs=case["tolerance"], rel=0), case["id"]
