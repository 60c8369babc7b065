"""The one module that writes files: whole or absent, and nothing below a folder is reached through a link."""

from __future__ import annotations

import ast
import os
import shlex
import socket
import stat
from collections.abc import Callable, Iterable
from io import BufferedReader
from pathlib import Path

import pytest

import loupe
from loupe.errors import DatasetError, UnsafeFileError
from loupe.files.folder import Folder, write_all_or_none, write_file
from loupe.files.foreign import data_lines, is_inside, open_data, plain_file, read_data, real_path
from loupe.files.json_lines import RecordLog, read_lines

#: Calls that open, make, move or delete files by a path, and so follow links.
WRITERS = frozenset(
    {
        *("write_text", "write_bytes", "mkdir", "makedirs", "touch", "rename", "symlink_to", "hardlink_to", "symlink"),
        *("unlink", "rmdir", "rmtree", "copyfile", "copy2", "copytree", "mkstemp", "open_memmap"),
    }
)
#: Where such calls may stand, and why: none of these files lies in a folder that somebody else may have filled.
MAY_WRITE = {
    "files/folder.py": "the module itself",
    "files/written_aside.py": "the module itself",
    "files/plain.py": "the module itself",
    "files/left_behind.py": "the module itself",
    "files/whole_folder.py": "the module itself",
    "engines/command.py": "a new temporary folder",
    "metrics/blob_cache.py": "the user's cache",
    "metrics/cdm/drawing/tex_processes.py": "a new temporary folder",
    "engines/environments/making.py": "the user's cache, and a new temporary folder",
    "engines/pages/page_reader.py": "a new temporary folder",
    "data/user_folders.py": "the user's cache",
    "features/serve/chat_requests.py": "a new temporary folder",
    "metrics/cdm/drawing/limited_processes.py": "a new temporary folder",
    "benchmarks/omnidocbench/answer_tables.py": "a new temporary folder",
    "benchmarks/shared/equations/rendering/renderer.py": "a new temporary folder",
    "benchmarks/shared/equations/rendering/chromium.py": "the user's cache",
    "files/scratch.py": "a new temporary folder",
    "features/cluster/engine_host.py": "a new temporary folder",
    "features/cluster/pages.py": "a new temporary folder",
    "features/cluster/scoring_host.py": "a new temporary folder",
    "benchmarks/dp_bench/evaluators.py": "a function of this name, on texts",
    "data/hub/download.py": "takes away what `Folder` made; shutil.rmtree follows no link",
    "data/hub/archives.py": "takes away what `Folder` made; shutil.rmtree follows no link",
    "runs/folder.py": "takes away an empty folder",
    "pipeline/benchmark_check.py": "a pipe between two processes",
    "workers/process.py": "a file in memory",
}

#: Packages that read data of other people, and where they may open files by themselves, and why.
READ_DATA = ("benchmarks", "data", "engines", "features", "pipeline", "workers")
MAY_READ = {
    "features/size/models_and_cards.py": "a file of the package",
    "benchmarks/shared/equations/rendering/renderer.py": "a file of the package",
    "benchmarks/omnidocbench/answer_tables.py": "a new temporary folder",
    "benchmarks/shared/equations/rendering/chromium.py": "fonts of the system",
    "benchmarks/published/__init__.py": "a file of the package",
    "data/digests.py": "looks at what stands there first",
    "data/extras.py": "the metadata of an installed package",
    "data/hub/katex.py": "a new temporary folder, and the user's cache",
    "data/rasters.py": "looks at what stands there first",
    "data/trust.py": "the user's settings",
    "features/embed/vectors.py": "looks at what stands there first",
    "workers/limits.py": "files of the system",
    "engines/shared/local_settings.py": "looks at what stands there first",
    "features/example/command.py": "a file of the package",
    "features/example/made_up_models.py": "a file of the package",
    "features/select/serving.py": "a file of the package",
}


