"""CC-OCR: 7,058 images in 39 subsets and four tracks: text in scenes, ten languages, documents, key information.

Paper: Yang et al., "CC-OCR", 2024, arXiv 2412.02210. Protocol: docs/protocols/cc_ocr.md. Official scorer:
AlibabaResearch/AdvancedLiterateMachinery @ fb6187e, `Benchmarks/CC-OCR/evaluation`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from loupe.benchmarks.cc_ocr.data import SUBSETS, TRACKS, load_subsets, sample_of
from loupe.benchmarks.cc_ocr.tracks import TINY, UpstreamStopsError, counted, f1, parsed, read_record, score_record
from loupe.types import Benchmark, DataSet, Measure, ParityCases, Prediction, Sample, Score, Values

#: What the official program adds to the numbers that it divides by for records.
_SMALL = 1e-6
Counts = tuple[float, ...]


def load(
    root: Path | None,
    track: Literal["all", "multi_scene_ocr", "multi_lan_ocr", "doc_parsing", "kie"] = "all",
) -> Iterator[Sample]:
    """Yield the samples of all tracks or of one; ids are track/subset/name. Raises DatasetError."""
    return load_subsets(root, frozenset(TRACKS) if track == "all" else frozenset({track}))


def score(sample: Sample, prediction: Prediction) -> list[Score]:
    """Score one answer for its subset and its track; a failed answer is an empty one."""
    track, subset = sample.tags["track"], sample.tags["subset"]
    text = "" if prediction.failed else prediction.text
    if track == "kie":
        return [*_of_subset(track, subset, _record_counts(text, sample.truth, failed=prediction.failed))]
    if track == "doc_parsing":
        stops = value = 0.0
        try:
            value = 0.0 if prediction.failed else parsed(text, str(sample.truth), sample.tags.get("op", ""))
        except UpstreamStopsError:
            stops = 1.0
        stopped = Score(measure="upstream_stops", counts=(stops, 1.0))
        return [*_of_subset(track, subset, {"similarity": (value, 1.0)}), stopped]
    counts = counted(text, str(sample.truth), track, subset)
    return [*_of_subset(track, subset, {"macro_f1": (f1(*counts), 1.0), "micro_f1": counts})]


def _record_counts(text: str, label: Any, *, failed: bool) -> dict[str, Counts]:
    rejected = 0.0
    record: Any = {}
    try:
        record = {} if failed else read_record(text)
    except ValueError:
        rejected = 1.0
    found = score_record(record, label)
    return {
        "field_f1": (float(found.right), float(found.wrong)),
        "tree_accuracy": (found.alike, 1.0),
        "rejected": (rejected, 1.0),
    }


def _of_subset(track: str, subset: str, counts: Mapping[str, Counts]) -> Iterator[Score]:
    """Each measure as it is, which slices by subset show, and as a part of its track: with a number for the subset."""
    number = float(SUBSETS.index(subset) if subset in SUBSETS else len(SUBSETS) + zlib.crc32(subset.encode()) % 100_000)
    for name, each in counts.items():
        yield Score(measure=name, counts=each)
        if name in _OF_TRACK[track]:
            yield Score(measure=_OF_TRACK[track][name], counts=(number, *each))


#: Track → measure of a subset → what the mean over its subsets is called.
_OF_TRACK: Mapping[str, Mapping[str, str]] = {
    "multi_scene_ocr": {"macro_f1": "multi_scene_ocr", "micro_f1": "multi_scene_ocr_micro"},
    "multi_lan_ocr": {"macro_f1": "multi_lan_ocr", "micro_f1": "multi_lan_ocr_micro"},
    "doc_parsing": {"similarity": "doc_parsing"},
    "kie": {"field_f1": "kie", "tree_accuracy": "kie_tree"},
}


def _mean_of_words(sums: Any) -> Any:
    return sums[..., 0] / (sums[..., 1] + TINY)


def _micro(sums: Any) -> Any:
    right, wanted, found = sums[..., 0], sums[..., 1], sums[..., 2]
    recall, precision = right / (wanted + TINY), right / (found + TINY)
    return 2 * recall * precision / (recall + precision + TINY)


def _plain_mean(sums: Any) -> Any:
    return sums[..., 0] / sums[..., 1].clip(1)


def _field_f1(sums: Any) -> Any:
    return sums[..., 0] / (sums[..., 0] + sums[..., 1] / 2 + _SMALL)


def _mean_of_records(sums: Any) -> Any:
    return sums[..., 0] / (sums[..., 1] + _SMALL)


def _over_subsets(value: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The mean over the subsets that are there: rows (subset, counts…), shape (n, k), to one number."""

    def mean(rows: Any) -> Any:
        import numpy as np

        place = rows[:, 0].astype(np.intp)
        if place.max() >= len(SUBSETS):  # subsets that are not the published ones
            place = np.unique(place, return_inverse=True)[1]
        size = np.bincount(place)
        values = value(np.array([np.bincount(place, column) for column in rows.T[1:]]).T)
        there = size > 0
        return values[there].sum() / (there.sum() + TINY)

    return mean


