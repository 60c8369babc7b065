"""ChartQA: questions about charts, written by people and made from captions, scored by relaxed accuracy.

Paper: Masry et al., "ChartQA", ACL Findings 2022, arXiv 2203.10244. Protocol: docs/protocols/qa.md. Scorers: VLMEvalKit
@ e8e78f0 (the default), lmms-eval @ 75571cf, evalscope @ fde259d.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from loupe.benchmarks.shared.answer_texts import literal
from loupe.benchmarks.shared.questions import (
    FAULTS,
    NUMBER_FAULTS,
    SHORT,
    Prompt,
    QuestionSet,
    Variant,
    answered,
    load_questions,
    parity,
    question_benchmark,
)
from loupe.metrics import relaxed_accuracy
from loupe.metrics.short_answers import number_in
from loupe.types import DataSet, Measure, Sample

WHERE = QuestionSet(
    ident="chartqa",
    title="ChartQA",
    question=("question", "query"),
    answers=("answer", "label"),
    group=("imgname", "image"),
    tags={"type": "type"},
    tables={"test": "ChartQA_TEST.tsv"},
    files={
        split: {
            f"{folder}{split}/{split}_{made}.json": {"type": f"{made}_test"}
            for folder in ("", "ChartQA Dataset/")
            for made in ("human", "augmented")
        }
        for split in ("test", "val")
    },
    picture=("imgname",),
    pictures=("png", ""),
)
_PROMPTS = {
    "vlmevalkit": SHORT,
    "lmms_eval": "{question}\nAnswer the question with a single word.",
    "evalscope": (
        "\n{question}\n\n"
        'The last line of your response should be of the form "ANSWER: [ANSWER]" (without quotes) '
        "where [ANSWER] is the a single word answer or number to the problem.\n"
    ),
}
_YEAR = re.compile(r"(?:19|20)\d\d")
#: What people write around the digits of a number.
_SIGNS = re.compile(r"[,$€£¥\s]|\b(?:USD|EUR|million|billion|percent)\b")


def load(
    root: Path | None,
    split: Literal["test", "val"] = "test",
    variant: Variant = "vlmevalkit",
    prompt: Prompt = "variant",
) -> Iterator[Sample]:
    """Yield the questions of a split. `variant` decides how answers are scored and, by default, what is asked."""
    return load_questions(WHERE, root, split, _PROMPTS, variant, prompt)


def points(text: str, references: Sequence[str], variant: Variant) -> dict[str, float]:
    """Relaxed accuracy, 0 or 1, and what the answer owes to the 5 %, or loses by the form of its number."""
    found = answered(text, variant, whole=False)
    found = text.strip() if variant == "vlmevalkit" else found
    wanted = [each for text in references for each in _taken_apart(text, variant)]
    right = max((relaxed_accuracy(found, each) for each in wanted), default=0.0)
    equal = any(number_in(found) == number_in(each) or found.lower() == each.lower() for each in wanted)
    near, unread = right == 1.0 and not equal, right == 0.0 and number_in(found) is None
    return {
        "relaxed_accuracy": right,
        "within_5_percent": float(near),
        "year_within_5_percent": float(near and any(map(_YEAR.fullmatch, wanted))),
        "percent_mismatch": float(right == 0.0 and any(_differ_in_percent(found, each) for each in wanted)),
        "unread_number": float(unread and any(_same_digits(found, each) for each in wanted)),
    }


def _taken_apart(reference: str, variant: Variant) -> list[str]:
    """VLMEvalKit keeps answers in a table and takes one that looks like a list for several."""
    if variant == "vlmevalkit" and reference.startswith("[") and reference.endswith("]"):
        try:
            return [str(each) for each in literal(reference)]
        except ValueError:
            return [reference]
    return [reference]


def _differ_in_percent(found: str, wanted: str) -> bool:
    alike = relaxed_accuracy(found.rstrip("% "), wanted.rstrip("% "))
    return found.endswith("%") != wanted.endswith("%") and alike == 1.0


def _same_digits(found: str, wanted: str) -> bool:
    return number_in(wanted) is not None and bool(relaxed_accuracy(_SIGNS.sub("", found), wanted))


def _share(name: str, title: str) -> Measure:
    return Measure(name=name, title=title, higher_is_better=False)


benchmark = question_benchmark(
    WHERE,
    load,
    rule=points,
    measures=(
        Measure(name="relaxed_accuracy", title="relaxed accuracy"),
        _share("within_5_percent", "right thanks to the 5 %"),
        _share("year_within_5_percent", "of these, years"),
        _share("percent_mismatch", "wrong by a percent sign"),
        _share("unread_number", "wrong by signs in the number"),
    ),
    faults=(*FAULTS, *NUMBER_FAULTS),
    paper="https://arxiv.org/abs/2203.10244",
    data=DataSet(repo="lmms-lab/ChartQA", patterns=("data/test-*.parquet",), note="2,500 questions"),
    parity=parity(points, "chartqa", "relaxed_accuracy"),
    published_total=2_500,
)
