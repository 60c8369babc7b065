"""The report's file as such: what is in it, what is not, and what is refused."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from loupe.errors import RunError, UsageError
from loupe.files.folder import Folder
from loupe.report import leaderboard
from loupe.report.collect import SampledGroup, rightly_empty
from loupe.report.html import inline_json, write_report
from loupe.report.samples import SampleJob, pack, pack_all
from loupe.results.groups import Entrant, tell_apart
from loupe.results.sample_values import sample_values
from loupe.runs.folder import RunFolder
from loupe.runs.info import RunInfo
from loupe.types import Estimate, Measure, Prediction, SampleScores, Score
from tests.support.report_runs import CER, misread, toy_pages


def written(runs: list[Path], folder: Path) -> str:
    write_report(runs, folder / "report.html")
    return (folder / "report.html").read_text(encoding="utf-8")


def test_the_policy_admits_no_network_and_no_other_script(tmp_path: Path) -> None:
    toy = toy_pages(tmp_path, 1)
    html = written([toy.run("good", {})], tmp_path)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    parts = unescape(policy[1]).split("; ")
    assert parts[:2] == ["default-src 'none'", "img-src data: file: 'self'"]
    assert parts[2].startswith("style-src 'sha256-") and parts[3].startswith("script-src 'sha256-")
    assert "unsafe" not in policy[1] and "http" not in policy[1]


def test_the_same_runs_give_the_same_samples_in_any_order_of_workers(tmp_path: Path) -> None:
    toy = toy_pages(tmp_path, 12)
    toy.run("good", {sample.id: sample.truth for sample in toy.samples})
    assert written(toy.runs, tmp_path) == written(toy.runs, tmp_path)


def test_engines_are_ranked_best_first_with_their_failures(tmp_path: Path) -> None:
    toy = toy_pages(tmp_path, 12)
    truths = {sample.id: sample.truth for sample in toy.samples}
    toy.run("worse", {ident: misread(text, 4) for ident, text in truths.items()})
    toy.run("failing", truths | {"book/page-0001": Prediction(sample="book/page-0001", outcome="error", error="boom")})
    html = written(toy.runs, tmp_path)
    found = re.findall(r'<td class="rank"[^>]*>(\S+)</td>\s*<th scope="row" class="engine"[^>]*><bdi>(\w+)', html)
    assert found == [("1", "failing"), ("2", "worse")] or found == [("1", "failing"), ("1", "worse")]
    assert re.search(r'alarm"[^>]*>1 of 12<', html)
    assert ">boom<" in html


def test_equal_engines_share_a_rank(tmp_path: Path) -> None:
    toy = toy_pages(tmp_path, 12)
    truths = {sample.id: misread(sample.truth, 9) for sample in toy.samples}
    toy.run("one", truths)
    toy.run("two", truths)
    assert re.findall(r'<td class="rank"[^>]*>(\S+)</td>', written(toy.runs, tmp_path)) == ["1", "1"]


def test_a_run_that_is_not_scored_yet_is_shown_and_says_so(tmp_path: Path) -> None:
    toy = toy_pages(tmp_path, 2)
    toy.run("fresh", {sample.id: "text" for sample in toy.samples}, scored=False)
    html = written(toy.runs, tmp_path)
    assert "not scored yet" in html
    assert html.count('<script type="text/plain" id="d') == 2


def test_a_value_without_an_interval_is_a_dot_alone_and_said_to_be(tmp_path: Path) -> None:
    toy = toy_pages(tmp_path, 1)
    html = written([toy.run("good", {toy.samples[0].id: misread(toy.samples[0].truth, 9)})], tmp_path)
    assert html.count('class="point"') == 1 and 'class="range"' not in html and 'class="cap"' not in html
    assert "a dot without a bar has no interval" in html


def test_the_signature_stands_under_the_numbers(tmp_path: Path) -> None:
    toy = toy_pages(tmp_path, 1)
    assert "toy:1|n:1|data:3f2a9c1e|engine:good|" in written([toy.run("good", {})], tmp_path)


def test_embed_puts_the_full_image_in(tmp_path: Path) -> None:
    toy = toy_pages(tmp_path, 1)
    job = SampleJob(ident="a", task="text", images=toy.samples[0].images, folder=tmp_path, embed=True)
    assert unpacked(pack(job).payload)["pictures"][0]["src"].startswith("data:image/png;base64,")


def test_a_broken_image_costs_only_itself(tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"\x89PNG no")
    job = SampleJob(ident="a", task="text", images=(tmp_path / "broken.png",), reference="words", folder=tmp_path)
    packed = pack(job)
    assert packed.thumbnail.data == ""
    assert "broken.png" in unpacked(packed.payload)["pictures"][0]["error"]
    assert unpacked(packed.payload)["reference"]["text"] == "words"


def test_a_sample_that_takes_too_long_goes_in_as_plain_text() -> None:
    job = SampleJob(ident="a", task="markdown", reference="<div>" * 30_000)
    [packed] = pack_all([job], total=1, seconds=0.01)
    assert unpacked(packed.payload)["notice"].startswith("This sample took too long")
    assert "html" not in unpacked(packed.payload)["reference"]


def test_json_in_the_page_cannot_end_its_element() -> None:
    text = "</script><!--&\u2028\u2029"
    assert not set("<>&\u2028\u2029") & set(inline_json(text))
    assert json.loads(inline_json(text)) == text


def test_no_run_and_a_folder_without_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        write_report([], tmp_path / "report.html")
    with pytest.raises(RunError):
        write_report([tmp_path], tmp_path / "report.html")


def test_an_output_that_cannot_be_written_is_one_clear_error_and_leaves_nothing(tmp_path: Path) -> None:
    toy = toy_pages(tmp_path / "toy", 1)
    run = toy.run("good", {})
    (tmp_path / "out").mkdir()
    with pytest.raises(UsageError, match="cannot be written"):
        write_report([run], tmp_path / "out")
    assert list(tmp_path.glob(".loupe-report-*")) == []


@pytest.mark.parametrize(
    ("value", "step"),
    [(1.0, 6), (0.99, 6), (0.97, 5), (0.9, 4), (0.85, 3), (0.5, 1), (-1.0, 0), (None, None)],
)
def test_colour_steps_crowd_near_perfect(value: float | None, step: int | None) -> None:
    assert leaderboard.step_of(value, Measure(name="accuracy")) == step


def test_low_is_good_where_the_measure_says_so() -> None:
    assert leaderboard.step_of(0.0, CER) == 6
    assert leaderboard.step_of(3.0, CER) == 0


@pytest.mark.parametrize("low, value, high", [(0.9, 0.91, 0.92), (0.0, 0.0, 0.0), (0.0, 0.5, 1.0), (0.99999, 1.0, 1.0)])
def test_the_axis_holds_every_whisker_and_has_a_few_round_ticks(low: float, value: float, high: float) -> None:
    axis = leaderboard.axis([Estimate(value=value, low=low, high=high)], "fraction")
    assert axis.low <= low <= high <= axis.high
    assert 2 <= len(axis.ticks) <= 7


def test_the_value_of_one_sample_is_that_of_its_counts_alone() -> None:
    scores = [Score(measure="cer", counts=(1.0, 10.0)), Score(measure="cer", counts=(2.0, 10.0))]
    assert sample_values([CER], scores) == {"cer": 0.15}
    assert sample_values([CER], [Score(measure="cer", counts=(0.0, 0.0))]) == {}


def unpacked(payload: str) -> dict[str, Any]:
    import base64
    import gzip

    return json.loads(gzip.decompress(base64.b64decode(payload)))


def test_an_empty_answer_is_right_only_where_the_page_is_blank() -> None:
    empty = SampleScores(sample="a", outcome="empty", diagnostics={"text_on_blank": 0.0})
    assert rightly_empty(empty)
    assert not rightly_empty(SampleScores(sample="a", outcome="empty"))
    assert not rightly_empty(SampleScores(sample="a", diagnostics={"text_on_blank": 0.0}))


def test_groups_of_the_same_title_are_called_by_what_differs() -> None:
    def group(digest: str, **options: str) -> SampledGroup:
        info = RunInfo(
            benchmark="b", benchmark_id="b", version="1", engine="e", profile={}, options=options, truth_digest=digest
        )
        entrant = Entrant(run=RunFolder(Folder(Path()), info), result=None, predictions={}, scores={})
        return SampledGroup(entrants=[entrant], benchmark=None)

    groups = [group("a1"), group("b2", math="skip"), group("c3", math="skip")]
    tell_apart(groups)
    assert [each.title for each in groups] == ["b, default options", "b, math=skip, data B", "b, math=skip, data C"]
    alone = [group("a1", math="skip")]
    tell_apart(alone)
    assert alone[0].title == "b"
