"""Fetching data sets from a real server that speaks the hub's protocol, with every fault that the real one shows.

The server fails a test whose faults did not fire; every test looks at contents, not only at the absence of an error.
"""

from __future__ import annotations

import hashlib
import io
import random
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from loupe.benchmarks.registry import data_sets, find_data_set
from loupe.data.hub.download import Order, get, survey
from loupe.data.hub.fetch import PARTS, Tally
from loupe.data.hub.manifest import NAME, FileEntry, Manifest, check, read_manifest, write_manifest
from loupe.data.hub.origin import HUB, origin_of
from loupe.data.hub.patience import Patience, retry_after_seconds
from loupe.errors import DatasetError, UnsafeFileError, UsageError
from loupe.files.folder import Folder
from loupe.types import DataSet
from tests.support.hub_server import COMMIT, Fault, Hub, hub_server

LARGE = random.Random(1).randbytes(3_000_000)
FILES = {
    "README.md": b"about",
    "data/test.parquet": LARGE,
    "data/labels.json": b'{"a": 1}',
    "images/\u00e4 b.png": b"p" * 5000,
}
SET = DataSet(id="pages", repo="own/pages", licence="ours", patterns=("data/*", "images/*"))
#: Waits are short here; that a server's own wish is obeyed is tested with that wish.
QUICK = Patience(attempts=4, first=0.01, longest=0.02, connect=20.0, silence=20.0)
#: A machine with much to do may be silent for half a second too: only for tests in which that does no harm.
SHORT_SILENCE = replace(QUICK, silence=0.5)


@contextmanager
def hub(monkeypatch: pytest.MonkeyPatch, *faults: Fault, files: Any = None, **settings: Any) -> Iterator[Hub]:
    """The hub with our pages, named by HF_ENDPOINT, with the token of nobody."""
    with hub_server({"own/pages": FILES if files is None else files}, faults, **settings) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
        yield server


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from huggingface_hub import constants

    monkeypatch.delenv("HF_TOKEN", raising=False)
    # The library has read these names at import; a token of whoever runs the tests must not travel.
    for name in ("HF_TOKEN_PATH", "HF_STORED_TOKENS_PATH"):
        monkeypatch.setattr(constants, name, str(tmp_path / "none" / name))


def order(tmp_path: Path, **more: Any) -> Order:
    return Order(**({"dataset": SET, "root": tmp_path / "store" / "pages", "patience": QUICK, "jobs": 2} | more))


def contents(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.name not in (NAME, ".loupe-origin")
    }


WANTED = {path: data for path, data in FILES.items() if path != "README.md"}


def test_a_data_set_arrives_whole_pinned_and_with_a_manifest_of_digests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hub(monkeypatch) as server:
        tally = Tally()
        manifest = get(order(tmp_path), tally)
        assert all(f"/resolve/{COMMIT}/" in item.path for item in server.asked("/resolve/"))
    root = tmp_path / "store" / "pages"
    assert contents(root) == WANTED
    assert (manifest.revision, manifest.requested, manifest.licence) == (COMMIT, "main", "ours")
    assert {entry.path: entry.sha256 for entry in read_manifest(root).files} == {
        path: hashlib.sha256(data).hexdigest() for path, data in WANTED.items()
    }
    assert (tally.files_done, tally.bytes_done) == (3, sum(map(len, WANTED.values()))) == (tally.files, tally.bytes)
    assert [path.name for path in root.parent.iterdir() if not path.name.startswith(".")] == ["pages"]


def test_what_is_there_is_not_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hub(monkeypatch) as server:
        first = get(order(tmp_path))
        before = len(server.requests)
        assert get(order(tmp_path)) == first
        assert len(server.requests) == before


def test_a_body_that_is_cut_is_resumed_in_the_same_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = Fault(method="GET", path="test.parquet", cut=1_200_000)
    with hub(monkeypatch, fault) as server:
        tally = Tally()
        get(order(tmp_path), tally)
        assert [item.range for item in server.asked("test.parquet")] == ["", "bytes=1200000-"]
    assert contents(tmp_path / "store" / "pages") == WANTED
    assert (tally.resumed, tally.retries, tally.bytes_done) == (1, 1, tally.bytes)


