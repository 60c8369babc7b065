"""The kinds that bring a user's own work: programs, Python functions, folders of answers."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.engines.command import fill
from loupe.engines.registry import engine_module, load_profile
from loupe.errors import (
    EngineError,
    EngineTimeoutError,
    LoupeError,
    MissingToolError,
    ProfileError,
    RejectedError,
    UsageError,
)
from loupe.types import Output, PdfPage, Prediction, Request
from tests.support.pages import draw_page, write_pdf

PYTHON = sys.executable


def ask(name: str, *requests: Request, **settings: Any) -> list[Output | BaseException]:
    """Answers of an engine, or errors, in the order of the requests."""

    async def run() -> list[Output | BaseException]:
        _, profile = load_profile(name, settings)
        async with engine_module(profile.kind).open_engine(profile) as engine:
            return await asyncio.gather(*map(engine.predict, requests), return_exceptions=True)

    return asyncio.run(run())


def answer(name: str, request: Request, **settings: Any) -> Output:
    (found,) = ask(name, request, **settings)
    if isinstance(found, BaseException):
        raise found
    return found


def program(body: str, *arguments: str) -> list[str]:
    """A command that runs this Python text with `arguments` in sys.argv[1:]."""
    return [PYTHON, "-c", body, *arguments]


def page(tmp_path: Path, **more: Any) -> Request:
    return Request(id="p", images=(draw_page(tmp_path / "page one.png"),), **more)


# ---- command


def test_a_program_gets_page_prompt_and_text_as_whole_arguments(tmp_path: Path) -> None:
    request = page(tmp_path, prompt="What's  it? $(touch x) `id` {text}", text="a\nb")
    command = program("import sys, json; print(json.dumps(sys.argv[1:]))", "{image}", "ask: {prompt}", "text={text}")
    found = json.loads(answer("command", request, command=command).text)
    assert found == [str(tmp_path / "page one.png"), f"ask: {request.prompt}", "text=a\nb"]


def test_a_command_in_one_text_is_split_without_a_shell(tmp_path: Path) -> None:
    command = f"{PYTHON} -c 'import sys; print(sys.argv[1:])' ; echo '$HOME' {{image}}"
    assert answer("command", page(tmp_path), command=command).text.startswith("[';', 'echo', '$HOME', '/")


def test_a_pdf_page_is_handed_over_as_a_png_that_is_gone_afterwards(tmp_path: Path) -> None:
    request = Request(id="p", images=(PdfPage(write_pdf(tmp_path / "a.pdf", "one", "two"), 2),))
    body = "import sys; print(sys.argv[1]); print(open(sys.argv[1], 'rb').read(4))"
    path, magic = answer("command", request, command=program(body, "{image}")).text.split("\n")[:2]
    assert magic == "b'\\x89PNG'"
    assert not Path(path).exists()


def test_a_failing_program_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    body = "import sys; sys.stderr.write('x' * 5000 + 'out of paper'); sys.exit(4)"
    with pytest.raises(EngineError, match=r"ended with 4: x+out of paper\nhint: .*pass_env") as error:
        answer("command", page(tmp_path), command=program(body, "{image}"))
    assert len(error.value.message) < 250


def test_a_program_that_crashes_names_the_signal(tmp_path: Path) -> None:
    body = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    with pytest.raises(EngineError, match="killed by signal 9"):
        answer("command", page(tmp_path), command=program(body, "{image}"))


def test_a_program_that_hangs_is_ended_with_all_its_children(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    body = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(mark)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)"
    )
    with pytest.raises(EngineTimeoutError, match=r"1\.5 s"):
        answer("command", page(tmp_path), command=program(body, "{image}"), timeout=1.5)
    pid = int(mark.read_text())
    end = time.monotonic() + 20
    while _runs(pid) and time.monotonic() < end:
        time.sleep(0.02)
    assert not _runs(pid)


PARENT = """
import asyncio, sys
from loupe.workers.programs import run_program
asyncio.run(run_program([sys.executable, "-c", sys.argv[1]], timeout=600, environment={}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can do that")
def test_a_program_does_not_outlive_a_killed_loupe(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    body = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid()) + '.'); time.sleep(600)"
    parent = subprocess.Popen([PYTHON, "-c", PARENT, body])
    end = time.monotonic() + 20
    while time.monotonic() < end and not (mark.exists() and mark.read_text().endswith(".")):
        time.sleep(0.02)
    pid = int(mark.read_text().rstrip("."))
    parent.kill()
    parent.wait()
    while _runs(pid) and time.monotonic() < end:
        time.sleep(0.02)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text() if sys.platform == "linux" else True
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_endless_output_is_an_error_not_a_full_memory(tmp_path: Path) -> None:
    body = "import sys\nwhile True: sys.stdout.write('x' * 1_000_000)"
    with pytest.raises(EngineError, match="more than 64 MB"):
        answer("command", page(tmp_path), command=program(body, "{image}"))


def test_output_that_is_not_utf8_is_an_error(tmp_path: Path) -> None:
    body = "import sys; sys.stdout.buffer.write(b'ok \\xff')"
    with pytest.raises(EngineError, match=r"not UTF-8 \(byte 3\)"):
        answer("command", page(tmp_path), command=program(body, "{image}"))


def test_a_prompt_cannot_become_an_option(tmp_path: Path) -> None:
    command = program("print('read')", "{prompt}", "{image}")
    with pytest.raises(EngineError, match="would be taken for an option"):
        answer("command", page(tmp_path, prompt="--output=/etc/passwd"), command=command)
    assert answer("command", page(tmp_path, prompt="plain"), command=command).text == "read\n"


def test_a_file_whose_name_starts_with_a_dash_is_no_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    draw_page(Path("-v.png"))
    command = program("import sys; print(sys.argv[1])", "{image}")
    found = answer("command", Request(id="p", images=(Path("-v.png"),)), command=command).text
    assert found == f"{tmp_path}/-v.png\n"


@pytest.mark.parametrize(
    ("command", "error", "message"),
    [
        ("no-such-program {image}", MissingToolError, "no-such-program"),
        ([], ProfileError, "empty"),
        ("cat 'x", ProfileError, "No closing quotation"),
        ("cat {imgae}", ProfileError, r"no placeholder \{imgae\}"),
        ("cat", ProfileError, "has no placeholder for the page"),
    ],
)
def test_a_wrong_command_is_refused_before_the_first_page(command: Any, error: type[LoupeError], message: str) -> None:
    with pytest.raises(error, match=message):
        ask("command", command=command)


def test_a_program_that_nobody_may_execute_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "ocr it.sh").write_text("#!/bin/sh\n")
    with pytest.raises(MissingToolError, match="is not executable") as caught:
        ask("command", command=[f"{tmp_path}/ocr it.sh", "{image}"])
    assert caught.value.hint == f"chmod +x '{tmp_path}/ocr it.sh'"


