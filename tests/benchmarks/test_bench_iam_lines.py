"""IAM lines: rates in words, text preparations, drawing of lines, and the layouts in which it is published."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import loupe
from loupe.benchmarks import get_benchmark
from loupe.benchmarks.iam_lines import draw_lines, prepare_punct_quotes, verify_case
from loupe.data.pages import load_page
from loupe.errors import DatasetError, UsageError
from loupe.types import Prediction, Sample

VERIFY = Path(loupe.__file__).parent / "verify_cases"
BENCHMARK = get_benchmark("iam_lines")
TEXTS = [f"the line no . {number} , as written" for number in range(300)]


def shipped(ident: str) -> list[dict[str, Any]]:
    """The parity cases of a benchmark that come with the package."""
    lines = (VERIFY / f"{ident}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def published(root: Path, texts: list[str] = TEXTS[:3], split: str = "test") -> Path:
    """The layout of the hub: one parquet file per split, the image as a struct."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    picture = io.BytesIO()
    Image.new("RGB", (300, 128), "white").save(picture, "JPEG")
    images = [{"bytes": picture.getvalue(), "path": None}] * len(texts)
    (root / "data").mkdir(exist_ok=True)
    parquet.write_table(pa.table({"image": images, "text": texts}), root / "data" / f"{split}.parquet")
    return root


def load(root: Path, **options: Any) -> list[Sample]:
    return list(BENCHMARK.load(root, **options))


def counts(reference: str, text: str, **tags: str) -> dict[str, tuple[float, ...]]:
    sample = Sample(id="line", truth=reference, tags=tags)
    return {score.measure: score.counts for score in BENCHMARK.score(sample, Prediction(text=text))}


def test_lines_are_read_from_the_hubs_parquet_in_file_order(tmp_path: Path) -> None:
    samples = load(published(tmp_path))
    assert [sample.id for sample in samples] == ["test-0000", "test-0001", "test-0002"]
    assert [sample.truth for sample in samples] == TEXTS[:3]
    assert load_page(samples[2].images[0]).size == (300, 128)


def test_another_split_is_another_file(tmp_path: Path) -> None:
    published(published(tmp_path), ["only this"], "validation")
    assert [sample.truth for sample in load(tmp_path, split="validation")] == ["only this"]


def test_a_split_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no split 'train' of IAM lines here") as raised:
        load(published(tmp_path), split="train")
    assert raised.value.hint == "download it: loupe data get iam_lines"


def test_the_prepared_form_is_read(tmp_path: Path) -> None:
    line = {"idx": 0, "sample_id": "iam_7", "ground_truth": "a word .", "metadata": {}}
    (tmp_path / "metadata.jsonl").write_text(json.dumps(line), encoding="utf-8")
    (sample,) = load(tmp_path)
    assert (sample.id, sample.truth, sample.images) == ("iam_7", "a word .", (tmp_path / "images/00000.jpg",))


def test_drawn_lines_keep_their_ids_and_their_order(tmp_path: Path) -> None:
    published(tmp_path, TEXTS)
    drawn = load(tmp_path, sample=40)
    assert [sample.id for sample in drawn] == sorted({sample.id for sample in drawn})
    assert all(sample.truth == TEXTS[int(sample.id[-4:])] for sample in drawn)
    assert len(drawn) == 40


def test_the_seed_decides_which_lines_are_drawn() -> None:
    assert draw_lines(2915, 200, 42) != draw_lines(2915, 200, 43)
    assert draw_lines(2915, 200, 42)[:5] == [2, 13, 26, 47, 79]


def test_drawing_more_lines_than_there_are_gives_all(tmp_path: Path) -> None:
    assert len(load(published(tmp_path), sample=10)) == 3


def test_a_negative_number_of_lines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="sample=-1"):
        load(published(tmp_path), sample=-1)


def test_the_space_before_punctuation_does_not_count_by_default() -> None:
    assert counts("a word .", "a word.")["cer"] == (0, 7)
    assert counts("a word .", "a word.", preparation="raw")["cer"] == (1, 8)


def test_case_and_punctuation_count() -> None:
    assert counts("A word.", "a word")["cer"] == (2, 7)
    assert counts("A word.", "a word")["wer"] == (2, 2)


def test_the_mean_gives_every_line_the_same_weight() -> None:
    assert counts("abcd", "abxx")["cer_mean"] == (0.5, 1.0)
    assert counts("", "xyz")["cer_mean"] == (3.0, 1.0)


def test_a_failed_line_counts_as_empty_but_not_among_the_answered() -> None:
    scores = BENCHMARK.score(Sample(id="x", truth="abc"), Prediction(outcome="timeout", error="x"))
    found = {score.measure: score.counts for score in scores}
    assert found["cer"] == (3, 3)
    assert "cer_answered" not in found
    assert counts("abc", "ab")["cer_answered"] == (1, 3)


def test_punct_quotes_joins_quotes_and_parentheses() -> None:
    assert prepare_punct_quotes('he said , " come in ( now ) ! "') == 'he said,"come in (now)!"'


def test_punct_quotes_counts_an_empty_line_as_one_error_at_most() -> None:
    assert counts("", "xyz ab", preparation="punct-quotes")["cer_mean"] == (1.0, 1.0)
    assert counts("", "", preparation="punct-quotes")["wer_mean"] == (0.0, 1.0)


def test_punct_quotes_strips_nothing() -> None:
    assert counts("ab", " ab\n", preparation="punct-quotes")["cer_mean"] == (1.0, 1.0)
    assert counts("ab", " ab\n")["cer_mean"] == (0.0, 1.0)
    assert counts("  ", "", preparation="punct-quotes")["wer_mean"] == (0.0, 1.0)


def test_the_prepared_form_is_one_split(tmp_path: Path) -> None:
    (tmp_path / "metadata.jsonl").write_text(json.dumps({"idx": 0, "ground_truth": "a"}))
    with pytest.raises(UsageError, match="the option split can no longer be chosen"):
        list(BENCHMARK.load(tmp_path, split="train"))


def test_punct_quotes_takes_a_tab_as_the_end_of_a_word() -> None:
    assert counts("a b", "a\tb", preparation="punct-quotes")["wer_mean"] == (0.0, 1.0)
    assert counts("a b", "a\tb")["wer_mean"] == (1.0, 1.0)


@given(st.text(max_size=40), st.sampled_from(["iam-punct", "raw", "punct-quotes"]))
def test_the_line_itself_has_no_error(text: str, profile: str) -> None:
    found = counts(text, text, preparation=profile)
    assert (found["cer"][0], found["wer"][0], found["line_accuracy"]) == (0, 0, (1.0, 1.0))


@pytest.mark.parametrize("case", shipped("iam_lines"), ids=lambda case: case["id"])
def test_the_parity_cases_in_the_package_hold(case: dict[str, Any]) -> None:
    checked = verify_case(case)
    assert checked
    assert all(abs(ours - official) <= case["tolerance"] for ours, official in checked)
