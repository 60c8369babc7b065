"""A run: one engine on one benchmark, as a folder of plain files that survive `kill -9` (docs/runs.md).

`run.json` says what was asked, `predictions.jsonl` what came back, `scores.jsonl` and `result.json` what it was worth.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from loupe.errors import RunError
from loupe.runs.files import read_lines, safe_name, write_atomically, write_plainly
from loupe.runs.info import RunInfo, differences, signature
from loupe.runs.lock import locked
from loupe.types import RETRIED, UNDECODABLE, Prediction, Result, SampleScores

_KEEP_BOTH = "--name NAME keeps both, --fresh starts over (the old folder is moved aside)"

Record = TypeVar("Record", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record stands in its file, and the little of it that scheduling needs."""

    offset: int
    length: int
    mark: str
    lost: int = 0


class _PredictionHead(msgspec.Struct, rename={"outcome": "class"}):
    sample: str
    outcome: str
    lost: int = 0


class _ScoresHead(msgspec.Struct):
    sample: str
    digest: str = ""


class RunFolder:
    """Reading access to one run folder; writing goes through `claim`."""

    def __init__(self, path: Path, info: RunInfo) -> None:
        self.path = path
        self.info = info

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """The run at `path`. Raises RunError where there is none, or where its run.json is damaged."""
        file = path / "run.json"
        if not file.is_file():
            raise RunError(f"no run at {path}", hint="loupe runs")
        try:
            return cls(path, msgspec.json.decode(file.read_bytes(), type=RunInfo))
        except UNDECODABLE as error:
            raise RunError(f"{file}: {error}", hint="start the run again with --fresh") from None

    @property
    def predictions_file(self) -> Path:
        """Append-only; one line for each ended attempt."""
        return self.path / "predictions.jsonl"

    @property
    def scores_file(self) -> Path:
        """One line for each scored sample."""
        return self.path / "scores.jsonl"

    def prediction_places(self) -> dict[str, Place]:
        """For each sample the place of the record that counts: the last good one, else the last one.

        The place's `mark` is the record's class, `lost` how many parts of the page may be read another time.
        """
        places: dict[str, Place] = {}
        for number, offset, line in read_lines(self.predictions_file):
            head = _decode(line, _PredictionHead, self.predictions_file, number)
            old = places.get(head.sample)
            if old is None or counts_instead(head.outcome, old.mark, head.lost, old.lost):
                places[head.sample] = Place(offset, len(line), head.outcome, head.lost)
        return places

    def read_prediction(self, place: Place) -> Prediction:
        """The prediction at a place; cheap, one seek."""
        return _record(_read(self.predictions_file, place), Prediction, self.predictions_file, place)

    def read_predictions(self, places: Iterable[Place]) -> Iterator[Prediction]:
        """The predictions at many places, one by one."""
        if not self.predictions_file.exists():
            return
        with self.predictions_file.open("rb") as file:
            for place in places:
                file.seek(place.offset)
                yield _record(file.read(place.length), Prediction, self.predictions_file, place)

    def predictions(self) -> dict[str, Prediction]:
        """The prediction that counts for each sample, in the order in which the samples first ended."""
        places = self.prediction_places()
        return dict(zip(places, self.read_predictions(places.values()), strict=True))

    def score_places(self) -> dict[str, Place]:
        """For each scored sample the place of its last line; the place's `mark` is its digest."""
        places: dict[str, Place] = {}
        for number, offset, line in read_lines(self.scores_file):
            head = _decode(line, _ScoresHead, self.scores_file, number)
            places[head.sample] = Place(offset, len(line), head.digest)
        return places

    def read_scores(self, place: Place) -> SampleScores:
        """The scores at a place."""
        return _record(_read(self.scores_file, place), SampleScores, self.scores_file, place)

    def scores(self) -> Iterator[SampleScores]:
        """Scores of every sample, one by one."""
        for place in self.score_places().values():
            yield self.read_scores(place)

    def result(self) -> Result | None:
        """The finished result, or None while there is none."""
        file = self.path / "result.json"
        if not file.is_file():
            return None
        try:
            return msgspec.json.decode(file.read_bytes(), type=Result)
        except UNDECODABLE as error:
            raise RunError(f"{file}: {error}", hint=f"loupe score {self.path}") from None

    def write_info(self, info: RunInfo) -> None:
        """Store `run.json`, whole or not at all."""
        self.info = info
        write_atomically(self.path / "run.json", _pretty(info))

    def record_facts(self, facts: Mapping[str, str]) -> None:
        """Store what the opened engine says of itself. Raises RunError if it said otherwise before."""
        info = msgspec.structs.replace(self.info, facts=dict(facts))
        check_same(self.path, self.info, info)
        self.write_info(msgspec.structs.replace(info, signature=signature(info)))

    def drop_result(self) -> None:
        """Take the result away: a new answer is coming, and an old number must not pass for the current one."""
        (self.path / "result.json").unlink(missing_ok=True)

    def write_result(self, result: Result) -> None:
        """Store `result.json`, whole or not at all."""
        write_atomically(self.path / "result.json", _pretty(result))

    def write_scores(self, lines: Iterator[bytes]) -> None:
        """Replace `scores.jsonl` by these lines, whole or not at all."""
        write_atomically(self.scores_file, b"".join(line + b"\n" for line in lines))

    def export_predictions(self, texts: Iterator[tuple[str, str]], suffix: str, folder: Path | None = None) -> int:
        """Write (sample id, text) pairs as `predictions/<sample><suffix>`, or into `folder`; returns how many."""
        folder = self.path / "predictions" if folder is None else folder
        made: set[Path] = set()
        count = 0
        for sample, text in texts:
            file = folder / (safe_name(sample) + suffix)
            try:
                if file.parent not in made:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    made.add(file.parent)
                write_plainly(file, text.encode("utf-8", "replace"))
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                # Ids such as "a" and "a.txt/b" cannot both be paths: the later one gets a name that no id has.
                spare = safe_name(sample.replace("/", "%2F")) + "%" + suffix
                write_plainly(folder / spare, text.encode("utf-8", "replace"))
            count += 1
        return count


