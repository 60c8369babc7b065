"""Conclude a run over all pages: the official score, interval, permutation test and errors of a candidate.

Protocol: docs/protocols/olmocr_bench.md#scores.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loupe.benchmarks.olmocr_bench.dataset import BASELINE
from loupe.types import Conclusion, SampleScores

#: In the order of the published table. Other files are measures of their own name.
CATEGORIES = (
    "arxiv_math",
    "old_scans_math",
    "table_tests",
    "old_scans",
    "headers_footers",
    "multi_column",
    "long_tiny_text",
    BASELINE,
)
#: What the official program prints of a candidate with any error, in place of its figures.
FAILED = "FAILED (errors)"
#: Errors of a candidate that are named; the others are counted.
_NAMED = 10


def measure_of(category: str) -> str:
    """The measure of a test file: its name, but for files called like what is made of all of them."""
    return f"{category}.jsonl" if category in ("overall", "candidate_errors") else category


def conclude(rows: Sequence[SampleScores]) -> Conclusion:
    """`figures` as the official command prints them, and the interval it would print with the seed 0.

    With `missing=official` errors of the candidate make every score 0, and there is no interval; by default they are
    named beside the figures, where the official program prints FAILED.
    """
    facts = [fact for row in rows for fact in row.details.get("tests", ())]
    if not facts:
        return Conclusion()
    errors = [error for row in rows for error in row.details.get("candidate_errors", ())]
    voided = bool(errors) and any(score.measure == "candidate_errors" for row in rows for score in row.scores)
    categories = _by_category(facts)
    passed = {name: sum(fact["passed"] for fact in found) for name, found in categories.items()}
    rates = {name: 0.0 if voided else passed[name] / len(found) for name, found in categories.items()}
    figures: dict[str, Any] = {
        "overall": sum(rates.values()) / len(rates),
        "tests": len(facts),
        "categories": {
            name: {"passed": 0 if voided else passed[name], "total": len(found), "rate": rates[name]}
            for name, found in categories.items()
        },
        "types": _by_type(facts),
    }
    if errors:
        figures["candidate_errors"] = {"count": len(errors), "first": errors[:_NAMED]}
        figures["official_status"] = FAILED
    if voided:
        warning = f"candidate errors void every score, as officially: {_first_of(errors)}; by default they do not"
        return Conclusion(figures=figures, warnings=[warning, *_left_out(rows)], not_computed=_not_computed(figures))
    if unjudged := _unjudged(facts):
        figures["not_judged"] = unjudged
    low, high = official_interval(categories)
    figures["interval"] = {
        "low": low,
        "high": high,
        "half_width": (high - low) / 2,
        "level": 0.95,
        "samples": SAMPLES,
        "seed": 0,
    }
    return Conclusion(
        figures=figures,
        warnings=[*_left_out(rows), *_limits_met(unjudged)],
        official=official_line(figures, errors),
        not_computed=_not_computed(figures),
    )


def official_line(figures: Mapping[str, Any], errors: Sequence[str] = ()) -> str:
    """The score and the pass rates by type of test, as the official command prints them, or would but for errors."""
    overall, half = 100 * figures["overall"], 100 * figures["interval"]["half_width"]
    kinds = [f"{name} {100 * kind['rate']:.1f} of {kind['tests']:,}" for name, kind in figures["types"].items()]
    margin = "official interval: tests drawn within categories"
    failed = f" – the official program prints {FAILED} and 0 instead: {_first_of(errors)}" if errors else ""
    return f"official figures: {overall:.1f} ± {half:.1f} ({margin}){failed}; % passed by type: {', '.join(kinds)}"


def _first_of(errors: Sequence[str]) -> str:
    return errors[0] + (f" and {len(errors) - 1:,} more" if len(errors) > 1 else "")


def _not_computed(figures: Mapping[str, Any]) -> dict[str, str]:
    """Return the reason why a measure has no value: a set without one of the published files, and what is counted on
    demand.
    """
    absent = {name: "no tests of this category here" for name in CATEGORIES if name not in figures["categories"]}
    return absent | {"candidate_errors": ""}


#: The option that brings tests of a kind back.
_WITH = {"math": "math=render", "baseline": "baseline=include"}


def _left_out(rows: Sequence[SampleScores]) -> Iterator[str]:
    """That the score is not the official one, and how to get that from the same answers."""
    kinds = str(rows[0].details.get("left_out", "")).split()
    if kinds:
        again = " ".join(f"-o {_WITH[kind]}" for kind in kinds)
        names = " and ".join(kinds)
        yield f"{names} tests are left out, so overall is not the official one; all tests: loupe score RUN {again}"


def _unjudged(facts: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Failed tests in which a limit of ours, and no fact about the answer, may have decided."""
    lost = [int(fact.get("figures", {}).get("not_compared", 0)) for fact in facts]
    found = {
        "math_tests": sum(count > 0 for count in lost),
        "equations": sum(lost),
        "table_tests": sum(fact["explanation"] == "table_too_large" for fact in facts),
    }
    return found if any(found.values()) else {}