@pytest.mark.parametrize("links", [True, False])
def test_new_files_are_made_all_or_none_and_what_was_there_stays(
    tmp_path: Path, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not links:

        def refused(*_: object, **__: object) -> None:
            raise PermissionError(1, "no links here")

        monkeypatch.setattr(os, "link", refused)
    folder = Folder(tmp_path)
    (tmp_path / "kept").write_text("precious")
    (tmp_path / "folder").mkdir()
    (tmp_path / "nowhere").symlink_to("gone")
    there = sorted(tmp_path.iterdir())
    for names in (("kept", "folder"), ("new", "kept"), ("new", "nowhere"), ("new", "folder")):
        with pytest.raises(DatasetError, match="file exists; nothing was written") as refusal:
            write_all_or_none(folder, dict.fromkeys(names, b"new"))
        assert refusal.value.hint == "move away what is there"
        assert sorted(tmp_path.iterdir()) == there and (tmp_path / "kept").read_text() == "precious"
    with pytest.raises(NotADirectoryError):
        write_all_or_none(folder, {"a": b"1", "kept/b": b"2"})
    assert sorted(tmp_path.iterdir()) == there
    write_all_or_none(folder, {"a": b"1", "b": b"2"})
    assert sorted(tmp_path.iterdir()) == sorted([*there, tmp_path / "a", tmp_path / "b"])
    assert ((tmp_path / "a").read_bytes(), (tmp_path / "b").read_bytes()) == (b"1", b"2")


def test_a_write_that_fails_leaves_no_temporary_file(tmp_path: Path) -> None:
    (tmp_path / "run.json").mkdir()
    with pytest.raises(IsADirectoryError):
        write_file(tmp_path / "run.json", b"1")
    assert [file.name for file in tmp_path.iterdir()] == ["run.json"]


def _append(folder: Folder, name: str) -> None:
    with RecordLog(folder, name) as log:
        log.append([b"{}"])


def _lock(folder: Folder, name: str) -> None:
    os.close(folder.open_lock(name))


#: What is done with a name in a folder.
DEEDS: dict[str, Callable[[Folder, str], object]] = {
    "write": lambda folder, name: folder.write(name, b"new"),
    "write without sync": lambda folder, name: folder.write(name, b"new", sync=False),
    "append": _append,
    "lock": _lock,
    "read": lambda folder, name: folder.read(name),
    "read lines": lambda folder, name: list(read_lines(folder, name)),
    "check": lambda folder, name: folder.check(name),
    "write many": lambda folder, name: _write_many(folder, [name]),
}


def _write_many(folder: Folder, names: list[str]) -> None:
    with folder.many() as write:
        for name in names:
            write(name, name.encode())


def test_many_files_land_where_their_names_say_also_after_one_that_cannot_be_written(tmp_path: Path) -> None:
    names = ["a.txt", "deep/b.txt", "deep/c.txt", "deep/er/d.txt", "e.txt"]
    with Folder(tmp_path / "new").many() as write:
        for name in names:
            write(name, name.encode())
            with pytest.raises(NotADirectoryError):
                write("a.txt/below", b"")
    found = {path.relative_to(tmp_path / "new").as_posix(): path for path in (tmp_path / "new").rglob("*.txt")}
    assert sorted(found) == sorted(names)
    assert all(path.read_bytes() == name.encode() for name, path in found.items())
    assert not list(tmp_path.rglob(".loupe-*"))


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize("name", ["file", "made/file", "made/deep/file"])
def test_nothing_is_reached_through_a_link_below_the_folder(tmp_path: Path, deed: str, name: str) -> None:
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    victims = [outside / "file", outside / "deep/file", outside / "victim"]
    for victim in victims:
        victim.write_text("precious")
    plants = [(name, outside / "victim"), (name, outside / "missing")]
    plants += [(part.as_posix(), outside) for part in [*Path(name).parents][:-1]]
    for number, (place, target) in enumerate(plants):
        folder = tmp_path / f"given {number}"
        link = folder / place
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
        with pytest.raises(UnsafeFileError) as refused:
            DEEDS[deed](Folder(folder), name)
        assert refused.value.message == f"{link} is a link to {target}; Loupe follows no links inside a folder"
        assert f"rm {shlex.quote(str(link))}" in refused.value.hint
    assert [victim.read_text() for victim in victims] == ["precious"] * 3
    assert sorted(path.name for path in outside.rglob("*")) == ["deep", "file", "file", "victim"]


@pytest.mark.parametrize("deed", DEEDS)
def test_pipes_sockets_and_devices_are_refused_at_once(tmp_path: Path, deed: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(tmp_path)  # The path of a socket is short.
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
        for name in ("pipe", "socket"):
            with pytest.raises((UnsafeFileError, OSError)) as refused:
                DEEDS[deed](Folder(tmp_path), name)
            if isinstance(refused.value, UnsafeFileError):
                assert f"{tmp_path / name}: is a {name}, not a file" in refused.value.message
            assert stat.S_IFMT((tmp_path / name).stat().st_mode) in (stat.S_IFIFO, stat.S_IFSOCK)
    if Path("/dev/null").exists() and deed == "write":
        with pytest.raises(UnsafeFileError, match="is a device, not a file"):
            write_file(Path("/dev/null"), b"")


def test_a_file_with_a_second_name_is_replaced_and_never_written_into(tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", Folder(tmp_path / "given")
    victim.write_text("precious")
    folder.create()
    (folder.path / "file").hardlink_to(victim)
    for deed in ("append", "lock"):
        with pytest.raises(UnsafeFileError, match="has another name, too"):
            DEEDS[deed](folder, "file")
    folder.write("file", b"new")
    assert victim.read_text() == "precious" and (folder.path / "file").read_bytes() == b"new"


@pytest.mark.parametrize("name", ["../file", "/etc/file", "a/../../file", "", ".", "a\0b"])
def test_a_name_that_leads_out_or_is_none_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnsafeFileError):
        Folder(tmp_path / "given").write(name, b"new")
    assert not list(tmp_path.rglob("file"))


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "named").symlink_to("real")
    folder = Folder(tmp_path / "named")
    folder.write("a/file", b"new")
    _append(folder, "a/log")
    assert (tmp_path / "real/a/file").read_bytes() == b"new" and folder.read("a/log") == b"{}\n"
    assert folder.names() == ["a"]


def test_temporary_names_cannot_be_guessed_and_what_was_planted_there_is_not_opened(tmp_path: Path) -> None:
    folder, seen = Folder(tmp_path), set()
    for _ in range(20):
        with folder.draft("file") as draft:
            draft.file.write(b"new")
            [name] = set(folder.names()) - {"file"}
            seen.add(name)
            draft.replace()
    assert len(seen) == 20 and folder.names() == ["file"]


def test_a_record_without_bounds_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    with (tmp_path / "run.json").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UnsafeFileError, match=r"run\.json: larger than 1 MB"):
        Folder(tmp_path).read("run.json", limit=1 << 20)


