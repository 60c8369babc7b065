"""Packs: what goes in comes out, byte for byte, and nothing that was tampered with comes out at all."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.data.hub.archives import pack, unpack, unzip
from loupe.data.hub.manifest import (
    NAME,
    FileEntry,
    Manifest,
    check,
    manifest_bytes,
    read_manifest,
    safe_path,
    sha256_of,
    write_manifest,
)
from loupe.errors import DatasetError
from loupe.files.folder import Folder

FILES = {"a.json": b"{}", "images/1.png": b"x" * 70_000, "images/\u00e4 2.png": b"", "deep/er/b.txt": b"text"}


def entry(path: str, data: bytes) -> FileEntry:
    return FileEntry(path=path, size=len(data), sha256=sha256_of(io.BytesIO(data)))


def make_set(root: Path, *, manifest: bool = True) -> Path:
    for path, data in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    if manifest:
        entries = [entry(path, data) for path, data in sorted(FILES.items())]
        write_manifest(Folder(root), Manifest(id="pages", repo="own/pages", revision="abc", files=entries))
    return root


def contents(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.name not in (NAME, ".loupe-origin")
    }


def to(root: Path) -> Callable[[Manifest], Path]:
    return lambda _: root


@pytest.mark.parametrize("manifest", [True, False])
def test_a_data_set_comes_out_of_a_pack_as_it_went_in(tmp_path: Path, manifest: bool) -> None:
    root = make_set(tmp_path / "pages", manifest=manifest)
    packed, digest = pack(root, tmp_path / "out" / "pages.tar")
    assert digest == hashlib.sha256((tmp_path / "out" / "pages.tar").read_bytes()).hexdigest()
    found, there = unpack(tmp_path / "out" / "pages.tar", to(tmp_path / "new" / "pages"))
    assert found == packed == read_manifest(there)
    assert contents(there) == FILES
    assert list(check(there, found)) == []
    assert packed.id == "pages"


def test_the_same_data_is_the_same_pack_whenever_and_whoever_packs(tmp_path: Path) -> None:
    root = make_set(tmp_path / "pages")
    _, first = pack(root, tmp_path / "1.tar")
    os.utime(root / "a.json", (1, 1))
    (root / "a.json").chmod(0o600)
    (root / "not in the manifest").write_text("left out")
    _, second = pack(root, tmp_path / "2.tar")
    assert first == second


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.write_bytes(b"y" * 70_000), "has changed"),
        (lambda path: path.write_bytes(b"y"), "its size differs"),
        (lambda path: path.unlink(), "missing"),
    ],
)
def test_a_damaged_data_set_is_not_packed(tmp_path: Path, spoil: Callable[[Path], None], said: str) -> None:
    root = make_set(tmp_path / "pages")
    spoil(root / "images/1.png")
    with pytest.raises(DatasetError, match=said):
        pack(root, tmp_path / "out" / "pages.tar")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    root = make_set(tmp_path / "pages")
    pack(root, tmp_path / "pages.tar")
    with pytest.raises(DatasetError, match="is there already"):
        unpack(tmp_path / "pages.tar", to(root))


def tar_of(path: Path, manifest: Manifest | bytes, members: list[tuple[tarfile.TarInfo, bytes]]) -> Path:
    with tarfile.open(path, "w") as tar:
        header = manifest if isinstance(manifest, bytes) else manifest_bytes(manifest)
        first = tarfile.TarInfo(NAME)
        first.size = len(header)
        tar.addfile(first, io.BytesIO(header))
        for member, data in members:
            tar.addfile(member, io.BytesIO(data))
    return path


def member(name: str, data: bytes = b"", **more: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


ONE = Manifest(id="pages", files=[entry("a", b"1"), entry("b", b"22")])
GOOD = [member("a", b"1"), member("b", b"22")]


@pytest.mark.parametrize(
    "members",
    [
        [member("a", b"1")],
        [member("a", b"1"), member("b", b"23")],
        [member("a", b"1"), member("b", b"222")],
        [*GOOD, member("c", b"3")],
        [*GOOD, member("a", b"1")],
        [*GOOD, member("../evil", b"3")],
        [*GOOD, member("/tmp/evil", b"3")],
        [member("a", b"1"), member("b", type=tarfile.SYMTYPE, linkname="/etc/passwd")],
        [member("a", b"1"), member("b", type=tarfile.LNKTYPE, linkname="a")],
        [member("a", b"1"), member("b", type=tarfile.FIFOTYPE)],
        [member("a", b"1"), member("b", type=tarfile.DIRTYPE)],
    ],
)
def test_a_pack_that_differs_from_its_manifest_leaves_nothing(
    tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    tar = tar_of(tmp_path / "pages.tar", ONE, members)
    with pytest.raises(DatasetError):
        unpack(tar, to(tmp_path / "new" / "pages"))
    assert list((tmp_path / "new").iterdir()) == []
    assert not list(tmp_path.rglob("*evil*")) and not any(path.is_symlink() for path in tmp_path.rglob("*"))


def test_the_same_pack_without_the_fault_is_accepted(tmp_path: Path) -> None:
    _, root = unpack(tar_of(tmp_path / "pages.tar", ONE, GOOD), to(tmp_path / "new"))
    assert contents(root) == {"a": b"1", "b": b"22"}


@pytest.mark.parametrize(
    "path", ["../evil", "/evil", "a/../b", "a//b", "./a", "", "C:/x", "a\\b", NAME, "a\nb", "a\0b"]
)
def test_a_manifest_with_an_unsafe_path_is_refused(tmp_path: Path, path: str) -> None:
    tar = tar_of(tmp_path / "pages.tar", Manifest(id="pages", files=[entry(path, b"1")]), [])
    with pytest.raises(DatasetError):
        unpack(tar, to(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("files", "archives", "said"),
    [
        ([entry("a", b"1"), entry("a/b", b"1")], [], "'a/b' lies below a file"),
        ([entry("a/b", b"1"), entry("a", b"1")], [], "'a/b' lies below a file"),
        ([FileEntry(path="a", size=-5, sha256="")], [], "'a' has -5 bytes"),
        ([entry("a", b"1")], [entry("../evil.zip", b"1")], "unsafe path '../evil.zip'"),
    ],
)
def test_a_manifest_that_cannot_be_true_is_refused(
    tmp_path: Path, files: list[FileEntry], archives: list[FileEntry], said: str
) -> None:
    members = [member(each.path, b"1") for each in files]
    tar = tar_of(tmp_path / "pages.tar", Manifest(id="pages", files=files, archives=archives), members)
    with pytest.raises(DatasetError) as caught:
        unpack(tar, to(tmp_path / "new" / "pages"))
    assert said in caught.value.message and not (tmp_path / "new").exists()


def test_links_to_files_are_packed_as_files_and_other_links_refused(tmp_path: Path) -> None:
    """As the hub's own cache has them."""
    snapshot = tmp_path / "hub/snapshots/abc"
    snapshot.mkdir(parents=True)
    (tmp_path / "hub/blobs").mkdir()
    (tmp_path / "hub/blobs/0a1b").write_bytes(b"rows")
    (snapshot / "test.parquet").symlink_to("../../blobs/0a1b")
    (snapshot / "same.parquet").symlink_to("test.parquet")
    pack(snapshot, tmp_path / "pages.tar", ident="pages")
    _, root = unpack(tmp_path / "pages.tar", to(tmp_path / "new"))
    assert contents(root) == {"test.parquet": b"rows", "same.parquet": b"rows"}
    assert not (root / "test.parquet").is_symlink()
    for target, said in (("../../blobs", "a link to a folder"), ("../gone", "a link to nothing")):
        (snapshot / "images").unlink(missing_ok=True)
        (snapshot / "images").symlink_to(target)
        with pytest.raises(DatasetError, match=said):
            pack(snapshot, tmp_path / "pages.tar", ident="pages")


