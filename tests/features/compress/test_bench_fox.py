"""Fox page OCR: the official numbers, case by case, its layouts, and the compression measures of DeepSeek-OCR."""

from __future__ import annotations

import json
import math
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from loupe.benchmarks.registry import benchmark_names, check_options, get_benchmark
from loupe.benchmarks.shared.word_scores import PageScores, score_page, score_page_swapped_like_official, split_words
from loupe.cli import main
from loupe.data.pages import load_page
from loupe.errors import DatasetError, UsageError
from loupe.features.compress import fox
from loupe.features.compress.fox import (
    FoxPage,
    benchmark,
    compression_curve,
    load,
    ratio_bin,
    score,
    token_bin,
    verify_case,
)
from loupe.metrics import installed_wordnet, vision_tokens
from loupe.scoring import parity
from loupe.scoring.parity import verify_one
from loupe.scoring.summary import Origin, summarise
from loupe.types import Prediction, Result, Sample, SampleScores
from tests.support.shared import cases

for module in ("nltk", "jieba"):
    if find_spec(module) is None:
        pytest.skip(f"SKIPPED: {module} (extra fox) is not here", allow_module_level=True)

TOLERANCE = 1e-9
WORDNET = installed_wordnet()
FIELDS = {"bleu": "bleu", "meteor": "meteor", "f_measure": "f1", "precision": "word_precision", "recall": "word_recall"}
TEXTS = {"en": ["The harbour was quiet. " * 30, "Two boats left at noon."], "cn": ["港口很安静。两艘船中午离开。"]}


def near(value: float) -> Any:
    return pytest.approx(value, abs=TOLERANCE, rel=0)


def name(case: dict[str, Any]) -> str:
    return str(case["id"])


def check(found: PageScores, expected: dict[str, float | None]) -> None:
    for field, value in expected.items():
        if field == "meteor" and WORDNET is None:
            continue  # test_meteor_was_compared says so
        ours = getattr(found, "edit_distance" if field == "edit_dist" else field)
        assert (ours is None) == (value is None), field
        assert value is None or ours == near(value), field


def test_meteor_was_compared() -> None:
    if WORDNET is None:
        pytest.skip("SKIPPED: no WordNet here (apt install wordnet-base), so METEOR is left out of the cases below")
    assert score_page("a fast car", "a fast auto", synonyms=WORDNET).meteor > 0.9


@pytest.mark.parametrize("case", cases("oracles/fox/page_ocr.jsonl"), ids=name)
def test_a_page_scores_as_in_the_official_program_and_in_vlmevalkit(case: dict[str, Any]) -> None:
    answer, label = case["input"]["answer"], case["input"]["label"]
    official, natural = case["expected"]["official_script_order"], case["expected"]["natural_order"]
    if isinstance(official, dict):
        check(score_page_swapped_like_official(answer, label, synonyms=WORDNET), official)
        check(score_page(answer, label, synonyms=WORDNET), natural)
    else:
        # Two empty texts: the official program divides by zero, VLMEvalKit does not, and its numbers are ours.
        assert (answer, label, official) == ("", "", "error:ZeroDivisionError")
    check(score_page(answer, label, synonyms=WORDNET), case["expected"]["vlmevalkit"])


@pytest.mark.parametrize("case", cases("oracles/fox/sets.jsonl"), ids=name)
def test_a_set_of_pages_has_the_official_means(case: dict[str, Any]) -> None:
    tags = {} if WORDNET else {"words": "stems"}
    rows = [
        {
            one.measure: one.counts[0]
            for one in score(
                Sample(id="p", truth=FoxPage(text=item["label"]), tags=tags), Prediction(text=item["answer"])
            )
        }
        for item in case["input"]["items"]
    ]
    assert len(rows) == case["expected"]["eval question num"]
    for theirs, ours in {**FIELDS, "edit_dist": "edit_distance"}.items():
        if ours != "meteor" or WORDNET:
            assert sum(row[ours] for row in rows) / len(rows) == near(case["expected"][theirs])


@pytest.mark.parametrize("case", cases("oracles/deepseek_tokens/tokens.jsonl"), ids=name)
def test_vision_tokens_are_those_of_the_reference_program(case: dict[str, Any]) -> None:
    size = case["input"]["width"], case["input"]["height"]
    for named, expected in case["expected"].items():
        mode, _, limit = named.partition("_max")
        found = vision_tokens(*size, mode, max_tiles=int(limit or 9))
        assert {
            "tiles_wh": list(found.tiles),
            "local_tiles": found.local_tiles,
            "sequence_tokens": found.sequence,
            "nominal_tokens": found.nominal,
            "valid_tokens": found.valid,
        } == expected