@given(st.text().filter(lambda text: "\0" not in text and not text.startswith("-")))
def test_a_filled_command_has_as_many_arguments_as_the_template(prompt: str) -> None:
    assert fill(["p", "{prompt}", "-q={prompt}"], {"prompt": prompt}) == ["p", prompt, f"-q={prompt}"]


# ---- python


@pytest.mark.parametrize(
    ("function", "text"),
    [("tests.support.engine_functions:read", "p: hi"), ("tests.support.engine_functions:read_later", "later p")],
)
def test_a_function_gets_the_request_and_returns_the_answer(function: str, text: str) -> None:
    assert answer("python", Request(id="p", prompt="hi"), function=function).text == text


def test_a_function_in_a_file_may_import_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("WORD = 'near'\n")
    (tmp_path / "mine.py").write_text("import neighbour\ndef go(request):\n    return neighbour.WORD + request.id\n")
    assert answer("python", Request(id="p"), function=f"{tmp_path}/mine.py:go").text == "nearp"


def test_a_module_in_the_current_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_reader.py").write_text("def go(request):\n    return 'here'\n")
    monkeypatch.chdir(tmp_path)
    assert answer("python:my_reader:go", Request(id="p")).text == "here"


def test_a_crash_or_hang_of_a_function_costs_its_page_alone() -> None:
    requests = [Request(id=str(i), prompt=prompt) for i, prompt in enumerate(["segfault", "hang", "fine"])]
    crashed, hung, fine = ask("python", *requests, function="tests.support.engine_functions:misbehave", timeout=1.0)
    assert isinstance(crashed, EngineError)
    assert "SIGSEGV" in crashed.message
    assert isinstance(hung, EngineTimeoutError)
    assert isinstance(fine, Output)