def summarize(values: Values) -> Values:
    """The total: the mean of the tracks that have samples."""
    there = [values[track] for track in TRACKS if values.get(track) is not None]
    return {"total": sum(there) / len(there)} if there else {}


def reference_text(sample: Sample) -> str:
    """The label as a text."""
    return sample.truth if isinstance(sample.truth, str) else json.dumps(sample.truth, ensure_ascii=False)


def verify_case(case: dict[str, Any]) -> list[tuple[float, float]]:
    """(ours, official) for the metrics of one official subset."""
    track, subset = case["group"], case["dataset"]
    rows: dict[str, list[Counts]] = {}
    for name, label in case["gt"].items():
        answer = case["responses"].get(name)
        sample = sample_of(Path(), name, "", label, (track, subset, case["op"]))
        given = Prediction(text="" if answer is None else str(answer), outcome="missing" if answer is None else "ok")
        for each in score(sample, given):
            rows.setdefault(each.measure, []).append(each.counts)
    if "error" in case["expected"]:
        return [(float(sum(counts[0] for counts in rows["upstream_stops"]) > 0), 1.0)]
    summary = case["expected"]["summary"]
    values = {measure.name: measure.value for measure in MEASURES}
    return [
        (float(_call(values[name], rows[name])), summary[official])
        for name, official in _OFFICIAL.items()
        if official in summary
    ]


#: Our measure of a subset → its official name.
_OFFICIAL = {
    "macro_f1": "macro_f1_score",
    "micro_f1": "mirco_f1_score",
    "similarity": "score",
    "field_f1": "f1_score",
    "tree_accuracy": "acc",
}


def _call(value: Callable[[Any], Any] | None, rows: list[Counts]) -> Any:
    import numpy as np

    assert value is not None
    return value(np.asarray(rows, float).sum(axis=0))


def is_too_long_for_nltk(case: dict[str, Any]) -> bool:
    """True if a case holds a text over 2,000 characters, at which NLTK 3.10 ends the official run."""
    return case["group"] == "doc_parsing" and any(len(str(text)) > 2_000 for text in case["gt"].values())


def _oracle_case(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if not is_too_long_for_nltk(case):
        yield case | {"tolerance": 1e-9}


def _track(name: str, title: str, value: Callable[[Any], Any]) -> Measure:
    return Measure(name=name, title=title, value=_over_subsets(value), pooled=True, of_parts=True)


MEASURES = (
    Measure(name="total", title="mean of the tracks", of_parts=True),
    _track("multi_scene_ocr", "text in scenes (mean of subsets)", _mean_of_words),
    _track("multi_lan_ocr", "languages (mean of subsets)", _mean_of_words),
    _track("doc_parsing", "documents (mean of subsets)", _plain_mean),
    _track("kie", "key information (mean of subsets)", _field_f1),
    _track("multi_scene_ocr_micro", "text in scenes, from summed counts", _micro),
    _track("multi_lan_ocr_micro", "languages, from summed counts", _micro),
    _track("kie_tree", "key information as trees", _mean_of_records),
    Measure(name="macro_f1", title="words or characters, mean of images", value=_mean_of_words),
    Measure(name="micro_f1", title="words or characters, summed", value=_micro),
    Measure(name="similarity", title="documents", value=_plain_mean),
    Measure(name="field_f1", title="fields", value=_field_f1),
    Measure(name="tree_accuracy", title="records as trees", value=_mean_of_records),
    Measure(name="rejected", title="records that are no JSON", higher_is_better=False),
    Measure(name="upstream_stops", title="items that end the official run", higher_is_better=False),
)

benchmark = Benchmark(
    title="CC-OCR",
    version="1",
    task="question",
    usual_prompt="(each sample's own question)",
    paper="https://arxiv.org/abs/2412.02210",
    data=DataSet(repo="wulipc/CC-OCR", patterns=("*.tsv",), licence="MIT by its repository", note="7,058 images"),
    parity=ParityCases(
        compare=verify_case,
        oracles={"cc_ocr/cases.jsonl": _oracle_case},
        deviations=(
            "Texts over 2,000 characters are compared; with NLTK 3.10 the official program ends its run at them.",
            "Where the official program ends its whole run, Loupe scores the item 0, counts it and goes on.",
            "Records too large to compare as trees earn 0 in tree_accuracy; one nested over 100 levels is rejected.",
        ),
    ),
    published_total=7_058,
    headline="total",
    measures=MEASURES,
    load=load,
    score=score,
    summarize=summarize,
    reference=reference_text,
    max_tokens=8_192,
)