@pytest.mark.parametrize("cut", [0, 100, 2_000, 40_000])
def test_a_pack_that_was_cut_is_an_error(tmp_path: Path, cut: int) -> None:
    pack(make_set(tmp_path / "pages"), tmp_path / "pages.tar")
    (tmp_path / "cut.tar").write_bytes((tmp_path / "pages.tar").read_bytes()[:cut])
    with pytest.raises(DatasetError, match=r"cut\.tar"):
        unpack(tmp_path / "cut.tar", to(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


@given(st.data())
def test_any_single_changed_byte_of_content_is_noticed(data: st.DataObject) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tar = tar_of(folder / "pages.tar", ONE, GOOD)
        whole = bytearray(tar.read_bytes())
        place = whole.index(b"22", len(manifest_bytes(ONE)) + 512)
        whole[place + data.draw(st.integers(0, 1))] ^= data.draw(st.integers(1, 255))
        tar.write_bytes(bytes(whole))
        with pytest.raises(DatasetError, match="damaged"):
            unpack(tar, to(folder / "new"))


@given(st.text(max_size=12))
def test_a_safe_path_never_leaves_its_folder(text: str) -> None:
    try:
        path = safe_path(text)
    except DatasetError:
        return
    root = Path("/store/pages")
    assert Path(os.path.normpath(root / path)).is_relative_to(root) and Path(os.path.normpath(root / path)) != root


def test_links_in_a_zip_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        info = zipfile.ZipInfo("link")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    (tmp_path / "out").mkdir()
    with pytest.raises(DatasetError, match="is a link"):
        unzip(tmp_path / "a.zip", Folder(tmp_path / "out"))
    assert list((tmp_path / "out").iterdir()) == []


def test_a_zip_does_not_write_over_files_of_the_data_set(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("labels.txt", "other")
    with pytest.raises(DatasetError, match="is there already"):
        unzip(tmp_path / "a.zip", Folder(tmp_path), taken={"labels.txt"})


def test_a_zip_with_a_damaged_member_is_an_error(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.txt", "hello hello")
    data = (tmp_path / "a.zip").read_bytes().replace(b"hello hello", b"hello hellO")
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(DatasetError, match="broken zip"):
        unzip(tmp_path / "a.zip", Folder(tmp_path))


def test_a_link_that_leads_out_of_a_folder_is_not_packed(tmp_path: Path) -> None:
    """A stranger's folder could make a pack that is sent on hold a private file."""
    (tmp_path / "secret").write_text("private")
    root = make_set(tmp_path / "pages", manifest=False)
    (root / "c.txt").symlink_to(tmp_path / "secret")
    with pytest.raises(DatasetError, match=r"c\.txt is a link to .*secret, outside of the folder"):
        pack(root, tmp_path / "a.tar")
    assert not (tmp_path / "a.tar").exists()
