"""Pages are read in a process with limits: hostile ones cost themselves alone."""

from __future__ import annotations

import ast
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import loupe
from loupe.data import bounded, page_drawing
from loupe.data.pages import ink_fraction, load_page, page_size, thumbnail
from loupe.errors import PageError
from loupe.types import PackedImage, PageSource, PdfPage
from loupe.workers.limits import max_memory, readers, too_much_or_crash, why_it_ended
from tests.engines.test_isolation import children
from tests.support.bombs import BOMBS, IMPOSTORS, plant
from tests.support.pages import draw_page, write_pdf

CONFIG = '[benchmark]\ntitle = "Pages"\nversion = "1"\ntask = "text"\n'
SOURCE = Path(loupe.__file__).parent
LINUX = pytest.mark.skipif(
    sys.platform != "linux", reason="looks into /proc, or needs limits that Linux alone enforces"
)


def source_of(path: Path) -> PageSource:
    return PdfPage(path) if path.suffix == ".pdf" else path


def run(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command line, with how much memory it and its children may have held at most."""
    program = (
        "import resource, subprocess, sys\n"
        "done = subprocess.run([sys.executable, '-P', '-m', 'loupe', *sys.argv[1:]])\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss\n"
        f"assert used * 1024 < {max_memory() * 1.1}, used\n"
        "sys.exit(done.returncode)\n"
    )
    words = (sys.executable, "-P", "-c", program, *words)
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


#: A degradation reads the JPEG that it has just written; readers run in environments of their own, bounded there.
OPENS_ITS_OWN = {"features/synth/damage.py"}
APART = "engines/environments/readers/"


def test_nothing_but_one_function_opens_an_image() -> None:
    """`Image.open` under whatever name: a call of `open` on a module of Pillow, or `open` imported from it."""
    found = []
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
        pillow = {
            name.asname or name.name: name.name
            for node in imports
            if node.module.startswith("PIL")
            for name in node.names
        }
        found += [f"{path.name}: {name}" for name in pillow.values() if name == "open"]
        found += [
            path.relative_to(SOURCE).as_posix()
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "open"
            if isinstance(node.func.value, ast.Name) and node.func.value.id in pillow
        ]
        found += [f"{path.name}: PIL" for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
                  if name.name.startswith("PIL")]  # fmt: skip
    assert [name for name in found if name not in OPENS_ITS_OWN and not name.startswith(APART)] == [
        "data/rasters.py"
    ] * 3


@pytest.mark.parametrize("kind", IMPOSTORS)
def test_what_is_no_raster_image_is_said_to_be_what_it_is(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "page.png"
    path.write_bytes(IMPOSTORS[kind])
    for read in (load_page, page_size, ink_fraction):
        with pytest.raises(PageError, match="is " + kind) as error:
            read(path)
        assert str(path) in str(error.value) and "\n" not in str(error.value)


@LINUX
def test_postscript_that_is_called_an_image_starts_no_program(tmp_path: Path) -> None:
    """Ghostscript would be looked for on the PATH: it is a program that leaves a mark."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "gs"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    program.chmod(0o755)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "loupe.toml").write_text(CONFIG)
    (tmp_path / "docs" / "page.png").write_bytes(IMPOSTORS["PostScript"])
    (tmp_path / "docs" / "samples.jsonl").write_text('{"id": "a", "image": "page.png", "reference": "x"}\n')
    environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    words = [sys.executable, "-P", "-m", "loupe", "bench", "check", str(tmp_path / "docs")]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "is PostScript" in done.stdout + done.stderr
    assert not (tmp_path / "started").exists()


@LINUX
@pytest.mark.parametrize("name", BOMBS)
def test_a_hostile_page_is_read_within_the_bounds_or_is_one_clear_line(name: str, tmp_path: Path) -> None:
    (path,) = plant(tmp_path, name)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for read in (page_size, load_page):
        try:
            read(source_of(path))
        except PageError as error:
            assert str(error).startswith(str(path)) and "\n" not in str(error)
    bounded._READER.close()
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 < max_memory() * 1.1
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 1.2e9


@LINUX
def test_a_page_that_needs_too_much_memory_says_so_and_the_next_one_is_read(tmp_path: Path) -> None:
    (path,) = plant(tmp_path, "font.pdf")
    with pytest.raises(PageError) as error:
        load_page(PdfPage(path))
    assert str(error.value) == f"{path}: page 1 {too_much_or_crash()}"
    assert load_page(draw_page(tmp_path / "page.png")).width == 700


@LINUX
def test_every_page_of_a_folder_but_the_hostile_ones_is_used(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "loupe.toml").write_text(CONFIG)
    plant(folder, "font.pdf", "pixels.png", "text.png")
    draw_page(folder / "good.png")
    rows = [
        f'{{"id": "{path.stem}", "image": "{path.name}", "reference": "x"}}\n' for path in sorted(folder.glob("*.p*"))
    ]
    (folder / "samples.jsonl").write_text("".join(rows))
    done = run("bench", "check", str(folder), folder=tmp_path)
    said = done.stdout + done.stderr
    assert done.returncode == 2, said
    assert f"page 1 {too_much_or_crash()}" in " ".join(said.split())
    assert "'pixels.png'" in said and "'text.png'" in said and "'good.png'" not in said


@LINUX
def test_a_run_over_a_hostile_page_ends_and_its_report_shows_the_other(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "loupe.toml").write_text(CONFIG)
    plant(folder, "font.pdf")
    write_pdf(folder / "good.pdf", "Good")
    rows = [f'{{"id": "{name}", "image": "{name}.pdf#page=1", "reference": ""}}\n' for name in ("font", "good")]
    (folder / "samples.jsonl").write_text("".join(rows))
    done = run("run", str(folder), "-e", "pdf_text", "--runs", "out", folder=tmp_path)
    records = "".join(path.read_text() for path in (tmp_path / "out").rglob("predictions.jsonl"))
    assert too_much_or_crash() in records and "Good" in records, done.stderr
    (run_folder,) = (path.parent for path in (tmp_path / "out").rglob("predictions.jsonl"))
    done = run("report", str(run_folder), "-o", "report.html", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").stat().st_size > 10_000


@LINUX
@pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed")
def test_a_hostile_page_costs_its_own_sample_of_a_program(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "loupe.toml").write_text(CONFIG)
    plant(folder, "font.pdf")
    draw_page(folder / "good.png")
    (folder / "samples.jsonl").write_text(
        '{"id": "font", "image": "font.pdf#page=1", "reference": "x"}\n'
        '{"id": "good", "image": "good.png", "reference": "x"}\n'
    )
    done = run("run", str(folder), "-e", "tesseract", "--runs", "out", folder=tmp_path)
    records = "".join(path.read_text() for path in (tmp_path / "out").rglob("predictions.jsonl"))
    assert too_much_or_crash() in records and "Invoice" in records, done.stderr


@LINUX
def test_the_reader_ends_with_a_parent_that_is_killed_while_it_draws(tmp_path: Path) -> None:
    (path,) = plant(tmp_path, "form.pdf")
    program = (
        "import sys\nfrom pathlib import Path\n"
        "from loupe.data.pages import load_page\nfrom loupe.types import PdfPage\n"
        "load_page(PdfPage(Path(sys.argv[1])))"
    )
    with subprocess.Popen([sys.executable, "-P", "-c", program, str(path)]) as parent:
        reader = wait_for_child(parent.pid)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        end = time.monotonic() + 10
        while Path(f"/proc/{reader}").exists() and "\nState:\tZ" not in Path(f"/proc/{reader}/status").read_text():
            assert time.monotonic() < end, "the reader lives on"
            time.sleep(0.05)


def wait_for_child(pid: int) -> int:
    end = time.monotonic() + 20
    while not (found := children(pid)):
        assert time.monotonic() < end
        time.sleep(0.05)
    time.sleep(1.0)  # it draws by now
    return found[0]


@LINUX
def test_the_reader_keeps_the_folder_that_it_starts_in_off_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("msgspec", "PIL", "pickle", "queue", "pypdfium2", "resource", "loupe"):
        (tmp_path / f"{module}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    draw_page(tmp_path / "page.png")
    monkeypatch.chdir(tmp_path)
    bounded._READER.close()
    assert page_size(Path("page.png"))[0] == 700
    assert not (tmp_path / "ran").exists()


def test_a_process_that_holds_too_much_ends_itself_where_the_system_does_not_see_to_it() -> None:
    program = (
        "import threading; from loupe.workers.limits import watch_memory\n"
        "threading.Thread(target=watch_memory, args=(200_000_000,), daemon=True).start()\n"
        "held = []\n"
        "while True: held.append(bytearray(b'x' * 10_000_000))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, check=False, timeout=60)
    assert done.returncode == -signal.SIGABRT


def test_a_thumbnail_of_a_relative_path_is_found_after_a_change_of_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw_page(tmp_path / "a.png")
    page_size(tmp_path / "a.png")
    monkeypatch.chdir(tmp_path)
    assert thumbnail(Path("a.png"), 64).width == 64


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_whole_job_leaves_the_reader_to_its_parent(number: signal.Signals, tmp_path: Path) -> None:
    page = draw_page(tmp_path / "page.png")
    page_size(page)
    assert bounded._READER._process is not None
    reader = bounded._READER._process
    os.kill(reader.pid, number)
    assert reader.exit_code(0.3) is None
    assert page_size(page)[0] == 700
    assert bounded._READER._process is reader


def test_a_folder_that_cannot_be_entered_costs_no_page_with_a_whole_path(tmp_path: Path) -> None:
    page = draw_page(tmp_path / "page.png")
    order = bounded.Order(page_drawing.page_size, (page,), {}, str(tmp_path / "gone"))
    assert bounded._READER.ask(order, "page")[0] == 700


def test_a_reader_that_cannot_be_started_is_an_error_of_its_page_and_the_next_page_is_read(tmp_path: Path) -> None:
    page = draw_page(tmp_path / "page.png")
    program = (
        "import os, resource, sys\nfrom pathlib import Path\n"
        "from loupe.data.pages import page_size\nfrom loupe.errors import PageError\n"
        "soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "for more in range(12):\n"
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (3 + more, hard))\n"
        "    try:\n        page_size(Path(sys.argv[1]))\n        break\n"
        "    except PageError as error:\n        print(error)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))\n"
        "print(page_size(Path(sys.argv[1]))[0])"
    )
    words = [sys.executable, "-P", "-W", "error", "-c", program, str(page)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    *errors, width = done.stdout.splitlines()
    assert width == "700" and f"{page}: no process can be started to read it (Too many open files)" in errors


@LINUX
def test_a_lower_limit_of_the_user_stands_and_seconds_are_given_anew_for_each_page() -> None:
    program = (
        "import resource as r\nfrom loupe.workers import limits\n"
        "r.setrlimit(r.RLIMIT_DATA, (1 << 30, r.RLIM_INFINITY)); limits.bound_process()\n"
        "print(r.getrlimit(r.RLIMIT_DATA)[0] == 1 << 30)\n"
        "limits.lower_limit(r.RLIMIT_CPU, 5); limits.bound_seconds()\n"
        "print(r.getrlimit(r.RLIMIT_CPU)[0] >= limits.SECONDS)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGTRAP, signal.SIGILL])
def test_an_end_that_may_have_two_reasons_is_said_to_have_one_of_them(number: signal.Signals) -> None:
    assert why_it_ended(-number) == "needs more than 2 GiB of memory, or crashes its reader"


def test_no_more_processes_read_pages_than_fit_into_the_free_memory(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    for free, wanted in ((1 << 30, 1), (max_memory() + 1024, 1), (1 << 50, readers(tmp_path / "none"))):
        meminfo.write_text(f"MemTotal: 99 kB\nMemAvailable:   {free // 1024} kB\n")
        assert readers(meminfo) == wanted


def test_a_page_in_a_message_reads_as_people_write_it() -> None:
    assert str(PdfPage(Path("a/scan.pdf"), 3)) == "a/scan.pdf#page=3"
    assert str(PackedImage(Path("val.parquet"), "7/image")) == "val.parquet, 7/image"
