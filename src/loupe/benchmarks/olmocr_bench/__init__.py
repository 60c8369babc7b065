"""olmOCR-Bench: 7,019 facts about 1,403 PDF pages, each true of an answer or not.

Paper: Poznanski et al., "olmOCR", 2025. Official evaluator: allenai/olmocr @ f7cfe4c. Protocol:
docs/benchmarks/olmocr_bench.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from loupe.benchmarks.olmocr_bench.conclusion import CATEGORIES, conclude, measure_of
from loupe.benchmarks.olmocr_bench.dataset import (
    BASELINE,
    BASIC,
    CandidateFiles,
    Missing,
    PageTruth,
    PdfTests,
    PromptName,
    answer_name,
    names_size,
    prompt_for,
    read_prepared,
    read_test_set,
)
from loupe.benchmarks.olmocr_bench.equations import check_tools, one_sample, prepare_questions, renderer_versions
from loupe.benchmarks.olmocr_bench.page_facts import check_page, questions
from loupe.benchmarks.olmocr_bench.page_text import PageText
from loupe.benchmarks.olmocr_bench.parity_cases import compare_case, not_compared
from loupe.benchmarks.olmocr_bench.records import NO_ANSWER, MathRule, Outcome, PageTest, failed
from loupe.benchmarks.shared.answer_texts import answers_of, join_answers
from loupe.benchmarks.shared.equations.equation_pictures import EquationPictures
from loupe.data.hub.store import default_root
from loupe.data.pages import page_size
from loupe.data.prepared import is_prepared, refuse_options
from loupe.data.variants import PageVariant
from loupe.explanation import Fact
from loupe.types import (
    AnswerLayout,
    Benchmark,
    DataSet,
    Measure,
    PageSource,
    ParityCases,
    PdfPage,
    Prediction,
    Sample,
    SampleScores,
    Score,
    Scored,
    Values,
)

__all__ = ("CATEGORIES", "benchmark", "load")


#: Where this differs from the official evaluator on purpose.
DEVIATIONS = (
    "a page without an answer scores as an empty answer and does not void the candidate; missing=official does",
    "of equally good near matches the first one counts; upstream's choice depends on Python's hash seed",
    "HTML with more than 100,000 tags, 10,000,000 characters scanned for unclosed tags, or 3,000,000 elements, and "
    "tables with more than a million cells, are not parsed: their tests fail, and the candidate is not voided",
    "pages without tests are not read; upstream stops at them unless --force is given",
    "equations over 20,000 characters count as refused by KaTeX; of over 2,000 equations only the most similar count",
    "no match: equations that hang or crash the browser, follow 4 hangs or 20 crashes, or need 20 million search steps",
    "a page or count that is not a whole number, and a `pdf` that is not the path of a .pdf, are refused on loading",
)


def load(
    root: Path | None,
    missing: Missing = "empty",
    math: Literal["render", "skip"] = "render",
    baseline: Literal["include", "skip"] = "include",
    prompt: PromptName = "basic",
    longest: int = 1024,
    variant: PageVariant = "none",
) -> Iterator[Sample]:
    """Yield the pages that have tests, by document; ids are the official names of the answers to them.

    `missing=official` voids a candidate that lacks an answer; `math=skip` and `baseline=skip` leave these tests out.
    `prompt` is one of the official runners'; for one that names the size of the image, `longest` is its longer side.
    `variant` turns the page images or makes them worse.
    """
    folder = default_root("olmocr_bench") if root is None else root
    skipped = {"math": math == "skip", "baseline": baseline == "skip"}
    pages: list[tuple[PdfTests, tuple[str, ...], PageSource]]
    if is_prepared(folder):
        refuse_options(folder, **skipped, variant=variant != "none")
        pages = list(read_prepared(folder))
    else:
        test_set = read_test_set(folder, leave_out=frozenset(kind for kind, skip in skipped.items() if skip))
        drawn = "" if variant == "none" else variant
        pages = [
            (page, test_set.categories, PdfPage(test_set.pdfs / page.pdf, page.page, drawn)) for page in test_set.pages
        ]
    if any(test.kind == "math" for page, _, _ in pages for test in page.tests):
        check_tools()
    left_out = {"left_out": " ".join(kind for kind, skip in skipped.items() if skip)} if any(skipped.values()) else {}
    for page, categories, image in pages:
        yield Sample(
            id=answer_name(page.pdf, page.page),
            images=(image,),
            prompt=_prompt(prompt, image, longest),
            truth=PageTruth(page, categories, missing),
            scoring=left_out,
        )


def _prompt(name: PromptName, image: PageSource, longest: int) -> str:
    """Nothing for the benchmark's own prompt, so that profiles can set another one."""
    if name == "basic":
        return ""
    if not names_size(name):
        return prompt_for(name)
    width, height = page_size(image)
    scale = longest / max(width, height)
    return prompt_for(name, width=round(width * scale), height=round(height * scale))


