"""From the answers of a page's regions to its record: what fails, loops, is unknown or left out must show."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, get_args

import pytest
from PIL import Image, ImageDraw

from loupe.engines.adapters.areas import areas_of
from loupe.engines.registry import load_profile
from loupe.engines.shared.prices import Price, Usage
from loupe.features.layout.cutting import MOST_REGIONS, CutPage, CutRegion, cut_page
from loupe.features.layout.detectors import DetectorOptions, geometric, load_detector
from loupe.features.layout.engine import Joiner, Settings
from loupe.features.layout.filtering import LABELS, Detection
from loupe.inference.attempts import Attempts
from loupe.inference.budget import Budget
from loupe.pipeline import Plan
from loupe.pipeline.finished import Remaining
from loupe.runs.places import Place
from loupe.types import FAILED, Outcome, Prediction, Request, Sample
from tests.support.layout_pages import TWO_COLUMNS, drawn

PRICE = Price(input=1.0, output=1.0)
COUNTED: dict[str, Any] = {"input_tokens": 1000, "output_tokens": 10}


def joined(*ended: Prediction, regions: list[CutRegion] | None = None, images: Any = "drop", **page: Any) -> Prediction:
    """The record of a page of which these are the answers."""
    cut = CutPage(
        width=9, height=9, regions=[text(n) for n in range(len(ended))] if regions is None else regions, **page
    )
    attempts = Attempts(Request(id="p"))
    attempts.begin()
    return asyncio.run(attempts.joined(Joiner([], images=images).join(attempts.request, cut, ended)))


def text(index: int, **more: Any) -> CutRegion:
    keys: dict[str, Any] = {"label": "text", "task": "text", "score": 0.9, "box": (0, 90 * index, 900, 90 * index + 80)}
    return CutRegion(index=index, **{**keys, **more})


def answer(outcome: Outcome = "ok", said: str = "word", **more: Any) -> Prediction:
    failed = outcome in FAILED
    return Prediction(text="" if failed else said, outcome=outcome, error="why" if failed else "", **more)


def test_a_page_fails_where_its_detector_did_or_nothing_of_it_was_read() -> None:
    failed = joined(failed="RuntimeError: no kernel", regions=[])
    assert (failed.outcome, failed.error) == ("error", "the layout detector failed: RuntimeError: no kernel")
    picture = text(0, label="image", task="skip")
    uncut = joined(regions=[picture, text(1, error="nothing is left of the region after rounding")], images="keep")
    assert (uncut.outcome, uncut.text, uncut.lost or 0) == ("rejected", "", 0)
    assert uncut.error.endswith("1 regions could be read: nothing is left of the region after rounding")
    # Pictures alone, and nothing at all, are answers.
    assert joined(regions=[picture], images="keep").text == "![Image 0-0](imgs/cropped_page0_idx0.jpg)"
    assert joined(regions=[picture]).outcome == joined(regions=[]).outcome == "empty"


@pytest.mark.parametrize("outcome", sorted({"ok", "timeout", "error", "rejected"} & set(get_args(Outcome))))
def test_what_may_be_read_another_time_is_asked_again(outcome: Outcome) -> None:
    record = joined(answer(), answer(outcome))
    assert (record.outcome, record.lost or 0) == ("ok", outcome in ("timeout", "error"))
    # Two refused ones do not make a page refused for good of which a third one was only late.
    expected = outcome if outcome != "ok" else "ok"
    assert joined(answer("rejected"), answer("rejected"), answer(outcome)).outcome == expected


def test_pages_to_repeat_come_after_those_never_asked() -> None:
    places = {
        "late": Place(0, 1, "timeout"),
        "lossy": Place(0, 1, "ok", 2),
        "fine": Place(0, 1, "ok"),
        "cut": Place(0, 1, "truncated"),
    }
    every = ("late", "new", "lossy", "fine", "refused", "cut")
    places["refused"] = Place(0, 1, "rejected")

    def order(*redo: str) -> list[str]:
        left = Remaining.of(every, places, redo)
        assert left.done == set(every) - {"new"} - left.repeated
        return [each.id for each in left.in_order(lambda: (Sample(id=ident) for ident in every))]

    assert order() == ["new", "late", "lossy"]
    assert order("truncated") == ["new", "late", "lossy", "cut"]


def test_a_loop_in_a_region_makes_its_page_a_repeated_one() -> None:
    record = joined(answer(), answer("repeated"), answer(finish_reason="length"))
    assert record.outcome == "repeated" and (record.response or {})["repeated_regions"] == 1


def test_tokens_that_nobody_told_leave_the_cost_of_a_page_unknown() -> None:
    known = joined(answer(**COUNTED), answer(**COUNTED), answer("rejected"))
    assert PRICE.of(Usage.of(known)) == pytest.approx(2020 / 1e6)
    untold = joined(answer(**COUNTED), answer(), answer("timeout"))
    assert (untold.input_tokens, untold.uncounted) == (None, (1, 1))
    assert PRICE.of(Usage.of(untold)) is None and Usage.of(untold).late == 1
    assert Price(page=0.5).of(Usage.of(untold)) == 0.5
    half = joined(answer(input_tokens=5), answer(**COUNTED))
    assert half.input_tokens == 1005 and PRICE.of(Usage.of(half)) is None
    # A page of which all was lost keeps what its given-up answers had cost.
    lost = joined(answer("timeout", discarded_tokens=(700, 30)), answer("timeout"))
    assert lost.outcome == "timeout" and PRICE.of(Usage.of(lost)) == pytest.approx(730 / 1e6)
    assert Usage.of(lost).late == 2 and Usage(outcome="timeout").late == 1


def test_a_page_with_a_late_region_is_expected_to_cost_as_much_as_the_dearest_one() -> None:
    dear, late = (
        Usage.of(joined(*answers)) for answers in ((answer(**COUNTED),) * 3, (answer(**COUNTED), answer("timeout")))
    )
    assert Budget.after(PRICE, 1.0, [late, dear]).spent == pytest.approx(2 * 3030 / 1e6)


def test_of_each_answer_everything_is_kept_and_no_file_named_that_is_none() -> None:
    told: dict[str, Any] = {"reasoning": "hm", "endpoint": "http://a/v1", "response": {"max_tokens_reduced_to": 9}}
    record = joined(answer(**told), regions=[text(0), text(1, label="image", task="skip")], images="keep")
    (kept,) = (record.response or {})["answers"]
    assert {key: kept[key] for key in told} == told and record.endpoint == "http://a/v1"
    assert record.text.endswith("(imgs/cropped_page0_idx0.jpg)")
    assert not any("image_path" in row for row in (record.response or {})["regions"])


def test_only_a_detector_that_says_how_sure_it_is_leaves_a_confidence() -> None:
    plain = geometric.detect(drawn(TWO_COLUMNS))
    assert plain and all(one.score is None for one in plain)
    for score, known in ((None, None), (0.91, 0.91)):
        response = joined(answer(), regions=[text(0, score=score)]).response or {}
        assert [response[part][0].get("score") for part in ("regions", "answers")] == [known, known]
        found = areas_of("", response)
        assert found is not None and [area.confidence for area in found.areas] == [known]


def test_image_lines_stand_only_where_the_official_numbers_were_made_with_them() -> None:
    for name in ("glm-ocr-pipeline", "paddleocr-vl-pipeline"):
        profile = load_profile(name)[1]
        found = {each: Plan(benchmark=each, label="e", profile=profile).profile for each in ("omnidocbench@1.5", "fox")}
        assert [each.signature()["images"] for each in found.values()] == ["keep", "drop"]
        assert {each.version for each in found.values()} == {f"{name}/2"}
    chosen = load_profile("glm-ocr-pipeline", {"images": "keep"})[1]
    assert Plan(benchmark="fox", label="e", profile=chosen).profile == chosen


def test_paddles_pipeline_reads_no_seals(tmp_path: Path) -> None:
    Image.new("RGB", (200, 200), "white").save(tmp_path / "p.png")
    found = [Detection(class_id=LABELS.index("seal"), score=0.9, box=(10, 10, 90, 90), order=1)]
    tasks = []
    for name in ("glm-ocr-pipeline", "paddleocr-vl-pipeline"):
        profile = load_profile(name)[1]
        assert isinstance(profile, Settings)
        (region,) = cut_page(
            Request(id="p", images=(tmp_path / "p.png",)), profile.order(), lambda images: [found for _ in images]
        ).regions
        tasks.append((region.task, bool(region.data)))
    assert tasks == [("text", True), ("skip", False)]


def test_no_area_is_left_out_without_a_word(tmp_path: Path) -> None:
    page = Image.new("RGB", (2000, 2500), "white")
    pen = ImageDraw.Draw(page)
    for row, top in enumerate(range(30, 2450, 60)):
        for column, left in enumerate(range(30, 1950, 105)):
            pen.text((left, top), "abc", fill="black", font_size=(11, 30)[(row + column) % 2])
    page.save(tmp_path / "p.png")
    profile = load_profile("glm-ocr-pipeline", {"detector": "geometric"})[1]
    assert isinstance(profile, Settings)
    detect = load_detector("geometric", DetectorOptions()).detect
    cut = cut_page(Request(id="p", images=(tmp_path / "p.png",)), profile.order(), detect)
    assert len(cut.regions) == MOST_REGIONS and 0 < cut.left_out <= cut.found - MOST_REGIONS
    record = joined(
        *[answer()] * sum(each.is_asked for each in cut.regions), regions=cut.regions, left_out=cut.left_out
    )
    assert (record.response or {})["layout"]["left_out"] == cut.left_out