@given(st.integers(1, 30_000), st.integers(1, 30_000), st.sampled_from(["tiny", "small", "base", "large", "gundam"]))
def test_valid_tokens_are_never_more_than_nominal_ones(width: int, height: int, mode: str) -> None:
    found = vision_tokens(width, height, mode)
    assert 0 <= found.valid <= found.nominal <= found.sequence
    assert found.local_tiles <= 9


def test_an_unknown_mode_and_a_page_without_area_are_refused() -> None:
    with pytest.raises(ValueError, match="one of tiny, small"):
        vision_tokens(100, 100, "huge")
    with pytest.raises(ValueError, match="no area"):
        vision_tokens(0, 100)


# --- scores of a page


def values(text: str, answer: str, *, output_tokens: int | None = None, **tags: str) -> dict[str, float]:
    tags = {"words": "stems"} | tags
    sample = Sample(id="p", truth=FoxPage(text=text, tokens=640), tags=tags)
    found = score(sample, Prediction(text=answer, output_tokens=output_tokens))
    return {one.measure: one.counts[0] for one in found}


def test_outer_white_space_of_the_answer_does_not_count_in_precision() -> None:
    found = values("abcd", "\n abcx \n")
    assert (found["precision"], found["edits"]) == (0.75, 1.0)
    assert found["edit_distance"] == 5 / 8


def test_an_empty_answer_scores_nothing_and_two_empty_texts_are_equal() -> None:
    assert values("abcd", "") == {
        **{"precision": 0.0, "edits": 4.0, "edit_distance": 1.0},
        **{"bleu": 0.0, "meteor_stems": 0.0, "f1": 0.0, "word_precision": 0.0, "word_recall": 0.0},
    }
    assert values("", "")["precision"] == 1.0


def test_the_natural_order_swaps_precision_and_recall_of_words() -> None:
    official, natural = values("a b c", "a b"), values("a b c", "a b", variant="natural")
    assert (official["word_precision"], official["word_recall"]) == (2 / 3, 1.0)
    assert (natural["word_precision"], natural["word_recall"]) == (1.0, 2 / 3)
    assert official["f1"] == natural["f1"]


def test_word_measures_can_be_left_out() -> None:
    assert set(values("a b", "a b", words="none")) == {"precision", "edits", "edit_distance"}


def test_compression_is_told_both_ways() -> None:
    found = values("a", "a", output_tokens=630, vision_tokens="197/256")
    assert found["compression_gt"] == 640 / 256
    assert found["compression_output"] == 630 / 197
    assert (found["vision_tokens"], found["vision_tokens_nominal"]) == (197, 256)


def test_without_a_mode_or_token_counts_no_ratio_is_made_up() -> None:
    assert not any(measure.startswith(("compression", "vision")) for measure in values("a", "a", output_tokens=5))
    assert "compression_output" not in values("a", "a", vision_tokens="64/64")


@pytest.mark.parametrize("hostile", ["中" * 20_000, "a " * 60_000, "中文 " * 20_000, "\0\udc80中", "。" * 100_000])
def test_hostile_answers_end_soon(hostile: str) -> None:
    assert 0.0 <= values("The harbour 港口 was quiet.", hostile)["bleu"] < 0.1


@given(st.text(st.sampled_from("abc 中文港口，。\n"), max_size=40))
def test_words_of_a_text_join_to_the_text_again(text: str) -> None:
    (words,) = split_words(text)
    assert "".join(words).replace(" ", "").replace("\n", "") == text.replace(" ", "").replace("\n", "")


# --- data in its published layouts, with texts of our own


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """The folder that upstream's zip unpacks to."""
    folder = tmp_path / "focus_benchmark_test"
    for code, texts in TEXTS.items():
        (folder / f"{code}_pdf_png").mkdir(parents=True)
        items = []
        for number, text in enumerate(texts, 1):
            Image.new("RGB", (1275, 1650), "white").save(folder / f"{code}_pdf_png" / f"{code}_{number}.png")
            turns = [
                {"from": "human", "value": "<image>\nOCR this image: "},
                {"from": "gpt", "value": text},
            ]
            items.append({"image": f"{code}_{number}.png", "len": 600 + 10 * number, "conversations": turns})
        (folder / f"{code}_page_ocr.json").write_text(json.dumps(items), encoding="utf-8")
    return tmp_path


def read(root: Path, **options: Any) -> list[Sample]:
    return list(load(root, **{"words": "stems"} | options))


