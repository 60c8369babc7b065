"""What `loupe init` makes of settings that are there, of full disks and of odd names."""

from __future__ import annotations

import json
import os
import resource
import sys
from contextlib import closing
from pathlib import Path

import pytest
from PIL import Image

from loupe.benchmarks.folders.own import check_folder
from loupe.benchmarks.folders.own.folder_files import find_documents
from loupe.benchmarks.folders.own.starting import Beginning, begin, unlisted_files
from loupe.cli import main
from loupe.data import bounded
from loupe.data.pages import page_size
from loupe.errors import UsageError, WriteError
from loupe.workers.limits import max_memory
from tests.support.command_line import loupe


def test_settings_that_are_there_are_taken_and_only_samples_are_written(tmp_path: Path) -> None:
    folder = tmp_path / "mail"
    (folder / "Letter").mkdir(parents=True)
    for name in ("a.png", "Letter/b\u00a0.png"):
        Image.new("L", (9, 9)).save(folder / name)
    (folder / "loupe.toml").write_text("[engines.mine]\nkind = 'python'\n")
    done = loupe("init", "mail", cwd=tmp_path)
    assert done.returncode == 2 and "mail/loupe.toml does not say what is asked" in done.stderr
    written = '[benchmark]\ntask = "class"\nlabels = ["invoice", "letter"]\n'
    (folder / "loupe.toml").write_text(written)
    refused = loupe("init", "mail", "--task", "text", cwd=tmp_path)
    assert refused.returncode == 2 and "hint: drop --task to use it: loupe init mail; or " in refused.stderr
    done = loupe("init", "mail", "--task", "class", cwd=tmp_path)
    assert done.returncode == 0 and "wrote mail/samples.jsonl, as mail/loupe.toml asks" in done.stderr, done.stderr
    assert (folder / "loupe.toml").read_text() == written
    written_lines = (folder / "samples.jsonl").read_text("utf-8").splitlines()
    assert [(line["id"], line["reference"]) for line in map(json.loads, written_lines)] == [
        ("Letter/b", "letter"),
        ("a", None),
    ]
    assert check_folder(folder) == []


