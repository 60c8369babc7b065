"""`loupe pack` and `loupe unpack`: a run travels as one file; an archive of a stranger writes nothing it should not."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from loupe.errors import RunError, UsageError
from loupe.files.folder import Folder
from loupe.pipeline import packs
from loupe.pipeline.packs import unpack
from loupe.runs.folder import RunFolder, claim
from tests.support.command_line import complaint, loupe, make_folder

READER = """
import os
from loupe.errors import EngineError
from loupe.types import Output

def read(request):
    if request.id == "p3":
        raise EngineError(f"{os.getcwd()}/pages/p3.png: Authorization: Bearer sk-123456789abc is refused")
    return Output(text=f"{request.text} /etc/passwd", endpoint="http://gpu.example.org:8000/v1")
"""
RUN = "runs/reader/mydocs"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("packs")
    make_folder(root)
    (root / "paths.py").write_text(READER)
    done = loupe("run", "mydocs", "-e", f"python:{root}/paths.py:read", "--name", "reader", cwd=root)
    assert done.returncode == 0, done.stderr
    done = loupe("pack", RUN, "--with-truth", cwd=root)
    assert (done.returncode, done.stdout) == (0, "reader_mydocs.tar.gz\n"), done.stderr
    return root


@pytest.fixture
def pack(finished: Path) -> Path:
    return finished / "reader_mydocs.tar.gz"


def members(pack: Path) -> dict[str, bytes]:
    with tarfile.open(pack) as tar:
        return {member.name: stream.read() for member in tar if (stream := tar.extractfile(member))}


def test_a_pack_scores_to_the_same_numbers_in_another_folder(pack: Path, finished: Path, tmp_path: Path) -> None:
    done = loupe("score", pack, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found, before = json.loads(done.stdout), json.loads((finished / RUN / "result.json").read_text())
    assert found["run"] == RUN
    assert (found["measures"], found["signature"]) == (before["measures"], before["signature"])


def test_the_same_run_gives_the_same_bytes_also_after_it_travelled(pack: Path, finished: Path, tmp_path: Path) -> None:
    loupe("pack", RUN, "--with-truth", "-o", "again.tar.gz", cwd=finished)
    assert (finished / "again.tar.gz").read_bytes() == pack.read_bytes()
    assert loupe("unpack", pack, "there", cwd=tmp_path).stdout == "there/reader/mydocs\n"
    loupe("pack", "there/reader/mydocs", "--with-truth", "-o", "third.tar.gz", cwd=tmp_path)
    assert (tmp_path / "third.tar.gz").read_bytes() == pack.read_bytes()


def test_no_path_key_or_server_is_in_it_and_answers_stay_to_the_letter(pack: Path, finished: Path) -> None:
    found = members(pack)
    whole = b"".join(found.values()).decode()
    for private in (str(finished), str(Path.home()), "sk-123456789abc", "gpu.example.org"):
        assert private not in whole
    rows = [json.loads(line) for line in found["predictions.jsonl"].splitlines()]
    assert rows[0]["text"] == "alpha /etc/passwd"
    (failed,) = (row["error"] for row in rows if row["sample"] == "p3")
    assert "p3.png" in failed and "/pages" not in failed


@pytest.mark.parametrize(
    ("message", "left"),
    [
        ("vllm serve --api-key abc123secret --port 8", "vllm serve --… --port 8"),
        ("OPENAI_API_KEY=abc123secret is old", "OPENAI_… is old"),
        ("hf_AbCdEf1 is refused", "… is refused"),
        ("api_key qqqq1234 is refused", "… is refused"),
        ("Incorrect API key provided: qqqq1234.", "Incorrect …"),
        ('{"api_key": "qqqq1234"}', '{"…"}'),
        ("Authorization: Basic dXNlcjpwdw== is refused", "… is refused"),
        ("Basic dXNlcjpwdw== is refused", "… is refused"),
        ("http://10.1.2.3:8000/v1 is down", "… is down"),
        ("http://gpu7.corp.example:9000/v1 is down", "… is down"),
        ("https://user:pw@host is down", "… is down"),
        ("user:pw@host is down", "… is down"),
        ("Cannot connect to host gpu7.corp:8000 ssl:default", "Cannot connect to host … ssl:default"),
        ("host gpu7:8000, localhost:80", "host …, …"),
        ("Connect call failed ('10.1.2.3', 8000)", "Connect call failed ('…', 8000)"),
        ("Connect call failed ('::1', 8000, 0, 0)", "Connect call failed ('…', 8000, 0, 0)"),
        ("python:/data/jo/reader.py:read", "python:reader.py:read"),
        ("cc -I/data/x.h", "cc -Ix.h"),
        ("file:///data/jo/x.pdf", "x.pdf"),
        ("C:\\Users\\jo\\x.pdf is gone", "x.pdf is gone"),
        ("gone: '/data/My Docs/Kunde Meier/x.pdf'", "gone: 'x.pdf'"),
        ("/data/My Docs/x.pdf", "My Docs/x.pdf"),  # What docs/exports.md says of a space.
        ("std::abs at 17:22:30 in reader.py:120, token limit of 4096, qwen2.5:7b, a/b", None),
    ],
)
def test_what_stays_of_messages_and_settings(finished: Path, message: str, left: str | None) -> None:
    hide = packs._hider(RunFolder.open(Folder(finished / RUN)).info)
    assert hide(message) == hide(hide(message)) == (message if left is None else left)


def test_what_quotes_pages_loses_the_servers_of_the_run_alone(finished: Path) -> None:
    info = RunFolder.open(Folder(finished / RUN)).info
    hide = packs._hider(msgspec.structs.replace(info, profile={"base_url": "http://me:pw@gpu7.corp:8000/v1"}))
    page = {"lines": ["see http://example.org:80/x"], "by": "http://gpu7.corp:8000/v1", "api_key": "qqqq", "key": "a"}
    found = hide(page, addresses=False)
    assert found == {"lines": page["lines"], "by": "http://…/v1", "api_key": "…", "key": "a"}


def test_long_messages_are_gone_through_at_once(finished: Path) -> None:
    hide = packs._hider(RunFolder.open(Folder(finished / RUN)).info)
    began = time.monotonic()
    for long in ("a" * 200_000, "a." * 100_000, "1:" * 50_000, "/a" * 100_000, "token " * 30_000, "'/a" * 50_000):
        hide(long)
    assert time.monotonic() - began < 20


def test_truth_is_packed_only_of_folders_of_ones_own_and_only_if_asked(pack: Path, finished: Path) -> None:
    loupe("pack", RUN, "-o", "bare.tar.gz", cwd=finished)
    assert list(members(finished / "bare.tar.gz")) == ["run.json", "predictions.jsonl", "scores.jsonl", "result.json"]
    assert {"documents/loupe.toml", "documents/samples.jsonl"} < members(pack).keys()
    info = json.loads((finished / RUN / "run.json").read_text()) | {"benchmark": "sample_pages"}
    shutil.copytree(finished / RUN, finished / "runs/reader/published", dirs_exist_ok=True)
    (finished / "runs/reader/published/run.json").write_text(json.dumps(info))
    done = loupe("pack", "runs/reader/published", "--with-truth", cwd=finished)
    assert "its truth is not packed" in complaint(done)[0]


def test_a_folder_called_documents_that_was_packed_without_truth_stays_that_folder(
    pack: Path, finished: Path, tmp_path: Path
) -> None:
    found = {name: data for name, data in members(pack).items() if not name.startswith("documents/")}
    assert unpack(archive(tmp_path, found), tmp_path / "runs").info.benchmark == "documents"
    shutil.copytree(finished / "mydocs", tmp_path / "documents")
    done = loupe("score", RUN, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_run_that_is_there_is_not_written_over(pack: Path, finished: Path) -> None:
    done = loupe("unpack", pack, cwd=finished)
    assert done.returncode == 2 and complaint(done)[0] == f"{RUN} is there already"


def test_a_pack_of_another_version_of_loupe_is_known_again_once_its_run_has_a_new_signature(
    pack: Path, tmp_path: Path
) -> None:
    run = unpack(pack, tmp_path)
    with claim(run.files, run.info) as folder:
        folder.write_info(msgspec.structs.replace(run.info, signature="that of this version"))
    assert unpack(pack, tmp_path, again=True).info.signature == "that of this version"
    with claim(run.files, run.info) as folder:
        folder.write_info(msgspec.structs.replace(run.info, limit=1))
    with pytest.raises(RunError, match="is there already"):
        unpack(pack, tmp_path, again=True)


def test_scores_of_a_pack_do_not_pass_for_scores_made_here(pack: Path, tmp_path: Path) -> None:
    found = members(pack)
    forged = found["scores.jsonl"].replace(b'"digest":""', b'"digest":"00"').replace(b"0.0", b"1.0")
    target = archive(tmp_path, found | {"scores.jsonl": forged})
    run = unpack(target, tmp_path / "out")
    assert {row.digest for row in run.scores()} == {""}


def archive(root: Path, files: dict[str, bytes], change: Callable[[tarfile.TarFile], None] | None = None) -> Path:
    target = root / "hostile.tar.gz"
    with tarfile.open(target, "w:gz") as tar:
        for name, data in files.items():
            add(tar, name, data)
        if change:
            change(tar)
    return target


def add(tar: tarfile.TarFile, name: str, data: bytes = b"x", kind: bytes = tarfile.REGTYPE, link: str = "") -> None:
    member = tarfile.TarInfo(name)
    member.size, member.type, member.linkname = len(data), kind, link
    tar.addfile(member, io.BytesIO(data))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tar: add(tar, "/etc/cron.d/x"), "absolute, or leaves"),
        (lambda tar: add(tar, "documents/../../x"), "absolute, or leaves"),
        (lambda tar: add(tar, "documents/a\\b"), "absolute, or leaves"),
        (lambda tar: add(tar, "documents/.git/hooks/post-checkout"), "is no part of a run"),
        (lambda tar: add(tar, "server.json"), "is no part of a run"),
        (lambda tar: add(tar, "documents/l", b"", tarfile.SYMTYPE, "/etc/passwd"), "is no plain file"),
        (lambda tar: add(tar, "documents/l", b"", tarfile.LNKTYPE, "run.json"), "is no plain file"),
        (lambda tar: add(tar, "documents/l", b"", tarfile.FIFOTYPE), "is no plain file"),
        (lambda tar: add(tar, "documents/d", b"", tarfile.DIRTYPE), "is no plain file"),
        (lambda tar: add(tar, "run.json"), "is there twice"),
        (lambda tar: add(tar, "documents/loupe.toml/x"), "lies below a file"),
        (lambda tar: [add(tar, "documents/a/b"), add(tar, "documents/a")], "documents/a' is there twice"),
        (lambda tar: [add(tar, "h", b"10 a=bcde\n", tarfile.XHDTYPE) for _ in range(3000)], "a broken one"),
        (lambda tar: add(tar, "documents/" + "x" * 5000), "too long"),
        (lambda tar: add(tar, "documents/zeros", bytes(packs._ALWAYS)), "far larger than any run"),
    ],
)
def test_a_hostile_archive_is_refused_as_a_whole(
    pack: Path, tmp_path: Path, change: Callable[[tarfile.TarFile], None], message: str
) -> None:
    target = archive(tmp_path, members(pack), change)
    with pytest.raises(RunError, match=message):
        unpack(target, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_failure_while_writing_leaves_nothing_in_the_way(
    pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object) -> bytes:
        raise OSError("no space")

    with monkeypatch.context() as patched:
        patched.setattr(packs, "_json", full)
        with pytest.raises(RunError, match="no space"):
            unpack(pack, tmp_path / "out")
    assert unpack(pack, tmp_path / "out").path.is_dir()


def test_too_many_files_are_refused(pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "MOST_FILES", 5)
    with pytest.raises(RunError, match="more than 5 files"):
        unpack(pack, tmp_path / "out")


@pytest.mark.parametrize("benchmark", ["/somewhere/docs", "../docs", ".."])
def test_a_pack_that_names_a_place_outside_of_it_is_refused(pack: Path, tmp_path: Path, benchmark: str) -> None:
    found = members(pack)
    info = json.loads(found["run.json"]) | {"benchmark": benchmark}
    with pytest.raises(RunError, match="names a place outside"):
        unpack(archive(tmp_path, found | {"run.json": json.dumps(info).encode()}), tmp_path / "out")


@pytest.mark.parametrize("engine", ["", "..", "../../x", "/etc", "a/b", "\x00"])
def test_names_of_a_stranger_stay_below_the_folder_that_was_named(pack: Path, tmp_path: Path, engine: str) -> None:
    found = members(pack)
    info = json.loads(found["run.json"]) | {"engine": engine, "benchmark_id": engine}
    target = archive(tmp_path, found | {"run.json": json.dumps(info).encode()})
    try:
        run = unpack(target, tmp_path / "out")
    except RunError:
        assert not (tmp_path / "out").exists()
    else:
        assert len(run.path.relative_to(tmp_path / "out").parts) == 2
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "out") == [target.name]


def test_a_sparse_file_that_claims_to_be_large_is_refused(pack: Path, tmp_path: Path) -> None:
    def sparse(tar: tarfile.TarFile) -> None:
        add(tar, "documents/big", b"", tarfile.GNUTYPE_SPARSE)

    with pytest.raises(RunError):
        unpack(archive(tmp_path, members(pack), sparse), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("damage", ["cut", "no tar", "no gzip", "no predictions", "no json", "no record"])
def test_a_broken_pack_is_one_line(pack: Path, tmp_path: Path, damage: str) -> None:
    found = members(pack)
    target = tmp_path / "broken.tar.gz"
    if damage == "cut":
        target.write_bytes(pack.read_bytes()[:400])
    elif damage == "no tar":
        target.write_bytes(gzip.compress(b"x" * 5000))
    elif damage == "no gzip":
        target.write_bytes(b"x" * 5000)
    elif damage == "no predictions":
        target = archive(tmp_path, {"run.json": found["run.json"]})
    elif damage == "no json":
        target = archive(tmp_path, found | {"run.json": b"{"})
    else:
        target = archive(tmp_path, found | {"predictions.jsonl": b'{"sample":1}'})
    done = loupe("unpack", target, cwd=tmp_path)
    assert done.returncode == 2 and target.name in complaint(done)[0]
    assert not (tmp_path / "runs").exists()


def test_a_name_too_long_for_a_folder_hints_at_what_the_caller_can_change(pack: Path, tmp_path: Path) -> None:
    found = members(pack)
    long = json.dumps(json.loads(found["run.json"]) | {"engine": "e" * 300}).encode()
    with pytest.raises(UsageError, match="too long for a folder") as refused:
        unpack(archive(tmp_path, found | {"run.json": long}), tmp_path / "out")
    assert refused.value.hint == "ask for a pack of a run with a shorter name: loupe run BENCHMARK --name NAME"