def score(sample: Sample, prediction: Prediction) -> Scored:
    """One score for each fact, and one with the page's counts by category; `details` give the reasons.

    Raises MissingToolError where equations cannot be rendered.
    """
    truth: PageTruth = sample.truth
    tests = truth.page.tests
    repeats = answers_of(prediction)
    absent = truth.missing == "official" and prediction.failed
    with one_sample() if any(test.kind == "math" for test in tests) else nullcontext():
        runs = [_outcomes(None if absent else text, tests) for text in repeats]
    facts = [_fact(test, [outcomes[number] for outcomes in runs]) for number, test in enumerate(tests)]
    scores = [
        Score(
            measure=measure_of(test.category),
            unit=test.id,
            counts=(float(fact["passed"]), 1.0),
            tags={"type": test.kind, "category": test.category},
        )
        for test, fact in zip(tests, facts, strict=True)
    ]
    scores.append(Score(measure="overall", counts=_sums(facts, truth.categories)))
    details: dict[str, Any] = {"tests": facts, **sample.scoring}
    errors = _candidate_errors(truth.page, repeats, facts, absent=absent)
    details |= {"candidate_errors": errors} if errors else {}
    if truth.missing == "official":
        scores.append(Score(measure="candidate_errors", counts=(float(len(errors)),)))
    return Scored(scores=scores, details=details)


def facts(sample: Sample, prediction: Prediction, scores: SampleScores) -> list[Fact]:
    """Every test of the page with what shows why it failed, for the report; equations are drawn where they can be."""
    from loupe.benchmarks.olmocr_bench.evidence import page_facts

    repeats = [with_newlines_of_text_mode(text or "") for text in answers_of(prediction)]
    return page_facts(sample.truth.page.tests, scores.details.get("tests", ()), repeats, _pictures())


@lru_cache(maxsize=1)
def _pictures() -> EquationPictures:
    return EquationPictures()


def prepare(pairs: Sequence[tuple[Sample, Prediction]]) -> None:
    """Render the equations of many pages together, into the cache that `score` reads."""
    prepare_questions(each for sample, prediction in pairs for each in _questions(sample, prediction))


def _questions(sample: Sample, prediction: Prediction) -> Iterator[tuple[str, list[str]]]:
    """Yield what must be rendered to score a page: each reference, with the equations of one answer."""
    rules = [test.rule for test in sample.truth.page.tests if isinstance(test.rule, MathRule)]
    for text in answers_of(prediction) if rules else []:
        if text is not None:
            yield from questions(PageText(with_newlines_of_text_mode(text)), rules)


def _outcomes(text: str | None, tests: Sequence[PageTest]) -> list[Outcome]:
    if text is None:
        return [failed(NO_ANSWER)] * len(tests)
    return check_page(with_newlines_of_text_mode(text), tests)


def with_newlines_of_text_mode(answer: str) -> str:
    """The answer with newlines as Python's text mode reads them; upstream reads answers so."""
    return answer.replace("\r\n", "\n").replace("\r", "\n")