def test_pages_of_both_languages_come_with_their_texts(pages: Path) -> None:
    samples = read(pages)
    assert [sample.id for sample in samples] == ["en_1", "en_2", "cn_1"]
    assert [sample.tags["language"] for sample in samples] == ["en", "en", "zh"]
    assert samples[2].truth == FoxPage(text=TEXTS["cn"][0], tokens=610)
    assert benchmark.reference(samples[1]) == TEXTS["en"][1]
    assert samples[0].images == (pages / "focus_benchmark_test" / "en_pdf_png" / "en_1.png",)
    assert [sample.id for sample in read(pages, language="zh")] == ["cn_1"]


def test_a_mode_adds_vision_tokens_and_bins_but_does_not_change_the_truth(pages: Path) -> None:
    plain, tiny, base = (read(pages, mode=mode)[0] for mode in ("none", "tiny", "base"))
    assert plain.truth == tiny.truth == base.truth
    assert plain.tags == {"language": "en", "words": "stems", "gt_tokens": "600-700"}
    assert tiny.tags["vision_tokens"] == "64/64"
    assert tiny.tags["compression_gt"] == "<10x"
    assert base.tags["vision_tokens"] == "197/256"


def test_the_zip_gives_the_same_pages_as_the_folder(pages: Path) -> None:
    packed = pages / "packed"
    packed.mkdir()
    with zipfile.ZipFile(packed / "focus_benchmark_test.zip", "w") as archive:
        for path in sorted((pages / "focus_benchmark_test").rglob("*")):
            archive.write(path, path.relative_to(pages))
    samples = read(packed, mode="base")
    expected = read(pages, mode="base")
    assert [(each.id, each.truth, each.tags) for each in samples] == [
        (each.id, each.truth, each.tags) for each in expected
    ]
    assert load_page(samples[0].images[0]).size == (1275, 1650)


def test_the_prepared_form_is_read(tmp_path: Path) -> None:
    rows = [
        {"idx": 0, "sample_id": "en_1", "ground_truth": "a", "metadata": {"len": 700}},
        {"idx": 1, "sample_id": "cn_1", "ground_truth": {"text": "b", "tokens": None}, "metadata": {}},
    ]
    (tmp_path / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    samples = read(tmp_path)
    assert [sample.truth for sample in samples] == [FoxPage(text="a", tokens=700), FoxPage(text="b")]
    assert [sample.tags["language"] for sample in samples] == ["en", "zh"]


def test_a_folder_without_the_data_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"no Fox pages here; expected .*en_page_ocr\.json"):
        read(tmp_path)


def test_a_missing_language_is_named_with_the_way_around(pages: Path) -> None:
    (pages / "focus_benchmark_test" / "cn_page_ocr.json").unlink()
    with pytest.raises(DatasetError, match=r"cn_page_ocr\.json is missing") as caught:
        read(pages)
    assert caught.value.hint.startswith("-o language=en")


def test_a_missing_image_and_a_path_out_of_the_folder_are_refused(pages: Path) -> None:
    folder = pages / "focus_benchmark_test"
    (folder / "en_pdf_png" / "en_2.png").unlink()
    with pytest.raises(DatasetError, match=r"no image en_pdf_png/en_2\.png"):
        read(pages)
    item = {"image": "../../secret.png", "conversations": [{"from": "gpt", "value": "x"}]}
    (pages / "secret.png").write_bytes(b"x")
    (folder / "en_page_ocr.json").write_text(json.dumps([item]), encoding="utf-8")
    with pytest.raises(DatasetError, match=r"no image en_pdf_png/\.\./\.\./secret\.png"):
        read(pages)


def test_another_form_of_the_json_is_named(pages: Path) -> None:
    (pages / "focus_benchmark_test" / "en_page_ocr.json").write_text('[{"image": 1}]', encoding="utf-8")
    with pytest.raises(DatasetError, match=r"en_page_ocr\.json is not the list"):
        read(pages)


def test_options_are_checked_by_name_and_value() -> None:
    assert get_benchmark("fox") is benchmark
    assert check_options(benchmark, {"mode": "tiny", "max_tiles": "6"}) == {"mode": "tiny", "max_tiles": 6}
    with pytest.raises(UsageError, match="mode=huge"):
        check_options(benchmark, {"mode": "huge"})


# --- the curve


@pytest.mark.parametrize(
    ("tokens", "label"), [(0, "<600"), (599, "<600"), (600, "600-700"), (700, "700-800"), (1300, ">=1300")]
)
def test_bins_of_tokens_are_half_open(tokens: int, label: str) -> None:
    assert token_bin(tokens) == label


