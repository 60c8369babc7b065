"""The journal: nobody goes on before the record is on the disk, and a full disk is said, not swallowed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from loupe.errors import WriteError
from loupe.files.folder import Folder
from loupe.files.json_lines import RecordLog
from loupe.inference.journal import Journal
from loupe.types import Prediction


def stored(path: Path) -> list[str]:
    return [msgspec.json.decode(line, type=Prediction).sample for line in path.read_bytes().splitlines()]


def test_what_keep_returned_from_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"

    async def go() -> None:
        async with Journal(RecordLog(Folder(path.parent), path.name)) as journal:

            async def one(number: int) -> None:
                await journal.keep(Prediction(sample=f"s{number}", text="x" * 1000))
                assert f"s{number}" in stored(path)

            await asyncio.gather(*(one(number) for number in range(50)))

    asyncio.run(go())
    assert sorted(stored(path)) == sorted(f"s{number}" for number in range(50))


def test_a_cancelled_writer_still_leaves_its_record(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"

    async def go() -> None:
        async with Journal(RecordLog(Folder(path.parent), path.name)) as journal:
            task = asyncio.create_task(journal.keep(Prediction(sample="a")))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await journal.keep(Prediction(sample="b"))

    asyncio.run(go())
    assert stored(path) == ["a", "b"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="SKIPPED: no /dev/full here to play a full disk")
def test_a_full_disk_is_one_clear_line(tmp_path: Path) -> None:
    log = RecordLog(Folder(tmp_path), "predictions.jsonl")
    full = os.open("/dev/full", os.O_RDWR)
    os.dup2(full, log._file.fileno())
    os.close(full)

    async def go() -> None:
        async with Journal(log) as journal:
            await journal.keep(Prediction(sample="a"))

    with pytest.raises(WriteError, match=r"predictions\.jsonl cannot be written: the disk is full"):
        asyncio.run(go())


def _pipe(log: RecordLog) -> None:
    """In a pipe nothing can be sought: `seek` fails as on a network disk that has lost the file."""
    reading, writing = os.pipe()
    os.dup2(writing, log._file.fileno())
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize(
    ("broken", "why"), [(_pipe, "illegal seek"), (RecordLog.close, "ValueError: I/O operation on closed file")]
)
def test_whatever_fails_while_writing_is_told_to_all_who_wait_and_to_all_who_come_later(
    broken: Callable[[RecordLog], None], why: str, tmp_path: Path
) -> None:
    log = RecordLog(Folder(tmp_path), "predictions.jsonl")
    broken(log)

    async def go() -> list[BaseException | None]:
        async with Journal(log) as journal:
            first = [journal.keep(Prediction(sample=f"s{number}")) for number in range(3)]
            told = await asyncio.wait_for(asyncio.gather(*first, return_exceptions=True), 10)
            later = journal.keep(Prediction(sample="later"))
            return told + await asyncio.wait_for(asyncio.gather(later, return_exceptions=True), 10)

    told = asyncio.run(go())
    assert [type(error) for error in told] == [WriteError] * 4
    assert all(f"predictions.jsonl cannot be written: {why}" in str(error) for error in told)
