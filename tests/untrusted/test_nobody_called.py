"""Local engines and commands, watched by strace: no connection but to this machine, no name looked up, nothing left."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from loupe.benchmarks.shared.equations.rendering.chromium import PROGRAMS
from loupe.data.hub.katex import katex_folder

#: In one process, as its start is most of what a command costs; engines, scorers and drawing have their own.
SCRIPT = """
import sys
from loupe.cli import main
def go(*words):
    if (code := main(words)) not in (0, 3):  # 3: an image has no text layer
        sys.exit(f"{words}: {code}")
reader = sys.argv[1]
engines = [word for engine in sys.argv[2:] for word in ("-e", engine)]
go("run", "sample_pages", "--limit", "1", *engines, "-e", f"python:{reader}:read", "-e", "command:wc -c {image}")
go("synth", "made", "--pages", "1", "--tracks", "density")
runs = "runs/rapidocr/sample_pages"
go("score", runs)
for words in (("compare", "runs"), ("report", "runs", "-o", "r.html"), ("export", runs, "--to", "csv")):
    go(*words)
go("pack", runs, "-o", "p.tar.gz")
for words in (("runs",), ("engine", "list"), ("bench", "list"), ("data", "list"), ("doctor",)):
    go(*words)
"""
DRAWN = """
from loupe.benchmarks.shared.equations.rendering.renderer import EquationBrowser
browser = EquationBrowser()
[drawing] = browser.draw(["x^2"])
assert not drawing.error and not drawing.lost, drawing
browser.close()
"""
READER = """
def read(request):
    try:
        import onnxruntime  # whoever uses it in a function of his own is not reported either
    except ImportError:
        pass
    return "some text"
"""
TRACED = "trace=connect,sendto,sendmsg,sendmmsg"
STRACE = ("strace", "-f", "-qq", "-yy", "--seccomp-bpf", "-e", TRACED, "-e", "signal=none", "-o")
_ADDRESS = r"<{kind}.*?sin6?_port=htons\((?P<port>\d+)\).*?(?:inet_addr\(|AF_INET6, )\"(?P<host>[^\"]+)\""
#: What reaches somebody: a connection, or a datagram. A socket that only asks the system for a way sends none.
_REACHED = (
    re.compile(r"connect\(\d+" + _ADDRESS.format(kind="TCP")),
    re.compile(r"send\w+\(\d+" + _ADDRESS.format(kind="UDP")),
    re.compile(r"send\w+\(\d+<UDP\w*:\[[^>]*->\[?(?P<host>[^>]+?)\]?:(?P<port>\d+)\]>"),
)


def _can_trace() -> bool:
    words = [*STRACE, os.devnull, "true"]
    return shutil.which("strace") is not None and subprocess.run(words, capture_output=True).returncode == 0


def called(folder: Path, script: str, *arguments: str) -> set[tuple[str, int]]:
    """Run a Python script, and return the addresses and ports outside this machine that any of its processes called."""
    home = folder / "home"
    home.mkdir()
    variables = {key: os.environ[key] for key in ("PATH", "LANG", "LOUPE_KATEX_DIR") if key in os.environ}
    words = [*STRACE, str(folder / "calls"), sys.executable, "-P", "-c", script, *arguments]
    done = subprocess.run(
        words,
        cwd=folder,
        env={**variables, "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    said = (folder / "calls").read_text(errors="replace")
    found = {(each["host"], int(each["port"])) for pattern in _REACHED for each in pattern.finditer(said)}
    assert {path.name for path in home.glob("*")} <= {".cache", ".local"}, "nobody else leaves anything"
    assert {path.name for path in (*home.glob(".cache/*"), *home.glob(".local/*/*"))} <= {"loupe"}
    return {(host, port) for host, port in found if port == 53 or not host.startswith(("127.", "::1", "::ffff:127."))}


LOOKUP = """
import socket, sys
try:
    socket.create_connection(("nobody.invalid", 80), timeout=1)
except OSError:
    pass
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
    asking.connect(("192.0.2.1", 443))
    if sys.argv[1:]:
        asking.send(b"x")
with socket.socket() as reaching:
    reaching.setblocking(False)
    reaching.connect_ex(("192.0.2.1", 80)) if sys.argv[1:] else None
"""


@pytest.mark.skipif(not _can_trace(), reason="needs strace, and to be allowed to trace")
def test_the_watch_sees_who_is_called(tmp_path: Path) -> None:
    found = called(tmp_path, LOOKUP, "call")
    assert {("192.0.2.1", 443), ("192.0.2.1", 80)} < found and 53 in {port for _, port in found}


@pytest.mark.skipif(not _can_trace(), reason="needs strace, and to be allowed to trace")
@pytest.mark.slow
def test_local_engines_and_commands_call_nobody(tmp_path: Path) -> None:
    (tmp_path / "reader.py").write_text(READER)
    pytest.importorskip("rapidocr")
    engines = ["rapidocr", "pdf_text", *(["tesseract"] if shutil.which("tesseract") else [])]
    assert called(tmp_path, SCRIPT, str(tmp_path / "reader.py"), *engines) == set()


@pytest.mark.browser
@pytest.mark.skipif(not _can_trace(), reason="needs strace, and to be allowed to trace")
def test_a_browser_that_draws_equations_calls_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    katex = katex_folder()
    if not (katex / "katex.min.js").is_file() or not any(map(shutil.which, PROGRAMS)):
        pytest.skip("needs KaTeX and Chromium")
    monkeypatch.setenv("LOUPE_KATEX_DIR", str(katex))
    assert called(tmp_path, DRAWN) == set()
