"""One run as the viewer keeps it: what was asked, of each answer the little that lists need, all scores, the result."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from loupe.errors import LoupeError, RunError
from loupe.report.collect import Entrant
from loupe.runs.folder import Place, RunFolder, counts_instead
from loupe.types import FAILED, Result, SampleScores
from loupe.view.growing import GrowingFile

#: Seconds over which the live rate is counted.
_LIVE_SECONDS = 60.0


Record = TypeVar("Record", bound=msgspec.Struct)


class _Head(msgspec.Struct, rename={"outcome": "class"}):
    """What lists and strips need of a prediction; its text stays on the disk."""

    sample: str
    outcome: str
    seconds: float = 0.0
    input_tokens: int | None = None
    output_tokens: int | None = None
    began: float | None = None
    ended: float | None = None
    lost: int = 0


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer: its class, how long it took, its tokens, and when it came."""

    outcome: str
    seconds: float
    input_tokens: int | None
    output_tokens: int | None
    began: float | None
    ended: float | None
    lost: int = 0


class RunIndex:
    """A run folder that may be growing. `refresh` takes in what is new; nothing here is ever written."""

    def __init__(self, path: Path, root: Path) -> None:
        self.folder = RunFolder.open(path)
        self.key = _key(path, root)
        self.result: Result | None = None
        self.problem = ""
        self.answers: dict[str, Answered] = {}
        self.scores: dict[str, SampleScores] = {}
        self.revision = 0
        self.scored = 0
        self._places: dict[str, Place] = {}
        self._score_places: dict[str, Place] = {}
        self._predictions = GrowingFile(self.folder.predictions_file)
        self._scores = GrowingFile(self.folder.scores_file)
        self._stamps: dict[str, tuple[int, int, int]] = {}

    def refresh(self) -> None:
        """Look at the files again. A damaged one is a `problem` of this run alone."""
        try:
            changed = self._take_answers() | self._take_scores() | self._take_small_files()
            self.problem = ""
        except (LoupeError, msgspec.MsgspecError, OSError) as error:
            changed = self.problem != str(error)
            self.problem = str(error)
        self.revision += changed

    def _take_answers(self) -> bool:
        anew, lines = self._predictions.look()
        if anew:
            self.answers, self._places = {}, {}
        for offset, line in lines:
            head = _decoded(line, _Head, self.folder.predictions_file, offset)
            before = self.answers.get(head.sample)
            if before is None or counts_instead(head.outcome, before.outcome, head.lost, before.lost):
                self.answers[head.sample] = Answered(
                    head.outcome, head.seconds, head.input_tokens, head.output_tokens, head.began, head.ended, head.lost
                )
                self._places[head.sample] = Place(offset, len(line), head.outcome)
        return anew or bool(lines)

    def _take_scores(self) -> bool:
        anew, lines = self._scores.look()
        if anew:
            self.scores, self._score_places = {}, {}
        for offset, line in lines:
            row = _decoded(line, SampleScores, self.folder.scores_file, offset)
            self.scores[row.sample] = msgspec.structs.replace(row, details={})
            self._score_places[row.sample] = Place(offset, len(line), row.digest)
        changed = anew or bool(lines)
        self.scored += changed
        return changed

    def _take_small_files(self) -> bool:
        changed = False
        if self._is_new("run.json"):
            self.folder, changed = RunFolder.open(self.folder.path), True
        if self._is_new("result.json"):
            self.result, changed = self.folder.result(), True
            self.scored += 1
        return changed

    def _is_new(self, name: str) -> bool:
        try:
            found = (self.folder.path / name).stat()
            stamp = found.st_ino, found.st_mtime_ns, found.st_size
        except FileNotFoundError:
            stamp = (0, 0, 0)
        before = self._stamps.get(name)
        self._stamps[name] = stamp
        return before != stamp

    def entrant(self, name: str) -> Entrant:
        """The run as the report's tables take it, as it is now."""
        return Entrant(
            run=self.folder,
            result=self.result,
            predictions=dict(self._places),
            scores=dict(self._score_places),
            known=dict(self.scores),
            name=name,
        )

    @property
    def total(self) -> int:
        """How many samples were asked for."""
        return self.folder.info.total or len(self.answers)

    @property
    def is_running(self) -> bool:
        """Whether the process that took the folder lives and there is no result yet."""
        if self.result is not None:
            return False
        try:
            pid = int((self.folder.path / "run.lock").read_text(encoding="ascii").strip() or 0)
            if pid > 0:
                os.kill(pid, 0)
            return pid > 0
        except PermissionError:
            return True
        except (OSError, ValueError, UnicodeDecodeError, OverflowError):
            return False

    @property
    def state(self) -> str:
        """`done`, `running`, `stopped` (answers are missing) or `read` (all are there, not scored)."""
        if self.result is not None:
            return "done"
        if self.is_running:
            return "running"
        return "read" if len(self.answers) >= self.total else "stopped"

    def outcomes(self) -> Counter[str]:
        """How many samples ended in which class; those without an answer are `missing` once nothing more comes."""
        counts = Counter(answer.outcome for answer in self.answers.values())
        waiting = self.total - len(self.answers)
        if waiting > 0:
            counts["waiting" if self.result is None else "missing"] += waiting
        return counts

    def failed(self) -> int:
        """Samples that ended without an answer."""
        return sum(answer.outcome in FAILED for answer in self.answers.values())

    def rate(self) -> float | None:
        """Answers per second of the last minute; None where none came."""
        now = time.time()
        ended = [one.ended for one in self.answers.values() if one.ended and 0 <= now - one.ended <= _LIVE_SECONDS]
        return len(ended) / min(_LIVE_SECONDS, max(now - min(ended), 1.0)) if ended else None


def _key(path: Path, root: Path) -> str:
    """What addresses call the run: readable, and different for each folder."""
    try:
        name = str(path.relative_to(root))
    except ValueError:
        name = path.name
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:60]
    return f"{readable}-{hashlib.sha256(str(path.resolve()).encode('utf-8', 'surrogatepass')).hexdigest()[:6]}"


def _decoded(line: bytes, kind: type[Record], path: Path, offset: int) -> Record:
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise RunError(f"{path.name}, at byte {offset}: not a record of this run: {error}") from None