def counts_instead(outcome: str, before: str, lost: int = 0, lost_before: int = 0) -> bool:
    """Whether a later record of a sample counts in place of the one before: by class, then by what was lost."""
    return before in RETRIED or (outcome not in RETRIED and lost <= lost_before)


@contextmanager
def claim(path: Path, info: RunInfo, *, fresh: bool = False, hint: str = _KEEP_BOTH) -> Iterator[RunFolder]:
    """Take a run folder for writing: locked, new or continued. A folder with other settings is refused.

    `run.json` is written by the caller, once there is something to say. `fresh` moves the old folder aside (never
    deletes it); `hint` says what else helps the caller. Raises RunError with the list of differences, or if answers
    stand there without their `run.json`.
    """
    if fresh and path.exists() and any(file.name != "run.lock" for file in path.iterdir()):
        with locked(path):
            aside = path.with_name(f"{path.name}.old-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}")
            shutil.move(path, aside)
    with locked(path):
        try:
            yield RunFolder(path, _continued(path, info, hint))
        finally:
            _leave_no_empty_folder(path)


def _continued(path: Path, info: RunInfo, hint: str) -> RunInfo:
    """The settings asked for, as a continuation of what is in the folder."""
    if next(read_lines(path / "predictions.jsonl"), None) is None:
        return info
    if not (path / "run.json").exists():
        raise RunError(
            f"{path} holds answers, but no run.json to say what they are",
            hint="--name NAME begins another run, --fresh moves this folder aside",
        )
    run = RunFolder.open(path)
    check_same(path, run.info, info, hint=hint)
    info = msgspec.structs.replace(info, created=run.info.created, facts=run.info.facts, notes=run.info.notes)
    # A finished run does not shrink because somebody asked for less of it.
    if info.total < run.info.total and (path / "result.json").exists():
        info = msgspec.structs.replace(info, limit=run.info.limit, total=run.info.total)
    return msgspec.structs.replace(info, signature=signature(info))


def _leave_no_empty_folder(path: Path) -> None:
    """A run that never began (its engine could not be opened) leaves nothing behind."""
    if [file.name for file in path.iterdir()] == ["run.lock"]:
        shutil.rmtree(path)
        with contextlib.suppress(OSError):
            path.parent.rmdir()


def check_same(path: Path, old: RunInfo, new: RunInfo, *, hint: str = _KEEP_BOTH) -> None:
    """Raise RunError, listing the differences, unless both runs would give comparable answers."""
    listed = differences(old, new)
    if listed:
        raise RunError(
            f"{path} holds a run with other settings:\n  " + "\n  ".join(listed),
            hint=hint,
        )


def find_runs(root: Path) -> tuple[list[RunFolder], dict[Path, RunError]]:
    """Every run one or two folders below `root`, sorted by path, and what is wrong with damaged ones.

    Folders moved aside by --fresh are left out.
    """
    found: list[RunFolder] = []
    damaged: dict[Path, RunError] = {}
    for file in sorted([*root.glob("*/run.json"), *root.glob("*/*/run.json")]):
        if ".old-" in file.parent.name:
            continue
        try:
            found.append(RunFolder.open(file.parent))
        except RunError as error:
            damaged[file.parent] = error
    return found, damaged


def _read(path: Path, place: Place) -> bytes:
    with path.open("rb") as file:
        file.seek(place.offset)
        return file.read(place.length)


def _record(data: bytes, kind: type[Record], path: Path, place: Place) -> Record:
    """A whole record, of which only the head was looked at so far. Raises RunError with the number of its line."""
    try:
        return msgspec.json.decode(data, type=kind)
    except UNDECODABLE:
        with path.open("rb") as file:
            before = file.read(place.offset)
        return _decode(data, kind, path, before.count(b"\n") + 1)


def _decode(line: bytes, kind: type[Record], path: Path, number: int) -> Record:
    try:
        return msgspec.json.decode(line, type=kind)
    except UNDECODABLE as error:
        raise RunError(
            f"{path}:{number}: not a record of this run: {error}", hint=f"delete or mend line {number}, then go on"
        ) from None


def _pretty(record: msgspec.Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"