def test_a_full_disk_leaves_nothing_half_written_and_odd_names_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    folder = tmp_path / os.fsdecode(b"f\xff")
    folder.mkdir()
    for number in range(20):
        Image.new("L", (9, 9)).save(folder / f"{number:060d}.png")
    pages = sorted(folder.iterdir())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        with pytest.raises(WriteError, match="larger than the system allows"):
            begin(folder, find_documents(folder), Beginning(task="text"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sorted(folder.iterdir()) == pages
    done = loupe("init", ".", "--task", "text", cwd=folder)
    assert done.returncode == 0 and "20 samples" in done.stdout, done.stderr
    assert check_folder(folder) == []


def _a_bit_of_everything(folder: Path) -> None:
    """Pages of many kinds, and what cannot be a page."""
    page = Image.new("RGB", (9, 9), "white")
    for name, kind in (
        ("a.jp2", "JPEG2000"),
        ("b.jfif", "JPEG"),
        ("c.ppm", "PPM"),
        ("no suffix", "PNG"),
        ("e.JPE", "JPEG"),
    ):
        page.save(folder / name, kind)
    page.save(folder / "moves.gif", save_all=True, append_images=[Image.new("RGB", (9, 9), "red")])
    Image.new("L", (9, 9)).save(folder / "fax.jpg", "TIFF", save_all=True, append_images=[Image.new("L", (8, 8))])
    for name in ("x.docx", "y.DOCX", "z.xlsx", "notes.txt", "what.bin", ".hidden.docx", "Thumbs.db"):
        (folder / name).write_bytes(b"something")
    for name in ("1.heic", "2.heic"):
        (folder / name).write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(99))
    (folder / "cut.pdf").write_bytes(b"%PDF-1.7 nothing")
    Image.new("1", (20_000, 10_001)).save(folder / "map.png")
    (folder / "runs/a").mkdir(parents=True)
    (folder / "runs/a/run.json").touch()
    page.save(folder / "runs/a/page.png")


LEFT_OUT = (
    "left out 2 DOCX files (x.docx, y.DOCX): an office document has no fixed pages; convert it to PDF: soffice",
    "left out z.xlsx: an office document has no fixed pages",
    "left out notes.txt: a text file is not a page",
    "left out what.bin: neither an image nor a PDF file",
    "left out 2 HEIC files (1.heic, 2.heic): a HEIC photo, which needs pillow-heif: ",
    "left out cut.pdf: not a PDF, or a broken one",
    "left out map.png: 20,000 x 10,001 pixels are more than the limit of 200 megapixels: allow it (it takes more "
    "memory): export LOUPE_MAX_MEGAPIXELS=201",
)


def test_init_and_check_say_what_is_left_out_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    monkeypatch.chdir(tmp_path)
    _a_bit_of_everything(tmp_path)
    assert main(["init", ".", "--task", "text"]) == 0
    said = capfd.readouterr()
    assert said.out == ".: 7 documents, 7 samples, task text\n"
    assert all(line in said.err for line in LEFT_OUT), said.err
    assert "hidden" not in said.err and "Thumbs" not in said.err and "runs" not in said.err
    assert "moves.gif: moves (GIF): only the first of its 2 pictures is read" in said.err
    assert "fax.jpg: is a TIFF file of 2 pages, of which only the first is read: rename it to fax.tif" in said.err
    lines = (tmp_path / "samples.jsonl").read_text("utf-8").splitlines()
    (tmp_path / "samples.jsonl").write_text("".join(f"{line}\n" for line in lines if "a.jp2" not in line), "utf-8")
    assert main(["bench", "check", "."]) == 0
    said = capfd.readouterr()
    assert all(line in said.err for line in LEFT_OUT), said.err
    line = '{"id": "a", "image": "a.jp2", "reference": null, "truth": {"status": "draft"}}'
    assert f"1 file is in no line of samples.jsonl: a.jp2; add this line:\n{line}\n" in said.err
    assert "moves.gif: moves (GIF)" in said.err
    assert "fax.jpg: is a TIFF file of 2 pages, of which only the first is read: rename it to fax.tif" in said.err


def test_files_of_another_kind_than_their_name_says_are_to_be_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = Image.new("RGB", (9, 9), "white")
    page.save("scan.png", "PDF")
    page.save("photo.pdf", "JPEG")
    page.save("my.v2", "PNG")
    page.save("b.png")
    (tmp_path / "in.2024").mkdir()
    for name in ("beta", "Alpha", "in.2024/beta"):
        page.save(name, "PNG")
    assert main(["init", ".", "--task", "text"]) == 0
    said = capfd.readouterr().err
    assert "left out scan.png: a PDF, not an image: rename it to scan.pdf\n" in said
    assert "left out photo.pdf: an image (JPEG), not a PDF: rename it to photo.jpg\n" in said
    assert "the same name" not in said
    lines = (tmp_path / "samples.jsonl").read_text("utf-8").splitlines()
    assert {json.loads(line)["id"] for line in lines} == {"Alpha", "b", "beta", "in.2024/beta", "my.v2"}
    rows = [
        {"id": f"{place}", "image": name, "reference": "x"}
        for place, name in enumerate(("scan.png", "scan.png#page=1"))
    ]
    (tmp_path / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    assert main(["bench", "check", "."]) == 2
    said = capfd.readouterr().out
    assert "'scan.png': is a PDF, not an image (rename it to scan.pdf)" in said
    assert "if it is a PDF or TIFF file, rename it to scan.pdf or scan.tif" in said


def test_a_page_that_came_later_is_added_by_the_line_that_check_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = Image.new("RGB", (9, 9), "white")
    (tmp_path / "own").mkdir()
    page.save("own/a.png")
    assert main(["init", "own", "--task", "text"]) == 0
    page.save("own/a.jpg")
    page.save("own/new.tif", save_all=True, append_images=[page])
    (tmp_path / "own/notes.txt").write_text("no page")
    (line,) = unlisted_files(tmp_path / "own")
    assert line.startswith("2 files are in no line of samples.jsonl: a.jpg, new.tif; to see what to add: loupe bench")
    capfd.readouterr()
    assert main(["init", "own", "--task", "text"]) == 2
    hint = capfd.readouterr().err
    assert "hint: to add pages, append the lines that this prints: loupe bench check own\n" in hint
    assert main(["bench", "check", "own"]) == 0
    said = capfd.readouterr().err
    assert "2 files are in no line of samples.jsonl: a.jpg, new.tif; add these lines:\n" in said
    lines = [line for line in said.splitlines() if line.startswith("{")]
    assert [json.loads(line)["id"] for line in lines] == ["a-jpg", "new-p1", "new-p2"]
    with (tmp_path / "own/samples.jsonl").open("a") as file:
        file.write("".join(f"{line}\n" for line in lines))
    assert check_folder(tmp_path / "own") == [] and unlisted_files(tmp_path / "own") == []
    assert main(["bench", "check", "own"]) == 0 and "in no line" not in capfd.readouterr().err


def test_a_folder_without_a_page_says_why_of_every_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.docx", "b.docx", "cut.pdf"):
        (tmp_path / name).write_bytes(b"%PDF-1.7 nothing")
    assert main(["init", ".", "--task", "text"]) == 2
    said = capfd.readouterr().err
    assert said.startswith("error: .: no page can be read here\n  left out 2 DOCX files (a.docx, b.docx): an office")
    assert "\n  left out cut.pdf: not a PDF, or a broken one\nhint: " in said
    for file in tmp_path.iterdir():
        file.unlink()
    assert main(["init", ".", "--task", "text"]) == 2
    assert capfd.readouterr().err.startswith("error: .: no images or PDF files here\n")


def test_pages_of_any_size_can_be_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """LOUPE_MAX_MEGAPIXELS reaches the processes that read pages, and moves their limit of memory."""
    monkeypatch.chdir(tmp_path)
    Image.new("1", (20_000, 10_001), 1).save(tmp_path / "map.png")
    monkeypatch.setenv("LOUPE_MAX_MEGAPIXELS", "201")
    with closing(bounded._Reader()) as reader:  # one that starts now
        monkeypatch.setattr(bounded, "_READER", reader)
        assert (page_size(tmp_path / "map.png"), max_memory()) == ((20_000, 10_001), 2 << 30)
        assert main(["init", ".", "--task", "text"]) == 0
        assert "left out" not in capfd.readouterr().err
    monkeypatch.setenv("LOUPE_MAX_MEGAPIXELS", "2000")
    assert max_memory() == 20 * 10**9
    for wrong in ("no", "0", "2001", "-5", "000000001999999999"):
        monkeypatch.setenv("LOUPE_MAX_MEGAPIXELS", wrong)
        with closing(bounded._Reader()) as reader, pytest.raises(UsageError, match="is not a whole number from 1 to"):
            monkeypatch.setattr(bounded, "_READER", reader)
            page_size(tmp_path / "map.png")
        assert main(["init", ".", "--task", "text"]) == 2
        said = f"error: LOUPE_MAX_MEGAPIXELS='{wrong}' is not a whole number from 1 to 2,000\n"
        assert capfd.readouterr().err == f"{said}hint: export LOUPE_MAX_MEGAPIXELS=400\n"


def test_a_folder_without_any_truth_says_so_and_names_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m2").mkdir()
    for name in ("a", "b"):
        Image.new("RGB", (40, 20), "white").save(tmp_path / f"m2/{name}.png")
    assert main(["init", "m2", "--task", "text"]) == 0
    capsys.readouterr()
    said = "none of 2 samples has ground truth yet"
    for words in ([], ["--allow-unverified"]):
        assert main(["run", "./m2", "-e", "pdf_text", *words]) == 2
        said_now = capsys.readouterr().err.splitlines()
        assert said_now == [f"error: m2: {said}", "hint: draft it: loupe draft m2 -e ENGINE"]
    for command in ("check", "show"):
        assert main(["bench", command, "./m2"]) == 0
        assert f"{said}: loupe draft m2 -e ENGINE" in "".join(capsys.readouterr())
    lines = (tmp_path / "m2/samples.jsonl").read_text().replace('"reference": null', '"reference": "x"', 1)
    (tmp_path / "m2/samples.jsonl").write_text(lines)
    assert main(["run", "./m2", "-e", "pdf_text"]) == 2
    assert "the truth of 2 of 2 samples is an unverified draft" in capsys.readouterr().err
