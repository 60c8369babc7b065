"""TextVQA: questions about text in photographs, each answered by ten people, scored by VQA accuracy.

Paper: Singh et al., "Towards VQA models that can read", CVPR 2019, arXiv 1904.08920. Protocol: docs/protocols/qa.md.
Scorers: VLMEvalKit @ e8e78f0 (the default), lmms-eval @ 75571cf.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from loupe.benchmarks.shared.questions import (
    SHORT,
    QuestionSet,
    Variant,
    answered,
    load_questions,
    parity,
    question_benchmark,
)
from loupe.metrics import evalai_text, vqa_accuracy, vqa_text
from loupe.types import DataSet, Measure, Sample

#: evalscope has no TextVQA.
_Variant: TypeAlias = Literal["vlmevalkit", "lmms_eval"]

WHERE = QuestionSet(
    ident="textvqa",
    title="TextVQA",
    key="question_id",
    group=("image_id", "image"),
    hidden=("test",),
    tables={"validation": "TextVQA_VAL.tsv"},
    files={"validation": {"TextVQA_0.5.1_val.json": {}}, "test": {"TextVQA_0.5.1_test.json": {}}},
    picture=("image_id",),
    pictures=("train_images", "val_images", "test_images", "images", ""),
    suffix=".jpg",
)
_PROMPTS = {"vlmevalkit": SHORT, "lmms_eval": SHORT.replace("{question}", "{Question}")}


def load(
    root: Path | None,
    split: Literal["validation", "test"] = "validation",
    variant: _Variant = "vlmevalkit",
    prompt: Literal["variant", "vlmevalkit", "lmms_eval", "question"] = "variant",
) -> Iterator[Sample]:
    """Yield the questions of a split. `variant` decides how answers are scored and, by default, what is asked."""
    return load_questions(WHERE, root, split, _PROMPTS, variant, prompt)


def points(text: str, references: Sequence[str], variant: Variant) -> dict[str, float]:
    """VQA accuracy, 0..1."""
    process = evalai_text if variant == "lmms_eval" else vqa_text
    found = answered(text, variant, whole=True)
    return {"vqa_accuracy": vqa_accuracy(found, references, process=process) if references else 0.0}


benchmark = question_benchmark(
    WHERE,
    load,
    rule=points,
    measures=(Measure(name="vqa_accuracy", title="VQA accuracy"),),
    paper="https://arxiv.org/abs/1904.08920",
    data=DataSet(repo="lmms-lab/textvqa", patterns=("data/validation-*.parquet",), note="5,000 questions"),
    parity=parity(points, "textvqa", "vqa_accuracy"),
    published_total=5_000,
)
