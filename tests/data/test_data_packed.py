"""Images inside zips and parquet files, in the layouts that the hub publishes, through everything that reads a page."""

from __future__ import annotations

import datetime as dt
import io
import subprocess
import sys
import zipfile
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from loupe.data import packed
from loupe.data.digests import source_digest
from loupe.data.packed import packed_name, read_packed
from loupe.data.pages import ink_fraction, load_page, page_size, thumbnail
from loupe.data.parquet import columns_of, find_shards, row_count, rows
from loupe.engines.pages.page_images import encode, parse_rule
from loupe.errors import DatasetError, PageError
from loupe.report.pictures import full_picture, make_thumbnail
from loupe.types import PackedImage


def picture(width: int, *, kind: str = "JPEG") -> bytes:
    """A page of its own width, so that a mix-up shows."""
    image = Image.new("RGB", (width, 60), "white")
    ImageDraw.Draw(image).rectangle((5, 10, width // 2, 30), fill="black")
    buffer = io.BytesIO()
    image.save(buffer, kind)
    return buffer.getvalue()


def write_parquet(path: Path, *, count: int = 25, group: int = 10, first: int = 0, raw: bool = False) -> Path:
    """`count` rows in row groups of `group`, images as the hub's structs or as `raw` bytes, 100 + row pixels wide."""
    images = [picture(100 + first + row, kind="PNG" if row % 2 else "JPEG") for row in range(count)]
    cells = images if raw else [{"bytes": data, "path": f"{row}.png"} for row, data in enumerate(images)]
    table = pa.table(
        {
            "image": cells,
            "text": [f"row {first + row}" for row in range(count)],
            "fields": [{"name": f"n{row}", "tags": ["a", str(row)]} for row in range(count)],
        }
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=group)
    return path


def write_zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_rows_come_in_order_with_nested_columns_and_without_images(tmp_path: Path) -> None:
    found = list(rows(write_parquet(tmp_path / "test.parquet"), ["text", "fields"]))
    assert [row["text"] for row in found] == [f"row {number}" for number in range(25)]
    assert [row.number for row in found] == list(range(25))
    assert found[3] == {"text": "row 3", "fields": {"name": "n3", "tags": ["a", "3"]}}


def test_every_value_has_its_own_type_in_this_process_and_through_the_one_with_limits(tmp_path: Path) -> None:
    moment = dt.datetime(2026, 10, 25, 0, 30, 1, 5, tzinfo=dt.UTC)
    values = {
        "moment": pa.array([dt.datetime(2026, 1, 2, 3, 4, 5, 6)], pa.timestamp("us")),
        "nanoseconds": pa.array([dt.datetime(2026, 1, 2, 3, 4)], pa.timestamp("ns")),
        "utc": pa.array([moment], pa.timestamp("us", "UTC")),
        # Half past two comes twice that night.
        "zone": pa.array([moment + dt.timedelta(hours=1)], pa.timestamp("us", "Europe/Berlin")),
        "offset": pa.array([moment], pa.timestamp("ms", "+05:30")),
        "date": pa.array([dt.date(2026, 1, 2)]),
        "time": pa.array([dt.time(1, 2, 3, 4)]),
        "duration": pa.array([dt.timedelta(days=-3, microseconds=7)]),
        "amount": pa.array([Decimal("-1.10")]),
        "map": pa.array([[("a", dt.date(2026, 1, 2)), ("b", None)]], pa.map_(pa.string(), pa.date32())),
        "nested": pa.array([{"list": [{"day": dt.date(2026, 1, 2)}], "bytes": b"\xff"}]),
        "large": pa.array([2**64 - 1], pa.uint64()),
        "number": pa.array([0.1]),
        "nothing": pa.array([None], pa.string()),
    }
    pq.write_table(pa.table(values), tmp_path / "a.parquet")
    wanted = pq.read_table(tmp_path / "a.parquet").to_pylist()
    (row,) = rows(tmp_path / "a.parquet", list(values))
    program = (
        "import sys; from pathlib import Path; from loupe.workers.limits import bound_process\n"
        "from loupe.data.parquet import rows\n"
        "bound_process(); print(repr([dict(row) for row in rows(Path(sys.argv[1]), sys.argv[2:])]), end='')"
    )
    words = [sys.executable, "-P", "-c", program, str(tmp_path / "a.parquet"), *values]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert dict(row) == wanted[0]
    assert repr([dict(row)]) == repr(wanted) == done.stdout


def test_shards_are_read_one_after_the_other_each_with_its_own_row_numbers(tmp_path: Path) -> None:
    write_parquet(tmp_path / "data" / "test-00000-of-00002.parquet", count=12)
    write_parquet(tmp_path / "data" / "test-00001-of-00002.parquet", count=5, first=12)
    shards = find_shards(tmp_path, "val", "test")
    found = list(rows(shards, ["text"]))
    assert ([row["text"] for row in found], row_count(shards)) == ([f"row {number}" for number in range(17)], 17)
    assert [page_size(row.image()) for row in found] == [(100 + number, 60) for number in range(17)]
    assert [row.number for row in found] == [*range(12), *range(5)]


@pytest.mark.parametrize(
    "name", ["test.parquet", "data/test.parquet", "data/test-00000-of-00001.parquet", "test/0.parquet"]
)
def test_every_published_place_of_a_split_is_found(tmp_path: Path, name: str) -> None:
    path = write_parquet(tmp_path / name, count=1)
    write_parquet(tmp_path / "data" / "train-00000-of-00001.parquet", count=1)
    assert find_shards(tmp_path, "validation", "test") == [path]
    assert find_shards(tmp_path, "validation") == []


@pytest.mark.parametrize("raw", [False, True])
def test_images_are_read_from_structs_and_from_raw_bytes_in_any_order(tmp_path: Path, raw: bool) -> None:
    path = write_parquet(tmp_path / "test.parquet", raw=raw)
    for number in (24, 0, 13, 1, 9, 10, 24):
        assert load_page(PackedImage(path, f"{number}/image")).size == (100 + number, 60)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 59), max_size=30), st.sampled_from([0, 20_000, 10**9]))
