"""A run folder that may be growing, looked at again and again; nothing here is ever written."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from loupe.data.seals import is_sealed
from loupe.errors import LoupeError, RunError
from loupe.files.folder import Folder
from loupe.files.foreign import real_path
from loupe.report.collect import SAMPLE_LIMIT
from loupe.results.groups import Entrant
from loupe.results.scored_here import result_of
from loupe.runs.folder import MOST_MEASURES, PREDICTIONS, SCORES, SEAL, RunFolder, ScoresHead, counts_instead
from loupe.runs.lock import LOCK
from loupe.runs.places import Place, Places
from loupe.typed import json_decoder, possible_tokens
from loupe.types import FAILED, UNDECODABLE, Prediction, Result, SampleScores

#: Bytes that are held at once.
_PORTION = 32 << 20


@dataclass(slots=True)
class GrowingFile:
    """A file and how far it was read. A torn last line is left for the next look.

    A file that has changed and not grown was written anew, also where its name and inode stayed.
    """

    folder: Folder
    name: str
    _inode: int = -1
    _offset: int = 0
    _changed: int = -1

    def look(self) -> tuple[bool, Iterator[tuple[int, bytes]]]:
        """Tell if the file was begun anew, and yield each new line with its offset, without its end; take all."""
        try:
            with self.folder.open(self.name) as file:
                found = os.fstat(file.fileno())
                same_size = found.st_size == self._offset and found.st_mtime_ns != self._changed
                anew = found.st_ino != self._inode or found.st_size < self._offset or (same_size and self._offset > 0)
                self._changed = found.st_mtime_ns
                if anew:
                    self._inode, self._offset = found.st_ino, 0
        except FileNotFoundError:
            gone = self._inode != -1
            self._inode, self._offset = -1, 0
            return gone, iter(())
        return anew, self._lines(found.st_ino, found.st_size)

    def _lines(self, inode: int, end: int) -> Iterator[tuple[int, bytes]]:
        """The whole lines from where the last look ended to `end`."""
        if self._offset == end:
            return
        with self.folder.open(self.name) as file:
            if os.fstat(file.fileno()).st_ino == inode:  # else the next look begins anew
                file.seek(self._offset)
                yield from self._portions(file, end)

    def _portions(self, file: BinaryIO, end: int) -> Iterator[tuple[int, bytes]]:
        rest = b""
        while data := file.read(min(_PORTION, end - self._offset - len(rest))):
            data = rest + data
            start = 0
            while (stop := data.find(b"\n", start)) >= 0:
                if data[start:stop].strip():
                    yield self._offset + start, data[start:stop]
                start = stop + 1
            self._offset += start
            rest = data[start:]


Stored = TypeVar("Stored", Prediction, SampleScores)

#: Seconds over which the live rate is counted.
_LIVE_SECONDS = 60.0


_LONGEST_ERROR = 300


def one_line(error: str) -> str:
    """An error as lists show it."""
    return " ".join(error[: 4 * _LONGEST_ERROR].split())[:_LONGEST_ERROR]


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer: its class, how long it took, its tokens, when it came, and the error of one that failed."""

    outcome: str
    seconds: float
    input_tokens: int | None
    output_tokens: int | None
    began: float | None
    ended: float | None
    lost: int = 0
    error: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class RunIndex:
    """A run at one moment; nothing of it changes, so any thread may read it.

    `serial` tells it from a later run in the same folder, `revision` from itself at other moments; `scored` counts how
    often its scores changed; those of a large run stay on the disk. `foreign_rows`: some of them were not made here.
    `state` is `done`, `running`, `stopped` (answers are missing) or `read` (all are there, not scored). `problem` says
    what cannot be read any more of files that could be read before.
    """

    folder: RunFolder
    key: str
    serial: int = 0
    revision: int = 0
    scored: int = 0
    foreign_rows: bool = False
    state: str = "stopped"
    problem: str = ""
    result: Result | None = None
    answers: Mapping[str, Answered] = field(default_factory=dict)
    scores: Mapping[str, SampleScores] = field(default_factory=dict)
    places: Places = field(default_factory=Places)
    score_places: Places = field(default_factory=Places)

    def entrant(self, name: str) -> Entrant:
        """The run as the report's tables take it."""
        return Entrant(
            run=self.folder,
            result=self.result,
            predictions=self.places,
            scores=self.score_places,
            known=self.scores if self.holds_scores else None,
            name=name,
        )

    def prediction_of(self, ident: str) -> Prediction | None:
        """The whole record of one sample. Raises RunError where another one stands there now."""
        place = self.places.get(ident)
        found = self.folder.read_prediction(place) if place else None
        return self._same(found, ident)

    def scores_of(self, ident: str) -> SampleScores | None:
        """All scores of one sample. Raises RunError where others stand there now."""
        place = self.score_places.get(ident)
        found = self.folder.read_scores(place) if place else None
        return self._same(found, ident)

    def _same(self, found: Stored | None, ident: str) -> Stored | None:
        if found is not None and found.sample != ident:
            raise RunError(f"{self.folder.path} was rewritten")
        return found

    @property
    def is_of_others(self) -> bool:
        """True if the scores came from elsewhere: by the result, or while there is none, by the scores themselves."""
        return self.foreign_rows if self.result is None else not self.result.scored_here

    @property
    def total(self) -> int:
        """The number of samples that were asked for."""
        return self.folder.info.total or len(self.answers)

    @property
    def is_large(self) -> bool:
        """True if it has more samples than are shown one by one."""
        return self.folder.info.total > SAMPLE_LIMIT

    @property
    def holds_scores(self) -> bool:
        """True if `scores` has all of them; of a large run, or one with very many, the rest stays on the disk."""
        return len(self.scores) == len(self.score_places)

    def counts_of(self, ident: str) -> SampleScores | None:
        """The scores of one sample, perhaps without details."""
        return self.scores.get(ident) or self.scores_of(ident)

    @contextmanager
    def reader(self) -> Iterator[Callable[[str], SampleScores | None]]:
        """`counts_of` for many."""
        if self.holds_scores:
            yield self.scores.get
            return
        with self.folder.score_reader() as read:
            yield (
                lambda ident: self._same(read(self.score_places[ident]), ident) if ident in self.score_places else None
            )

    def failed(self) -> int:
        """Samples that ended without an answer."""
        return sum(answer.outcome in FAILED for answer in self.answers.values())

    def rate(self) -> float | None:
        """Answers per second of the last minute; None if none came."""
        now = time.time()
        ended = [one.ended for one in self.answers.values() if one.ended and 0 <= now - one.ended <= _LIVE_SECONDS]
        return len(ended) / min(_LIVE_SECONDS, max(now - min(ended), 1.0)) if ended else None