def _fact(test: PageTest, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The outcome of a test: it passes if more than half of the repeats pass; the first failure explains it."""
    share = sum(outcome.passed for outcome in outcomes) / len(outcomes)
    repeat = next((place for place, outcome in enumerate(outcomes) if not outcome.passed), 0)
    why = outcomes[repeat]
    fact: dict[str, Any] = {
        "id": test.id,
        "pdf": test.pdf,
        "page": test.page,
        "type": test.kind,
        "category": test.category,
        "passed": share > 0.5,
        "explanation": why.explanation,
        **({"figures": dict(why.figures)} if why.figures else {}),
    }
    return fact | ({"share": share, "repeat": repeat + 1} if len(outcomes) > 1 else {})


def _sums(facts: Sequence[dict[str, Any]], categories: Sequence[str]) -> tuple[float, ...]:
    """Passed facts by category, then all facts by category."""
    places = {name: place for place, name in enumerate(categories)}
    sums = [0.0] * (2 * len(categories))
    for fact in facts:
        place = places[fact["category"]]
        sums[place] += fact["passed"]
        sums[len(categories) + place] += 1.0
    return tuple(sums)


def mean_of_categories(sums: Any) -> Any:
    """The unweighted mean of the pass rates of all categories that have facts."""
    size = sums.shape[-1] // 2
    passed, total = sums[..., :size], sums[..., size:]
    rates = np.divide(passed, total, out=np.zeros_like(passed, dtype=float), where=total > 0)
    counted = (total > 0).sum(axis=-1)
    return np.where(counted > 0, rates.sum(axis=-1) / np.maximum(counted, 1), np.nan)


def _candidate_errors(
    page: PdfTests, repeats: Sequence[str | None], facts: Sequence[dict[str, Any]], *, absent: bool
) -> list[str]:
    """The errors that upstream counts against the whole candidate."""
    name = answer_name(page.pdf, page.page)
    if absent:
        return [f"no readable answer to {page.pdf} page {page.page} ({name}.md)"]
    unreadable = [f"an answer to {page.pdf} page {page.page} cannot be read"] * repeats.count(None)
    return unreadable + [
        f"test {fact['id']} raises {fact.get('figures', {}).get('error', 'an error')}"
        for fact in facts
        if fact["explanation"] == "run_error"
    ]


def summarize(values: Values) -> Values:
    """Any error voids the candidate (`missing=official`; docs/protocols/olmocr_bench.md#void-candidates)."""
    errors = values.get("candidate_errors")
    if errors is None or not np.any(np.asarray(errors) > 0):
        return {}
    return {
        name: np.where(np.asarray(errors) > 0, 0.0, value)
        for name, value in values.items()
        if name != "candidate_errors"
    }


def answers_in_folder(samples: Iterable[Sample], names: Iterable[str]) -> dict[str, list[str]]:
    """The files of a candidate's folder that answer each sample: all repeats of its page."""
    files = CandidateFiles(names)
    pages = {sample.id: sample.truth.page for sample in samples}
    return {ident: files.answers_to(page.pdf, page.page) for ident, page in pages.items()}


def _first_count(value: Any) -> Any:
    return value[..., 0]


#: The tasks in eval.yaml of the data set, commit 54a96a6.
LEADERBOARD = (
    *("overall", "arxiv_math", "headers_footers", "long_tiny_text", "multi_column", "old_scans"),
    *("old_scans_math", "table_tests", "baseline"),
)

benchmark = Benchmark(
    title="olmOCR-Bench",
    version="1.0",
    task="markdown",
    paper="https://arxiv.org/abs/2502.18443",
    data=DataSet(
        repo="allenai/olmOCR-bench",
        patterns=("bench_data/*.jsonl", "bench_data/pdfs/*"),
        note="1,403 pages",
        tasks=LEADERBOARD,
    ),
    parity=ParityCases(
        compare=compare_case,
        deviations=DEVIATIONS,
        not_compared=not_compared,
        oracles={f"olmocr_bench/{name}.jsonl": None for name in ("cases", "normalize", "stats")},
    ),
    prompt=BASIC,
    measures=(
        Measure(name="overall", title="overall (mean of categories)", value=mean_of_categories, of_parts=True),
        Measure(name="arxiv_math", title="ArXiv math"),
        Measure(name="old_scans_math", title="old scans, math"),
        Measure(name="table_tests", title="tables"),
        Measure(name="old_scans", title="old scans"),
        Measure(name="headers_footers", title="headers and footers"),
        Measure(name="multi_column", title="multi column"),
        Measure(name="long_tiny_text", title="long tiny text"),
        Measure(name=BASELINE, title="baseline"),
        Measure(
            name="candidate_errors",
            title="errors that void the candidate",
            higher_is_better=False,
            unit="number",
            value=_first_count,
            sampled=False,
        ),
    ),
    headline="overall",
    further=Measure(name="a test file of another name"),
    summarize=summarize,
    conclude=conclude,
    load=load,
    answers=AnswerLayout(in_folder=answers_in_folder, join=join_answers),
    score=score,
    prepare=prepare,
    tools=renderer_versions,
    facts=facts,
    max_tokens=8000,
    suffix=".md",
)
