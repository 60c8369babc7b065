"""A real server with faults for tests: `loupe serve` of a function whose prompts say what is to go wrong.

What is asked decides: `crash-once` kills the server the first time, `poison` always, `hang-once` makes that server
answer nobody any more, `hold` waits for the file `go`. Files beside the function decide how the server starts.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from loupe.engines.registry import load_profile
from loupe.inference.progress import Progress
from loupe.pipeline import Plan, infer
from loupe.runs.folder import RunFolder
from loupe.servers.keeper import Keeper
from loupe.servers.processes import Patience, Process, StopPatience, living
from loupe.servers.record import FILE, ServerRecord
from loupe.servers.server_probes import is_free
from loupe.types import Prediction

READER = """
import os, signal, subprocess, sys, time
from pathlib import Path

HERE = Path(__file__).parent
if (HERE / "memory").exists():
    print("ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", file=sys.stderr, flush=True)
    os._exit(1)
if (HERE / "variable").exists():
    sys.exit("KeyError: 'MY_SETTING'")
while (HERE / "wait").exists():
    time.sleep(0.02)

def first(name):
    try:
        (HERE / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True

def read(request):
    word = request.prompt
    if word == "poison" or (word == "crash-once" and first(word)):
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)
    if word == "hang-once" and first(word):
        (HERE / "stuck").write_text(str(os.getppid()))
    if (HERE / "stuck").exists() and (HERE / "stuck").read_text() == str(os.getppid()):
        time.sleep(600)
    while word == "hold" and not (HERE / "go").exists():
        (HERE / "holding").touch()
        time.sleep(0.02)
    if word == "out-of-memory":
        with open(f"/proc/{os.getppid()}/fd/2", "a") as log:
            log.write("torch.OutOfMemoryError: CUDA out of memory\\n")
        os.kill(os.getppid(), signal.SIGKILL)
    if word == "child":
        deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
        child = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE, start_new_session=True)
        child.stdout.readline()
        (HERE / "child").write_text(str(child.pid))
    return f"read {word}"
"""
BENCHMARK = '''
"""Questions without pages."""
from loupe.types import Benchmark, Measure, Sample, Score

def load(root):
    for number, word in enumerate({words!r}):
        yield Sample(id=f"{{number}}-{{word}}", prompt=word, truth=f"read {{word}}")

def score(sample, prediction):
    return [Score(measure="right", counts=(float(prediction.text == sample.truth), 1.0))]

benchmark = Benchmark(
    title="Words", version="1", task="text", load=load, score=score, measures=(Measure(name="right"),),
)
'''
#: A server that SIGTERM does not reach: the signal stays blocked in what is started.
STUBBORN = f"""#!{sys.executable}
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGTERM}})
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
#: As patient as a test can be: long enough for a loaded machine where something has to happen, short where not.
QUICK = Patience(
    poll=0.2,
    warm_up=60.0,
    deep=1.0,
    backoff=(0.05, 0.05, 0.05),
    stop=StopPatience(term=1.0, stragglers=0.5, kill=20.0),
)
#: In the environment of a test, and so of everything that it starts: of a family that Loupe hands on.
TEST_MARK = "OMP_LOUPE_TEST_MARK"


def make_benchmark(folder: Path, words: Sequence[str]) -> Path:
    """A benchmark that asks these words, and beside it the function that reads them."""
    (folder / "faulty.py").write_text(READER)
    stubborn = folder / "stubborn"
    stubborn.write_text(STUBBORN)
    stubborn.chmod(0o755)
    file = folder / "words.py"
    file.write_text(BENCHMARK.format(words=list(words)))
    return file


def make_plan(folder: Path, words: Sequence[str], *, name: str = "served", **keys: Any) -> Plan:
    """A run of these words at a server of ours; `keys` are those of the engine's profile."""
    settings = {"serve": f"loupe:python:{folder / 'faulty.py'}:read", "server_port": "auto", "concurrency": 4, **keys}
    _, profile = load_profile("openai", settings)
    return Plan(benchmark=str(make_benchmark(folder, words)), label=name, profile=profile, runs=folder / "runs", jobs=1)


def read_with(plan: Plan, *, keeper: Keeper | None = None, patience: Patience = QUICK) -> RunFolder:
    """Ask for everything; the server is stopped afterwards unless it is somebody's."""
    if keeper is not None:
        return asyncio.run(infer(plan, Progress(), keeper=keeper))
    with Keeper(patience) as own:
        return asyncio.run(infer(plan, Progress(), keeper=own))


def outcomes(folder: RunFolder) -> dict[str, Prediction]:
    """The last prediction for every word."""
    return {sample.partition("-")[2]: prediction for sample, prediction in folder.predictions().items()}


def record_of(folder: Path) -> ServerRecord:
    """What the run says of its server."""
    return msgspec.json.decode((folder / FILE).read_bytes(), type=ServerRecord)


def wait_for(condition: Callable[[], Any], *, seconds: float = 60.0) -> Any:
    """What the condition gives once it gives something; fails when it never does."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "what was waited for did not happen"
        time.sleep(0.02)
    return found


def started_by_test(mark: str) -> list[Process]:
    """Every living process that the test of this mark has started, itself or through others."""
    needle = f"{TEST_MARK}={mark}\0".encode()
    return [process for process in living().values() if process.pid != os.getpid() and needle in _environment(process)]


def _environment(process: Process) -> bytes:
    try:
        return Path(f"/proc/{process.pid}/environ").read_bytes()
    except OSError:
        return b""


def ports_in_use(root: Path) -> list[int]:
    """The ports of all servers of runs below a folder on which somebody still listens."""
    ports = {record_of(file.parent).port for file in root.rglob(FILE)}
    return sorted(port for port in ports if not is_free(port))
