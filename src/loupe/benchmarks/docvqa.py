"""DocVQA: questions about scanned pages, scored by ANLS.

Paper: Mathew et al., "DocVQA", WACV 2021, arXiv 2007.00398. Protocol: docs/protocols/qa.md. Scorers: VLMEvalKit
@ e8e78f0 (the default), lmms-eval @ 75571cf, evalscope @ fde259d.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from loupe.benchmarks.shared.questions import (
    ANLS_MEASURES,
    DOCUMENT_PROMPTS,
    Prompt,
    QuestionSet,
    Variant,
    anls_points,
    load_questions,
    parity,
    question_benchmark,
)
from loupe.types import DataSet, Sample

WHERE = QuestionSet(
    ident="docvqa",
    title="DocVQA",
    config="DocVQA",
    key="questionId",
    group=("ucsf_document_id", "docId", "image"),
    tags={"question_type": "question_types"},
    hidden=("test",),
    tables={"validation": "DocVQA_VAL.tsv"},
    files={
        "validation": {"val_v1.0_withQT.json": {}, "spdocvqa_qas/val_v1.0_withQT.json": {}, "val/val_v1.0.json": {}},
        "test": {"test_v1.0.json": {}, "spdocvqa_qas/test_v1.0.json": {}, "test/test_v1.0.json": {}},
    },
    pictures=("", "spdocvqa_images", "images"),
)


def load(
    root: Path | None,
    split: Literal["validation", "test"] = "validation",
    variant: Variant = "vlmevalkit",
    prompt: Prompt = "variant",
) -> Iterator[Sample]:
    """Yield the questions of a split. `variant` decides how answers are scored and, by default, what is asked."""
    return load_questions(WHERE, root, split, DOCUMENT_PROMPTS, variant, prompt)


benchmark = question_benchmark(
    WHERE,
    load,
    rule=anls_points,
    measures=ANLS_MEASURES,
    paper="https://arxiv.org/abs/2007.00398",
    data=DataSet(
        repo="lmms-lab/DocVQA",
        patterns=("DocVQA/validation-*.parquet",),
        note="5,349 questions",
    ),
    parity=parity(anls_points, "anls", "anls"),
    published_total=5_349,
)
