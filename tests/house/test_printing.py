"""One place prints, and what it prints steers no terminal."""

from __future__ import annotations

import ast
import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loupe
from loupe.cli.shared.errors import show_error
from loupe.cli.shared.output import as_json, complain, console, print_line, say, tables
from loupe.cli.shared.progress import _block
from loupe.cli.shared.text_only import guarded
from loupe.inference.progress import Progress
from loupe.results.control_characters import one_paragraph, printable, printable_json
from loupe.results.tables.record import Table

SOURCE = Path(loupe.__file__).parent
#: The modules that may touch the streams: two of the command's, and the line of progress of `loupe.run`.
PRINTING = {SOURCE / place for place in ("cli/shared/output.py", "cli/shared/text_only.py", "api/bars.py")}
#: What says nothing, or only asks whether there is somebody.
SILENT = {"sys.stdout.flush", "sys.stdout.fileno", "sys.stderr.fileno", "sys.stderr.isatty", "sys.stdout.isatty"}
#: Programs of their own, which no person starts: their streams are pipes that Loupe reads, or nothing.
CHILDREN = {
    SOURCE / place
    for place in (
        "features/example/extract.py",
        "workers/child.py",
        "pipeline/benchmark_check.py",
        "scoring/child.py",
        "web/page_worker.py",
    )
}
FORBIDDEN_OF = {
    "click": "echo echo_via_pager secho prompt confirm pause progressbar edit clear getchar",
    "sys": "stdout stderr __stdout__ __stderr__ displayhook excepthook",
    "traceback": "print_exc print_exception print_stack",
    "logging": "basicConfig StreamHandler",
    "faulthandler": "enable",
    "getpass": "getpass",
    "pprint": "pprint",
    "rich": "print get_console",
    "rich.console": "Console",
}
FORBIDDEN = {f"{module}.{name}" for module, names in FORBIDDEN_OF.items() for name in names.split()}


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def printing(file: Path) -> Iterator[str]:
    """Every place of a file where something is printed, or a stream is taken to print on."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    allowed = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute) and dotted(node) in SILENT}
    typing = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and dotted(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in allowed or id(node) in typing:
            continue
        name = dotted(node) if isinstance(node, ast.Attribute) else ""
        if isinstance(node, ast.Call) and dotted(node.func) in ("print", "input"):
            name = dotted(node.func)
        if isinstance(node, ast.ImportFrom):
            found = {f"{node.module}.{alias.name}" for alias in node.names} & FORBIDDEN
            name = "".join(found)
        if isinstance(node, ast.Constant) and node.value in ("/dev/tty", "/dev/stdout", "/dev/stderr"):
            name = str(node.value)
        if name in FORBIDDEN or name in ("print", "input", "/dev/tty", "/dev/stdout", "/dev/stderr"):
            yield f"{file.relative_to(SOURCE)}:{getattr(node, 'lineno', 0)} {name}"


def test_nothing_prints_but_the_module_for_it() -> None:
    found = [place for file in SOURCE.rglob("*.py") if file not in PRINTING | CHILDREN for place in printing(file)]
    assert not found


def test_that_walk_finds_every_way_to_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", tmp_path)
    lines = ["print(1)", "import sys; sys.stdout.write('')", "import click; click.echo('')", "from click import echo"]
    lines += ["from sys import stderr", "from rich.console import Console", "open('/dev/tty')", "input()"]
    for line in lines:
        (tmp_path / "a.py").write_text(line)
        assert list(printing(tmp_path / "a.py")), line
    (tmp_path / "a.py").write_text("import sys; sys.stderr.isatty()")
    assert not list(printing(tmp_path / "a.py"))


UNSAFE = [*map(chr, {*range(32)} - {9, 10}), "\x7f", *map(chr, range(0x80, 0xA0)), *"\u061c\u200b\u200e\u200f\u2028"]
UNSAFE += [*map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))), "\ufeff", "\u2060", "\U000e0041", "\ud83d"]


def test_what_steers_reorders_or_hides_is_replaced_and_nothing_else() -> None:
    assert all(printable(f"a{char}b") == "a\ufffdb" for char in UNSAFE)
    plain = "Zürich 東京\tשלום می\u200cخواهم 👩\u200d🔬 naïve\n\u0301"
    assert printable(plain) == plain
    assert printable("pass\u200dword") == "pass\ufffdword"


def test_no_line_of_a_stranger_looks_like_one_of_ours() -> None:
    assert one_paragraph("a\nhint: b\n  c\n\nerror: d\n") == "a\n  hint: b\n  c\n\n  error: d\n"


ONE_LINE = "one�hint: rm -r ~��error: x�hint: y"


def test_a_name_with_line_breaks_prints_on_one_line_wherever_it_goes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "one\nhint: rm -r ~\r\nerror: x\u2028hint: y"
    section = Table(title=evil, header=[evil, "n"], rows=[[evil, "1"], [evil, evil]], winner=0)
    with guarded():
        complain("error:", "red", evil)
        show_error(evil, evil, [evil, evil])
        say(evil)
        print_line(evil)
        tables([section], plain=True)
        tables([section], plain=False)
        console(stderr=True).print(_block(Progress(engine=evil, benchmark=evil, total=1)))
        print(evil, file=sys.stderr)  # as libraries do
    shown = capsys.readouterr()
    ours = [line for line in (shown.out + shown.err).splitlines() if line.lstrip().startswith(("hint:", "error:"))]
    assert ours == [
        f"error: {ONE_LINE}",
        f"error: {ONE_LINE}",
        f"hint: {ONE_LINE}",
        "  hint: rm -r ~�",
        "  error: x�hint: y",
    ]
    assert shown.out.count("one") == shown.out.count("hint: y") > 6


@given(st.dictionaries(st.text(), st.text(st.sampled_from([*UNSAFE[:-1], '"', "\\", "é"]))))
def test_json_is_the_same_document_and_safe_to_show(document: dict[str, str]) -> None:
    shown = printable_json(json.dumps(document, ensure_ascii=False))
    assert json.loads(shown) == document
    assert printable(shown) == shown


class Terminal(io.TextIOWrapper):
    """A stream that says that it is a terminal."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")

    def isatty(self) -> bool:
        return True

    def shown(self) -> str:
        self.flush()
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode()


