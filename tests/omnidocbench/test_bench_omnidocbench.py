"""OmniDocBench as a benchmark: loading and its errors, folders of answers, missing pages, fixed mode, export."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from loupe.benchmarks.omnidocbench import benchmark, load, score
from loupe.benchmarks.omnidocbench.conclusion import conclude
from loupe.benchmarks.registry import get_benchmark
from loupe.errors import DatasetError, UsageError
from loupe.pipeline.plan import survey
from loupe.scoring.scorer import score_sample
from loupe.stats.analysis import Analysis
from loupe.stats.estimates import estimate
from loupe.types import Prediction, Sample, Scored
from tests.support.command_line import complaint, loupe
from tests.support.omnidocbench.small_pages import LATEX, TABLE, WORDS, block, page
from tests.support.tex import need_tex

PAGES = [
    page("harbour.jpg", block(1, "title", text="Harbour"), block(2, "text_block", text=WORDS)),
    page("weather.pdf_2.png", block(1, "text_block", text=WORDS), block(2, "table", html=TABLE, latex=LATEX)),
    page("sums.jpg", block(1, "equation_isolated", latex="$$ a^2 + b^2 = c^2 $$"), special_issue=["watermark"]),
]
ANSWERS = {
    "harbour.md": f"# Harbour\n\n{WORDS}\n",
    "weather_2.mmd": f"{WORDS}\n\n{TABLE}\n",
    "sums.jpg.md": "$$ a^2 + b^2 = c^2 $$\n",
}


def write(folder: Path, pages: Any = PAGES, answers: Mapping[str, str] = ANSWERS) -> Path:
    (folder / "images").mkdir(parents=True)
    (folder / "answers").mkdir()
    for each in pages:
        Image.new("RGB", (60, 40), "white").save(folder / "images" / each["page_info"]["image_path"])
    (folder / "OmniDocBench.json").write_text(json.dumps(pages), encoding="utf-8")
    for name, text in answers.items():
        (folder / "answers" / name).write_text(text, encoding="utf-8")
    return folder


def score_folder(folder: Path, *words: str, cdm: str = "off") -> dict[str, Any]:
    options = ("--data", ".", "--json", "-j", "1", "-o", f"cdm={cdm}")
    done = loupe("score", "omnidocbench@1.5", "answers", *options, *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def values(result: Mapping[str, Any]) -> dict[str, float]:
    return {name: one["value"] for name, one in result["measures"].items() if one["value"] is not None}


def test_every_page_is_a_sample_named_after_its_image(tmp_path: Path) -> None:
    samples = list(load(write(tmp_path)))
    assert [sample.id for sample in samples] == ["harbour", "weather.pdf_2", "sums"]
    assert all(source.is_file() for sample in samples for source in sample.images if isinstance(source, Path))
    assert samples[2].tags["watermark"] == "yes" and samples[0].tags["watermark"] == "no"
    assert samples[0].tags["data_source"] == "book" and "None" not in samples[0].tags


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"order": "1"}, r"page 4: Expected `int \| float \| null`, got `str` - at `\$.layout_dets\[0\].order`"),
        ({"category_type": None}, "page 4: Expected `str`, got `null`"),
        ({"anno_id": [1]}, "page 4: Expected `int | str | null`"),
        ({"attribute": "white"}, "page 4: Expected `object | null`, got `str`"),
    ],
)
def test_a_block_that_cannot_be_read_is_an_error_of_the_data(tmp_path: Path, broken: dict[str, Any], said: str) -> None:
    folder = write(tmp_path)
    pages = json.loads((folder / "OmniDocBench.json").read_text())
    pages.append(page("odd.jpg", {**block(1, "text_block", text=WORDS), **broken}))
    (folder / "OmniDocBench.json").write_text(json.dumps(pages))
    with pytest.raises(DatasetError, match=said if "\\" in said else re.escape(said)):
        list(load(folder))


def test_a_cut_without_its_blocks_is_an_error_of_the_data(tmp_path: Path) -> None:
    odd = {**page("odd.jpg"), "extra": {"relation": [{"relation_type": "truncated", "source_anno_id": 1}]}}
    (write(tmp_path) / "OmniDocBench.json").write_text(json.dumps([odd]))
    with pytest.raises(DatasetError, match=r"page 1: .*target_anno_id"):
        list(load(tmp_path))


def test_a_filter_compares_attributes_as_a_whole(tmp_path: Path) -> None:
    folder = write(tmp_path)
    assert [each.id for each in load(folder, filter='special_issue=["watermark"];language=english')] == ["sums"]
    for nothing, there in (
        ("special_issue=watermark", 'special_issue: ["None"], ["watermark"]'),
        ("language=klingon", "english"),
    ):
        with pytest.raises(DatasetError, match="none of 3 pages has ") as refused:
            list(load(folder, filter=nothing))
        assert there in refused.value.hint
    with pytest.raises(DatasetError, match="no OmniDocBench here") as misplaced:
        list(load(folder / "images"))
    assert misplaced.value.hint == f"it stands one folder up: --data {folder}"
    assert len(list(load(folder, filter='{"data_source": "book"}'))) == 3
    with pytest.raises(DatasetError, match=r"page 1: no attribute 'colour' to filter by"):
        list(load(folder, filter="colour=red"))
    for wrong in ("english", "{not json", "=x"):
        with pytest.raises(UsageError, match="filter"):
            list(load(folder, filter=wrong))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no OmniDocBench here; expected OmniDocBench.json with images/"),
        ("{", "not the ground truth of OmniDocBench"),
        ("{}", "not the ground truth of OmniDocBench"),
        ("[1]", "page 1: Expected `object`"),
        ("[]", "the ground truth has no page at all"),
        ('[{"layout_dets": []}]', "page 1: Object missing required field `page_info`"),
        ('[{"layout_dets": [], "page_info": {"image_path": "a.jpg"}}]', "missing required field `page_attribute`"),
        ('[{"layout_dets": [], "page_info": {"image_path": "", "page_attribute": {}}}]', "page 1: no image_path"),
        ('[{"layout_dets": [3], "page_info": {"image_path": "a.jpg", "page_attribute": {}}}]', "Expected `object`"),
    ],
)
def test_what_is_not_the_data_set_is_one_clear_line(content: str | None, said: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "OmniDocBench.json").write_text(content)
    (tmp_path / "answers").mkdir()
    done = loupe("score", "omnidocbench", "answers", "--data", ".", cwd=tmp_path)
    assert done.returncode == 2 and said in complaint(done)[0]


def test_an_image_outside_of_the_data_folder_is_never_read(tmp_path: Path) -> None:
    (tmp_path / "secret.jpg").write_bytes(b"x")
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "OmniDocBench.json").write_text(json.dumps([page("../secret.jpg"), page("/etc/passwd.jpg")]))
    images = [sample.images[0] for sample in load(folder)]
    assert images == [folder / "images" / "secret.jpg", folder / "images" / "passwd.jpg"]


def test_a_faultless_folder_is_faultless_whatever_its_files_are_called(tmp_path: Path) -> None:
    result = score_folder(write(tmp_path))
    assert values(result) == {
        "text_edit": 0.0,
        "formula_edit": 0.0,
        "table_teds": 1.0,
        "table_teds_struct": 1.0,
        "table_edit": 0.0,
        "reading_order_edit": 0.0,
    }
    assert result["headline"] == "text_edit" and result["measures"]["overall"]["value"] is None
    assert [line for line in result["warnings"] if "may not be the published set" not in line] == []
    assert result["outcomes"] == {"ok": 3}
    headline = result["figures"]["headline"]
    assert headline["table_TEDS"] == 100.0 and headline["overall"] is None
    off = "CDM is switched off (-o cdm=off)"
    assert {name: why for name, why in result["not_computed"].items() if why} == {
        "overall": f"needs formula_cdm ({off})",
        "formula_cdm": off,
    }
    assert (
        result["official"] == "official table figures: text 0.000 · TEDS 100.000 · TEDS-S 100.000 · reading order 0.000"
    )
    assert result["published_total"] == 1355


@pytest.mark.slow
def test_cdm_completes_the_overall_and_is_in_the_official_figures(tmp_path: Path) -> None:
    need_tex("omnidocbench")
    result = score_folder(write(tmp_path), cdm="on")
    assert values(result)["formula_cdm"] == values(result)["overall"] == 1.0
    assert result["figures"]["headline"]["display_formula_CDM"] == result["figures"]["headline"]["overall"] == 100.0
    assert result["figures"]["metric_result"]["display_formula"]["all"]["CDM"] == {"all": 1.0}
    assert [line for line in result["warnings"] if "may not be the published set" not in line] == []


def test_an_empty_file_is_an_empty_answer_and_counts(tmp_path: Path) -> None:
    result = score_folder(
        write(tmp_path, answers=ANSWERS | {"harbour.md": "", "harbour.jpg.md": ANSWERS["harbour.md"]})
    )
    assert values(result)["text_edit"] == pytest.approx(0.5, abs=1e-12)
    assert result["measures"]["text_edit"]["n"] == 2 and result["outcomes"] == {"ok": 2, "empty": 1}
    said = "1 answer is ignored in favour of one with precedence: harbour.jpg.md (harbour.md counts)"
    assert any(said in line for line in result["warnings"])
    (tmp_path / "answers" / "harbour.md").write_bytes(b"# Harbour \xff")
    unreadable = score_folder(tmp_path)
    assert values(unreadable) == values(result) and unreadable["failed_are"] == "empty"
    assert [(each["sample"], each["class"]) for each in unreadable["failures"]] == [("harbour", "error")]
    assert not any(line.startswith("missing-prediction") for line in unreadable["warnings"])
    assert any(line.startswith("upstream-error") and "(harbour)" in line for line in unreadable["warnings"])
    (tmp_path / "answers" / "sums.jpg.md").unlink()
    assert score_folder(tmp_path)["failed_are"] == "partly left out"


def test_a_missing_page_is_left_out_and_the_number_with_it_stands_beside(tmp_path: Path) -> None:
    answers = {name: text for name, text in ANSWERS.items() if "harbour" not in name}
    result = score_folder(write(tmp_path, answers=answers))
    assert values(result)["text_edit"] == 0.0 and result["measures"]["text_edit"]["n"] == 1
    assert [each["sample"] for each in result["failures"]] == ["harbour"] and result["failed_are"] == "left out"
    (line,) = (line for line in result["warnings"] if line.startswith("missing-prediction"))
    assert "1 of 3 pages" in line and "(harbour)" in line and "text 0.500 (official 0.000)" in line
    assert result["figures"]["headline_missing_as_empty"]["text_block_Edit_dist"] == 0.5
    shown = loupe("score", "runs/answers/omnidocbench", "--plain", cwd=tmp_path).stdout
    assert "failed\t1 of 3\t33.3 %\tleft out of the official numbers" in shown


def test_fixed_mode_counts_missing_pages_and_never_meets_parity_mode(tmp_path: Path) -> None:
    answers = {"weather.pdf_2.md": f"{WORDS}\n\n{LATEX}\n", "sums.md": ANSWERS["sums.jpg.md"]}
    folder = write(tmp_path, answers=answers)
    parity, fixed = score_folder(folder), score_folder(folder, "-o", "mode=fixed", "--name", "mended")
    assert values(parity)["table_teds"] == 0.0 and values(fixed)["table_teds"] == 1.0
    assert values(parity)["text_edit"] == 0.0 and values(fixed)["text_edit"] == 0.5
    assert "mode=fixed" in fixed["signature"] and "mode" not in parity["signature"]
    runs = ("runs/answers/omnidocbench", "runs/mended/omnidocbench")
    done = loupe("compare", *runs, cwd=folder)
    assert done.returncode == 2 and "cannot be compared" in done.stderr


def test_cdm_is_no_part_of_the_data(tmp_path: Path) -> None:
    folder = write(tmp_path)
    on, off, filtered = (
        survey(benchmark, "omnidocbench", folder, options)
        for options in ({}, {"cdm": "off"}, {"filter": 'special_issue=["watermark"]'})
    )
    assert (on.data_digest, on.truth_digest) == (off.data_digest, off.truth_digest) != filtered.data_digest


def test_a_table_that_cannot_be_read_is_an_error_of_its_page(tmp_path: Path) -> None:
    hostile = {
        "weather_2.mmd": "<table><tr><td>"
        + "".join(f"<x{number}></x{number}>" for number in range(3000))
        + "</td></tr></table>"
    }
    result = score_folder(write(tmp_path, answers=ANSWERS | hostile))
    (failure,) = result["failures"]
    assert (failure["sample"], failure["class"]) == ("weather.pdf_2", "scorer")
    assert "TableTooLargeError: the cells hold more than" in failure["error"]


def test_an_unknown_mode_is_named(tmp_path: Path) -> None:
    done = loupe("score", "omnidocbench", "answers", "--data", ".", "-o", "mode=new", cwd=write(tmp_path))
    assert done.returncode == 2 and "mode=new" in complaint(done)[0]


def test_the_official_files_of_a_run_are_written_from_its_scores(tmp_path: Path) -> None:
    folder = write(tmp_path, answers={name: text for name, text in ANSWERS.items() if "harbour" not in name})
    score_folder(folder)
    (folder / "OmniDocBench.json").unlink()
    run = "runs/answers/omnidocbench"
    assert loupe("export", run, "--to", "omnidocbench", cwd=folder).returncode == 0
    there = folder / run / "official"
    assert sorted(path.name for path in there.iterdir()) == ["predictions", "result"]
    assert sorted(path.name for path in folder.glob("[!.]*")) == ["answers", "images", "runs"]  # it is the home, too
    done = loupe("export", run, "--to", "omnidocbench", "--output", "out", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    files = {path.name: path for path in (folder / "out/result").iterdir()}
    assert sorted(name.removeprefix("answers_quick_match_") for name in files) == [
        "display_formula_formula.json",
        "display_formula_per_page_edit.json",
        "display_formula_result.json",
        "metric_result.json",
        "reading_order_per_page_edit.json",
        "reading_order_result.json",
        "table_per_page_edit.json",
        "table_per_table_TEDS.json",
        "table_result.json",
        "text_block_per_page_edit.json",
        "text_block_result.json",
    ]
    read = {name.removeprefix("answers_quick_match_"): json.loads(path.read_text()) for name, path in files.items()}
    assert read["text_block_per_page_edit.json"] == {"weather.pdf_2.png": 0.0}
    assert read["table_per_table_TEDS.json"] == {"weather.pdf_2.png_[0]": {"TEDS": 1.0, "TEDS_structure_only": 1.0}}
    (formula,) = read["display_formula_formula.json"]
    assert (formula["gt"], formula["img_id"], formula["img_name"]) == ("a^2 + b^2 = c^2", "0", "sums.jpg")
    answers = sorted(path.name for path in (folder / "out/predictions/answers").iterdir())
    assert answers == ["sums.md", "weather.pdf_2.md"]


def test_only_runs_of_the_benchmark_have_official_files(tmp_path: Path) -> None:
    (tmp_path / "reader.py").write_text("def read(request):\n    return 'x'\n")
    done = loupe("run", "sample_pages", "-e", "python:reader.py:read", "--limit", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (run,) = (path.parent for path in tmp_path.glob("runs/*/*/run.json"))
    done = loupe("export", run, "--to", "omnidocbench", cwd=tmp_path)
    assert done.returncode == 2 and "is a run of sample_pages, not of omnidocbench" in complaint(done)[0]


def sample(*blocks: dict[str, Any], **attributes: Any) -> Sample:
    return Sample(id="p", truth=page("p.jpg", *blocks, **attributes))


def scored(truth: Sample, text: str, **facts: Any) -> Scored:
    return score(truth, Prediction(text=text, **facts))


def test_details_say_which_blocks_were_matched_to_what_and_how() -> None:
    found = scored(sample(block(1, "title", text="Harbour"), block(2, "text_block", text=WORDS)), f"Harbour\n\n{WORDS}")
    title, words = found.details["match"]["text_block"]
    assert [list(parts) for parts in title["anno_ids"]] == [[1]] and title["pieces"][0]["content"] == "Harbour"
    assert words["step"] == "assignment" and words["distance"] == 0.0 and found.details["image"] == "p.jpg"


def test_line_ends_of_any_system_are_the_same() -> None:
    truth = sample(block(1, "title", text="Harbour"), block(2, "text_block", text=WORDS))
    plain, *others = (scored(truth, f"Harbour{end}{end}{WORDS}") for end in ("\n", "\r\n", "\r"))
    assert all(other.scores == plain.scores for other in others)


def test_lone_surrogates_are_scored_as_the_file_that_is_exported() -> None:
    row = score_sample(
        benchmark, sample(block(1, "text_block", text=WORDS)), Prediction(text=f"\ud800{WORDS}\udfff"), []
    )
    assert row.scores[0].counts[0] == 0.0
    assert json.dumps(row.details, ensure_ascii=False).encode("utf-8")


def test_a_formula_scored_as_text_needs_a_run_with_text() -> None:
    formula = sample(block(1, "equation_isolated", latex="$$ x + y $$"))
    text = Sample(id="q", truth=page("q.jpg", block(1, "text_block", text=WORDS)))
    alone = [score_sample(benchmark, formula, Prediction(text="x + y"), [])]
    both = [*alone, score_sample(benchmark, text, Prediction(text=WORDS), [])]
    measured = [
        estimate(Analysis(benchmark.measures), [(row.sample, one) for row in rows for one in row.scores])[
            "text_edit"
        ].value
        for rows in (alone, both)
    ]
    official = [conclude(rows).figures["metric_result"]["text_block"]["all"]["Edit_dist"] for rows in (alone, both)]
    assert measured[0] is None and official[0] == {"ALL_page_avg": "NaN"}
    assert measured[1] == pytest.approx(official[1]["ALL_page_avg"], abs=1e-12)


def test_overall_is_the_mean_of_text_cdm_and_teds() -> None:
    assert benchmark.summarize is not None
    found = benchmark.summarize({"text_edit": 0.1, "formula_cdm": 0.8, "table_teds": 0.7})
    assert found["overall"] == pytest.approx(0.8, abs=1e-12)


def test_the_version_is_part_of_the_name() -> None:
    assert get_benchmark("omnidocbench@1.5") is get_benchmark("omnidocbench") is benchmark
    assert get_benchmark("omnidocbench@1.6").version == "1.6"
    with pytest.raises(UsageError, match=r"no version '1\.7' here, only '1\.5' and '1\.6'"):
        get_benchmark("omnidocbench@1.7")
