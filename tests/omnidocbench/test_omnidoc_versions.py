"""Two versions of one benchmark: found by name, kept apart in folders and tables, and never compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.benchmarks import omnidocbench
from loupe.benchmarks.omnidocbench import V1_6_BENCHMARK
from loupe.benchmarks.omnidocbench.formula_candidates import Best, candidates, choose
from loupe.benchmarks.omnidocbench.records import Block, Item, PredictedItem, Work
from loupe.benchmarks.omnidocbench.rules import V1_6
from loupe.benchmarks.published import published_rows
from loupe.benchmarks.registry import benchmark_ids, benchmark_names, data_set, filed_as, get_benchmark
from loupe.benchmarks.shared.formula_images import with_cdm
from loupe.errors import DatasetError, UsageError
from loupe.types import Prediction, Sample, SampleScores, Scored
from tests.support.command_line import complaint, loupe
from tests.support.omnidocbench.small_pages import TABLE, WORDS, block, page

TRUTH = page(
    "a.jpg",
    block(1, "text_block", text=WORDS),
    block(2, "table", html=TABLE),
    block(3, "header", text="left out", ignore=True),
    subset="table_hard",
)
UNREAD = page("b.jpg", block(1, "table", html=TABLE))


def write(folder: Path) -> Path:
    (folder / "OmniDocBench.json").write_text(json.dumps([TRUTH, UNREAD]), encoding="utf-8")
    (folder / "answers").mkdir()
    (folder / "answers" / "a.md").write_text(f"{WORDS}\n\n{TABLE}", encoding="utf-8")
    for name in ("omnidocbench", "omnidocbench@1.6"):
        done = loupe("score", name, "answers", "--data", ".", "-o", "cdm=off", cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder


def test_a_version_is_called_by_the_id_and_its_number() -> None:
    names = benchmark_names()
    assert names[names.index("omnidocbench") + 1] == "omnidocbench@1.6"
    assert [name for name in names if "@" not in name] == benchmark_ids()
    assert get_benchmark("omnidocbench@1.6").title == "OmniDocBench 1.6"


def test_data_and_published_figures_are_those_of_the_version() -> None:
    found = data_set("omnidocbench@1.6")
    assert found is not None and found.place == "omnidocbench@1.6"
    assert data_set("omnidocbench@1.5") == data_set("omnidocbench")
    of_1_5, of_1_6 = published_rows("omnidocbench", "1.5"), published_rows("omnidocbench", "1.6")
    assert {row.version for row in of_1_5} == {"1.5"} and {row.version for row in of_1_6} == {"1.6"}
    assert of_1_5 + of_1_6 == published_rows("omnidocbench")


def test_a_version_that_is_not_here_is_no_data_set() -> None:
    with pytest.raises(UsageError, match=r"no version '2\.0' here"):
        data_set("omnidocbench@2.0")
    assert filed_as("omnidocbench@2.0") == "omnidocbench@2.0"


def test_runs_of_versions_lie_apart_and_are_not_compared(tmp_path: Path) -> None:
    write(tmp_path)
    runs = sorted(path.name for path in (tmp_path / "runs" / "answers").iterdir())
    assert runs == ["omnidocbench", "omnidocbench@1.6"]
    done = loupe("compare", *(f"runs/answers/{name}" for name in runs), cwd=tmp_path)
    error, hint = complaint(done)
    assert error.endswith("cannot be compared; they differ in version (1.5 | 1.6)")
    assert hint.startswith("a version has rules of its own, so the same answers score differently")
    listed = loupe("runs", "--json", cwd=tmp_path)
    assert {each["benchmark"] for each in json.loads(listed.stdout)} == {"omnidocbench@1.5", "omnidocbench@1.6"}


@pytest.mark.parametrize("drawable", [True, False])
def test_a_run_whose_formulas_give_no_sample_has_a_cdm_of_zero_if_it_is_computed_at_all(
    drawable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(omnidocbench, "missing_tools", lambda *_: () if drawable else ("xelatex",))
    empty = block(1, "equation_isolated", latex="$$$$")
    truth = Sample(id="c", truth=page("c.jpg", empty, block(2, "text_block", text=WORDS)))
    scored = V1_6_BENCHMARK.score(with_cdm(truth, "on"), Prediction(text=WORDS))
    assert isinstance(scored, Scored) and not scored.details["match"]["display_formula"]
    row = SampleScores(sample="c", scores=scored.scores, details=dict(scored.details))
    concluded = V1_6_BENCHMARK.conclude([row])  # type: ignore[misc]
    shown = concluded.figures["metric_result"]["display_formula"]["page"]
    assert {name: of_pages["ALL"] for name, of_pages in shown.items()} == ({"CDM": 0.0} if drawable else {})
    # As upstream's program writes it for such a run.
    written = concluded.figures["metric_result"]["display_formula"]
    assert written["all"] == {"Edit_dist": {"ALL_page_avg": "NaN"}} | ({"CDM": {}} if drawable else {})
    assert written["group"] == ({} if drawable else {"sample_count": {}})
    assert [score.counts for score in scored.scores if score.measure == "formula_cdm"] == [(0.0, 1.0)] * drawable
    assert ("formula_cdm" in concluded.not_computed["overall"]) is not drawable


def test_marks_that_the_text_rules_drop_are_counted_beside_the_score() -> None:
    truth = Sample(id="d", truth=page("d.jpg", block(1, "text_block", text="हिन्दी में एक वाक्य"), language="other"))
    scored = V1_6_BENCHMARK.score(truth, Prediction(text="हनद म एक वकय"))
    assert isinstance(scored, Scored)
    values = {score.measure: score.counts[0] for score in scored.scores}
    assert values["text_edit"] == 0.0 and values["text_edit_with_marks"] == pytest.approx(7 / 16)
    row = SampleScores(sample="d", scores=scored.scores, details=dict(scored.details))
    (line,) = [each for each in V1_6_BENCHMARK.conclude([row]).warnings if "hidden" in each]  # type: ignore[misc]
    assert line.endswith("with them, the text edit distance is 0.4375 (official 0.0000)")


def test_data_that_is_none_is_refused_with_the_name_of_the_version(tmp_path: Path) -> None:
    (tmp_path / "OmniDocBench.json").write_text("[7]", encoding="utf-8")
    with pytest.raises(DatasetError) as refused:
        list(V1_6_BENCHMARK.load(tmp_path))
    assert "loupe data get omnidocbench@1.6" in refused.value.hint


def test_a_missing_page_is_empty_and_the_first_table_has_no_place(tmp_path: Path) -> None:
    write(tmp_path)
    result = json.loads((tmp_path / "runs/answers/omnidocbench@1.6/result.json").read_text(encoding="utf-8"))
    measures = {name: each["value"] for name, each in result["measures"].items()}
    assert measures["table_teds"] == pytest.approx(0.5)
    assert measures["reading_order_edit"] == pytest.approx((0.5 + 1) / 2)
    assert measures["reading_order_edit_mended"] == pytest.approx((0 + 1) / 2)
    warnings = "\n".join(result["warnings"])
    assert "missing-prediction: pages without a prediction, scored as empty answers: 1 on 1 page (b)" in warnings
    assert "table-index-0" in warnings and "would be 0.000 (official 0.500)" in warnings
    assert set(result["slices"]["subset"]) == {"table_hard"}


def test_the_official_files_have_a_summary_of_the_run(tmp_path: Path) -> None:
    write(tmp_path)
    done = loupe("export", "runs/answers/omnidocbench@1.6", "--to", "omnidocbench", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "runs/answers/omnidocbench@1.6/official/result"
    summary = json.loads((folder / "answers_quick_match_run_summary.json").read_text(encoding="utf-8"))
    assert summary["page_denominators"]["table"]["TEDS"] == {"ALL": 2}
    assert summary["notebook_metric_summary"]["metrics"]["table_TEDS"]["notebook_value"] == pytest.approx(50)
    assert not list(folder.glob("*_formula.json"))


LATEX = st.lists(
    st.sampled_from(
        ["a+b", "c=d", "x^2", r"a+b \\ c=d", r"\begin{cases} a+b \\ c=d \end{cases}", "", r"\Rightarrow x"]
    ),
    max_size=4,
)


@given(LATEX, LATEX)
def test_what_cannot_win_is_not_tried_and_the_choice_is_the_same(truth: list[str], predicted: list[str]) -> None:
    blocks = [
        Block(category="equation_isolated", latex=latex, order=number) for number, latex in enumerate(truth, start=1)
    ]
    pool = [
        PredictedItem(
            number,
            Item(category="equation_isolated", content=f"\\[{latex}\\]", start=100 * number, end=100 * number + 9),
        )
        for number, latex in enumerate(predicted)
    ]
    every = Best(exhaustive=True)
    for candidate in candidates(blocks, pool, (), V1_6, Work(), every):
        every.offer(candidate)
    chosen = choose(blocks, pool, (), V1_6, Work())
    assert (chosen and chosen.rows()) == (every.candidate and every.candidate.rows())
