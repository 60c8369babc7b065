"""Data files and archives of strangers: what is absurd in them is one clear line, at once and in little memory."""

from __future__ import annotations

import io
import json
import os
import random
import resource
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from loupe.data import bounded
from loupe.data.hub.archives import pack, unpack, unzip
from loupe.data.hub.manifest import NAME
from loupe.data.packed import open_zip, read_member, read_packed
from loupe.data.parquet import row_count, rows
from loupe.data.parquet_reading import parquet_rows
from loupe.errors import DatasetError, LoupeError, PageError
from loupe.files.folder import Folder
from loupe.types import PackedImage
from loupe.workers.limits import max_memory, too_much_memory
from tests.support.command_line import loupe, make_folder


def test_fifty_million_empty_rows_are_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "test-00000-of-00001.parquet"
    with pq.ParquetWriter(path, pa.schema({"text": pa.string(), "image": pa.binary()})) as writer:
        empty = pa.table({"text": pa.nulls(10_000_000, pa.string()), "image": pa.nulls(10_000_000, pa.binary())})
        for _ in range(5):
            writer.write_table(empty)
    assert path.stat().st_size < 300_000
    (tmp_path / "data").mkdir()
    path.rename(tmp_path / "data" / path.name)
    words = [sys.executable, "-P", "-m", "loupe", "run", "unimer_test", "-e", "pdf_text", "--limit", "2"]
    began = time.monotonic()
    done = subprocess.run(
        [*words, "--data", str(tmp_path)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "50,000,000 rows" in done.stderr, done.stderr
    assert time.monotonic() - began < 10
    with pytest.raises(DatasetError, match="50,000,000 rows"):
        row_count(tmp_path / "data")


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit that Linux alone enforces")
def test_one_text_of_a_hundred_megabytes_in_every_row_takes_no_more_than_its_bounds(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 256, pa.int32()), pa.array(["x" * 100_000_000]))
    pq.write_table(pa.table({"text": text}), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 200_000
    with pytest.raises(PageError, match=too_much_memory()):
        list(rows(path, ("text",)))
    bounded._READER.close()
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 < max_memory() * 1.1


@pytest.mark.parametrize("same", [False, True])
def test_many_rows_with_texts_of_five_megabytes_are_read(tmp_path: Path, same: bool) -> None:
    path, count = tmp_path / "a.parquet", 150
    texts = pa.array([f"{row:04}" + "x" * 5_000_000 for row in range(1 if same else count)])
    column = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), texts) if same else texts
    pq.write_table(pa.table({"text": column}), path, compression="zstd", store_schema=False)
    lengths = [(row.number, row["text"][:4], len(row["text"])) for row in rows(path, ("text",))]
    assert lengths == [(number, f"{0 if same else number:04}", 5_000_004) for number in range(count)]