Record = TypeVar("Record", bound=msgspec.Struct)
Stamp = tuple[int, int, int]

_SERIALS = itertools.count()
#: A process that began so many seconds after the lock was taken is another one with the same number.
_SLACK = 60.0
#: Scores of a run that are held in memory, about 400 bytes each; the others are read when they are looked at.
_MOST_HELD = 250_000


class _Head(msgspec.Struct, rename={"outcome": "class"}):
    """The little of a prediction that lists and strips need; its text stays on the disk."""

    sample: str
    outcome: str
    seconds: float = 0.0
    input_tokens: int | None = None
    output_tokens: int | None = None
    began: float | None = None
    ended: float | None = None
    lost: int = 0
    error: str = ""

    def answered(self) -> Answered:
        """The same without the name, and errors cut to what a line shows."""
        error = one_line(self.error) if self.outcome in FAILED else ""
        tokens = possible_tokens(self.input_tokens), possible_tokens(self.output_tokens)
        return Answered(sys.intern(self.outcome), self.seconds, *tokens, self.began, self.ended, self.lost, error)


class RunReader:
    """Keeps `index`, the run as it was at the last look.

    What is damaged stays named until its file is another one. Of a file that was whole before, what could be read last
    is kept; a run that never was whole is not `readable`.
    """

    def __init__(self, path: Path, root: Path) -> None:
        folder = RunFolder.open(path)
        self.index = RunIndex(folder=folder, key=_key(path, root), serial=next(_SERIALS))
        self.readable = False
        self._predictions = GrowingFile(folder.files, PREDICTIONS)
        self._scores = GrowingFile(folder.files, SCORES)
        self._stamps: dict[str, Stamp] = {}
        self._problems: dict[str, str] = {}
        self._spoiled: set[str] = set()
        self._unproven: set[str] = set()
        self._proven_by = self.index.places, self.index.score_places

    def refresh(self) -> RunIndex:
        """Look at the files again."""
        before, found = self.index, self.index
        for name, take in (
            ("run.json", self._take_info),
            # First the scores: whatever is scored then has its answer on the disk.
            ("scores.jsonl", self._take_scores),
            ("predictions.jsonl", self._take_answers),
            ("result.json", self._take_result),
        ):
            try:
                found = take(found)
            except (*UNDECODABLE, LoupeError, OSError) as error:
                self._problems[name] = str(error)
        found = self._prove_rows(found)
        problem = "; ".join(self._problems.values())
        found = replace(found, problem=problem) if problem != found.problem else found
        state = _state(found)
        found = replace(found, state=state) if state != found.state else found
        self.readable = self.readable or not problem
        if found is not before:
            self.index = replace(found, revision=before.revision + 1)
        return self.index

    def _take_info(self, found: RunIndex) -> RunIndex:
        if not self._is_new("run.json"):
            return found
        return replace(found, folder=RunFolder.open(found.folder.files))

    def _take_result(self, found: RunIndex) -> RunIndex:
        if not self._is_new("result.json") | self._is_new(SEAL) and found.scored == self.index.scored:
            return found
        return replace(found, result=result_of(found.folder), scored=found.scored + 1)

    def _is_new(self, name: str) -> bool:
        """True if the file is another one than at the last look; what was wrong with that one is past then."""
        try:
            stat = (self.index.folder.path / name).stat()
            stamp = stat.st_ino, stat.st_mtime_ns, stat.st_size
        except FileNotFoundError:
            stamp = (0, 0, 0)
        new = self._stamps.get(name) != stamp
        if new:
            self._stamps[name] = stamp
            self._problems.pop(name, None)
        return new

    def _take_answers(self, found: RunIndex) -> RunIndex:
        name = "predictions.jsonl"
        anew, records = self._records(self._predictions, _Head, name)
        answers, places = dict[str, Answered](), Places()
        for number, (offset, length, head) in enumerate(records):
            if not (anew or number):
                answers, places = dict(found.answers), found.places.copy()
            before = answers.get(head.sample)
            if before is None or counts_instead(head.outcome, before.outcome, head.lost, before.lost):
                answers[head.sample] = head.answered()
                places.put(head.sample, Place(offset, length, head.outcome))
        if self._is_spoiled(name, anew) or not (anew or answers):
            return found
        if anew and not found.is_large:
            self._unproven |= found.score_places.keys()
        return replace(found, answers=answers, places=places)

    def _take_scores(self, found: RunIndex) -> RunIndex:
        name = "scores.jsonl"
        kind: type[SampleScores | ScoresHead] = ScoresHead if found.is_large else SampleScores
        anew, records = self._records(self._scores, kind, name)
        scores, places = dict[str, SampleScores](), Places()
        unproven = set[str]() if anew else set(self._unproven)
        held, measures = 0, set[str]()
        for number, (offset, length, row) in enumerate(records):
            if not (anew or number):
                scores, places = dict(found.scores), found.score_places.copy()
                held = sum(len(before.scores) for before in scores.values())
            places.put(row.sample, Place(offset, length, ""))
            if isinstance(row, SampleScores):
                held += len(row.scores)
                measures.update(score.measure for score in row.scores)
                scores.pop(row.sample, None)
                if held <= _MOST_HELD:
                    scores[row.sample] = msgspec.structs.replace(row, details={})
            if isinstance(row, SampleScores) or not number:
                unproven.add(row.sample)
        if len(measures) > MOST_MEASURES and found.folder.sealed_result() is None:
            self._problems.setdefault(name, f"{name} came from elsewhere and has more than {MOST_MEASURES:,} measures")
            scores, places = {}, Places()
        if self._is_spoiled(name, anew) or not (anew or places):
            return found
        self._unproven = unproven
        return replace(found, scores=scores, score_places=places, scored=found.scored + 1)

    def _prove_rows(self, found: RunIndex) -> RunIndex:
        """Look whether the rows that are new, or were not proven before, are this user's, and of these answers.

        A result tells it of all rows at once.
        """
        files = found.places, found.score_places
        if found.result is None and any(one is not seen for one, seen in zip(files, self._proven_by, strict=True)):
            self._proven_by = files
            with found.folder.score_reader() as row_at, found.folder.reader() as answer_at:
                for sample in sorted(self._unproven & found.places.keys()):
                    with contextlib.suppress(*UNDECODABLE, LoupeError, OSError):
                        if is_sealed(row_at(found.score_places[sample]), answer_at(found.places[sample])):
                            self._unproven.discard(sample)
        foreign = bool(self._unproven)
        return replace(found, foreign_rows=foreign) if foreign != found.foreign_rows else found

    def _records(
        self, file: GrowingFile, kind: type[Record], name: str
    ) -> tuple[bool, Iterator[tuple[int, int, Record]]]:
        """Tell if the file was begun anew; its new records with offset and length; a damaged one is a problem."""
        anew, lines = file.look()
        if anew:
            self._problems.pop(name, None)
        decoder = json_decoder(kind)

        def records() -> Iterator[tuple[int, int, Record]]:
            for offset, line in lines:
                try:
                    yield offset, len(line), decoder.decode(line)
                except UNDECODABLE as error:
                    said = f"{name}, at byte {offset}: not a record of this run: {error}"
                    self._problems.setdefault(name, said)

        return anew, records()

    def _is_spoiled(self, name: str, anew: bool) -> bool:
        """True if a file with damaged lines came in place of one that was whole."""
        if anew and self.readable and name in self._problems:
            self._spoiled.add(name)
        elif anew:
            self._spoiled.discard(name)
        return name in self._spoiled


