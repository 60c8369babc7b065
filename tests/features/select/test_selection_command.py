"""`loupe select` as a user starts it: from a pipe and at a real pseudo-terminal, against a server on loopback."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from loupe.cli import main
from loupe.features.select import command as talk
from loupe.servers.record import FILE
from loupe.servers.server_probes import is_free
from tests.features.select.selecting import MODELS, answer, invoice, letter, make_documents
from tests.support.chat_server import ChatServer, Received, Reply, in_thread
from tests.support.command_line import command, environment, loupe
from tests.support.pages import write_pdf
from tests.support.served import record_of, wait_for


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with in_thread(answer, models=MODELS) as running:
        yield running


def words(*more: str | Path, kind: str = "invoice") -> list[str]:
    return ["select", "--type", kind, "--positive", "yes", "--negative", "no", *map(str, more)]


def test_both_phases_from_a_pipe_with_everything_kept(tmp_path: Path, server: ChatServer) -> None:
    make_documents(tmp_path)
    done = subprocess.run(
        command(
            *words("--base-url", server.url, "--vlm", "right", "--textllm", "right"),
            *("--textllm", "absent", "--textllm", "yes", "--ocr", "python:ocr.py:read", "--ground-truth", "regenerate"),
            *("--json", "out.json", "--save", "--plain"),
        ),
        cwd=tmp_path,
        env=environment(tmp_path),
        input="what?\n\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    head = "#\tmodel\tscore\tmax\t%\tTP\tFN\tTN\tFP\ttimeouts\terr\tunp\ts/doc (median)\telapsed"
    assert lines[:2] == ["# invoice: vision models, by image", head]
    second = "#\tmodel\tscore\tmax\t%\tcat. correct\textr. correct\tdate ok\tname ok\ttimeouts\terr\tunp\t"
    rows = lines[lines.index(f"{second}s/doc (median)\telapsed") + 1 :]
    assert re.fullmatch(r"1\tright\t10\t10\t100\.0\t5/5\t3/3\t3/3\t3/3\t0\t0\t0\t\d\.\d\d\t0:\d\d", rows[0])
    assert re.fullmatch(r"2\tyes\t3\t10\t30\.0\t3/5\t0/3\t3/3\t0/3\t0\t0\t0\t\d\.\d\d\t0:\d\d", rows[1])
    assert re.fullmatch(r"unavailable\tabsent(\t–){11}\t0:\d\d", rows[2])
    assert "5 documents (3 positive, 2 negative), timeout 30 s per call, models: override list of 3" in done.stdout
    assert "absent\tunavailable\tHTTP 404: no model 'absent'" in lines
    assert done.stderr.count("Review and edit these files, then type 'ok' or press Enter to continue") == 2
    assert "\x1b" not in done.stderr and "preparing" not in done.stderr

    written = json.loads((tmp_path / "out.json").read_text())
    assert [(phase["phase"], len(phase["models"])) for phase in written["phases"]] == [("a", 1), ("b", 3)]
    truth = json.loads((tmp_path / "yes" / "0.json").read_text())
    assert (truth["date"], truth["secondaryField"]) == ("2025-11-10", "Autohaus_Hoffmann_e.K.")
    assert truth["metadata"] | {"generatedAt": ""} == {
        **{"generatedAt": "", "textModel": "right", "verified": True, "vlmModel": ""}
    }
    # `.config` remembers that the saved selections are trusted here, `.local` has the key of seals.
    names = {"yes", "no", "ocr.py", "out.json", "runs", "__pycache__", ".config", ".cache", ".local"}
    assert {path.name for path in tmp_path.iterdir()} <= names

    saved = {file.parent.name: json.loads(file.read_text()) for file in tmp_path.glob("runs/right/*/run.json")}
    assert "|img:jpeg90(1024,2048)|max:16|t:0|timeout:30|" in saved["select_vlm-invoice"]["signature"]
    assert "|max:16+256|t:0|timeout:30|ocr:python-ocr.py_read|" in saved["select_textllm-invoice"]["signature"]
    assert saved["select_textllm-invoice"]["profile"]["timeout"] == 30
    other = json.loads((tmp_path / "runs" / "yes" / "select_textllm-invoice" / "run.json").read_text())
    assert other["parts"]["set"] == saved["select_textllm-invoice"]["parts"]["set"]
    assert "not saved: absent (unavailable: no requests were sent)" in done.stderr

    compared = loupe("compare", "runs/right/select_textllm-invoice", "runs/yes/select_textllm-invoice", cwd=tmp_path)
    assert compared.returncode == 0, compared.stderr
    assert re.search(r"right +100\.00 %", compared.stdout) and re.search(r"yes +30\.00 %", compared.stdout)


def test_pictures_are_sent_as_the_protocol_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from io import BytesIO

    from PIL import Image

    make_documents(tmp_path)
    sizes = {"wide": (3000, 300), "small": (400, 200), "tiny": (700, 600)}
    for name, size in sizes.items():
        Image.new("L", size, "white").save(tmp_path / "no" / f"{name}.png")
    monkeypatch.chdir(tmp_path)
    with in_thread(answer, models=MODELS) as own:
        assert main(words("--phase", "a", "--base-url", own.url, "--vlm", "right")) == 0
        images = [request.images[0] for request in own.requests[1:]]
        assert all(list(request.body["messages"][0]["content"][0]) == ["type", "image_url"] for request in own.requests)
    assert {kind for kind, _ in images} == {"image/jpeg"}
    opened = [Image.open(BytesIO(data)) for _, data in images]
    # 340 by 227 points at 144 dpi, and a picture of 700 by 290 pixels; then the letters, in byte order of their names.
    assert [picture.size for picture in opened[3:]] == [opened[0].size] * 2 + [(800, 400), (1024, 878), (2048, 205)]
    assert max(opened[0].size) == 1024 and max(opened[2].size) == 1024
    assert {picture.mode for picture in opened} == {"RGB"}
    assert not list(tmp_path.rglob("*.json")) and not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["--base-url", "http://127.0.0.1:9"], 2, "needs a terminal to ask at: pass --ground-truth reuse or"),
        (
            ["--type", "recipe", "--ground-truth", "reuse"],
            2,
            "which field of a recipe should be extracted besides the date",
        ),
        (["--type", " "], 2, "--type is empty"),
        (["--timeout", "20"], 2, "'20' is not one of '10', '30', '60'"),
        (["--phase", "a", "--positive", "nowhere"], 2, "nowhere is no folder"),
        (["--phase", "a", "--positive", "no"], 2, "are the same document in both folders"),
        (["--phase", "a", "--models", "none.toml"], 2, "none.toml"),
        (["--phase", "a", "--served-as", "x"], 2, "not ID=NAME"),
        (["--phase", "a", "--backend", "openai"], 2, "no model server named"),
        (["--phase", "a", "--base-url", "http://127.0.0.1:9"], 4, "no server answers at http://127.0.0.1:9/v1"),
        (["--ground-truth", "reuse", "--ocr", "nobody"], 2, "no engine 'nobody'"),
        (["--phase", "a", "--vlm", ""], 2, "--vlm is empty"),
        (["--phase", "a", "--json", "yes"], 2, "--json yes is a folder"),
        (
            ["--phase", "a", "--json", "no/no.json"],
            2,
            "is in the folder of documents, which is reserved for their ground truth",
        ),
        (["--positive", "nowhere"], 2, "nowhere is no folder"),
        (["--phase", "a", "--json", "/proc/nope/x.json"], 2, "--json /proc/nope/x.json cannot be written: "),
        (["--phase", "a", "--save", "--runs", "yes/yes.png/runs"], 2, "cannot be written: not a directory"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is(
    more: list[str],
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("yes", "no"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.png").write_text(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(words(*more)) == code
    error, hint = capsys.readouterr().err.splitlines()
    assert said in error and hint.startswith("hint: ")
    assert not list(tmp_path.rglob("*.json"))


def test_documents_that_cannot_be_opened_are_all_named(
    tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few_documents(tmp_path)
    (tmp_path / "yes" / "3.pdf").write_text("%PDF-1.4 broken")
    (tmp_path / "no" / "4.png").write_text("no image")
    (tmp_path / "no" / "copy.pdf").write_bytes((tmp_path / "no" / "0.pdf").read_bytes())
    monkeypatch.chdir(tmp_path)
    assert main(words("--phase", "a", "--base-url", server.url, "--vlm", "right")) == 2
    out, error = capsys.readouterr()
    assert "3.pdf: not a PDF, or a broken one" in error and "4.png: not an image" in error and out == ""
    assert "2 of 5 documents cannot be opened" in error and "no/copy.pdf is a copy of 0.pdf: it counts twice" in error


def test_a_server_with_none_of_the_listed_models_is_said_with_those_that_it_has(
    tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few_documents(tmp_path)
    monkeypatch.chdir(tmp_path)
    # This one takes any name.
    assert main(words("--phase", "a", "--base-url", server.url)) == 0
    out, error = capsys.readouterr()
    assert "lists none of the 25 models of Loupe's own list; it offers right, vague, absent: --vlm right," in error
    assert "models: default list of 25" in out


def test_where_no_model_comes_to_the_end_something_is_missing(
    tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few_documents(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(words("--phase", "a", "--base-url", server.url, "--vlm", "absent")) == 4
    assert "unavailable" in capsys.readouterr().out


class Terminal:
    """The command at a pseudo-terminal, with standard output apart, in a pipe."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._own, other = pty.openpty()
        self.process = subprocess.Popen(
            command(*arguments),
            cwd=folder,
            env=environment(folder, {"TERM": "xterm"}),
            stdin=other,
            stderr=other,
            stdout=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(other)
        self.seen = ""

    def type(self, keys: str, after: str, *, times: int = 1) -> None:
        """Wait until `after` has been asked so many times, then type."""
        self._read_until(lambda: self.seen.count(after) >= times)
        os.write(self._own, keys.encode())

    def end(self) -> tuple[int, str]:
        """Exit code and standard output."""
        self._read_until(lambda: self.process.poll() is not None)
        assert self.process.stdout is not None
        out = self.process.stdout.read().decode()
        self.process.stdout.close()
        os.close(self._own)
        return self.process.returncode, out

    def _read_until(self, done) -> None:  # type: ignore[no-untyped-def]
        end = time.monotonic() + 60
        while not done():
            assert time.monotonic() < end, self.seen
            if select.select([self._own], [], [], 0.05)[0]:
                try:
                    self.seen += os.read(self._own, 65536).decode(errors="replace")
                except OSError:
                    self.process.wait(10)


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


CHOOSE, REVIEW = "[q]uit ?", "'q' to quit:"


def few_documents(folder: Path) -> None:
    for name, text in (("yes", invoice(0)), ("no", letter(0))):
        (folder / name).mkdir()
        write_pdf(folder / name / "0.pdf", text.replace("\n", " \\\n"))


def test_a_person_at_a_terminal_is_asked_for_all_that_matters(tmp_path: Path, server: ChatServer) -> None:
    few_documents(tmp_path)
    flags = words("--base-url", server.url, "--vlm", "yes", "--textllm", "right")

    terminal = Terminal(tmp_path, *flags)
    terminal.type("5\r", "30 on Enter?")
    terminal.type("\r", "30 on Enter?", times=2)
    terminal.type("yes\r", REVIEW)
    terminal.type("l\r", REVIEW, times=2)
    terminal.type("\r", REVIEW, times=3)
    code, out = terminal.end()
    assert code == 0 and "timeout 30 s" in out and "Review" not in out
    assert terminal.seen.count("2025-11-10  Autohaus_Hoffmann_e.K.") == 2
    assert "beside their pages: loupe review yes --type invoice" in terminal.seen
    assert "[1/1] right: 3/3" in terminal.seen and "text models" not in terminal.seen
    # All questions come before the hours of the models, those of the other phase, too.
    assert terminal.seen.rindex(REVIEW) < terminal.seen.index("[1/1] yes: loading")


@pytest.mark.parametrize(
    ("keys", "code", "name"),
    [
        ([("?\r", CHOOSE, 1), ("\r", CHOOSE, 2), ("\x04", REVIEW, 1)], 3, "Foo"),
        ([("g\r", CHOOSE, 1), ("\x03", REVIEW, 1)], 130, "Autohaus_Hoffmann_e.K."),
    ],
    ids=["enter reuses, ctrl-d quits", "regenerated, ctrl-c"],
)
def test_leaving_at_a_question_asks_no_model_and_keeps_the_files(
    keys: list[tuple[str, str, int]], code: int, name: str, tmp_path: Path, server: ChatServer
) -> None:
    few_documents(tmp_path)
    truth = {"date": "2025-01-01", "documentType": "invoice", "isMatch": True, "metadata": {}, "secondaryField": "Foo"}
    (tmp_path / "yes" / "0.json").write_text(json.dumps(truth))
    terminal = Terminal(
        tmp_path, *words("--phase", "b", "--base-url", server.url, "--textllm", "right", "--timeout", "10")
    )
    for typed, after, times in keys:
        terminal.type(typed, after, times=times)
    assert terminal.end() == (code, "")
    assert "1 of 1 ground-truth files exist (0 verified). [r]euse / re[g]enerate / [q]uit ?" in terminal.seen
    written = json.loads((tmp_path / "yes" / "0.json").read_text())
    assert written["secondaryField"] == name and not written["metadata"].get("verified", False)


STUCK = """
import time
from pathlib import Path

def read(request):
    if not request.prompt.startswith("Answer with one word") and not request.prompt.startswith("Read this"):
        Path(__file__).with_suffix(".stuck").touch()
        time.sleep(600)
    return "ready"
"""


def test_ctrl_c_ends_the_server_that_was_started(tmp_path: Path) -> None:
    few_documents(tmp_path)
    (tmp_path / "model.py").write_text(STUCK)
    flags = words("--phase", "a", "--backend", "loupe", "--vlm", "python:model.py:read", "--timeout", "60")
    process = subprocess.Popen(
        command(*flags), cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    wait_for((tmp_path / "model.stuck").exists)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, b""), error
    records = list((tmp_path / ".cache").rglob(FILE))
    assert len(records) == 1
    record = record_of(records[0].parent)
    assert record.state == "stopped" and is_free(record.port)


def test_ctrl_c_keeps_every_model_that_was_finished_and_marks_the_one_that_was_not(tmp_path: Path) -> None:
    few_documents(tmp_path)

    def script(request: Received) -> str | Reply:
        return Reply(hang=True) if own.count == 6 else answer(request)

    with in_thread(script, models=MODELS) as own:
        flags = words("--phase", "a", "--base-url", own.url, "--vlm", "right", "--vlm", "yes", "--vlm", "vague")
        process = subprocess.Popen(
            command(*flags, "--save", "--json", "out.json", "--timeout", "10", "--plain"),
            cwd=tmp_path,
            env=environment(tmp_path),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        # The second document of the second model.
        wait_for(lambda: own.count >= 6, seconds=60)
        kept = tmp_path / "runs" / "right" / "select_vlm-invoice" / "result.json"
        # What kill -9 would leave is there by now.
        assert kept.is_file()
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    rows = out.splitlines()
    assert rows[2].startswith("1\tright\t2\t2\t100.0") and rows[3].startswith("interrupted\tyes\t1\t2\t50.0")
    assert "interrupted: 2 of 3 models were started" in error
    models = json.loads((tmp_path / "out.json").read_text())["phases"][0]["models"]
    assert [(each["model"], each["status"]) for each in models] == [("right", "ok"), ("yes", "interrupted")]
    assert [call["class"] for call in models[1]["calls"]] == ["ok", "not asked"]


def test_what_cannot_be_saved_is_said_and_the_other_phase_is_run_all_the_same(
    tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few_documents(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "selections").write_text("in the way")
    flags = words("--base-url", server.url, "--vlm", "right", "--textllm", "right", "--ground-truth", "reuse", "--yes")
    assert main([*flags, "--save"]) == 5
    out, error = capsys.readouterr()
    assert "vision models, by image" in out and "text models, by text" in out
    assert "right *" in out and "* scored against its own drafts: " in out
    assert "is unverified: loupe review DIR --type invoice" in " ".join(out.split())
    assert error.count("not saved: ") == 2 and "error: " in error.splitlines()[-2]


def test_a_file_name_with_a_line_break_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    person = talk.Terminal()
    person.tell("yes/a\nb.pdf: no text")
    person.show([("yes/a\nb.json", "2025-11-26", "Foo\rBar")])
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and lines[1].startswith("  yes/a\N{REPLACEMENT CHARACTER}b.json  2025-11-26  Foo")


def test_models_that_a_folder_names_need_trust_unless_others_are_named(tmp_path: Path) -> None:
    (tmp_path / "loupe.toml").write_text('[select]\nvlm = ["evil/model"]\n')
    for name, colour in {"yes": "white", "no": "black"}.items():
        (tmp_path / name).mkdir()
        Image.new("RGB", (60, 80), colour).save(tmp_path / name / f"{name}-1.png")
    words = ("select", "--type", "invoice", "--positive", "yes", "--negative", "no", "--phase", "a")
    words += ("--base-url", "http://127.0.0.1:9/v1")
    done = loupe(*words, cwd=tmp_path)
    assert "`loupe select` tries the models" in done.stderr and done.returncode == 2, done.stderr
    named = loupe(*words, "--vlm", "a/b", "--textllm", "c/d", cwd=tmp_path)
    assert "trust" not in named.stderr, named.stderr