def test_files_that_are_read_side_by_side_are_each_read_once(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": [f"{row} " * 100 for row in range(60_000)]}), path, row_group_size=1000)
    began = time.monotonic()
    alone = [row["text"] for row in rows(path, ("text",))]
    once = time.monotonic() - began
    began = time.monotonic()
    for number, pair in enumerate(zip(rows(path, ("text",)), rows(path, ("text",)), strict=True)):
        assert pair[0]["text"] == pair[1]["text"] == alone[number]
    assert time.monotonic() - began < 6 * once + 1


def test_a_reading_that_was_given_up_goes_on_at_its_row_group(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": [str(row) for row in range(100)]}), path, row_group_size=30)
    for first in (0, 29, 30, 31, 89, 90, 99):
        bounded._READER.close()
        assert bounded.ask(parquet_rows, path, ["text"], first)[0] == {"text": str(first)}
    assert bounded.ask(parquet_rows, path, ["text"], 100) == []


def test_a_column_nested_sixty_deep_is_refused(tmp_path: Path) -> None:
    kind: pa.DataType = pa.int8()
    for _ in range(60):
        kind = pa.struct({"a": kind})
    pq.write_table(pa.table({"deep": pa.nulls(3, kind)}), tmp_path / "a.parquet")
    with pytest.raises(DatasetError, match="nested 60 levels deep"):
        list(rows(tmp_path / "a.parquet", ("deep",)))


def test_a_damaged_parquet_file_is_read_or_refused_and_ends_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    images = [{"bytes": b"x" * 500, "path": f"{i}.png"} for i in range(50)]
    pq.write_table(pa.table({"image": images, "text": [f"text {i}" for i in range(50)]}), path, row_group_size=20)
    whole = path.read_bytes()
    refused = 0
    for seed in range(150):
        dice = random.Random(seed)
        data = bytearray(whole)
        for _ in range(dice.choice((1, 4, 16))):
            data[dice.randrange(len(data))] = dice.randrange(256)
        path.write_bytes(data)
        try:
            list(rows(path, ("image", "text")))
            read_packed(PackedImage(path, "49/image"))
        except LoupeError as error:
            refused += 1
            assert "\n" not in str(error) and str(path) in str(error)
    assert refused > 20


def pack_of(folder: Path, *members: tarfile.TarInfo, data: bytes = b"") -> Path:
    """A pack of one file whose further members are these, each with `data`."""
    (folder / "data").mkdir()
    (folder / "data" / "a.txt").write_text("a")
    pack(folder / "data", folder / "a.tar")
    with tarfile.open(folder / "a.tar", "a") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(data) if member.isreg() else None)
    return folder / "a.tar"


def member(name: str, kind: bytes = tarfile.REGTYPE, **facts: object) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type = kind
    for key, value in facts.items():
        setattr(found, key, value)
    return found


TAR_MEMBERS = {
    "absolute": member("/etc/loupe"),
    "above": member("../out.txt"),
    "link": member("a.txt", tarfile.SYMTYPE, linkname="/etc/passwd"),
    "hard link": member("b.txt", tarfile.LNKTYPE, linkname="a.txt"),
    "device": member("null", tarfile.CHRTYPE, devmajor=1, devminor=3),
    "pipe": member("pipe", tarfile.FIFOTYPE),
    "twice": member("a.txt"),
    "long name": member("x" * 3000),
    "line break": member("a\nb"),
}


@pytest.mark.parametrize("kind", TAR_MEMBERS)
def test_a_pack_with_a_member_that_it_may_not_have_is_refused_whole(kind: str, tmp_path: Path) -> None:
    path = pack_of(tmp_path, TAR_MEMBERS[kind])
    with pytest.raises(DatasetError) as error:
        unpack(path, lambda _: tmp_path / "out")
    assert "\n" not in str(error.value) and len(str(error.value)) < 500
    assert not (tmp_path / "out").exists() and not (tmp_path / "out.txt").exists()


@pytest.mark.parametrize(
    "name",
    [
        "x" * 300,
        "a/" * 3000 + "b",
        "../out.txt",
        "/out.txt",
        "a/../../out.txt",
        "a\\..\\b",
        "a\0b",
        "a\nb",
        ".",
        "con/",
    ],
)
def test_a_zip_with_a_name_that_no_folder_has_is_one_clear_line(name: str, tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("x", b"1")
        archive.filelist[0].filename = name
    before = sorted(tmp_path.iterdir())
    try:
        unzip(tmp_path / "a.zip", Folder(tmp_path / "to"))
    except DatasetError as error:
        assert "\n" not in str(error) and len(str(error)) < 500
        assert str(tmp_path / "a.zip") in str(error)
    assert sorted(tmp_path.iterdir()) == before


def test_a_manifest_with_a_name_that_is_too_long_is_one_clear_line(tmp_path: Path) -> None:
    name = "x" * 300 + ".txt"
    entry = {"path": name, "size": 1, "sha256": "0" * 64}
    manifest = json.dumps({"format": 1, "id": "a", "files": [entry]}).encode()
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for called, data in ((NAME, manifest), (name, b"a")):
            tar.addfile(member(called, size=len(data)), io.BytesIO(data))
    with pytest.raises(DatasetError) as error:
        unpack(tmp_path / "a.tar", lambda _: tmp_path / "out")
    assert "\n" not in str(error.value) and len(str(error.value)) < 500
    assert not (tmp_path / "out").exists()


def test_a_zip_with_a_device_or_a_file_below_a_file_is_one_clear_line(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "device.zip", "w") as archive:
        device = zipfile.ZipInfo("null")
        device.external_attr = 0o020666 << 16
        archive.writestr(device, b"")
    with zipfile.ZipFile(tmp_path / "below.zip", "w") as archive:
        archive.writestr("a/b", b"1")
        archive.writestr("a", b"1")
    for name, said in (("device", "'null' is a device"), ("below", "'a/b' lies below a file")):
        with pytest.raises(DatasetError, match=said):
            unzip(tmp_path / f"{name}.zip", Folder(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["below.zip", "device.zip"]


def test_a_member_of_a_zip_that_is_broken_or_missing_is_one_clear_line(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("labels.txt", "a b c\n" * 50)
    whole = (tmp_path / "a.zip").read_bytes()
    for place, what in ((0, "Bad magic number"), (42, "Bad CRC")):
        (tmp_path / "b.zip").write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        with zipfile.ZipFile(tmp_path / "b.zip") as archive:
            with pytest.raises(DatasetError, match=r"b\.zip: 'labels\.txt' is broken \(" + what):
                read_member(archive, "labels.txt")
            with pytest.raises(KeyError):
                read_member(archive, "others")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("data/validation-00000-of-00001.parquet", ("infer", "pubtabnet")),
        ("UniMER-Test.zip", ("infer", "unimer_test")),
        ("focus_benchmark_test.zip", ("infer", "fox")),
        ("OmniDocBench.json", ("infer", "omnidocbench")),
        ("metadata.jsonl", ("infer", "iam_lines")),
    ],
)
def test_a_pipe_or_an_endless_device_in_the_place_of_data_is_not_waited_for(
    name: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    place = tmp_path / "data" / name
    place.parent.mkdir(parents=True)
    os.mkfifo(place)
    for _ in range(2):
        done = loupe(*words, "--data", str(tmp_path / "data"), "-e", "predictions:.", cwd=tmp_path)
        assert done.returncode in (2, 4) and done.stderr.startswith("error: "), done.stderr
        place.unlink()
        place.symlink_to("/dev/zero")


def test_a_zip_of_a_version_that_nobody_has_is_one_clear_line(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "focus_benchmark_test.zip", "w") as archive:
        archive.writestr("focus_benchmark_test/en_page_ocr.json", "[]")
    data = (tmp_path / "focus_benchmark_test.zip").read_bytes()
    place = data.index(b"PK\x01\x02") + 6
    (tmp_path / "focus_benchmark_test.zip").write_bytes(data[:place] + b"\x58" + data[place + 1 :])
    with pytest.raises(DatasetError, match="not a zip, or a broken one"):
        open_zip(tmp_path / "focus_benchmark_test.zip")


def test_a_picture_that_is_too_large_for_a_jpeg_is_one_clear_line(tmp_path: Path) -> None:
    docs = make_folder(tmp_path, name="docs", count=1)
    Image.new("1", (1, 70_000)).save(docs / "a.png")
    (docs / "samples.jsonl").write_text('{"id": "a", "image": "a.png", "reference": "x"}\n')
    done = loupe("data", "prepare", "docs", "--to", "new", cwd=tmp_path)
    assert done.returncode == 2 and "1 × 70,000 pixels cannot be written as JPEG" in done.stderr, done.stderr


def test_a_link_that_leads_to_itself_is_a_page_that_is_not_there(tmp_path: Path) -> None:
    docs = make_folder(tmp_path, name="docs", count=1)
    (docs / "a.png").symlink_to("a.png")
    (docs / "samples.jsonl").write_text('{"id": "a", "image": "a.png", "reference": "x"}\n')
    for words in (("bench", "check", "docs"), ("run", "docs", "-e", "python:./reader.py:right")):
        done = loupe(*words, cwd=tmp_path)
        said = done.stdout + done.stderr
        assert done.returncode == 2 and "'a.png': no such file" in said and "Traceback" not in said, said