def test_a_function_that_returns_no_text_is_an_error_of_the_page() -> None:
    with pytest.raises(EngineError, match="returned int, not a str or an Output"):
        answer("python", Request(id="p"), function="tests.support.engine_functions:read_number")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("tests.support.engine_functions", "not module:function"),
        ("no_such_module:go", "no module 'no_such_module'"),
        ("tests.support.engine_functions:nothing", "no function 'nothing'"),
        ("tests.support.engine_functions:two_arguments", "must take one argument"),
        ("nowhere/mine.py:go", "no file nowhere/mine.py"),
    ],
)
def test_a_wrong_function_is_refused_before_the_first_page(function: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ask("python", function=function)


# ---- what answers are made from


def source(name: str, **settings: Any) -> str:
    """The digest of what an engine answers from."""

    async def run() -> str:
        _, profile = load_profile(name, settings)
        async with engine_module(profile.kind).open_engine(profile) as engine:
            return engine.facts["source"]

    found = asyncio.run(run())
    assert re.fullmatch("[0-9a-f]{16}", found)
    return found


def test_another_program_or_script_has_another_source(tmp_path: Path) -> None:
    script, other = tmp_path / "ocr.py", tmp_path / "other.py"
    script.write_text("1")
    other.write_text("2")
    command = [PYTHON, str(script), "{image}"]
    before = source("command", command=command)
    assert source("command", command=command) == before
    assert source("command", command=[PYTHON, str(other), "{image}"]) != before
    script.write_text("2")
    assert source("command", command=command) != before
    shell = tmp_path / "ocr.sh"
    shell.write_text("#!/bin/sh\necho 1\n")
    shell.chmod(0o755)
    before = source("command", command=[str(shell), "{image}"])
    shell.write_text("#!/bin/sh\necho 2\n")
    assert source("command", command=[str(shell), "{image}"]) != before


def test_another_text_of_a_function_is_another_source(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def go(request):\n    return 'one'\n")
    function = f"{tmp_path}/mine.py:go"
    before = source("python", function=function)
    assert source("python", function=function) == before
    (tmp_path / "mine.py").write_text("def go(request):\n    return 'two'\n")
    assert source("python", function=function) != before


def test_other_answers_are_another_source(tmp_path: Path) -> None:
    folder, file = tmp_path / "answers", tmp_path / "answers.jsonl"
    folder.mkdir()
    (folder / "a.txt").write_text("one")
    file.write_text('{"id": "a", "text": "one"}\n')
    before = source(f"predictions:{folder}"), source(f"predictions:{file}")
    assert (source(f"predictions:{folder}"), source(f"predictions:{file}")) == before
    (folder / "a.txt").rename(folder / "b.txt")
    file.write_text('{"id": "a", "text": "two"}\n')
    after = source(f"predictions:{folder}"), source(f"predictions:{file}")
    assert after[0] != before[0] and after[1] != before[1]


# ---- predictions


def test_answers_are_found_under_the_names_a_folder_may_have(tmp_path: Path) -> None:
    files = {"a.txt": "one", "sub/b.md": "two", "c%3Ad.html": "three", "e.jpg.json": "four", "f.md": "five"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    ids = ["a", "sub/b", "c:d", "e.jpg", "f.png"]
    found = ask(f"predictions:{tmp_path}", *(Request(id=ident) for ident in ids))
    assert [output.text for output in found if isinstance(output, Output)] == [*files.values()]


def test_a_missing_file_is_an_error_and_an_empty_file_is_an_empty_answer(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    missing, empty = ask(f"predictions:{tmp_path}", Request(id="gone"), Request(id="empty"))
    assert isinstance(missing, EngineError)
    assert not isinstance(missing, RejectedError)
    assert missing.message == f"no file for sample 'gone' in {tmp_path}"
    assert isinstance(empty, Output)
    assert empty.text == ""


@pytest.mark.parametrize("ident", ["../secret", "/etc/hostname", "sub/../../secret", "link"])
def test_an_id_cannot_lead_out_of_the_folder(ident: str, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    folder = tmp_path / "answers"
    folder.mkdir()
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (found,) = ask(f"predictions:{folder}", Request(id=ident))
    assert isinstance(found, EngineError)


def test_a_file_that_is_not_utf8_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"ab\xff")
    with pytest.raises(EngineError, match=r"a.txt: not UTF-8 \(byte 2\)"):
        answer(f"predictions:{tmp_path}", Request(id="a"))


def test_answers_may_stand_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    lines = [{"id": "a", "text": "one"}, {"sample": "b", "prediction": "two"}, {"id": "c", "error": "busy", "text": ""}]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    one, two, failed, missing = ask(f"predictions:{path}", *(Request(id=ident) for ident in "abcd"))
    assert isinstance(one, Output)
    assert isinstance(two, Output)
    assert (one.text, two.text) == ("one", "two")
    assert isinstance(failed, EngineError)
    assert "busy" in failed.message
    assert isinstance(missing, EngineError)
    assert "no line for sample 'd'" in missing.message


@pytest.mark.parametrize(("line", "message"), [("{", "line 2"), ('{"text": "x"}', "line 2: no `id`")])
def test_a_broken_line_is_named(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text('{"id": "a", "text": "x"}\n' + line + "\n")
    with pytest.raises(UsageError, match=message):
        ask(f"predictions:{path}")


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder or file of predictions"):
        ask(f"predictions:{tmp_path}/nowhere")


def test_the_predictions_of_a_run_keep_their_class_finish_reason_and_tokens(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    kept = [
        Prediction(
            sample="cut", text="lo", outcome="truncated", finish_reason="length", output_tokens=9, reasoning="hm"
        ),
        Prediction(sample="cut2", text="lo", outcome="truncated"),
        Prediction(sample="late", outcome="timeout", error="no answer within 3 s"),
        Prediction(sample="no", outcome="rejected", error="HTTP 400: too large"),
        Prediction(sample="bad", outcome="error", error="HTTP 500"),
        Prediction(sample="bad2", outcome="error"),
        Prediction(sample="nothing", outcome="empty"),
    ]
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in kept))
    found = ask(f"predictions:{path}", *(Request(id=line.sample) for line in kept))
    cut, cut2, late, refused, bad, bad2, nothing = found
    assert cut == Output(text="lo", finish_reason="length", output_tokens=9, reasoning="hm", seconds=0.0)
    assert isinstance(cut2, Output)
    assert cut2.finish_reason == "length"
    assert isinstance(nothing, Output)
    assert nothing.text == ""
    errors = [(type(error), getattr(error, "message", "")) for error in (late, refused, bad, bad2)]
    assert errors == [
        (EngineTimeoutError, "no answer within 3 s"),
        (RejectedError, "HTTP 400: too large"),
        (EngineError, "HTTP 500"),
        (EngineError, f"{path}: sample 'bad2' has no answer"),
    ]


def test_of_several_lines_of_a_sample_the_last_good_one_counts(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    lines = [
        Prediction(sample="a", text="first"),
        Prediction(sample="a", text="second"),
        Prediction(sample="a", outcome="error", error="later"),
        Prediction(sample="b", outcome="error", error="one"),
        Prediction(sample="b", outcome="timeout", error="two"),
    ]
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines) + b'{"sample": "a", "te')
    good, failed = ask(f"predictions:{path}", Request(id="a"), Request(id="b"))
    assert isinstance(good, Output)
    assert good.text == "second"
    assert isinstance(failed, EngineTimeoutError)
    assert failed.message == "two"


def test_runs_of_a_command_are_called_by_its_program_and_a_digest_of_all_of_it_or_by_the_name_given() -> None:
    names = [
        load_profile(f"command:{command}")[0]
        for command in ("/usr/bin/pdftotext -layout {pdf} -", "pdftotext  -layout {pdf} -", "pdftotext {pdf} -", '"x')
    ]
    assert names[1] == "pdftotext-8f13" and len({*names}) == 4
    assert all(re.fullmatch(r"(pdftotext|x)-[0-9a-f]{4}", name) for name in names)
    assert load_profile("mine=command:pdftotext --x=y {pdf} -")[0] == "mine"
    assert load_profile("reader=python:reader.py:read")[0] == "reader"
