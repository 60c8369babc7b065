"""The samples that cost most, below the table of every benchmark; those that moved most; and no engine left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loupe.benchmarks.registry import benchmark_ids, get_benchmark
from loupe.report.collect import collect
from loupe.results.costs import Counts, costs
from loupe.results.losses import loss_table, loss_tables
from loupe.results.worst_samples import movement, worst_section
from loupe.types import Measure, SampleScores, Score
from tests.support.command_line import loupe, make_folder

#: How many counts the scores of a measure have, where these are not two.
WIDTHS = {
    "ocrbench": {"score": 1},
    "olmocr_bench": {"overall": 16},
    "omnidocbench": {"text_edit": 3},
    "cc_ocr": {"micro_f1": 3},
}
#: The page scores of MDPBench: value, 1, and how many formulas could not be scored.
PAGE = -3
WIDTHS["mdpbench"] = dict.fromkeys(
    ("overall", "overall_digital", "overall_photographed", "overall_without_suffix_rule"), PAGE
)
#: Three families, each with passed and scored tests and whether it counts; and the layout tests, which need blocks.
FAMILIES, LAYOUT = -4, -5
WIDTHS["omni_parse_bench"] = {"overall": FAMILIES, "layout": LAYOUT}
#: Measures that no single sample has counts of, and those of languages.
LEFT_OUT = ("candidate_errors", "bleu", "bleu_unwrapped", "photo_loss", "latin", "non_latin")


def scored(name: str, shares: list[float]) -> list[SampleScores]:
    """Samples that earned these shares by every measure that is counted, in the form of the benchmark's counts."""
    widths = WIDTHS.get(name, {})
    measures = [one for one in get_benchmark(name).measures if one.name in widths or not one.of_parts]
    return [
        SampleScores(
            sample=f"s{number}",
            scores=[
                Score(
                    measure=one.name,
                    counts=counts(share if one.higher_is_better else 1 - share, widths.get(one.name, 2)),
                )
                for one in measures
                if one.name not in LEFT_OUT
            ],
        )
        for number, share in enumerate(shares)
    ]