def test_a_call_that_failed_is_continued_by_the_next_one_from_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hub(monkeypatch, Fault(method="GET", path="test.parquet", cut=0, times=3)) as server:
        server.faults.insert(0, Fault(method="GET", path="test.parquet", cut=2_000_000))
        with pytest.raises(DatasetError) as caught:
            get(order(tmp_path, patience=Patience(attempts=3, first=0.01, longest=0.01)))
        assert "data/test.parquet: the connection broke (3 attempts)" in caught.value.message
        assert not (tmp_path / "store" / "pages").exists()
        failed = len(server.requests)
        server.faults[-1].times = server.faults[-1].fired
        get(order(tmp_path))
        assert [item.range for item in server.requests[failed:] if "test.parquet" in item.path] == ["bytes=2000000-"]
    assert contents(tmp_path / "store" / "pages") == WANTED


def test_a_continued_download_keeps_its_commit_though_the_branch_has_moved_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hub(monkeypatch, Fault(method="GET", path="test.parquet", status=503, times=4)) as server:
        with pytest.raises(DatasetError, match="HTTP 503"):
            get(order(tmp_path))
        server.commit = hashlib.sha1(b"second").hexdigest()
        assert get(order(tmp_path)).revision == COMMIT
    assert contents(tmp_path / "store" / "pages") == WANTED


@pytest.mark.parametrize("path", ["test.parquet", "labels.json"])
def test_wrong_content_of_the_right_size_is_noticed_and_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    with hub(monkeypatch, Fault(method="GET", path=path, flip=True)) as server:
        get(order(tmp_path))
        assert [item.range for item in server.asked(path)] == ["", ""]
    assert contents(tmp_path / "store" / "pages") == WANTED


def test_content_that_stays_wrong_is_an_error_and_never_becomes_the_data_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = Fault(method="GET", path="test.parquet", flip=True, times=4)
    with hub(monkeypatch, fault), pytest.raises(DatasetError, match=r"not what the hub lists \(4 attempts\)"):
        get(order(tmp_path))
    assert not (tmp_path / "store" / "pages").exists()


def test_a_part_that_rotted_between_two_calls_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = Fault(method="GET", path="test.parquet", cut=1000), Fault(method="GET", path="test.parquet", status=404)
    with hub(monkeypatch, *faults) as server:
        with pytest.raises(DatasetError, match="HTTP 404"):
            get(order(tmp_path))
        (part,) = [path for path in (tmp_path / "store/pages.partial" / PARTS).iterdir() if path.stat().st_size]
        part.write_bytes(b"x" * 1000)
        get(order(tmp_path))
        assert [item.range for item in server.asked("test.parquet")][2:] == ["bytes=1000-", ""]
    assert contents(tmp_path / "store" / "pages") == WANTED


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_busy_answers_are_retried_for_files_and_for_both_listings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    faults = [Fault(method="GET", path=path, status=status, times=2) for path in ("/revision/", "labels.json")]
    # The library itself repeats this one, with longer waits.
    faults += [Fault(method="GET", path="/tree/", status=status)] if status != 500 else []
    with hub(monkeypatch, *faults):
        get(order(tmp_path))
    assert contents(tmp_path / "store" / "pages") == WANTED


def test_retry_after_is_obeyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    with hub(monkeypatch, Fault(method="GET", path="labels.json", status=429, retry_after="1")):
        began = time.monotonic()
        get(order(tmp_path))
        assert time.monotonic() - began >= 1.0


def test_who_asks_for_an_hour_ends_the_call_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = Fault(method="GET", path="labels.json", status=429, retry_after="3600")
    with hub(monkeypatch, fault), pytest.raises(DatasetError, match=r"json: HTTP 429 \(1 attempts\)") as caught:
        get(order(tmp_path))
    assert caught.value.hint == "the same command continues where this one stopped"


NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        (None, None),
        ("", None),
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", None),
        ("inf", None),
        ("1e999", None),
        ("Thu, 01 Jan 99999999999999999999 12:00:20 GMT", None),
        ("nan", None),
        ("soon", None),
        ("Thu, 01 Jan 2026 12:00:20 GMT", 20.0),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0.0),
        ("Thu, 01 Jan 2026 13:00:00 GMT", 3600.0),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(value: str | None, wait: float | None) -> None:
    assert retry_after_seconds(value, now=NOW) == wait


def test_a_silent_server_is_given_up_and_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hub(monkeypatch, Fault(method="GET", path="labels.json", silent=30)):
        get(order(tmp_path, patience=SHORT_SILENCE))
    assert contents(tmp_path / "store" / "pages") == WANTED


def test_interim_answers_without_end_are_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hub(monkeypatch, Fault(method="GET", path="labels.json", interim=True)):
        get(order(tmp_path, patience=replace(SHORT_SILENCE, connect=0.5)))
    assert contents(tmp_path / "store" / "pages") == WANTED
    monkeypatch.setattr("loupe.data.hub.answers._MOST_SECONDS", 0.5)
    endless, said = Fault(method="GET", path="/tree/", interim=True), "an answer takes longer than"
    with hub(monkeypatch, endless), pytest.raises(DatasetError, match=said):
        get(order(tmp_path / "2"))


