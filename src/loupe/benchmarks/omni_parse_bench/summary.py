"""All tests of a run together: headline, families, output types, tags, as the official program has them.

Protocol: docs/protocols/omni_parse_bench.md#scores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loupe.benchmarks.omni_parse_bench.outcomes import Verdict
from loupe.benchmarks.omni_parse_bench.records import DERIVATIONS, FAMILIES, KINDS, OUTPUT_TYPES, Kind

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedTest:
    """One test with its verdict, and what it is counted by."""

    page: str
    document: str
    suite: str
    kind: Kind
    derivation: str
    tags: tuple[str, ...]
    verdict: Verdict

    @property
    def passed(self) -> bool:
        """Whether it has passed."""
        return self.verdict == "pass"

    @property
    def is_scored(self) -> bool:
        """Whether it counts."""
        return self.verdict in ("pass", "fail")

    @property
    def family(self) -> str:
        """What it measures."""
        return FAMILIES[self.kind]

    @property
    def reads(self) -> str:
        """The output that it looks at."""
        return "blocks" if self.kind == "layout_kind" else "html"


def summarize_tests(tests: Sequence[GradedTest], *, with_pages: bool = True) -> Figures:
    """The official summary; without pages it knows neither documents nor suites."""
    scored = [test for test in tests if test.is_scored]
    documents = _documents if with_pages else lambda _: {}
    figures: Figures = {"headline": _headline(tests, scored, documents)}
    for output in OUTPUT_TYPES:
        found = [test for test in scored if test.reads == output]
        if found:
            verdicts = Counter(test.verdict for test in tests if test.reads == output)
            figures[output] = {
                "score": rate(found),
                "tests": len(found),
                "unsupported": verdicts["unsupported"],
                "errors": verdicts["error"],
                **documents(found),
                "per_test_type": _rates(found, lambda test: test.kind, KINDS),
                "per_tag": _by_tag(found, documents),
            }
    if with_pages:
        figures["per_suite"] = _rates(scored, lambda test: test.suite, sorted({test.suite for test in scored}))
    figures["per_derivation"] = _rates(scored, lambda test: test.derivation, DERIVATIONS)
    return figures


def _headline(tests: Sequence[GradedTest], scored: Sequence[GradedTest], documents: _Documents) -> Figures:
    """The mean of the families; None where one of them has tests and none that counts."""
    sizes = Counter(test.family for test in tests)
    families: dict[str, Figures] = {}
    for family, _ in sizes.most_common():
        found = [test for test in scored if test.family == family]
        families[family] = {"score": rate(found), "tests": len(found), **documents(found)}
    scores = [score for family in families.values() if (score := family["score"]) is not None]
    complete = bool(scores) and len(scores) == len(families)
    return {"score": sum(scores) / len(scores) if complete else None, "families": families, **documents(scored)}


def _by_tag(tests: Sequence[GradedTest], documents: _Documents) -> Figures:
    """A test counts in each of its tags; the largest first."""
    groups: dict[str, list[GradedTest]] = {}
    for test in tests:
        for tag in test.tags:
            groups.setdefault(tag, []).append(test)
    return {
        tag: {
            "score": rate(found),
            "tests": len(found),
            "pages": len({test.page for test in found}),
            **documents(found),
        }
        for tag, found in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    }


_Documents = Callable[[Sequence[GradedTest]], Mapping[str, int]]


def _documents(tests: Sequence[GradedTest]) -> Mapping[str, int]:
    return {"documents": len({test.document for test in tests})}


def rate(tests: Sequence[GradedTest]) -> float | None:
    """The share of tests that have passed; None without any."""
    return sum(test.passed for test in tests) / len(tests) if tests else None


def _rates(
    tests: Iterable[GradedTest], key: Callable[[GradedTest], str], order: Iterable[str]
) -> dict[str, float | None]:
    groups: dict[str, list[GradedTest]] = {}
    for test in tests:
        groups.setdefault(key(test), []).append(test)
    return {name: rate(groups[name]) for name in order if name in groups}
