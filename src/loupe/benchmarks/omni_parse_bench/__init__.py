"""Omni Parse Bench: 16,288 tests on 2,937 pages of what stands where in text, tables and layout.

By Datalab, 2026. Official program: PyPI omni-parse-bench 0.2.0. Protocol: docs/protocols/omni_parse_bench.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from loupe.benchmarks.omni_parse_bench.conclusion import (
    FAMILY_NAMES,
    conclude,
    headline_of_families,
    layout_of_blocks,
)
from loupe.benchmarks.omni_parse_bench.equations import one_sample, prepare_equations
from loupe.benchmarks.omni_parse_bench.gold import check_equations, read_pages
from loupe.benchmarks.omni_parse_bench.outcomes import GradingError, Outcome
from loupe.benchmarks.omni_parse_bench.page import FAULTS, HARMLESS, Answer, Form, Outputs, Page, read_answer
from loupe.benchmarks.omni_parse_bench.page_tests import check_page
from loupe.benchmarks.omni_parse_bench.parity_cases import compare_case, not_compared, with_id
from loupe.benchmarks.omni_parse_bench.records import LatexRule, PageTest, read_tests
from loupe.benchmarks.shared.equations.equation_pictures import EquationPictures
from loupe.benchmarks.shared.equations.rendering.renderer import check_mathml_tools, mathml_versions
from loupe.benchmarks.shared.latex_characters import need_pylatexenc
from loupe.benchmarks.shared.table_answers.html_grids import table_tools
from loupe.data.hub.store import default_root
from loupe.explanation import Fact
from loupe.types import Benchmark, DataSet, Measure, ParityCases, Prediction, Sample, SampleScores, Score, Scored

#: Where this differs from the official program on purpose.
DEVIATIONS = (
    "a page without an answer fails its tests; the official program leaves it out as pending, and so does "
    "missing=official",
    "blocks count as unsupported where no answer of a run has any; officially the run's settings.json says so",
    "of equally good near matches the first one counts; upstream's choice depends on Python's hash seed",
    "HTML over 1,000,000 characters and outputs of over 20,000 blocks are malformed",
    "HTML with more than 100,000 tags, and tables with more than a million cells, are not parsed: their tests fail",
    "LaTeX over 20,000 characters, and what hangs or crashes the browser, shows nothing; of a page the first 3,000 "
    "equations count",
    "MathML over 400 levels deep is an error of grading; upstream's limit is Python's, about 480",
    "formulas in text: \\today is nothing; upstream writes the day of the run",
)
#: The official runner asks general models this.
PROMPT = (
    "Transcribe this document page into HTML, faithfully and completely, in natural reading order.\n\n"
    "- Keep every piece of text printed on the page, exactly as written: headings, body text, lists, captions, "
    "footnotes, and the page's running headers, footers and page numbers.\n"
    "- Headings as <h1> to <h6>, paragraphs as <p>, bold as <b>, italic as <i>.\n"
    "- Tables as <table>, with colspan and rowspan where cells are merged.\n"
    "- Math as LaTeX: inline between $ and $, displayed between $$ and $$.\n"
    "- Form checkboxes as ☐ (empty) or ☑ (ticked).\n"
    "- Leave pictures out; don't describe them.\n\n"
    "Return only the HTML."
)


def load(
    root: Path | None,
    math: Literal["render", "skip"] = "render",
    answers: Form = "auto",
    outputs: Outputs = "auto",
    missing: Literal["empty", "official"] = "empty",
) -> Iterator[Sample]:
    """Yield the pages in the order of the manifest; ids are page ids.

    `math=skip` leaves LaTeX tests out. `answers` says what answers are; `auto` looks: JSON with `html` and `blocks`,
    HTML, else Markdown. `outputs` says what the engine gives: `html` alone, or `both`; `auto`: both where some answer
    has blocks. `missing=official` leaves out pages without an answer, as pending. Raises DatasetError.
    """
    need_pylatexenc("omni_parse_bench")
    pages = read_pages(default_root("omni_parse_bench") if root is None else root)
    if math == "render" and any(_has_latex(page.tests) for page in pages):
        check_mathml_tools()
        check_equations({page.id: page.tests for page in pages})
    scoring = {"answers": answers, "outputs": outputs, "math": math, "missing": missing}
    usual = {"answers": "auto", "outputs": "auto", "math": "render", "missing": "empty"}
    for page in pages:
        tests = zip(page.written, page.tests, strict=True)
        yield Sample(
            id=page.id,
            images=(page.image,),
            truth={"tests": [written for written, test in tests if math == "render" or not _is_latex(test)]},
            group=page.document,
            tags={"suite": page.suite} if page.suite else {},
            scoring={name: value for name, value in scoring.items() if value != usual[name]},
        )


def _tests(sample: Sample) -> tuple[PageTest, ...]:
    return read_tests(sample.truth, sample.id)


def _is_latex(test: PageTest) -> bool:
    return isinstance(test.rule, LatexRule)


def _has_latex(tests: Sequence[PageTest]) -> bool:
    return any(map(_is_latex, tests))


def score(sample: Sample, prediction: Prediction) -> Scored:
    """One score for each test that counts, by family and, for HTML, over all; `details` give the verdicts.

    Raises MissingToolError where KaTeX cannot run.
    """
    if prediction.outcome == "missing" and sample.scoring.get("missing") == "official":
        return Scored(scores=[], details={"pending": True})
    tests, answer = _tests(sample), _answer(sample, prediction)
    with one_sample() if _has_latex(tests) else nullcontext():
        outcomes = check_page(answer, tests)
    told = float(answer.tells_blocks)
    scores = [each for test, outcome in zip(tests, outcomes, strict=True) for each in _scores(test, outcome, told)]
    scores.append(Score(measure="overall", counts=(*_sums(tests, outcomes), told)))
    left_out = {"left_out": "math"} if sample.scoring.get("math") == "skip" else {}
    facts = [_fact(test, outcome) for test, outcome in zip(tests, outcomes, strict=True)]
    return Scored(scores=scores, details={"tells_blocks": answer.tells_blocks, **left_out, "tests": facts})


def _answer(sample: Sample, prediction: Prediction) -> Answer:
    outputs: Any = sample.scoring.get("outputs", "auto")
    if prediction.failed:
        unsupported: Any = frozenset({"blocks"} if outputs == "html" else ())
        return Answer(unsupported=unsupported, tells_blocks=outputs == "both")
    form: Any = sample.scoring.get("answers", "auto")
    return _read(prediction.text, form, outputs)


@lru_cache(maxsize=256)  # `prepare` reads the answers of a batch, `score` reads them again
def _read(text: str, form: Form, outputs: Outputs) -> Answer:
    return read_answer(text, form=form, outputs=outputs)


def _scores(test: PageTest, outcome: Outcome, told: float) -> Iterator[Score]:
    if outcome.verdict not in ("pass", "fail"):
        return
    passed, tags = float(outcome.passed), {"type": test.kind, "derivation": test.derivation}
    if test.family == "layout":
        yield Score(measure="layout", unit=test.id, counts=(passed, 1.0, told), tags=tags)
        return
    for measure in (test.family, "html"):
        yield Score(measure=measure, unit=test.id, counts=(passed, 1.0), tags=tags)


def _sums(tests: Sequence[PageTest], outcomes: Sequence[Outcome]) -> list[float]:
    """Passed, then scored, then all tests of each family."""
    sums = [0.0] * (3 * len(FAMILY_NAMES))
    for test, outcome in zip(tests, outcomes, strict=True):
        place = FAMILY_NAMES.index(test.family)
        sums[place] += outcome.passed
        sums[place + 3] += outcome.verdict in ("pass", "fail")
        sums[place + 6] += 1.0
    return sums


def _fact(test: PageTest, outcome: Outcome) -> dict[str, Any]:
    fact: dict[str, Any] = {
        "id": test.id,
        "type": test.kind,
        "derivation": test.derivation,
        "tags": list(test.tags),
        "verdict": outcome.verdict,
    }
    fact |= {"why": outcome.why} if outcome.why else {}
    return fact | ({"figures": dict(outcome.figures)} if outcome.figures else {})


def prepare(pairs: Sequence[tuple[Sample, Prediction]]) -> None:
    """Read the equations of many pages together, into the cache that `score` reads."""
    prepare_equations(equation for sample, prediction in pairs for equation in _equations(sample, prediction))


def _equations(sample: Sample, prediction: Prediction) -> Iterator[tuple[str, bool]]:
    """LaTeX that is read to score a page, and whether it is a display."""
    latex = [test.rule.latex for test in _tests(sample) if isinstance(test.rule, LatexRule)]
    html = _answer(sample, prediction).html if latex else None
    if html is not None:
        yield from ((each, True) for each in latex)
        try:
            yield from ((span.source, span.display) for span in Page(html).equations if not span.markup)
        except GradingError:
            return


def facts(sample: Sample, prediction: Prediction, scores: SampleScores) -> list[Fact]:
    """Every test of the page that counts, with what shows why it failed; equations are drawn where they can be."""
    from loupe.benchmarks.omni_parse_bench.evidence import page_facts

    tells_blocks, kept = scores.details.get("tells_blocks", False), scores.details.get("tests", ())
    tests = [test for test in _tests(sample) if tells_blocks or test.family != "layout"]
    return page_facts(sample.group or sample.id, tests, kept, _answer(sample, prediction).html, _pictures())


@lru_cache(maxsize=1)
def _pictures() -> EquationPictures:
    return EquationPictures()


def tools() -> dict[str, str]:
    """Return the tools that scores depend on besides Loupe, by name, empty for what is not here."""
    return {**mathml_versions(), **table_tools()}


benchmark = Benchmark(
    title="Omni Parse Bench",
    version="0.2",
    task="markdown",
    data=DataSet(
        repo="datalab-to/omni_parse_bench",
        patterns=("manifest.parquet", "gold/*", "pages/*", "licenses/*"),
        licence="by source (folder licenses); tests CC BY 4.0, some ODC-BY 1.0, MIT, CC BY-SA 4.0",
        note="2,937 pages; commits before 41131f2 are refused",
    ),
    parity=ParityCases(
        compare=compare_case,
        deviations=DEVIATIONS,
        not_compared=not_compared,
        oracles={f"omni_parse_bench/{name}.jsonl": with_id for name in ("pages", "stages", "chars")},
    ),
    prompt=PROMPT,
    measures=(
        Measure(name="overall", title="overall (mean of families)", value=headline_of_families, of_parts=True),
        Measure(name="text"),
        Measure(name="tables"),
        Measure(name="layout", value=layout_of_blocks),
        Measure(name="html", title="all tests of HTML"),
    ),
    headline="overall",
    conclude=conclude,
    load=load,
    score=score,
    prepare=prepare,
    tools=tools,
    facts=facts,
    faults=FAULTS,
    harmless=HARMLESS,
    max_tokens=16_000,
    suffix=".md",
    published_total=2_937,
)
