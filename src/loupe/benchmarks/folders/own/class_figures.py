"""Which labels were taken for which: confusion matrix, and precision, recall and F1 of every label with intervals.

Counts over the samples; a label that was never answered has no precision, one that never occurs no recall.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from loupe.benchmarks.folders.own.class_labels import label_of
from loupe.stats.analysis import Analysis
from loupe.stats.estimates import FEWEST_OF_PART, estimate
from loupe.types import Measure, SampleScores, Score

#: In place of a label: the answer was none of them, or there was no answer.
UNKNOWN, NONE = "none of the labels", "no answer"
#: With more labels the matrix is no table any more.
MOST_LABELS = 40
#: The name in `figures` of a result.
FIGURE = "classes"

_RATIOS = Analysis([Measure(name="precision"), Measure(name="recall"), Measure(name="f1")])


def class_details(answer: str, reference: str, labels: Sequence[str]) -> dict[str, str]:
    """What a sample contributes to the matrix: the label it has, and the one that was answered."""
    answered = label_of(answer, labels) or (f"({UNKNOWN})" if answer.strip() else f"({NONE})")
    return {"label": label_of(reference, labels) or reference, "answered": answered}


def class_figures(rows: Iterable[SampleScores], labels: Sequence[str]) -> dict[str, Any]:
    """The matrix as truth → answered → samples, and for each label its three ratios; {} without any class.

    With more than 40 labels the matrix is empty.
    """
    pairs = [
        (row.group or row.sample, row.details["label"], row.details["answered"])
        for row in rows
        if row.details.keys() >= {"label", "answered"}
    ]
    used = {label for pair in pairs for label in pair[1:]}
    known = [label for label in labels if label in used]
    if not pairs:
        return {}
    concerned: dict[str, list[tuple[str, str, str]]] = {label: [] for label in known}
    for pair in pairs:
        for label in {*pair[1:]} & concerned.keys():
            concerned[label].append(pair)
    ratios = {label: _ratios(found, label) for label, found in concerned.items()}
    return {"matrix": _matrix(pairs, known) if len(known) <= MOST_LABELS else {}, "labels": ratios}


def _matrix(pairs: Sequence[tuple[str, str, str]], known: Sequence[str]) -> dict[str, dict[str, int]]:
    others = sorted({answered for _, _, answered in pairs} - set(known))
    matrix = {truth: dict.fromkeys([*known, *others], 0) for truth in known}
    for _, truth, answered in pairs:
        matrix[truth][answered] += 1
    return matrix


def without_labels(rows: Iterable[SampleScores]) -> list[str]:
    """A warning where there are answers, and not one of them is a label."""
    answered = [row.details["answered"] for row in rows if "answered" in row.details]
    if f"({UNKNOWN})" not in answered or set(answered) - {f"({UNKNOWN})", f"({NONE})"}:
        return []
    none = "no answer is one of the labels"
    return [f"{none}: plain OCR gives no labels, a vision model does (--base-url URL)"]


def _ratios(pairs: Sequence[tuple[str, str, str]], label: str) -> dict[str, Any]:
    scores = []
    for cluster, truth, answered in pairs:
        hit, wanted, given = float(truth == answered == label), float(truth == label), float(answered == label)
        counts = {"precision": (hit, given), "recall": (hit, wanted), "f1": (2 * hit, wanted + given)}
        # What has no part in a ratio must not count among its samples: two right out of two prove little.
        scores += [(cluster, Score(measure=name, counts=each)) for name, each in counts.items() if each[1]]
    found = estimate(_RATIOS, scores, fewest=FEWEST_OF_PART)
    occurs, given = (sum(pair[place] == label for pair in pairs) for place in (1, 2))
    sizes = {"precision": given, "recall": occurs, "f1": occurs}
    return {name: msgspec.to_builtins(msgspec.structs.replace(found[name], n=n)) for name, n in sizes.items()}
