"""Assessments as ordinary runs: one folder for each model and phase, which `compare`, `report` and `score` read.

Only `--save` writes them. The documents with their texts and ground truth stand beside the runs, as they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from loupe.benchmarks.selection.documents import Document
from loupe.benchmarks.selection.questions import Known, Phase, Rules
from loupe.benchmarks.selection.saved import NAMES, open_selection, save_selection
from loupe.engines.registry import slug
from loupe.inference.journal import encode
from loupe.pipeline import Plan, score_run
from loupe.pipeline.plan import make_info, survey
from loupe.runs.files import RecordLog
from loupe.runs.folder import claim
from loupe.runs.info import RunInfo, digest_of
from loupe.selection.assessment import Assessment
from loupe.types import Prediction

#: Folder below the runs that holds what was selected from.
FOLDER = "selections"


def save_documents(
    runs: Path, phase: Phase, rules: Rules, documents: Sequence[Document], known: Mapping[str, Known]
) -> Path:
    """Write what the models of a phase were asked; the folder names its content, so the same is written once."""
    parts = [[document.id, str(document.path.resolve())] for document in documents]
    texts = [[each.text, each.date, each.name] for _, each in sorted(known.items())]
    digest = digest_of([*parts, *texts, [rules.field, rules.negative_points, rules.date_order]])[:8]
    name = f"{NAMES[phase]}-{slug(rules.document_type).replace('.', '_')}"
    folder = runs / FOLDER / digest / name
    save_selection(folder, phase, rules, documents, known)
    return folder


def save_runs(runs: Path, folder: Path, assessments: Sequence[Assessment]) -> list[Path]:
    """Write and score a run for every model that was asked; a run of the same model there is moved aside."""
    benchmark = open_selection(folder)
    found = survey(benchmark, str(folder), None, {})
    saved = []
    for assessment in assessments:
        if assessment.profile is None:
            continue
        plan = Plan(
            benchmark=str(folder), label=slug(assessment.model.id), profile=assessment.profile, runs=runs, fresh=True
        )
        info = msgspec.structs.replace(make_info(plan, benchmark, found), facts=assessment.facts)
        _write(plan, msgspec.structs.replace(info, stopped=assessment.reason), assessment.predictions)
        score_run(plan.path, jobs=1)
        saved.append(plan.path)
    return saved


def _write(plan: Plan, info: RunInfo, predictions: Sequence[Prediction]) -> None:
    with claim(plan.path, info, fresh=True) as folder:
        folder.write_info(info)
        with RecordLog(folder.predictions_file) as log:
            log.append(map(encode, predictions))