def there(names: Iterable[str]) -> set[str]:
    """Those whose folder exists: a feature may be gone."""
    return {name for name in names if (Path(loupe.__file__).parent / name).parent.is_dir()}


def test_files_are_written_by_one_module_alone() -> None:
    found = _calls(_writes)
    stray = {name: calls for name, calls in found.items() if name not in MAY_WRITE}
    assert not stray, f"write through loupe.files.Folder: {stray}"
    assert found.keys() == there(MAY_WRITE), "an exception that nothing needs any more"


def test_a_link_to_itself_leads_nowhere_and_one_out_of_the_folder_is_not_inside(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    links = {"loop": ("loop", True), "out": ("../x", False), "in": ("./y", True), "up": ("..", False)}
    for name, (target, inside) in links.items():
        link = tmp_path / "in" / name
        link.symlink_to(target)
        assert is_inside(link, tmp_path / "in") is inside and not real_path(link).is_file()
    assert not is_inside(tmp_path / "in" / "a\0b", tmp_path / "in")
    assert not is_inside(tmp_path / "in" / "out" / ("x" * 5000), tmp_path / "in")


@pytest.mark.parametrize("reads", [open_data, plain_file, read_data, lambda path: list(data_lines(path))])
def test_data_files_may_be_links_but_nothing_else_than_files(tmp_path: Path, reads: Callable[[Path], object]) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
    for name, what in (("pipe", "a pipe"), ("socket", "a socket"), ("/dev/zero", "a device"), (".", "a folder")):
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / "link").symlink_to(name)
        with pytest.raises(UnsafeFileError, match=f"link: is {what}, not a file"):
            reads(tmp_path / "link")
    (tmp_path / "page").write_bytes(b"one\n\ntwo")
    (tmp_path / "linked").symlink_to("page")
    found = reads(tmp_path / "linked")
    if isinstance(found, BufferedReader):
        found.close()
    assert not isinstance(found, list | bytes) or found in ([(1, b"one\n"), (3, b"two")], b"one\n\ntwo")
    with pytest.raises(FileNotFoundError):
        reads(tmp_path / "nothing")