def test_a_refusal_with_any_byte_in_its_headers_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = Fault(method="GET", path="/tree/", status=401, reason="Zugriff \xe4\x9b31m")
    with hub(monkeypatch, fault), pytest.raises(DatasetError, match="refuses access"):
        get(order(tmp_path))


@pytest.mark.parametrize("wrong", [{"full": True}, {"shifted": True}, {"longer": True}, {"status": 416}])
def test_a_wrong_answer_to_a_resume_never_spoils_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any]
) -> None:
    faults = (
        Fault(method="GET", path="test.parquet", cut=1_000_000),
        Fault(method="GET", path="test.parquet", **wrong),
    )
    with hub(monkeypatch, *faults) as server:
        get(order(tmp_path))
        assert server.asked("test.parquet")[1].range == "bytes=1000000-"
    assert contents(tmp_path / "store" / "pages") == WANTED


def test_long_listings_are_read_to_their_last_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"data/{number:03d}.txt": b"%d" % number for number in range(25)}
    with hub(monkeypatch, files=files, page=10) as server:
        get(order(tmp_path))
        assert len(server.asked("/tree/")) == 3
    assert contents(tmp_path / "store" / "pages") == files


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (5, "Expected `object`"),
        ({"path": "data/x", "type": "file"}, "missing required field `oid`"),
        ({"oid": ""}, "matching regex"),
        ({"oid": "../../../../evil"}, "matching regex"),
        ({"lfs": {"oid": None}}, "got `null`"),
        ({"size": -5}, ">= 0"),
        ({"size": 1e400}, "malformed"),
        ({"path": ["x"]}, "got `array`"),
        ({"path": ".parts/x"}, "reserved"),
        ({"path": ".Loupe-origin"}, "reserved"),
        ({"path": "data/labels.json"}, "twice"),
        ({"path": "data/labels.json/x"}, "lies below a file"),
        ({"path": "../x"}, "leaves the folder"),
    ],
)
def test_a_listing_that_no_hub_sends_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: Any, what: str
) -> None:
    usual = {"path": "data/x", "type": "file", "oid": "0" * 40, "size": 1}
    lines = [usual | line if isinstance(line, dict) and len(line) == 1 else line]
    with hub(monkeypatch, lines=lines) as server, pytest.raises(DatasetError, match=re.escape(what)):
        get(order(tmp_path))
    assert not server.asked("resolve") and "\n" not in what


def test_a_listing_leads_to_no_other_host_and_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with hub_server({}) as elsewhere, hub(monkeypatch, following=f"{elsewhere.url}/api/datasets/own/pages/tree/x"):
        with pytest.raises(DatasetError, match=r"goes on at .*another host"):
            get(order(tmp_path))
        assert not elsewhere.requests
    with hub(monkeypatch) as server:
        server.following = f"{server.url}/api/datasets/own/pages/tree/{COMMIT}?recursive=true&expand=false"
        with pytest.raises(DatasetError, match="no end"):
            get(order(tmp_path))


def test_too_little_room_is_said_before_the_first_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hub(monkeypatch, sizes={"data/test.parquet": 10**16}) as server:
        with pytest.raises(DatasetError, match=r"pages needs 10,000,000 GB more") as caught:
            get(order(tmp_path))
        assert server.asked("/resolve/") == []
    assert "LOUPE_DATA" in caught.value.hint


def test_the_token_goes_to_the_hub_and_to_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with hub_server({"own/pages": FILES}) as storage:
        with hub(monkeypatch, Fault(method="GET", path="test.parquet", to=storage.url), token="hf_secret") as server:
            get(order(tmp_path))
            assert all(item.headers["authorization"] == "Bearer hf_secret" for item in server.requests)
        assert len(storage.asked("test.parquet")) == 1
        assert all("authorization" not in item.headers for item in storage.requests)
    assert contents(tmp_path / "store" / "pages") == WANTED


def test_a_gated_data_set_says_whose_terms_to_accept_and_shows_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with hub(monkeypatch, token="hf_right"), pytest.raises(DatasetError, match="refuses access") as caught:
        get(order(tmp_path))
    assert "accept its terms at https://huggingface.co/datasets/own/pages" in caught.value.hint
    assert "hf_wrong" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dataset": DataSet(id="pages", repo="own/nothing")}, "no such data set"),
        ({"revision": "v9"}, "no revision 'v9'"),
        ({"include": ("*.tsv",)}, "no file that fits *.tsv"),
        ({"dataset": DataSet(id="pages", repo="own/pages/more")}, "own/pages/more"),
    ],
)
def test_what_does_not_exist_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], said: str
) -> None:
    with hub(monkeypatch), pytest.raises(DatasetError) as caught:
        get(order(tmp_path, **change))
    assert said in caught.value.message
    assert not any(path.is_dir() for path in (tmp_path / "store").iterdir())


