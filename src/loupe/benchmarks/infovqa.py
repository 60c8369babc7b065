"""InfoVQA: questions about infographics, scored by ANLS.

Paper: Mathew et al., "InfographicVQA", WACV 2022, arXiv 2104.12756. Protocol: docs/protocols/qa.md. Scorers: VLMEvalKit
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
    ident="infovqa",
    title="InfoVQA",
    config="InfographicVQA",
    key="questionId",
    group=("image_url", "image_local_name", "image"),
    tags={"answer_type": "answer_type"},
    hidden=("test",),
    tables={"validation": "InfoVQA_VAL.tsv"},
    files={
        "validation": {f"{folder}infographicsVQA_val_v1.0_withQT.json": {} for folder in ("", "infographicsvqa_qas/")},
        "test": {f"{folder}infographicsVQA_test_v1.0.json": {} for folder in ("", "infographicsvqa_qas/")},
    },
    picture=("image_local_name",),
    pictures=("", "infographicsvqa_images", "images"),
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
    paper="https://arxiv.org/abs/2104.12756",
    data=DataSet(
        repo="lmms-lab/DocVQA",
        patterns=("InfographicVQA/validation-*.parquet",),
        note="2,801 questions",
    ),
    parity=parity(anls_points, "anls", "anls"),
    published_total=2_801,
)