def test_a_file_that_is_read_whole_has_a_limit(tmp_path: Path) -> None:
    (tmp_path / "a.json").touch()
    os.truncate(tmp_path / "a.json", 1 << 40)
    with pytest.raises(UnsafeFileError, match=r"a\.json: larger than 512 MB"):
        read_data(tmp_path / "a.json")
    with pytest.raises(UnsafeFileError, match="line 1: longer than 256 MB"):
        list(data_lines(tmp_path / "a.json"))


def test_data_files_are_opened_by_one_module_alone() -> None:
    found = {name: calls for name, calls in _calls(_reads).items() if name.partition("/")[0] in READ_DATA}
    stray = {name: calls for name, calls in found.items() if name not in MAY_READ}
    assert not stray, f"read through loupe.files.foreign: {stray}"
    assert found.keys() == there(MAY_READ), "an exception that nothing needs any more"


def test_no_path_is_resolved_in_a_way_that_links_to_themselves_end() -> None:
    def finds(call: ast.Call) -> str:
        # Two arguments are a host and a port.
        is_resolve = isinstance(call.func, ast.Attribute) and call.func.attr == "resolve" and len(call.args) < 2
        return "resolve" if is_resolve and "__file__" not in ast.unparse(call) else ""

    assert not _calls(finds), "Path.resolve raises RuntimeError before Python 3.13: use loupe.files.foreign.real_path"


def _calls(finds: Callable[[ast.Call], str]) -> dict[str, set[str]]:
    """Module → names of the calls in it that `finds` gives a name.

    Readers of packages are left out: they run where there is no Loupe, and get files that it has looked at.
    """
    root = Path(loupe.__file__).parent
    found: dict[str, set[str]] = {}
    for file in sorted(set(root.rglob("*.py")) - set((root / "engines" / "environments" / "readers").glob("*.py"))):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and (name := finds(node)):
                found.setdefault(file.relative_to(root).as_posix(), set()).add(name)
    return found


def _reads(call: ast.Call) -> str:
    """The name of a call that opens a path for reading without a look at what stands there, "" for any other."""
    source = call.args[0] if call.args else None
    if isinstance(source, ast.Call) and getattr(source.func, "id", "") == "plain_file":
        return ""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    whole = name in ("read_bytes", "read_text", "ZipFile", "ParquetFile", "load")
    by_mode = name == "open" and isinstance(source, ast.Constant) and source.value in ("r", "rb")
    builtin = name == "open" and isinstance(call.func, ast.Name)
    owner = getattr(getattr(call.func, "value", None), "id", "")
    of_numpy = name != "load" or owner in ("np", "numpy")
    of_tar = name == "open" and owner == "tarfile" and not any(word.arg == "fileobj" for word in call.keywords)
    return name if (whole and of_numpy) or by_mode or builtin or of_tar else ""


def _writes(call: ast.Call) -> str:
    """The name of a call that writes by a path, "" for any other."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in WRITERS:
        return name
    modes = [
        each.value for each in (*call.args, *(word.value for word in call.keywords)) if isinstance(each, ast.Constant)
    ]
    opens = name in ("open", "fdopen") and any(isinstance(mode, str) and set(mode) <= set("rwaxbt+") for mode in modes)
    return name if opens and any(isinstance(mode, str) and set("wax+") & set(mode) for mode in modes) else ""