def test_offline_mode_is_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants
    from huggingface_hub.utils import close_session

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    close_session()
    try:
        with hub(monkeypatch) as server:
            with pytest.raises(DatasetError, match="HF_HUB_OFFLINE") as caught:
                get(order(tmp_path))
            assert caught.value.exit_code == 4
            assert server.requests == []
    finally:
        close_session()


def test_a_hub_that_is_not_there_is_named_with_what_to_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(DatasetError, match="cannot be asked") as caught:
        get(order(tmp_path))
    assert "HF_ENDPOINT (now: http://127.0.0.1:9)" in caught.value.hint and caught.value.exit_code == 4


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "store" / "pages"
    root.mkdir(parents=True)
    (root / "mine.txt").write_text("mine")
    with hub(monkeypatch) as server:
        with pytest.raises(DatasetError, match="was not made by Loupe"):
            get(order(tmp_path))
        assert server.requests == []
    assert contents(root) == {"mine.txt": b"mine"}


def test_another_revision_does_not_replace_the_one_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hub(monkeypatch):
        get(order(tmp_path))
        with pytest.raises(DatasetError, match="holds own/pages at main"):
            get(order(tmp_path, revision="v1.5"))
        assert get(order(tmp_path, revision=COMMIT)).revision == COMMIT


def test_a_lost_file_is_brought_back_from_the_pinned_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "store" / "pages"
    with hub(monkeypatch) as server:
        before = get(order(tmp_path))
        (root / "data/labels.json").unlink()
        server.commit = hashlib.sha1(b"second").hexdigest()
        seen = len(server.requests)
        assert get(order(tmp_path)) == before
        assert len([item for item in server.requests[seen:] if "/resolve/" in item.path]) == 1
    assert contents(root) == WANTED
    assert not root.with_name("pages.partial").exists()


def test_include_adds_files_to_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hub(monkeypatch) as server:
        get(order(tmp_path))
        seen = len(server.requests)
        manifest = get(order(tmp_path, include=("README.md",)))
        assert len([item for item in server.requests[seen:] if "/resolve/" in item.path]) == 1
    root = tmp_path / "store" / "pages"
    assert contents(root) == FILES
    assert list(check(root, manifest)) == [] and read_manifest(root) == manifest


def test_a_data_set_that_began_with_include_becomes_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "store" / "pages"
    with hub(monkeypatch) as server:
        get(order(tmp_path, include=("README.md",)))
        assert contents(root) == {"README.md": FILES["README.md"]}
        assert [file.path for file in survey(order(tmp_path)).files] == sorted(WANTED)
        manifest = get(order(tmp_path))
        assert contents(root) == FILES and list(check(root, manifest)) == []
        seen = len(server.requests)
        assert get(order(tmp_path)) == manifest == read_manifest(root)
        assert len(server.requests) == seen


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


ZIPPED = DataSet(id="pages", repo="own/pages", patterns=("*.zip",), unpack=("*.zip",))


def test_zips_are_unpacked_where_the_data_set_wants_it_and_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = {"Test/spe/0.png": b"image", "Test/spe.txt": b"x ^ 2\n"}
    files = {"all/Test.zip": zipped(inside)}
    root = tmp_path / "store" / "pages"
    with hub(monkeypatch, files=files) as server:
        manifest = get(order(tmp_path, dataset=ZIPPED))
        assert contents(root) == inside
        assert [entry.path for entry in manifest.archives] == ["all/Test.zip"]
        assert {entry.archive for entry in manifest.files} == {"all/Test.zip"}
        get(order(tmp_path, dataset=ZIPPED))
        assert len(server.asked("/resolve/")) == 1
        (root / "Test/spe.txt").unlink()
        assert get(order(tmp_path, dataset=ZIPPED)) == manifest
    assert contents(root) == inside


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil", "C:\\evil", NAME])
def test_a_zip_that_would_leave_its_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    files = {"Test.zip": zipped({"good": b"1", name: b"2"})}
    with hub(monkeypatch, files=files), pytest.raises(DatasetError, match="unsafe path"):
        get(order(tmp_path, dataset=ZIPPED))
    assert not list(tmp_path.rglob("*evil*"))


