"""Write the results of `loupe select`: to the terminal first, then into files, if they were asked for.

`--save` writes each assessment as its model ends, as an ordinary run that `compare`, `report` and `score` read. The
documents with their texts and ground truth stand beside the runs, as they were.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from loupe.cli.shared.output import as_json, say, tables
from loupe.engines.registry import Profile, slug
from loupe.errors import LoupeError, UsageError, cannot_write, is_refusal
from loupe.features.select.assessment import Assessment
from loupe.features.select.benchmark import NAMES, Known, Phase, Rules, open_selection, save_selection
from loupe.features.select.document_worker import LONGEST, QUALITY, SHORTEST
from loupe.features.select.documents import Document
from loupe.features.select.options import Flags
from loupe.features.select.questions import EXTRACTION_TOKENS, verdict_tokens
from loupe.features.select.serving import Candidate
from loupe.files.folder import Folder
from loupe.files.foreign import real_path
from loupe.pipeline import Plan, score_run
from loupe.pipeline.plan import Survey, make_info, survey
from loupe.runs.folder import claim
from loupe.runs.info import RunInfo, digest_of, signature
from loupe.typed import encode_json
from loupe.types import Prediction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loupe.features.select.standings import Ranked


#: Folder below the runs that holds what was selected from.
FOLDER = "selections"
#: Settings that say which model answered, and how its server was started.
_NAMING_THE_MODEL = ("model", "serve")


@dataclass(frozen=True, kw_only=True)
class SavedRuns:
    """The runs of one phase below `runs`. `ocr` is the engine that read what has no text layer."""

    runs: Path
    phase: Phase
    rules: Rules
    documents: Sequence[Document]
    known: Mapping[str, Known]
    models: Sequence[Candidate]
    timeout: float
    ocr: tuple[str, Profile] | None = None
    shared: bool = False

    def save(self, assessment: Assessment) -> Path | None:
        """Write and score the run of a model that was asked; a run of the same model there is moved aside."""
        if assessment.profile is None:
            return None
        place, benchmark, found = self._opened
        profile = msgspec.structs.replace(assessment.profile, timeout=self.timeout)
        label = run_labels(self.models)[assessment.model.id]
        plan = Plan(benchmark=str(place), label=label, profile=profile, runs=self.runs, fresh=True, shared=self.shared)
        info = make_info(plan, benchmark, found)
        signed = self._signed(assessment.model)
        defining = {"image": signed["img"], "max_tokens": signed["max"], "timeout": self.timeout}
        defining |= {"ocr": {self.ocr[0]: self.ocr[1].defining()}} if "ocr" in signed and self.ocr else {}
        defining = {**info.defining, **defining}
        # The model stands in the signature itself: runs that differ in nothing else have the same settings.
        settings = {key: value for key, value in defining.items() if key not in _NAMING_THE_MODEL}
        info = msgspec.structs.replace(
            info,
            defining=defining,
            parts={**info.parts, **signed, "set": digest_of([settings])[:8]},
            facts=assessment.facts,
            stopped=assessment.reason,
        )
        _write(plan, msgspec.structs.replace(info, signature=signature(info)), assessment.predictions)
        score_run(plan.folder, jobs=1)
        return plan.path

    def _signed(self, model: Candidate) -> dict[str, str]:
        """Return the settings that affect answers but are not part of the profile."""
        verdict = str(verdict_tokens(thinking=model.thinking))
        timeout = f"{self.timeout:g}"
        if self.phase == "a":
            return {"img": f"jpeg{QUALITY}({SHORTEST},{LONGEST})", "max": verdict, "timeout": timeout}
        read = {"ocr": self.ocr[0]} if self.ocr else {}
        return {"img": "none", "max": f"{verdict}+{EXTRACTION_TOKENS}", "timeout": timeout, **read}

    @cached_property
    def _opened(self) -> tuple[Path, Any, Survey]:
        """The folder of what was selected from, written once; the folder names its content."""
        place = save_documents(self)
        benchmark = open_selection(place)
        return place, benchmark, survey(benchmark, str(place), None, {})


def run_labels(models: Sequence[Candidate]) -> dict[str, str]:
    """The folder of each model, by its id; where two would share one, a digest of the id tells them apart.

    >>> sorted(run_labels([Candidate(id="a/good"), Candidate(id="b")]).values())
    ['a_good', 'b']
    """
    shared = Counter(slug(each.id).casefold() for each in models)
    ends = {each.id: f"-{digest_of([each.id])[:6]}" for each in models if shared[slug(each.id).casefold()] > 1}
    return {each.id: slug(each.id) + ends.get(each.id, "") for each in models}


def save_documents(saved: SavedRuns) -> Path:
    """Write what the models of a phase were asked; the folder names its content, so the same is written once."""
    rules, known = saved.rules, _by_labels(saved)
    parts = [[document.id, str(real_path(document.path))] for document in saved.documents]
    drafts = [[ident, *each.drafters] for ident, each in sorted(known.items()) if each.unverified]
    texts = [[each.text, each.date, each.name] for _, each in sorted(known.items())]
    digest = digest_of([*parts, *texts, *drafts, [rules.field, rules.negative_points, rules.date_order]])[:8]
    kind = slug(rules.document_type, hint="choose a shorter document type: --type TYPE")
    name = f"{NAMES[saved.phase]}-{kind.replace('.', '_')}"
    folder = Folder(saved.runs) / f"{FOLDER}/{digest}/{name}"
    folder.create(private=not saved.shared)
    save_selection(folder, saved.phase, rules, saved.documents, known)
    return folder.path


def _by_labels(saved: SavedRuns) -> dict[str, Known]:
    """Return what is known of the documents, with the drafting models called as their runs are."""
    labels = run_labels(saved.models)
    return {
        ident: replace(each, drafters=tuple(labels.get(name, slug(name)) for name in each.drafters))
        for ident, each in saved.known.items()
    }


def _write(plan: Plan, info: RunInfo, predictions: Sequence[Prediction]) -> None:
    with claim(plan.folder, info, fresh=True, shared=plan.shared) as folder:
        folder.write_info(info)
        with folder.predictions_log() as log:
            log.append(map(encode_json, predictions))


#: `--json` without a file.
STANDARD_OUTPUT = Path("-")


def check_targets(flags: Flags) -> None:
    """Raise UsageError where a result could not be written in the end: hours of answers would be lost."""
    if flags.json and flags.json != STANDARD_OUTPUT:
        if flags.json.is_dir():
            raise UsageError(f"--json {flags.json} is a folder", hint=f"use --json {flags.json / 'selection.json'}")
        if real_path(flags.json.parent) in (real_path(flags.positive), real_path(flags.negative)):
            raise UsageError(
                f"--json {flags.json} is in the folder of documents, which is reserved for their ground truth",
                hint=f"use --json {flags.json.name}",
            )
        _check_folder(flags.json.parent, f"--json {flags.json}")
    if flags.save:
        _check_folder(flags.runs, f"--runs {flags.runs}")


def _check_folder(folder: Path, flag: str) -> None:
    try:
        # It is made when there is something to write: until then, what it will stand in says whether it can be.
        there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        if is_refusal(error):
            raise cannot_write(flag, error) from None
        why = (error.strerror or str(error)).lower()
        raise UsageError(f"{flag} cannot be written: {why}", hint="name another place") from None


@dataclass(slots=True)
class Results:
    """Shows and keeps what is finished. What cannot be written is said, and is an error only at the end of all."""

    flags: Flags
    _done: list[Ranked] = field(default_factory=list)
    _trouble: LoupeError | None = None

    def keep(self, runs: SavedRuns | None, assessment: Assessment) -> None:
        """Keep the run of a model that has ended."""
        with self._goes_on():
            path = runs.save(assessment) if runs else None
            if path:
                say(f"saved in {path}")
            elif runs:
                say(f"not saved: {assessment.model.id} ({assessment.status}: no requests were sent)")

    def show(self, ranked: Ranked) -> None:
        """A phase: its tables, then all phases so far as a file; on standard output one document, at the end."""
        from loupe.features.select.standings import sections
        from loupe.files.folder import write_file

        self._done.append(ranked)
        if self.flags.json != STANDARD_OUTPUT:
            tables(sections(ranked), plain=self.flags.plain)
        if self.flags.json and self.flags.json != STANDARD_OUTPUT:
            document = encode_json(self._document(), enc_hook=str)
            with self._goes_on():
                write_file(self.flags.json, msgspec.json.format(document, indent=2) + b"\n")

    def print_document(self) -> None:
        """Print what is finished on standard output if `--json` named no file."""
        if self._done and self.flags.json == STANDARD_OUTPUT:
            as_json(self._document())

    def _document(self) -> dict[str, Any]:
        from loupe.features.select.standings import json_document

        return {"phases": [json_document(each) for each in self._done]}

    def end(self) -> bool:
        """True if each phase has a model that came to the end. Raises what went wrong on the way."""
        if self._trouble:
            raise self._trouble
        return all(any(each.position is not None for each in one.standings) for one in self._done)

    @contextmanager
    def _goes_on(self) -> Iterator[None]:
        try:
            yield
        except (OSError, LoupeError) as error:
            if not isinstance(error, LoupeError):
                error = cannot_write(error.filename or "the results", error)
            self._trouble = self._trouble or error
            say(f"not saved: {error.message}")