def _state(run: RunIndex) -> str:
    if run.result is not None:
        return "done"
    if _is_running(run.folder.files):
        return "running"
    return "read" if len(run.answers) >= run.total else "stopped"


def _is_running(files: Folder) -> bool:
    """True if the process that took the lock lives. The lock is not tried: a run that begins might meet that."""
    try:
        with files.open(LOCK) as lock:
            pid, taken = int(lock.read(32).decode("ascii").strip() or 0), os.fstat(lock.fileno()).st_mtime
        if pid <= 0:
            return False
        os.kill(pid, 0)
    except PermissionError:
        # It lives, and is somebody else's.
        return True
    except (OSError, LoupeError, ValueError, UnicodeDecodeError, OverflowError):
        return False
    began = _began(pid)
    return began is None or began <= taken + _SLACK


def _began(pid: int) -> float | None:
    """The time when a process began, if the system tells (Linux)."""
    try:
        ticks = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
        uptime = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
        alive = uptime - int(ticks) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None
    return time.time() - alive


def _key(path: Path, root: Path) -> str:
    """The name of the run in addresses: readable, and different for each folder."""
    try:
        name = str(path.relative_to(root))
    except ValueError:
        name = path.name
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:60]
    return f"{readable}-{hashlib.sha256(str(real_path(path)).encode('utf-8', 'surrogatepass')).hexdigest()[:6]}"
