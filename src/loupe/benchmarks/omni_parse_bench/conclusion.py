"""Conclude a run over all pages: the official summary, tags as slices, and warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loupe.benchmarks.omni_parse_bench.outcomes import Verdict
from loupe.benchmarks.omni_parse_bench.records import DERIVATIONS, FAMILIES, KINDS, OUTPUT_TYPES, Kind
from loupe.quantities import points
from loupe.stats.analysis import Analysis
from loupe.stats.clusters import Row
from loupe.stats.estimates import FEWEST_OF_PART, estimate
from loupe.types import Conclusion, Estimate, Measure, SampleScores, Score

#: The headline's families, in the order of the published table.
FAMILY_NAMES = ("text", "tables", "layout")
#: Tests whose grading failed that are named; the others are counted.
_NAMED = 5
_Slices = dict[str, dict[str, dict[str, Estimate]]]


def conclude(rows: Sequence[SampleScores]) -> Conclusion:
    """`figures` are the official summary, `slices` its tables by tag."""
    tells_blocks = any(row.details.get("tells_blocks") for row in rows)
    tests = [test for row in rows for test in _graded(row, tells_blocks=tells_blocks)]
    pending = sum(bool(row.details.get("pending")) for row in rows)
    left_out = [f"{pending:,} of {len(rows):,} pages have no answer and are left out as pending"] if pending else []
    if not tests:
        return Conclusion(warnings=left_out)
    figures = summarize_tests(tests)
    families = figures["headline"]["families"]
    return Conclusion(
        figures=figures,
        warnings=left_out + list(_warnings(rows, figures)),
        official=_official_line(figures),
        not_computed=_not_computed(families, tells_blocks=tells_blocks),
        slices=tag_slices(tests),
    )


def _graded(row: SampleScores, *, tells_blocks: bool) -> Iterator[GradedTest]:
    """The tests of a page. Where no page has blocks, the engine makes none, and tests of these are unsupported."""
    for fact in row.details.get("tests", ()):
        unsupported = fact["type"] == "layout_kind" and not tells_blocks
        yield GradedTest(
            page=row.sample,
            document=row.group or row.sample,
            suite=row.tags.get("suite", ""),
            kind=fact["type"],
            derivation=fact["derivation"],
            tags=tuple(fact["tags"]),
            verdict="unsupported" if unsupported else fact["verdict"],
        )


def tag_slices(tests: Sequence[GradedTest]) -> _Slices:
    """By tag the share of the tests of each output that have passed; a test counts in each of its tags."""
    tags = sorted({tag for test in tests for tag in test.tags})
    measures = [Measure(name=f"{name}\0{tag}") for tag in tags for name in ("html", "layout")]
    found = estimate(Analysis(measures), _rows(tests), fewest=FEWEST_OF_PART) if tags else {}
    slices: dict[str, dict[str, Estimate]] = {}
    for name, one in found.items():
        measure, _, tag = name.partition("\0")
        if one.value is not None:
            slices.setdefault(tag, {})[measure] = one
    return {"tag": slices} if slices else {}


def _rows(tests: Sequence[GradedTest]) -> Iterator[Row]:
    for test in tests:
        measure = "layout" if test.reads == "blocks" else "html"
        for tag in test.tags if test.is_scored else ():
            yield test.document, Score(measure=f"{measure}\0{tag}", counts=(float(test.passed), 1.0))


def _official_line(figures: Mapping[str, Any]) -> str:
    """The headline, its families and the types of tests, as percentages."""
    headline = figures["headline"]
    types = {**figures.get("html", {}).get("per_test_type", {}), **figures.get("blocks", {}).get("per_test_type", {})}
    families = ", ".join(f"{name} {_percent(family['score'])}" for name, family in headline["families"].items())
    shown = ", ".join(f"{name} {_percent(score)}" for name, score in types.items())
    return f"official figures: {_percent(headline['score'])} ({families}); % passed by type: {shown}"


def _percent(score: float | None) -> str:
    return "none" if score is None else points(score)


def _not_computed(families: Mapping[str, Mapping[str, Any]], *, tells_blocks: bool) -> dict[str, str]:
    """Return the reason why a measure has no value."""
    absent = {name: "no tests of this family here" for name in FAMILY_NAMES if name not in families}
    if "layout" in families and not tells_blocks:
        why = "the engine gives no blocks with boxes"
        return absent | {"layout": why, "overall": f"{why}, so one of the families has no score"}
    if empty := [name for name, family in families.items() if family["score"] is None]:
        return absent | {"overall": f"no test of {', '.join(empty)} could be scored"}
    return absent


def _warnings(rows: Sequence[SampleScores], figures: Mapping[str, Any]) -> Iterator[str]:
    if any(row.details.get("left_out") for row in rows):
        yield (
            "LaTeX tests are left out, so the figures are not the official ones; all tests: "
            "loupe score RUN -o math=render"
        )
    facts = [(row, fact) for row in rows for fact in row.details.get("tests", ())]
    errors = [(row.sample, fact) for row, fact in facts if fact["verdict"] == "error"]
    if errors:
        named = ", ".join(f"{fact['id']} ({fact['figures'].get('error', '')[:60]})" for _, fact in errors[:_NAMED])
        more = f" and {len(errors) - _NAMED:,} more" if len(errors) > _NAMED else ""
        yield f"{len(errors):,} tests end in an error of the official program and are in no score: {named}{more}"
    lost = [fact for _, fact in facts if fact.get("figures", {}).get("not_compared")]
    if lost:
        yield f"{len(lost):,} failed LaTeX tests had equations that the browser did not survive"
    large = sum(fact.get("why") == "tables_too_large" for _, fact in facts)
    if large:
        yield f"{large:,} table tests failed because a table was too large to be read"


def headline_of_families(sums: Any) -> Any:
    """The mean of the pass rates of the families that have tests; nan where one has none that counts.

    Counts are passed, scored and graded tests of text, tables and layout, then pages with blocks: without any of these,
    no test of layout counts.
    """
    import numpy as np

    passed, scored, graded = (sums[..., start : start + 3] for start in (0, 3, 6))
    scored = np.where(np.arange(3) == FAMILY_NAMES.index("layout"), scored * (sums[..., 9:] > 0), scored)
    rates = np.divide(passed, scored, out=np.full_like(passed, np.nan, dtype=float), where=scored > 0)
    there = graded > 0
    total = np.where(there, rates, 0.0).sum(axis=-1)
    return np.where(there.any(axis=-1), total / np.maximum(there.sum(axis=-1), 1), np.nan)


def layout_of_blocks(sums: Any) -> Any:
    """The pass rate, from passed and scored tests, and tests of pages with blocks; nan where no page has any."""
    import numpy as np

    there = sums[..., 2] > 0
    return np.where(there, sums[..., 0] / np.maximum(sums[..., 1], 1), np.nan)


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
        """True if the test has passed."""
        return self.verdict == "pass"

    @property
    def is_scored(self) -> bool:
        """True if the test counts."""
        return self.verdict in ("pass", "fail")

    @property
    def family(self) -> str:
        """The family of what it measures."""
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