def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return stream


def test_whoever_writes_on_a_terminal_is_guarded_and_our_own_colours_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = at_a_terminal(monkeypatch)
    evil = "\x1b[2J\x9b31m\u202e[link=http://x]\x1b]8;;http://x\x07\ud800"
    with guarded():
        sys.stdout.write(evil)
        sys.stderr.writelines([evil])
        complain("error:", "red", evil)
        say(evil)
        print_line(evil)
        as_json({evil: [evil]})
        console().print(evil, style="bold")
    shown = terminal.shown()
    assert shown.count("\x1b[31m\x1b[1merror:\x1b[0m") == 1 and shown.count("\x1b[1m") == 2
    left = shown.replace("\x1b[31m\x1b[1merror:\x1b[0m", "").replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert printable(left) == left and left.count("[link=http://x]") == 8


def test_data_in_a_pipe_stay_exact_and_half_characters_crash_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", pipe)
    with guarded():
        sys.stdout.write("\x1b é \udcff \ud800")
        sys.stdout.flush()
    assert pipe.buffer.getvalue() == b"\x1b \xc3\xa9 \xff ?"  # type: ignore[attr-defined]


def test_megabytes_are_millions_of_bytes() -> None:
    """`MB` is 10⁶ bytes, `MiB` is 2²⁰: no number of one is printed with the unit of the other."""
    binary = re.compile(r"(?:>> ?[123]0|/ ?1024(?:\*\*\d)?)[^{}]*\} ?[kKMG]B\b")
    decimal = re.compile(r"(?:// ?10\*\*[369]|/ ?1e[369])[^{}]*\} ?[KMG]iB\b")
    mixed = [
        f"{file.relative_to(SOURCE.parents[1])}:{number}"
        for folder in ("src", "script", "perf")
        for file in sorted((SOURCE.parents[1] / folder).rglob("*.py"))
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if binary.search(line) or decimal.search(line)
    ]
    assert mixed == []
