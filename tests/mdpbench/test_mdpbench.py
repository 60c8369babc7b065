"""MDPBench as a benchmark: what names say, folders of answers, what is missing, pairs of documents, marks, export."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.benchmarks.mdpbench import benchmark, load, score
from loupe.benchmarks.mdpbench.data import answers_in_folder, document_of, is_digital, prefix_of, printed_language
from loupe.benchmarks.omnidocbench.text_normalization import is_mark, normalize_text, with_marks
from loupe.benchmarks.published import published_rows
from loupe.benchmarks.shared.answer_texts import join_answers
from loupe.benchmarks.shared.latex_characters import convert
from loupe.errors import DatasetError
from loupe.scoring.scorer import score_sample
from loupe.stats.analysis import Analysis
from loupe.stats.estimates import estimate
from loupe.types import Estimate, Prediction, Sample
from tests.support.command_line import complaint, loupe
from tests.support.omnidocbench.small_pages import TABLE, WORDS, block
from tests.support.tex import need_tex

HINDI = "हिन्दी में लिखा है"


def page(image: str, *blocks: dict[str, Any], language: str = "english") -> dict[str, Any]:
    info = {"image_path": image, "page_attribute": {"language": language}}
    return {"layout_dets": list(blocks), "page_info": info, "extra": {"relation": []}}


def document(name: str, *blocks: dict[str, Any], photographs: int = 2) -> list[dict[str, Any]]:
    names = [f"{name}.jpeg", *(f"{name}_indoor_light_{number}x.JPEG" for number in range(photographs))]
    return [page(each, *blocks) for each in names]


PAGES = [
    *document("en_book_7", block(1, "title", text="Harbour"), block(2, "text_block", text=WORDS)),
    *document("hi_note_8", block(1, "text_block", text=HINDI), block(2, "table", html=TABLE)),
]
ANSWERS = {
    f"{each['page_info']['image_path'].rpartition('.')[0]}.md": text
    for pages, text in ((PAGES[:3], f"# Harbour\n\n{WORDS}"), (PAGES[3:], f"{HINDI}\n\n{TABLE}"))
    for each in pages
}


def write(folder: Path, pages: Sequence[Any] = PAGES, answers: Mapping[str, str] = ANSWERS) -> Path:
    (folder / "answers").mkdir(parents=True)
    (folder / "MDPBench_public.json").write_text(json.dumps(pages), encoding="utf-8")
    for name, text in answers.items():
        (folder / "answers" / name).write_text(text, encoding="utf-8")
    return folder


def score_folder(folder: Path, *words: str) -> dict[str, Any]:
    done = loupe("score", "mdpbench", "answers", "--data", ".", "--json", "-j", "1", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def sample(name: str, *blocks: dict[str, Any]) -> Sample:
    return Sample(id=name, group=document_of(name), truth=page(f"{name}.jpg", *blocks))


def measured(pairs: Sequence[tuple[Sample, str]]) -> dict[str, Estimate]:
    rows = [score_sample(benchmark, image, Prediction(text=text), []) for image, text in pairs]
    assert [row.error for row in rows if row.error] == []
    scores = [(row.group, each) for row in rows for each in row.scores]
    return estimate(Analysis.of(benchmark).without_draws(), scores)


def warnings(image: Sample, text: str) -> list[str]:
    assert benchmark.conclude is not None
    return benchmark.conclude([score_sample(benchmark, image, Prediction(text=text), [])]).warnings


@pytest.mark.parametrize(
    ("name", "digital", "document", "language"),
    [
        ("ar_newspaper_21", True, "ar_newspaper_21", "AR"),
        ("ar_newspaper_21_indoor_light_top", False, "ar_newspaper_21", "AR"),
        ("de_book_1.pdf_2", False, "de_book_1.pdf", "DE"),
        ("en__book_3", True, "en_book_3", "EN"),
        ("en_7", False, "en_7", "EN"),
        ("zh-CHT_slide_6", True, "zh-CHT_slide_6", "ZH-T"),
        ("book", False, "book", "UNKNOWN"),
    ],
)
def test_a_name_says_language_document_and_capture(name: str, digital: bool, document: str, language: str) -> None:
    found = is_digital(name), document_of(name), printed_language(prefix_of(name))
    assert found == (digital, document, language)


def test_every_image_is_a_sample_in_the_group_of_its_document(tmp_path: Path) -> None:
    images = list(load(write(tmp_path)))
    assert [each.id for each in images[:2]] == ["en_book_7", "en_book_7_indoor_light_0x"]
    assert [each.group for each in images] == ["en_book_7"] * 3 + ["hi_note_8"] * 3
    assert images[0].images == (tmp_path / "MDPBench_img_public" / "en_book_7.jpeg",)
    expected = {"capture": "photographed", "language": "HI", "script": "Non-Latin", "document": "note"}
    assert images[-1].tags == expected
    assert len(list(load(tmp_path / "MDPBench_public.json", filter="language=english"))) == 6


def test_what_is_not_the_data_set_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "answers").mkdir()
    done = loupe("score", "mdpbench", "answers", "--data", ".", cwd=tmp_path)
    assert done.returncode == 2
    assert "no MDPBench here; expected MDPBench_public.json with MDPBench_img_public/" in complaint(done)[0]
    write(tmp_path / "data")
    with pytest.raises(DatasetError, match="none of 6 pages has language=Klingon"):
        list(load(tmp_path / "data", filter="language=Klingon"))


def test_answers_are_files_of_the_folder_itself_with_the_very_name() -> None:
    images = [sample("a"), sample("b"), sample("c.pdf")]
    names = ["a.mmd", "a.md", "b.MD", "b.txt", "x/b.md", "c.pdf.md", "a_1.md"]
    assert answers_in_folder(images, names) == {"a": ["a.md", "a.mmd"], "b": [], "c.pdf": ["c.pdf.md"]}


def test_a_faultless_folder_is_faultless_and_without_formulas_needs_no_tex(tmp_path: Path) -> None:
    result = score_folder(write(tmp_path))
    values = {name: one["value"] for name, one in result["measures"].items() if one["value"] is not None}
    assert {values[name] for name in ("overall", "overall_digital", "overall_photographed", "latin", "non_latin")} == {
        1.0
    }
    assert values["photo_loss"] == values["text_edit"] == values["text_edit_with_marks"] == 0.0
    assert result["official"] == (
        "official table figures: All 100.0 · Digit. 100.0 · Photo. 100.0 · Latin 100.0 · Non-Latin 100.0"
    )
    assert result["figures"]["headline"]["languages"] == {"EN": 100.0, "HI": 100.0}
    assert result["figures"]["pages_by_language"] == {"EN": 3, "HI": 3}
    assert set(result["slices"]) >= {"capture", "language", "script", "document"}
    assert result["statistics"]["clusters"] == 2


def test_a_missing_image_is_left_out_and_the_number_with_it_stands_beside(tmp_path: Path) -> None:
    answers = {name: text for name, text in ANSWERS.items() if name != "en_book_7.md"}
    result = score_folder(write(tmp_path, answers=answers))
    assert result["measures"]["overall"]["value"] == 1.0 and result["failed_are"] == "left out"
    assert result["figures"]["headline_missing_as_empty"]["All"] == 83.3
    (line,) = (line for line in result["warnings"] if line.startswith("missing-prediction"))
    assert "1 of 6 images" in line and "Digit. 50.0 (official 100.0)" in line
    # The document without its digital page is in no pair.
    assert result["measures"]["photo_loss"]["value"] == 0.0


def test_several_files_of_an_image_are_each_evaluated_and_put_together() -> None:
    truth = sample("en_book_7", block(1, "text_block", text=WORDS))
    both = score(truth, Prediction(text=join_answers([WORDS, ""]), joined=True))
    values = {each.measure: each.counts[0] for each in both.scores}
    assert values["overall"] == pytest.approx(0.5) and len(both.details["pages"]) == 2
    unreadable = score(truth, Prediction(text=join_answers([WORDS, None]), joined=True))
    assert {each.measure: each.counts[0] for each in unreadable.scores} == values
    assert all(each["flags"]["upstream-error"] == 1.0 for each in unreadable.details["pages"])


def test_photographs_are_compared_with_the_digital_page_of_their_own_document() -> None:
    def pages(name: str, digital: str, *photographs: str) -> list[tuple[Sample, str]]:
        names = [name, *(f"{name}_indoor_{number}x" for number in range(len(photographs)))]
        texts = (digital, *photographs)
        return [
            (sample(each, block(1, "text_block", text=WORDS)), text) for each, text in zip(names, texts, strict=True)
        ]

    # One document loses all on both photographs, one nothing; a third has only a photograph, and is no pair.
    found = measured(
        [*pages("en_book_7", WORDS, "", ""), *pages("de_book_7", WORDS, WORDS), *pages("fr_book_7", "", "")[1:]]
    )
    assert found["photo_loss"].value == pytest.approx(0.5)
    assert found["overall_digital"].value == 1.0 and found["overall_photographed"].value == pytest.approx(0.25)
    # Latin: means of languages, not of pages.
    assert found["latin"].value == pytest.approx((1 / 3 + 1.0 + 0.0) / 3)


def test_a_number_in_the_name_that_is_also_an_index_takes_a_sample_away() -> None:
    # The title has one edit in seven letters; the other block has the order 2, and leaves a page with this number.
    blocks, text = [block(1, "title", text="Harbour"), block(2, "text_block", text=WORDS)], f"Harbor\n\n{WORDS}"
    whole = 1 - 1 / len(normalize_text(f"Harbour{WORDS}"))
    kept, lost = (measured([(sample(name, *blocks), text)]) for name in ("en_book_77", "en_book_2"))
    assert kept["overall"].value == kept["overall_without_suffix_rule"].value == pytest.approx(whole)
    assert lost["overall"].value == pytest.approx(1 - 1 / 7)
    assert lost["overall_without_suffix_rule"].value == pytest.approx(whole)
    (line,) = (each for each in warnings(sample("en_book_2", *blocks), text) if each.startswith("suffix-rule"))
    assert ": 1 on 1 page (en_book_2); without the rule: All 98.53 (official 85.71)" in line


def test_marks_that_the_official_rules_drop_are_counted_beside_the_score() -> None:
    truth = sample("hi_note_88", block(1, "text_block", text=HINDI))
    without = "".join(each for each in HINDI if not is_mark(each))
    found = measured([(truth, without)])
    assert found["overall"].value == 1.0 and found["text_edit"].value == 0.0
    marks, letters = sum(map(is_mark, HINDI)), len(normalize_text(HINDI))
    assert found["text_edit_with_marks"].value == pytest.approx(marks / (marks + letters))
    line = next(each for each in warnings(truth, without) if "hidden" in each)
    assert line.startswith("hidden-marks: vowel signs, tones and combining accents") and f" {marks} on 1 page" in line


@given(st.text(alphabet="aé\u0301िन्टทีมُ .,$_^\\n", max_size=30))
def test_marks_are_all_that_is_added_to_the_official_text(text: str) -> None:
    compared = normalize_text(text)
    assert letters(with_marks(text, compared, convert)) == letters(compared)


def letters(text: str) -> str:
    return "".join(each for each in unicodedata.normalize("NFD", text) if not is_mark(each))


def test_without_cdm_there_is_no_overall_and_no_official_table(tmp_path: Path) -> None:
    formula = block(3, "equation_isolated", latex="$$ a^2 + b^2 = c^2 $$")
    pages = document("en_book_7", block(1, "text_block", text=WORDS), formula)
    answers = dict.fromkeys(list(ANSWERS)[:3], f"{WORDS}\n\n$$ a^2 + b^2 = c^2 $$")
    result = score_folder(write(tmp_path, pages, answers), "-o", "cdm=off")
    for name in ("overall", "overall_digital", "overall_photographed", "photo_loss", "latin", "formula_cdm"):
        assert result["measures"][name]["value"] is None
    assert "CDM is switched off" in result["not_computed"]["overall"] and result["official"] == ""
    assert result["figures"]["headline_without_formulas"]["All"] == 100.0 and "headline" not in result["figures"]


@pytest.mark.slow
def test_cdm_is_that_of_mdpbench(tmp_path: Path) -> None:
    need_tex("mdpbench")
    formula = block(3, "equation_isolated", latex="$$ a^2 + b^2 = c^2 $$")
    pages = document("en_book_7", block(1, "text_block", text=WORDS), formula, photographs=0)
    result = score_folder(write(tmp_path, pages, {"en_book_7.md": f"{WORDS}\n\n$$ a^2 + b^2 = c^2 $$"}))
    assert result["measures"]["formula_cdm"]["value"] == result["measures"]["overall"]["value"] == 1.0


def test_slim_needs_images_and_one_ground_truth_serves_all_of_them(tmp_path: Path) -> None:
    folder = write(tmp_path, [PAGES[0]])
    with pytest.raises(DatasetError, match="only their names say which photographs there are"):
        list(load(folder, slim="on"))
    (folder / "MDPBench_img_public").mkdir()
    for name in ("en_book_7.jpeg", "en_book_7_outdoor.JPG", "en_book_70.jpeg", "en_book_7_notes.txt"):
        (folder / "MDPBench_img_public" / name).touch()
    images = list(load(folder, slim="on"))
    assert [each.id for each in images] == ["en_book_7", "en_book_7_outdoor"]
    assert {each.tags["capture"] for each in images} == {"digital", "photographed"}
    assert images[1].images[0] == folder / "MDPBench_img_public" / "en_book_7_outdoor.JPG"


def test_the_official_files_are_written_from_the_stored_scores_alone(tmp_path: Path) -> None:
    folder = write(tmp_path)
    score_folder(folder)
    (folder / "MDPBench_public.json").unlink()
    done = loupe("export", "runs/answers/mdpbench", "--to", "mdpbench", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    official = folder / "runs/answers/mdpbench/official"
    names = {path.name for path in (official / "result/answers_result").iterdir()}
    assert "answers_result_metric_result.json" in names and "answers_result_table_photo_per_table_TEDS.json" in names
    edits = json.loads(
        (official / "result/answers_result/answers_result_text_block_All_per_page_edit.json").read_text()
    )
    assert set(edits) >= {"en_book_7", "hi_note_8_indoor_light_1x"} and set(edits.values()) == {0.0}
    assert {path.name for path in (official / "predictions/answers").iterdir()} == set(ANSWERS)
    other = loupe("export", "runs/answers/mdpbench", "--to", "omnidocbench", cwd=folder)
    assert other.returncode == 2 and "is a run of mdpbench, not of omnidocbench" in complaint(other)[0]


def test_the_board_in_the_package_is_that_of_the_protocol() -> None:
    protocol = Path(__file__).parents[2] / "docs/protocols/mdpbench.md"
    lines = protocol.read_text(encoding="utf-8").partition("The board of the public set")[2].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")][2:]
    ours = published_rows("mdpbench")
    assert [row.name for row in ours] == [row[0] for row in cells] and len(ours) == 24
    for mine, row in zip(ours, cells, strict=True):
        printed = [float(row[column]) / 100 for column in (1, 2, 3, 4, 6)]
        assert list(mine.values.values()) == pytest.approx(printed, abs=1e-9)
        languages = [figure for cell in (row[5], row[7]) for figure in cell.split()]
        assert mine.notes[0].split()[1::2] == languages and mine.notes[1] == f"private set {row[8]}"