def counts(earned: float, width: int) -> tuple[float, ...]:
    if width in (PAGE, LAYOUT):
        return (earned, 1.0, float(width == LAYOUT))
    if width == FAMILIES:
        return (earned,) * 3 + (1.0,) * 7
    return (earned,) * (width // 2) + (1.0,) * (width - width // 2) if width > 1 else (earned,)


@pytest.mark.parametrize("name", benchmark_ids())
def test_the_worst_five_samples_of_every_benchmark_stand_below_its_table_with_their_costs(name: str) -> None:
    benchmark = get_benchmark(name)
    section = worst_section(benchmark, scored(name, [1.0, 0.9, 0.1, 0.8, 0.7, 0.6, 0.5]))
    assert section is not None
    assert [row[0] for row in section.rows] == ["s2", "s6", "s5", "s4", "s3"]
    found = [float(str(row[1])) for row in section.rows]
    assert found == sorted(found, reverse=True) and found[-1] > 0
    assert "these 5 of 6 faulty samples cost" in section.title


def test_a_flawless_run_and_one_sample_have_no_list_of_the_worst(tmp_path: Path) -> None:
    benchmark = get_benchmark("teds_test")
    assert worst_section(benchmark, scored("teds_test", [1.0, 1.0])) is None
    make_folder(tmp_path, count=1)
    done = loupe("run", "mydocs", "-e", "python:reader.py:wrong", "--plain", cwd=tmp_path)
    assert done.returncode == 0 and "worst samples" not in done.stdout


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs: one flawless, one with one faulty sample, one with many."""
    root = tmp_path_factory.mktemp("there")
    make_folder(root, count=12)
    engines = ",".join(f"python:reader.py:{name}" for name in ("right", "sometimes", "wrong"))
    done = loupe("run", "mydocs", "--engines", engines, "--plain", cwd=root)
    assert done.returncode == 0, done.stderr
    (root / "shown.txt").write_text(done.stdout, encoding="utf-8")
    return root


def test_after_a_run_and_after_scoring_again_the_worst_samples_are_listed(there: Path) -> None:
    for shown in (
        (there / "shown.txt").read_text(encoding="utf-8"),
        loupe("score", "runs/python-reader.py_sometimes/mydocs", "--plain", cwd=there).stdout,
    ):
        lines = shown.splitlines()
        assert "# worst samples by text_similarity: the only faulty sample costs 8.33 of the 8.33 points lost" in lines
        assert "p3\t8.33" in lines


def test_where_the_points_go_names_every_engine(there: Path) -> None:
    (group,) = collect([there / f"runs/python-reader.py_{name}/mydocs" for name in ("right", "sometimes", "wrong")])
    tables = {engine.rpartition("_")[2]: table for engine, table in loss_tables(group)}
    assert list(tables) == ["right", "sometimes", "wrong"]
    assert tables["right"].title == "Every sample is right: no points lost" and not tables["right"].rows
    assert tables["sometimes"].title.startswith("The only faulty sample costs 8.33")
    assert len(tables["wrong"].rows) == 12
    done = loupe("report", *sorted(map(str, (there / "runs").glob("*/mydocs"))), "-o", "r.html", cwd=there)
    assert done.returncode == 0, done.stderr
    assert "Every sample is right: no points lost." in (there / "r.html").read_text(encoding="utf-8")


def test_an_engine_whose_losses_nobody_can_tell_is_named_too() -> None:
    odd = Measure(name="odd", pooled=True, value=lambda rows: float(rows[:, 0].mean()))
    counts = Counts([SampleScores(sample="a", scores=[Score(measure="odd", counts=(1.0,))])])
    found = costs([odd], counts, headline="odd", summarize=None)
    table = loss_table(found, [odd], headline="odd")
    assert (table.title, list(table.rows)) == ("The cost of a single sample in odd is unknown", [])


def test_compare_names_the_samples_that_moved_most_and_what_each_adds(there: Path) -> None:
    paths = [f"runs/python-reader.py_{name}/mydocs" for name in ("sometimes", "right", "wrong")]
    done = loupe("compare", *paths, "--plain", cwd=there)
    lines = done.stdout.splitlines()
    assert "# samples that moved text_similarity most, python-reader.py_right minus python-reader.py_sometimes" in lines
    header = "sample\tpython-reader.py_right\tpython-reader.py_sometimes\tadds to the difference"
    assert lines[lines.index(header) + 1] == "p3\t100.00 %\t0.00 %\t+8.33 points"
    compared = json.loads(loupe("compare", *paths, "--json", cwd=there).stdout)
    right, wrong = compared["pairs"]
    assert right["moved"]["measure"] == "text_similarity" and right["moved"]["count"] == 1
    assert right["moved"]["most"][0]["difference"] == pytest.approx(right["measures"]["text_similarity"]["difference"])
    assert wrong["moved"]["count"] >= 11 and len(wrong["moved"]["most"]) == 5


def test_what_moved_adds_up_to_the_difference_with_the_sign_of_the_measure() -> None:
    benchmark = get_benchmark("iam_lines")
    after, before = scored("iam_lines", [1.0, 0.5, 0.3]), scored("iam_lines", [0.9, 0.5, 0.6])
    found = movement(benchmark, lambda: after, lambda: before, {row.sample for row in after})
    assert found.measure == "cer" and [one.sample for one in found.most] == ["s2", "s0"]
    # Less is better: the errors of s2 have grown, those of s0 have gone.
    assert [one.difference for one in found.most] == pytest.approx([0.1, -0.1 / 3])
    assert [(one.value, one.value_before) for one in found.most] == [
        (pytest.approx(0.7), pytest.approx(0.4)),
        (pytest.approx(0.0), pytest.approx(0.1)),
    ]
    assert movement(benchmark, lambda: after, list, set()).most == []