def _limits_met(unjudged: Mapping[str, int]) -> Iterator[str]:
    if unjudged.get("math_tests"):
        yield (
            f"{unjudged['equations']:,} equations in {unjudged['math_tests']:,} failed math tests were not compared: "
            "the browser did not survive them, or the search was given up"
        )
    if unjudged.get("table_tests"):
        yield f"{unjudged['table_tests']:,} table tests failed because a table was too large to be read"


def official_interval(categories: Mapping[str, Sequence[Mapping[str, Any]]], *, seed: int = 0) -> tuple[float, float]:
    """The official bootstrap interval; tests in the order of `_by_category`, as upstream leaves theirs to chance."""
    scores = [float(fact["passed"]) for found in categories.values() for fact in found]
    return bootstrap_interval(scores, [len(found) for found in categories.values()], seed=seed)


def _by_category(facts: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Categories by name, automatic tests last; tests by id, automatic ones by document."""
    found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for fact in facts:
        found[fact["category"]].append(fact)
    names = sorted(found, key=lambda name: (name == BASELINE, name))
    return {name: sorted(found[name], key=lambda fact: fact["pdf" if name == BASELINE else "id"]) for name in names}


def _by_type(facts: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """The mean over tests of the share of repeats that passed."""
    shares: dict[str, list[float]] = defaultdict(list)
    for fact in facts:
        shares[fact["type"]].append(fact.get("share", float(fact["passed"])))
    return {kind: {"rate": sum(found) / len(found), "tests": len(found)} for kind, found in sorted(shares.items())}


Floats = NDArray[np.float64]

SAMPLES = 1000
PERMUTATIONS = 10_000


def bootstrap_interval(
    scores: Sequence[float],
    splits: Sequence[int] | None = None,
    *,
    samples: int = SAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[float, float]:
    """Percentiles of the mean of category means, each category resampled on its own; without `splits`, of the mean.

    `splits` are the sizes of the categories, in the order of the scores. No scores: (0, 0). Raises ValueError if the
    sizes do not add up.
    """
    if not scores:
        return 0.0, 0.0
    generator = np.random.RandomState(seed)
    parts = list(_parts(np.array(scores), splits))
    means = [
        np.mean([np.mean(generator.choice(part, size=len(part), replace=True)) for part in parts if len(part)])
        for _ in range(samples)
    ]
    alpha = (1 - level) / 2
    return float(np.percentile(means, alpha * 100)), float(np.percentile(means, (1 - alpha) * 100))


def permutation_test(
    scores_a: Sequence[float],
    scores_b: Sequence[float],
    splits_a: Sequence[int] | None = None,
    splits_b: Sequence[int] | None = None,
    *,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> tuple[float, float]:
    """Difference of two candidates and its p-value: scores are shuffled between them within each category, unpaired.

    Nothing to compare: (0, 1). Raises ValueError if the sizes of categories do not add up.
    """
    if not scores_a or not scores_b:
        return 0.0, 1.0
    generator = np.random.RandomState(seed)
    ours, theirs = np.array(scores_a, float), np.array(scores_b, float)
    observed = _mean_of_means(ours, splits_a) - _mean_of_means(theirs, splits_b)
    pairs = list(zip(_parts(ours, splits_a), _parts(theirs, splits_b), strict=False))
    pools = [np.concatenate(pair) for pair in pairs]
    extreme = 0
    for _ in range(permutations):
        if splits_a is not None or splits_b is not None:
            pools = [np.concatenate(pair) for pair in pairs]
        # Without categories upstream shuffles what the last round has shuffled; no matter but for the seed.
        shuffled_a, shuffled_b = [], []
        for (part_a, _), pool in zip(pairs, pools, strict=True):
            generator.shuffle(pool)
            shuffled_a.append(pool[: len(part_a)])
            shuffled_b.append(pool[len(part_a) :])
        difference = _mean_of_means(np.concatenate(shuffled_a), splits_a) - _mean_of_means(
            np.concatenate(shuffled_b), splits_b
        )
        extreme += abs(difference) >= abs(observed)
    return float(observed), extreme / permutations


def _parts(scores: Floats, splits: Sequence[int] | None) -> Iterator[Floats]:
    """The scores of each category."""
    if splits is None:
        yield scores
        return
    if sum(splits) != len(scores):
        raise ValueError(f"the categories have {sum(splits)} scores, but there are {len(scores)}")
    start = 0
    for size in splits:
        yield scores[start : start + size]
        start += size


def _mean_of_means(scores: Floats, splits: Sequence[int] | None) -> float:
    if splits is None:
        return float(np.mean(scores))
    means, start = [], 0
    for size in splits:
        if size > 0:
            means.append(np.mean(scores[start : start + size]))
        start += size
    return float(np.mean(means)) if means else 0.0