def arrived(path: str, data: bytes) -> FileEntry:
    return FileEntry(path=path, size=len(data), sha256=hashlib.sha256(data).hexdigest())


@pytest.mark.parametrize("claim", ["files", "archives", "nothing"])
def test_what_a_stranger_laid_where_files_arrive_is_moved_aside(
    claim: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partial = order(tmp_path).arriving
    forged = {path: b"E" * len(data) for path, data in WANTED.items()} | {"evil.py": b""}
    for path, data in forged.items():
        partial.write(path, data)
    entries = [arrived(path, data) for path, data in forged.items()]
    stated = {claim: entries} if claim != "nothing" else {}
    write_manifest(partial, Manifest(id="pages", repo="own/pages", revision=COMMIT, **stated))
    with hub(monkeypatch):
        assert len(survey(order(tmp_path)).files) == len(WANTED)
        get(order(tmp_path))
    assert contents(tmp_path / "store/pages") == WANTED and origin_of(tmp_path / "store/pages") == HUB
    (aside,) = (tmp_path / "store").glob("pages.partial.old-*")
    assert (aside / "evil.py").exists(), "nothing is deleted"


def test_a_link_where_files_arrive_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "store/pages.partial").symlink_to(tmp_path / "mine")
    with hub(monkeypatch), pytest.raises(UnsafeFileError, match="is a link to"):
        get(order(tmp_path))
    assert not list((tmp_path / "mine").iterdir())


def test_two_processes_do_not_fill_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    (tmp_path / "store").mkdir()
    with hub(monkeypatch) as server, (tmp_path / "store" / ".pages.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(DatasetError, match="another process"):
            get(order(tmp_path))
        assert server.requests == []


def test_a_survey_says_what_would_come_and_fetches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hub(monkeypatch) as server:
        listing = survey(order(tmp_path))
        assert (listing.size, listing.revision) == (sum(map(len, WANTED.values())), COMMIT)
        assert server.asked("/resolve/") == []
    assert not (tmp_path / "store").exists()


def test_verify_finds_what_is_missing_changed_and_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hub(monkeypatch):
        manifest = get(order(tmp_path))
    root = tmp_path / "store" / "pages"
    (root / "data/labels.json").unlink()
    (root / "data/test.parquet").write_bytes(LARGE[:-1] + b"!")
    (root / "images/\u00e4 b.png").write_bytes(b"short")
    (root / "new.txt").write_text("new")
    assert {item.path: item.problem for item in check(root, manifest)} == {
        "data/labels.json": "missing",
        "data/test.parquet": "changed",
        "images/\u00e4 b.png": "size",
        "new.txt": "extra",
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"format": 2}',
        '{"files": [{"path": "../x", "size": 1, "sha256": ""}]}',
        '{"files": [{"path": "x", "size": 1, "sha256": ""}, {"path": "x", "size": 1, "sha256": ""}]}',
    ],
)
def test_a_damaged_manifest_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    with pytest.raises(DatasetError, match=r"loupe-data\.json|unsafe path"):
        read_manifest(tmp_path)


def test_the_same_manifest_is_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hub(monkeypatch):
        manifest = get(order(tmp_path))
    before = (tmp_path / "store/pages" / NAME).read_bytes()
    write_manifest(Folder(tmp_path), read_manifest(tmp_path / "store/pages"))
    assert (tmp_path / NAME).read_bytes() == before
    assert read_manifest(tmp_path) == manifest


def test_every_benchmark_with_published_data_is_known() -> None:
    """The list of the design page; `sample_pages` comes with the package."""
    assert set(data_sets()) == {
        "ocrbench", "omnidocbench", "unimer_test", "pubtabnet", "teds_test", "nanonets_kie", "handwritten_forms",
        "iam_lines", "dp_bench", "fox", "olmocr_bench", "mdpbench", "ocrbench_v2",
        "docvqa", "infovqa", "chartqa", "textvqa", "cc_ocr", "omni_parse_bench",
        "omnidocbench@1.6",
    }  # fmt: skip


def test_a_data_set_is_found_by_id_version_source_or_repository() -> None:
    assert find_data_set("omnidocbench@1.5").repo == "opendatalab/OmniDocBench"
    assert find_data_set("unimer_test", source="parquet").repo == "deepcopy/UniMER"
    assert find_data_set("somebody/pages").id == "somebody--pages"
    assert find_data_set("teds_test").place == "pubtabnet"
    with pytest.raises(UsageError, match="did you mean 'ocrbench'"):
        find_data_set("ocrbanch")
    with pytest.raises(UsageError, match="no source 'paquet'"):
        find_data_set("unimer_test", source="paquet")
