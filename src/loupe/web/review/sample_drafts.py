"""Writing an engine's answers into `samples.jsonl` as drafts: other keys and lines stay as they are, to the byte."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from loupe.benchmarks.folders.own.config import SAMPLES, FolderConfig
from loupe.benchmarks.folders.own.draft_truth import differing, draft_of, is_to_draft, with_draft
from loupe.benchmarks.folders.own.facts import TASK, drafting_state, read_facts, state_of
from loupe.benchmarks.folders.own.rows import TruthState, read_row, truth_state
from loupe.engines.adapters.steps import apply_adapters
from loupe.runs.folder import RunFolder
from loupe.types import RETRIED, Prediction
from loupe.web.review.fact_drafts import marked_margins
from loupe.web.review.json_line import with_values
from loupe.web.review.line_file import LineFile


@dataclass(slots=True)
class Written:
    """What became of an engine's answers: samples drafted, verified or changed meanwhile (left alone), and failed."""

    drafted: list[str] = field(default_factory=list)
    verified: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def write_drafts(folder: Path, config: FolderConfig, engine: str, run: RunFolder) -> Written:
    """Put every answer of the run into the line of its sample, in one write. Verified and skipped lines stay.

    Raises DatasetError where the file cannot be written, ConflictError where others keep changing it.
    """
    predictions = run.predictions()
    answers = {name: _text(prediction, run) for name, prediction in predictions.items()}
    file = LineFile(folder / SAMPLES)
    written = Written()
    changes: dict[int, tuple[bytes, bytes]] = {}
    places: dict[int, str] = {}
    for number, before in enumerate(file.lines, 1):
        row = read_row(before, number, config) if before.strip() else None
        if row is None or row.wrong or row.ident not in answers:
            continue
        text, why = answers[row.ident]
        task = str(row.values.get("task", config.task))
        text = marked_margins(text, predictions[row.ident].response) if task == TASK else text
        draft = draft_of(text, task, config)
        reference, why = (None, why) if why else (draft.reference, draft.why)
        answered = predictions[row.ident].outcome not in RETRIED
        new = with_draft(row.values, engine, reference, config, answered=answered)
        if new is None:
            written.verified.append(row.ident)
            continue
        changes[number] = before, with_values(before.decode("utf-8-sig"), new).encode()
        places[number] = row.ident
        if reference is None:
            written.failed[row.ident] = why
    left = file.replace_all(changes)
    written.changed = [places[number] for number in sorted(left)]
    written.drafted = [name for name in places.values() if name not in {*written.failed, *written.changed}]
    return written


def _text(prediction: Prediction, run: RunFolder) -> tuple[str, str]:
    """The answer as it would be scored, and why there is none."""
    if prediction.failed:
        return "", prediction.error or prediction.outcome
    return apply_adapters(prediction.text, run.info.adapters), ""


@dataclass(frozen=True, slots=True)
class Standing:
    """How far an engine is: samples to ask it for, those where its answer was not usable, and how many it drafted."""

    wanted: tuple[str, ...]
    given_up: tuple[str, ...]
    drafted: int


def standing(folder: Path, config: FolderConfig, engine: str, *, failed: bool = False) -> Standing:
    """What is left for an engine to draft; with `failed` it is asked again where its answer could not be used."""
    wanted, given_up, drafted = [], [], 0
    facts = read_facts(folder)[0]
    for number, line in enumerate(LineFile(folder / SAMPLES).lines, 1):
        row = read_row(line, number, config) if line.strip() else None
        if row is None or row.wrong:
            continue
        state = drafting_state(row.values, config, facts)
        drafted += state.drafts.get(engine) is not None
        if is_to_draft(state, engine, failed=failed):
            wanted.append(row.ident)
        elif is_to_draft(state, engine, failed=True):
            given_up.append(row.ident)
    return Standing(tuple(wanted), tuple(given_up), drafted)


def count_states(folder: Path, config: FolderConfig) -> Mapping[str, int]:
    """Samples by what is to be done with them: drafts that agree, that differ, … and those that are done."""
    facts = read_facts(folder)[0]
    counts = dict.fromkeys(("agree", "differ", "one draft", "no draft", "verified", "skipped"), 0)
    for number, line in enumerate(LineFile(folder / SAMPLES).lines, 1):
        row = read_row(line, number, config) if line.strip() else None
        if row is not None and not row.wrong:
            counts[_state(row.values, state_of(row.values, config, facts))] += 1
    return counts


def _state(values: Mapping[str, object], state: TruthState) -> str:
    if state.status != "draft":
        return state.status
    if values.get("reference") is None:
        return "no draft"
    if sum(draft is not None for draft in state.drafts.values()) < 2:
        return "one draft"
    return "differ" if state.differs else "agree"


def verify(
    folder: Path, config: FolderConfig, known: Mapping[str, Mapping[str, str]], *, by: str, at: str
) -> tuple[int, int]:
    """Give drafts the truth that is known, marked as verified; how many, and how many of them were right already."""
    file = LineFile(folder / SAMPLES)
    changes: dict[int, tuple[bytes, bytes]] = {}
    right = 0
    for number, before in enumerate(file.lines, 1):
        row = read_row(before, number, config) if before.strip() else None
        if row is None or row.wrong or not known.get(row.ident):
            continue
        state = truth_state(row.values)
        if state.status == "draft":
            drafted, reference = row.values["reference"], dict(known[row.ident])
            right += drafted is not None and not differing([drafted, reference], "fields", config)
            new = msgspec.structs.replace(state, status="verified", by=by, at=at)
            truth = msgspec.to_builtins(new) | ({"differs": state.differs} if state.engines else {})
            after = with_values(before.decode("utf-8-sig"), {"reference": reference, "truth": truth})
            changes[number] = before, after.encode()
    return len(changes) - len(file.replace_all(changes)), right