def test_any_order_of_reading_and_any_memory_give_the_right_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: list[int], memory: int
) -> None:
    path = tmp_path / "test.parquet"
    if not path.exists():
        write_parquet(path, count=60, group=25)
    monkeypatch.setattr(packed, "_KEPT_BYTES", memory)
    found = [page_size(PackedImage(path, f"{number}/image"))[0] - 100 for number in order]
    assert found == order


def test_a_member_of_a_zip_is_read_without_unpacking(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "fox.zip", {"en/1.png": picture(120, kind="PNG"), "en/2.jpg": picture(130)})
    assert read_packed(PackedImage(path, "en/2.jpg")) == picture(130)
    assert page_size(PackedImage(path, "en/1.png")) == (120, 60)
    assert list(tmp_path.iterdir()) == [path]


def test_a_data_file_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "pages.zip", {"a.png": picture(120, kind="PNG")})
    source = PackedImage(path, "a.png")
    before = page_size(source), source_digest(source)
    write_zip(path, {"a.png": picture(140, kind="PNG"), "b.png": b"more"})
    assert (before[0], page_size(source)) == ((120, 60), (140, 60))
    assert source_digest(source) != before[1]


def test_thumbnails_ink_and_pictures_for_the_report_come_from_data_files(tmp_path: Path) -> None:
    source = PackedImage(write_parquet(tmp_path / "test.parquet", count=3), "2/image")
    assert max(thumbnail(source, 50).size) == 50
    assert ink_fraction(source) > 0.1
    assert make_thumbnail(source).data
    assert full_picture(source, folder=tmp_path, embed=False).startswith("data:image/webp;base64,")


def test_engines_are_sent_the_very_bytes_where_no_pixel_has_to_change(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "test.parquet", count=2)
    for rule in ("none", "fit2048"):
        sent = [encode(PackedImage(path, f"{row}/image"), parse_rule(rule)) for row in (0, 1)]
        assert [(image.mime, image.data) for image in sent] == [
            ("image/jpeg", picture(100)),
            ("image/png", picture(101, kind="PNG")),
        ]
    small = encode(PackedImage(path, "0/image"), parse_rule("fit50"))
    assert Image.open(io.BytesIO(small.data)).size == (50, 30)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP", "JPEG2000"])
def test_an_image_that_travels_as_it_is_has_the_type_that_its_bytes_say(tmp_path: Path, kind: str) -> None:
    data = picture(100, kind=kind)
    pq.write_table(pa.table({"image": [data]}), tmp_path / "a.parquet")
    sent = encode(PackedImage(tmp_path / "a.parquet", "0/image"), parse_rule("none"))
    assert (sent.mime, sent.data) == (f"image/{kind.lower()}", data)


def test_the_digest_names_the_data_file_and_the_member(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "test.parquet", count=2)
    first, second = (source_digest(PackedImage(path, f"{row}/image")) for row in (0, 1))
    assert first.partition("#")[0] == second.partition("#")[0] and first != second
    assert source_digest(PackedImage(tmp_path / "none.parquet", "0/image")) == "missing#0/image"


@pytest.mark.parametrize(
    ("member", "said"),
    [("7/image", "has no row 7 (rows 0 to 2)"), ("0/picture", "no column 'picture' (columns: image, text, fields)"),
     ("image", "ROW/COLUMN"), ("0/text", "no image bytes"), ("-1/image", "ROW/COLUMN")],
)  # fmt: skip
def test_what_a_parquet_file_does_not_hold_is_said_in_one_line(tmp_path: Path, member: str, said: str) -> None:
    path = write_parquet(tmp_path / "test.parquet", count=3)
    with pytest.raises(PageError) as caught:
        load_page(PackedImage(path, member))
    assert said in caught.value.message and "\n" not in caught.value.message and str(path) in caught.value.message


def test_broken_data_files_and_images_are_page_errors(tmp_path: Path) -> None:
    garbage = tmp_path / "broken.zip"
    garbage.write_bytes(b"PK nothing")
    shard = tmp_path / "broken.parquet"
    shard.write_bytes(b"PAR1 nothing")
    good = write_zip(tmp_path / "good.zip", {"a.png": b"no picture", "b.png": b""})
    for source in (
        PackedImage(garbage, "a.png"),
        PackedImage(shard, "0/image"),
        PackedImage(good, "a.png"),
        PackedImage(good, "b.png"),
        PackedImage(good, "c.png"),
        PackedImage(tmp_path / "none.zip", "a.png"),
        PackedImage(tmp_path / "none.parquet", "0/image"),
    ):
        with pytest.raises(PageError) as caught:
            load_page(source)
        assert str(source.path) in caught.value.message, source


def test_a_truncated_parquet_file_is_a_dataset_error_that_names_it(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "test.parquet")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DatasetError, match=r"test\.parquet"):
        list(rows(path, ["text"]))


def test_a_missing_column_names_those_that_are_there(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "test.parquet", count=1)
    assert columns_of(path) == ["image", "text", "fields"]
    with pytest.raises(DatasetError, match="no column 'answer'") as caught:
        list(rows(path, ["answer"]))
    assert caught.value.hint == "its columns: image, text, fields"


def test_messages_call_a_packed_image_by_file_and_member(tmp_path: Path) -> None:
    assert packed_name(PackedImage(tmp_path / "a.zip", "x/y.png")) == tmp_path / "a.zip" / "x" / "y.png"
