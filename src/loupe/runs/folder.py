"""A run: one engine on one benchmark, as a folder of plain files that survive `kill -9` (docs/runs.md).

`run.json` says what was asked, `predictions.jsonl` what came back, `scores.jsonl` and `result.json` what it was worth.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from loupe.data.seals import is_seal, seal
from loupe.errors import LoupeError, RunError, word
from loupe.files.file_names import as_on_any_disk, safe_name, safe_names
from loupe.files.folder import Folder
from loupe.files.json_lines import RecordLog, read_lines, replacing_lines
from loupe.runs.info import RunInfo, differences, signature
from loupe.runs.installed import id_apart, named_apart, signed_apart
from loupe.runs.lock import LOCK, locked
from loupe.runs.places import Place, Places
from loupe.runs.stored_records import StoredRecords
from loupe.typed import encode_json, json_decoder
from loupe.types import RETRIED, UNDECODABLE, Prediction, Result, SampleScores

KEEP_BOTH = "use --name NAME to keep both, or --fresh to start over (the old folder is moved aside)"

RUN, PREDICTIONS, SCORES, RESULT = "run.json", "predictions.jsonl", "scores.jsonl", "result.json"
#: What the result was made from, and the proof that this user's Loupe made it.
SEAL = "scored.seal"
#: Bytes of a line of scores, and of a result of others: as objects they take up to twenty times as much memory.
_MOST_SCORES, _MOST_RESULT = 64 * 10**6, 32 * 10**6
#: Measures in the scores of others; folders of one's own may have one for each of many labels.
MOST_MEASURES = 1000

Record = TypeVar("Record", bound=msgspec.Struct)


class _PredictionHead(msgspec.Struct, rename={"outcome": "class"}):
    sample: str
    outcome: str
    lost: int = 0


class ScoresHead(msgspec.Struct):
    """Of a line of `scores.jsonl` whose it is, and what identifies that which was scored."""

    sample: str
    digest: str = ""


def _default_of(one: msgspec.structs.FieldInfo) -> Any:
    made = one.default_factory
    return one.default if made is msgspec.NODEFAULT else msgspec.field(default_factory=made)


#: A line of `scores.jsonl` without its details, which are skipped: their objects never come to be.
_Counts = msgspec.defstruct(
    "_Counts",
    [
        (one.name, one.type) if one.required else (one.name, one.type, _default_of(one))
        for one in msgspec.structs.fields(SampleScores)
        if one.name != "details"
    ],
    rename={"outcome": "class"},
    kw_only=True,
)


class RunFolder:
    """Reading access to one run folder; writing goes through `claim`.

    Its records are plain files: a link among them is refused, for the folder may be a stranger's.
    """

    def __init__(self, files: Folder, info: RunInfo) -> None:
        self.files = files
        self.path = files.path
        self.info = info

    @classmethod
    def open(cls, place: Path | Folder) -> RunFolder:
        """The run in a folder. Raises RunError where there is none, or where its run.json is damaged."""
        files = place if isinstance(place, Folder) else Folder(place)
        try:
            info = json_decoder(RunInfo).decode(files.read(RUN))
            return cls(files, named_apart(info))
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise RunError(f"no run at {files.path}", hint="list your runs: loupe runs") from None
        except UNDECODABLE as error:
            raise RunError(f"{files.path / RUN}: {error}", hint="start the run again with --fresh") from None

    @property
    def predictions_file(self) -> Path:
        """Append-only; one line for each ended attempt."""
        return self.path / PREDICTIONS

    @property
    def scores_file(self) -> Path:
        """One line for each scored sample."""
        return self.path / SCORES

    def predictions_log(self) -> RecordLog:
        """The file of answers, open for appending."""
        return RecordLog(self.files, PREDICTIONS)

    def scores_log(self) -> RecordLog:
        """The file of scores, open for appending."""
        return RecordLog(self.files, SCORES)

    def prediction_places(self, tell: Callable[[bytes], object] = lambda _: None) -> Places:
        """For each sample the place of the record that counts: the last good one, else the last one.

        The place's `mark` is the record's class, `lost` how many parts of the page may be read another time. `tell`
        hears every byte of the file.
        """
        places, file = Places(), self.predictions_file
        for number, offset, line in read_lines(self.files, PREDICTIONS, tell):
            head = _decode(line, _PredictionHead, file, number)
            old = places.get(head.sample)
            if old is None or counts_instead(head.outcome, old.mark, head.lost, old.lost):
                places.put(head.sample, Place(offset, len(line), head.outcome, head.lost))
        return places

    def read_prediction(self, place: Place) -> Prediction:
        """The prediction at a place; cheap, one seek."""
        return self._record(self._read(PREDICTIONS, place), Prediction, PREDICTIONS, place)

    def reader(self) -> AbstractContextManager[Callable[[Place], Prediction]]:
        """`read_prediction` for many: the file is opened once, with the first of them."""
        return self._reader(PREDICTIONS, Prediction)

    def score_reader(self) -> AbstractContextManager[Callable[[Place], SampleScores]]:
        """`read_scores` for many: the file is opened once, with the first of them."""
        return self._reader(SCORES, SampleScores)

    def digest_reader(self) -> AbstractContextManager[Callable[[Place], ScoresHead]]:
        """The digest at a place, for many."""
        return self._reader(SCORES, ScoresHead)

    def read_predictions(self, places: Iterable[Place]) -> Iterator[Prediction]:
        """The predictions at many places, one by one."""
        with self.reader() as read:
            yield from map(read, places)

    def predictions(self) -> dict[str, Prediction]:
        """The prediction that counts for each sample, in the order in which the samples first ended."""
        places = self.prediction_places()
        return dict(zip(places, self.read_predictions(places.values()), strict=True))

    def score_places(self) -> Places:
        """For each scored sample the place of its last line."""
        places, file = Places(), self.scores_file
        for number, offset, line in read_lines(self.files, SCORES):
            head = _decode(line, ScoresHead, file, number)
            places.put(head.sample, Place(offset, len(line), ""))
        return places

    def read_scores(self, place: Place) -> SampleScores:
        """The scores at a place."""
        return self._record(self._read(SCORES, place), SampleScores, SCORES, place)

    def scores(self) -> Iterator[SampleScores]:
        """Yield the scores of every sample.

        Raises RunError if those of one measure do not add up, and for more measures of a run from elsewhere than any
        page could show.
        """
        with self.score_reader() as read:
            yield from self._even(map(read, self.score_places().values()))

    def counts(self) -> Iterator[SampleScores]:
        """`scores` without their details, which may be large."""
        with self._reader(SCORES, _Counts) as read:
            rows = map(msgspec.structs.asdict, map(read, self.score_places().values()))
            yield from self._even(SampleScores(**row) for row in rows)

    def stored_result(self) -> Result | None:
        """The result as the file has it, whoever made it, or None while there is none.

        What is shown to people comes from `loupe.results.scored_here.result_of`.
        """
        try:
            data = self.files.read(RESULT)
        except FileNotFoundError:
            return None
        if len(data) > _MOST_RESULT:
            raise RunError(
                f"{self.path / RESULT}: larger than {_MOST_RESULT // 10**6} MB",
                hint=f"make it again from the answers: loupe score {word(self.path)}",
            )
        return self._decoded_result(data)

    def write_info(self, info: RunInfo) -> None:
        """Store `run.json`, whole or not at all. A result that was made here stays sealed."""
        own = self.sealed_result() if _told(info) != _told(self.info) else None
        self.info = info
        self.files.write(RUN, _pretty(info))
        if own is not None:
            self._write_seal(own[0], self.files.read(RESULT), self.digest_of(SCORES), self.digest_of(PREDICTIONS))

    def record_facts(self, facts: Mapping[str, str]) -> None:
        """Store what the opened engine says of itself. Raises RunError if it said otherwise before."""
        info = msgspec.structs.replace(self.info, facts=dict(facts))
        check_same(self.path, self.info, info)
        self.write_info(msgspec.structs.replace(info, signature=signature(info)))

    def sealed_result(self) -> tuple[str, Result] | None:
        """Return what the result was made from and the result, or None unless this user's Loupe sealed them.

        The seal covers the result, the scores, the answers, and what `run.json` tells of how they were made.
        """
        try:
            noted, mac = self.files.read(SEAL, limit=1000).decode("ascii").split(" ")
            data = self.files.read(RESULT)
            parts = self._sealed_parts(noted, data, self.digest_of(SCORES), self.digest_of(PREDICTIONS))
            result = self._decoded_result(data) if is_seal(mac, "result", *parts) else None
        except (OSError, ValueError, LoupeError):
            return None
        return (noted, result) if result is not None and _identity(self.info) == _identity(result) else None

    def is_of_others(self) -> bool:
        """Return whether the Loupe of another user or machine has sealed the result, or it was changed since."""
        return {SEAL, RESULT} <= {*self.files.names()} and self.sealed_result() is None

    def digest_of(self, name: str) -> str:
        """Return the sha256 of a file, "" where there is none."""
        try:
            with self.files.open(name) as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            return ""

    def drop_result(self) -> None:
        """Take the result away: a new answer is coming, and an old number must not pass for the current one."""
        self.files.remove(RESULT)
        self.files.remove(SEAL)

    def write_result(
        self, result: Result, *, made_from: str = "", scores: str | None = None, answers: str | None = None
    ) -> None:
        """Store `result.json`, whole or not at all, as made here, from files with these sha256 (default: as they are).

        The seal comes first, so no crash leaves a result of ours without one.
        """
        document = msgspec.to_builtins(result)
        del document["scored_here"]
        if not result.data_origin:
            del document["data_origin"]
        data = _pretty(document)
        self._write_seal(made_from, data, scores or self.digest_of(SCORES), answers or self.digest_of(PREDICTIONS))
        self.files.write(RESULT, data)

    def stored_scores(self) -> Sequence[SampleScores]:
        """The scores that `write_scores` and `new_scores` have stored, read when looked at; few are kept in memory."""
        return StoredRecords(self.files, SCORES, SampleScores)

    @contextmanager
    def new_scores(self) -> Iterator[Callable[[bytes], None]]:
        """A function that takes the lines of a new `scores.jsonl`, which is in place, whole, when the block ends."""
        with replacing_lines(self.files, SCORES) as write:
            yield write

    def write_scores(self, lines: Iterable[bytes]) -> None:
        """Replace `scores.jsonl` by these lines, whole or not at all."""
        with replacing_lines(self.files, SCORES) as write:
            for line in lines:
                write(line)

    def write_predictions(self, lines: Iterable[bytes]) -> None:
        """Replace `predictions.jsonl` by these lines, whole or not at all."""
        with replacing_lines(self.files, PREDICTIONS) as write:
            for line in lines:
                write(line)

    def export_predictions(self, texts: Iterator[tuple[str, str]], suffix: str, folder: Folder | None = None) -> int:
        """Write (sample id, text) pairs as `predictions/<sample><suffix>`, or into `folder`; returns how many.

        Ids that differ in capitals alone get names that differ on every disk: the files may be copied to one of macOS.
        """
        folder = folder or self.files / "predictions"
        count = 0
        taken: set[str] = set()
        with folder.many() as write:
            for sample, text in texts:
                data = text.encode("utf-8", "replace")
                _, usual, own = safe_names(sample)
                name = own if as_on_any_disk(usual) in taken else usual
                taken.add(as_on_any_disk(name))
                try:
                    write(name + suffix, data)
                except (FileExistsError, NotADirectoryError, IsADirectoryError):
                    # Ids such as "a" and "a.txt/b" cannot both be paths: the later one gets a name that no id has.
                    write(safe_name(sample.replace("/", "%2F")) + "%" + suffix, data)
                count += 1
        return count

    def _even(self, rows: Iterable[SampleScores]) -> Iterator[SampleScores]:
        counts: dict[str, int] = {}
        may_have_many = False
        for row in rows:
            if name := uneven_measure(row, counts):
                raise RunError(
                    f"{self.scores_file}: the scores of {name!r} have different numbers of counts",
                    hint=f"make them again from the answers: loupe score {word(self.path)}",
                )
            if not may_have_many and len(counts) > MOST_MEASURES:
                may_have_many = self.sealed_result() is not None
                if not may_have_many:
                    raise RunError(
                        f"{self.scores_file}: the scores came from elsewhere and have more than"
                        f" {MOST_MEASURES:,} measures",
                        hint=f"make them again from the answers: loupe score {word(self.path)}",
                    )
            yield row

    def _decoded_result(self, data: bytes) -> Result:
        try:
            result = json_decoder(Result).decode(data)
        except UNDECODABLE as error:
            raise RunError(f"{self.path / RESULT}: {error}", hint=f"score it: loupe score {word(self.path)}") from None
        ident = id_apart(self.info.benchmark, result.benchmark)
        signed = signed_apart(result.signature, result.benchmark, ident)
        return msgspec.structs.replace(result, benchmark=ident, signature=signed)

    def _write_seal(self, made_from: str, result: bytes, scores: str, answers: str) -> None:
        mac = seal("result", *self._sealed_parts(made_from, result, scores, answers))
        self.files.write(SEAL, f"{made_from} {mac}".encode())

    def _sealed_parts(self, made_from: str, result: bytes, scores: str, answers: str) -> tuple[bytes, ...]:
        told = hashlib.sha256(_told(self.info)).digest()
        return made_from.encode(), hashlib.sha256(result).digest(), scores.encode(), answers.encode(), told

    @contextmanager
    def _reader(self, name: str, kind: type[Record]) -> Iterator[Callable[[Place], Record]]:
        with ExitStack() as stack:
            opened: list[BufferedReader] = []

            def read(place: Place) -> Record:
                if not opened:
                    opened.append(stack.enter_context(self.files.open(name)))
                opened[0].seek(place.offset)
                return self._record(opened[0].read(place.length), kind, name, place)

            yield read

    def _record(self, data: bytes, kind: type[Record], name: str, place: Place) -> Record:
        """A whole record, of which only the head was looked at so far. Raises RunError with the number of its line."""
        if name == SCORES and len(data) > _MOST_SCORES:
            raise RunError(
                f"{self.path / name}: the scores of one sample are larger than {_MOST_SCORES // 10**6} MB",
                hint=f"make them again from the answers: loupe score {word(self.path)}",
            )
        try:
            return json_decoder(kind).decode(data)
        except UNDECODABLE:
            before = self._read(name, Place(0, place.offset, ""))
            return _decode(data, kind, self.path / name, before.count(b"\n") + 1)

    def _read(self, name: str, place: Place) -> bytes:
        with self.files.open(name) as file:
            file.seek(place.offset)
            return file.read(place.length)


def uneven_measure(row: SampleScores, counts: dict[str, int]) -> str:
    """A measure of this row whose scores have no counts or another number than before, "" if there is none.

    `counts` is how many the scores of each measure have; those of measures that come first are put in.
    """
    for score in row.scores:
        if not score.counts or len(score.counts) != counts.setdefault(score.measure, len(score.counts)):
            return score.measure
    return ""


def counts_instead(outcome: str, before: str, lost: int = 0, lost_before: int = 0) -> bool:
    """True if a later record of a sample counts in place of the one before: by class, then by what was lost."""
    return before in RETRIED or (outcome not in RETRIED and lost <= lost_before)


@contextmanager
def claim(
    place: Path | Folder, info: RunInfo, *, fresh: bool = False, shared: bool = False, hint: str = KEEP_BOTH
) -> Iterator[RunFolder]:
    """Take a run folder for writing: locked, new or continued. A folder with other settings is refused.

    A new one is the user's alone: pages and answers may be confidential. `shared` opens it to whom the umask lets in.

    `run.json` is written by the caller, once there is something to say. `fresh` moves the old folder aside (never
    deletes it); `hint` says what else helps the caller. Raises RunError with the list of differences, or if answers
    stand there without their `run.json`.
    """
    files = place if isinstance(place, Folder) else Folder(place)
    if fresh and set(files.names()) - {LOCK}:
        with locked(files):
            files.move_aside()
    files.create(private=not shared)
    if shared:
        files.open_to_others()
    files.refuse_links()
    with locked(files):
        files.remove_drafts()
        try:
            yield RunFolder(files, _continued(files, info, hint))
        finally:
            _leave_no_empty_folder(files)


def _continued(files: Folder, info: RunInfo, hint: str) -> RunInfo:
    """The settings asked for, as a continuation of what is in the folder."""
    if next(read_lines(files, PREDICTIONS), None) is None:
        return info
    names = files.names()
    if RUN not in names:
        raise RunError(
            f"{files.path} holds answers, but no run.json to say what they are",
            hint="use --name NAME to begin another run, or --fresh to move this folder aside",
        )
    run = RunFolder.open(files)
    check_same(files.path, run.info, info, hint=hint)
    kept = {name: getattr(run.info, name) for name in ("created", "facts", "notes")}
    # Where data was named once and is found by itself now, it still lies there as well.
    if not info.data and run.info.data and Path(run.info.data).exists():
        kept |= {name: getattr(run.info, name) for name in ("data", "data_seal")}
    info = msgspec.structs.replace(info, **kept)
    # A finished run does not shrink because somebody asked for less of it.
    if info.total < run.info.total and RESULT in names:
        part = {name: getattr(run.info, name) for name in ("limit", "sample", "total", "first")}
        info = msgspec.structs.replace(info, **part)
    return msgspec.structs.replace(info, signature=signature(info))


def _leave_no_empty_folder(files: Folder) -> None:
    """A run that never began (its engine could not be opened) leaves nothing behind."""
    if files.names() == [LOCK]:
        files.remove(LOCK)
        files.remove_empty()
        with suppress(OSError):
            files.path.parent.rmdir()


def check_same(path: Path, old: RunInfo, new: RunInfo, *, hint: str = KEEP_BOTH) -> None:
    """Raise RunError, listing the differences, unless both runs would give comparable answers."""
    listed = differences(old, new)
    if listed:
        raise RunError(f"{path} holds a run with other settings:", listed=listed, hint=hint)


def find_runs(root: Path) -> tuple[list[RunFolder], dict[Path, RunError]]:
    """Every run one or two folders below `root`, sorted by path, and what is wrong with damaged ones.

    Folders moved aside by --fresh are left out; one behind a link is named as damaged. Raises UnsafeFileError if the
    root is a default place and a link.
    """
    with suppress(OSError):
        Folder(root).refuse_if_linked()
    found: list[RunFolder] = []
    damaged: dict[Path, RunError] = {}
    for file in sorted([*root.glob("*/run.json"), *root.glob("*/*/run.json")]):
        if ".old-" in file.parent.name:
            continue
        try:
            found.append(RunFolder.open(Folder(root) / str(file.parent.relative_to(root))))
        except RunError as error:
            damaged[file.parent] = error
    return found, damaged


def _decode(line: bytes, kind: type[Record], path: Path, number: int) -> Record:
    try:
        return json_decoder(kind).decode(line)
    except UNDECODABLE as error:
        raise RunError(
            f"{path}:{number}: not a record of this run: {error}", hint=f"delete or fix line {number}, then go on"
        ) from None


def _identity(record: RunInfo | Result) -> tuple[str, str, str, str]:
    """Return what a result and its run must agree in: names, and how it was made, but not the version."""
    ident = record.benchmark_id if isinstance(record, RunInfo) else record.benchmark
    return ident, record.version, record.engine, record.signature.partition("|loupe:")[0]


def _told(info: RunInfo) -> bytes:
    """Return what `run.json` tells of a run and no signature holds."""
    return encode_json([info.stopped, info.notes, info.facts])


def _pretty(record: msgspec.Struct | dict[str, Any]) -> bytes:
    try:
        return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"
    except UnicodeEncodeError as error:
        raise RunError(
            f"{error.object!a}: a name that is not UTF-8 cannot be recorded", hint="rename the file or folder"
        ) from None