@pytest.mark.parametrize(("ratio", "label"), [(9.99, "<10x"), (10.0, "10-12x"), (16.1, "15-17x"), (19.7, ">=19x")])
def test_bins_of_ratios_are_half_open(ratio: float, label: str) -> None:
    assert ratio_bin(ratio) == label


def result_of(pages: list[tuple[int, str]], nominal: int) -> Result:
    """A run over pages of so many tokens, with these answers to the text "abcd"."""
    rows = []
    for number, (tokens, answer) in enumerate(pages):
        tags = {"words": "none", "vision_tokens": f"{nominal}/{nominal}", "gt_tokens": token_bin(tokens)}
        sample = Sample(id=str(number), truth=FoxPage(text="abcd", tokens=tokens), tags=tags)
        scores = score(sample, Prediction(text=answer, output_tokens=tokens))
        rows.append(SampleScores(sample=sample.id, tags=tags, scores=scores))
    return summarise(benchmark, rows, Origin(benchmark="fox", engine="e", signature="s", total=len(rows)), draws=50)


def test_the_curve_puts_measured_and_published_precision_side_by_side() -> None:
    curve = compression_curve(result_of([(1250, "abcd"), (650, "abcx"), (660, "abcd")], nominal=64))
    assert [(point.label, point.pages, point.precision.value) for point in curve] == [
        ("600-700", 2, 0.875),
        ("1200-1300", 1, 1.0),
    ]
    assert [point.compression for point in curve] == [near(655 / 64), near(1250 / 64)]
    assert [point.expected for point in curve] == [0.965, 0.591]


def test_the_curve_by_output_ratio_has_the_rounded_expectations() -> None:
    curve = compression_curve(result_of([(650, "abcd"), (1250, "ab")], nominal=64), by="compression_output")
    assert [(point.label, point.expected) for point in curve] == [("10-12x", 0.9), (">=19x", 0.6)]
    assert curve[1].precision.value == 0.5


def test_a_mode_that_the_paper_does_not_have_has_no_expectation() -> None:
    curve = compression_curve(result_of([(650, "abcd")], nominal=256))
    assert curve[0].expected is None


def test_a_parity_case_with_an_unknown_measure_differs() -> None:
    ((ours, official),) = verify_case({"input": {"answer": "a", "label": "a"}, "expected": {"metoer": 0.5}})
    assert math.isnan(ours) and official == 0.5


def test_verify_says_that_meteor_was_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    for found in (None, WORDNET):
        monkeypatch.setattr(fox, "installed_wordnet", lambda found=found: found)
        notes = [note for note in verify_one("fox").deviations if note.startswith("METEOR was not compared")]
        assert len(notes) == (0 if found else 1)


@pytest.mark.parametrize("tiles", [-3, 0, 101, 100_000])
def test_a_senseless_number_of_tiles_is_refused(pages: Path, tiles: int) -> None:
    with pytest.raises(UsageError, match="max_tiles="):
        load(pages, words="none", mode="gundam", max_tiles=tiles)


def test_the_shipped_parity_cases_hold() -> None:

    path = Path(fox.__file__).parent / "data" / "fox.jsonl"
    shipped = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(shipped) >= 30
    for case in shipped:
        pairs = verify_case(case)
        assert pairs
        for ours, official in pairs:
            assert ours == pytest.approx(official, abs=case["tolerance"], rel=0), case["id"]


def test_a_benchmark_that_was_named_and_cannot_be_checked_ends_with_four(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("loupe.features.compress.fox.find_spec", lambda name: None)
    assert main(["verify", "fox", "iam_lines", "--plain"]) == 4
    said = capsys.readouterr()
    assert "Loupe has no cases" not in said.err
    assert "fox\t16/16\t0\t24 not compared" in said.out
    assert "40 of 64 cases compared; left out: fox 24 (reasons above); for all of them: " in said.err
    assert "[all]" in said.err and "loupe setup math" in said.err
    assert main(["verify"]) == 0
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "Loupe has no cases for them: " in line)
    without = line.partition("for them: ")[2].split(", ")
    assert sorted([*without, *parity.verifiable()]) == sorted(benchmark_names()) and "sample_pages" in without


def test_dictionaries_are_named_with_their_release() -> None:
    tools = get_benchmark("fox").tools
    assert tools is not None and tools().keys() == {"nltk", "jieba", "WordNet"}
    assert all(release or name == "WordNet" for name, release in tools().items())
