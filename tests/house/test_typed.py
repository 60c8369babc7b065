"""Types are built one at a time: where two threads build the same one at once, msgspec ends the process."""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import loupe
from loupe.typed import decode_json

SOURCE = Path(loupe.__file__).parent

#: 200 fresh processes in which four scoring threads get their first reply at the same moment; 13 % crashed once.
FIRST_REPLIES = """
import os, sys, threading
import msgspec
from loupe.scoring.child import Scored
from loupe.scoring.process import LocalLine, Worker
from loupe.workers.child import frame
from loupe.types import SampleScores, Score

sys.setswitchinterval(1e-6)
scores = SampleScores(sample="a", scores=(Score(measure="m", counts=(1.0,)),))
reply = frame(msgspec.msgpack.encode(Scored(scores=scores)))
workers = [Worker(LocalLine()) for _ in range(4)]


def first_replies():
    together, got = threading.Barrier(len(workers)), []

    def receive(worker):
        worker._buffer += reply
        together.wait()
        got.append(worker.receive(timeout=10, tick=lambda: None))

    threads = [threading.Thread(target=receive, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os._exit(0 if len(got) == len(workers) else 1)


ends = []
for _ in range(200):
    if not (child := os.fork()):
        first_replies()
    ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
for worker in workers:
    worker.close()
print(sum(end != 0 for end in ends), "of", len(ends), "ended with", sorted(set(ends)))
sys.exit(any(ends))
"""


def test_scoring_threads_that_get_their_first_reply_at_once_crash_nothing():
    done = subprocess.run([sys.executable, "-c", FIRST_REPLIES], capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stdout + done.stderr


def test_no_function_builds_a_type_of_its_own():
    found = [place for file in sorted(SOURCE.rglob("*.py")) if file.name != "typed.py" for place in typed_reads(file)]

    assert found == [], "use loupe.typed; a thread may run these"


def test_only_typed_writes_json_with_msgspec():
    """So that text which UTF-8 cannot hold is written everywhere. The plan asks whether there is such text, and a run
    refuses names that are no text: under another name nothing would be found again."""
    writers = {
        str(file.relative_to(SOURCE)) for file in SOURCE.rglob("*.py") if "msgspec.json.encode(" in file.read_text()
    }

    assert writers == {"typed.py", "pipeline/plan.py", "runs/folder.py"}, "use loupe.typed.encode_json"


def test_json_is_decoded_in_one_place():
    """Which reads half a surrogate pair as data: whatever stands in it, and whoever wrote it."""
    files = [file for file in sorted(SOURCE.rglob("*.py")) if file.name != "typed.py"]

    assert [file.name for file in files if "msgspec.json.decode" in file.read_text()] == [], "use loupe.typed"


def typed_reads(file: Path) -> Iterator[str]:
    """Calls of msgspec within functions that make it collect what it knows of a type."""
    functions = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, DEFINITIONS)]
    for call in (node for function in functions for node in ast.walk(function) if isinstance(node, ast.Call)):
        name = ast.unparse(call.func)
        if not name.startswith("msgspec."):
            continue
        typed = any(keyword.arg == "type" for keyword in call.keywords)
        if typed or name.endswith((".convert", ".Decoder")):
            yield f"{file.relative_to(SOURCE)}:{call.lineno}: {name}"


DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def test_numbers_that_take_minutes_to_read_are_refused():
    heavy, few = b"[" + b"1e308, " * 20_000 + b"0]", b"[" + b"1e308, 0.25, " * 4_000 + b"0]"
    began = time.process_time()
    for text in (heavy, memoryview(heavy), heavy.decode()):
        with pytest.raises(msgspec.DecodeError, match="more than 5,000 numbers with an exponent of three digits"):
            decode_json(text)
    assert time.process_time() - began < 0.1, "each takes 0.2 s otherwise"
    assert len(decode_json(few)) == 8_001
