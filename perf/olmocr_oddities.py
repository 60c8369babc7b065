"""What the official evaluator's oddities are worth: the overall of olmOCR-Bench as it is, and without each of them.

    python perf/olmocr_oddities.py ROOT CANDIDATE [CANDIDATE...]
    python perf/olmocr_oddities.py CASES.jsonl

ROOT is a folder of tests and pdfs, a CANDIDATE a folder of answers in the official layout. Every oddity is taken out of
the scorer alone, in this process only; printed is the overall of each candidate and how many tests turn out otherwise.
CASES are single tests with an answer each ({"input": {"test", "md"}}), as the oracle has them; there, how many turn.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rapidfuzz import fuzz

from loupe.benchmarks.olmocr_bench import answers_in_folder, conclude, load, page_facts, page_text, records, score
from loupe.benchmarks.olmocr_bench.dataset import join_repeats
from loupe.benchmarks.olmocr_bench.equations import MathOutcome, render_and_match
from loupe.benchmarks.olmocr_bench.page_facts import check_test
from loupe.benchmarks.olmocr_bench.page_text import PageText
from loupe.benchmarks.olmocr_bench.records import TestRecordError, read_test
from loupe.benchmarks.shared.equations.rendering.renderer import the_renderer
from loupe.benchmarks.shared.table_answers.table_grid import TableReadError
from loupe.types import Prediction, SampleScores


def _whole_ratio(wanted: str, where: str) -> float:
    """As partial_ratio, but a text that is too short to hold the other one is compared as a whole."""
    return fuzz.ratio(wanted, where) if len(where) < len(wanted) else fuzz.partial_ratio(wanted, where)


def _only_drawn(reference: str, equations: Sequence[str]) -> MathOutcome:
    """A reference that KaTeX refuses is in no equation."""
    [sought] = the_renderer().draw([reference])
    return MathOutcome() if sought.error else render_and_match(reference, equations)


def _with_a_rule(lines: Sequence[str]) -> Any:
    """Lines with pipes are a table where one of them is the rule between head and body."""
    return _table(lines) if any(page_text._is_separator(line) for line in lines) else None


_table = page_text._table
_strict = SimpleNamespace(
    partial_ratio=_whole_ratio, partial_ratio_alignment=fuzz.partial_ratio_alignment, ratio=fuzz.ratio
)
#: Name, and the places of the scorer that change.
ODDITIES: tuple[tuple[str, tuple[tuple[Any, str, Any], ...]], ...] = (
    (
        "an answer that is a part of the text holds it",
        tuple((m, "fuzz", _strict) for m in (page_facts, page_facts, page_facts)),
    ),
    ("single * and _ vanish in pairs", ((records, "remove_single_marks_like_official", lambda text: text),)),
    ("two lines with | are a table", ((page_text, "_table", _with_a_rule),)),
    ("a reference that does not render is in any equation", ((page_facts, "render_and_match", _only_drawn),)),
)


@contextmanager
def without(changes: Sequence[tuple[Any, str, Any]]) -> Iterator[None]:
    """The scorer without an oddity."""
    before = [(module, name, getattr(module, name)) for module, name, _ in changes]
    _put(changes)
    try:
        yield
    finally:
        _put(before)


def _put(places: Sequence[tuple[Any, str, Any]]) -> None:
    for module, name, value in places:
        setattr(module, name, value)
    page_facts.clean.cache_clear()


def outcome(root: Path, candidate: Path) -> tuple[float, dict[str, bool]]:
    """The overall of a candidate, and whether each test passed."""
    samples = list(load(root))
    names = [path.relative_to(candidate).as_posix() for path in candidate.rglob("*.md")]
    files = answers_in_folder(samples, names)
    rows = []
    for sample in samples:
        texts = [(candidate / name).read_text(encoding="utf-8") for name in files[sample.id]]
        scored = score(sample, Prediction(sample=sample.id, text=join_repeats(texts or [""]), joined=True))
        rows.append(SampleScores(sample=sample.id, scores=scored.scores, details=dict(scored.details)))
    passed = {fact["id"]: fact["passed"] for row in rows for fact in row.details["tests"]}
    return float(conclude(rows).figures["overall"]), passed


def cases_passed(file: Path) -> dict[str, bool]:
    """Whether each single test passes; those that cannot be read or run do not."""
    passed = {}
    for line in file.read_text(encoding="utf-8").split("\n"):
        case = json.loads(line) if line.strip() else {"input": {}}
        if "test" not in case["input"]:
            continue
        try:
            passed[case["id"]] = check_test(PageText(case["input"]["md"]), read_test(case["input"]["test"])).passed
        except (TestRecordError, TableReadError, TypeError):
            passed[case["id"]] = False
    return passed


def turned_cases(file: Path, say: Callable[[str], Any]) -> None:
    """Print how many cases turn without each oddity."""
    before = cases_passed(file)
    for name, changes in ODDITIES:
        with without(changes):
            after = cases_passed(file)
        say(f"{name}\t{sum(after[each] != before[each] for each in before)} of {len(before)}")


def main(say: Callable[[str], Any] = print) -> None:
    """Print the table."""
    root, *candidates = map(Path, sys.argv[1:])
    if not candidates and root.suffix == ".jsonl":
        turned_cases(root, say)
        return
    official = {candidate: outcome(root, candidate) for candidate in candidates}
    say("\t".join(["without", *(candidate.name for candidate in candidates)]))
    say("\t".join(["nothing", *(f"{100 * value:.2f}" for value, _ in official.values())]))
    for name, changes in ODDITIES:
        cells = []
        for candidate, (_, before) in official.items():
            with without(changes):
                value, after = outcome(root, candidate)
            cells.append(f"{100 * value:.2f} ({sum(after[each] != before[each] for each in before)})")
        say("\t".join([name, *cells]))


if __name__ == "__main__":
    main()
