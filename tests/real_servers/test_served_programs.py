"""`--serve` with the real programs and random weights: from the start to the last process that is gone."""

from __future__ import annotations

import dataclasses
import json
import os
import secrets
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw

from loupe.servers.record import FILE, ServerRecord
from loupe.servers.templates import templates
from tests.support.command_line import command, environment
from tests.support.served import TEST_MARK, ports_in_use, record_of, started_by_test, wait_for

MAKERS = Path(__file__).parent / "tiny_models"
#: Seconds: two starts of vLLM on a machine with other work.
PATIENCE = 1500.0
PAGES = """
from pathlib import Path
from loupe.types import Benchmark, Measure, Sample, Score

def load(root):
    page = (Path(__file__).with_name("page.png"),)
    prompts = ["read"] * 2 + ["much " * LONG] * bool(LONG) + ["read"] * 2
    for number, prompt in enumerate(prompts):
        yield Sample(id=f"p{number}", images=page, prompt=prompt, truth="a page")

def score(sample, prediction):
    return [Score(measure="right", counts=(float(prediction.text == sample.truth), 1.0))]

benchmark = Benchmark(
    title="Pages", version="1", task="text", load=load, score=score, measures=(Measure(name="right"),)
)
"""
#: For vLLM on a small CPU, and for all: nothing is asked of a hub.
SETTINGS = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "0",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Program:
    """A kind of server, how it gets its random model, and what it does that others do not.

    `context`: tokens of prompt and answer together, 0 where it knows no limit; `refused`: what it says of a prompt that
    does not fit; `wrong`: what it says of an argument that it does not know.
    """

    kind: str
    maker: tuple[str, ...]
    model: str
    wrong: str
    arguments: tuple[str, ...] = ()
    max_tokens: int = 5000
    context: int = 0
    refused: str = ""


PROGRAMS = [
    Program(
        kind="llama-server",
        maker=("gguf_files.py",),
        model="./model/model.gguf",
        arguments=("--mmproj=./model/mmproj.gguf",),
        context=4096,
        refused="exceeds the available context size (4096 tokens)",
        wrong="error: invalid argument: --no-such-argument",
    ),
    Program(
        kind="mlx_vlm",
        maker=("qwen2vl_folder.py", "mlx"),
        model="./model",
        max_tokens=8,
        wrong="mlx_vlm.server: error: unrecognized arguments: --no-such-argument 1",
    ),
    Program(
        kind="vllm",
        maker=("qwen2vl_folder.py",),
        model="./model",
        arguments=("--enforce-eager", "--dtype=float32", "--max-model-len=1024", "--max-num-seqs=2"),
        context=1024,
        refused="maximum context length is 1024 tokens",
        wrong="vllm: error: unrecognized arguments: --no-such-argument 1",
    ),
]


@pytest.fixture(params=PROGRAMS, ids=lambda program: program.kind)
def program(request: pytest.FixtureRequest, programs: Path) -> Program:
    found: Program = request.param
    if not (programs / found.kind / "ready").exists():
        pytest.skip(f"{found.kind}: not installed by script/test-servers")
    return found


@pytest.fixture
def here(program: Program, programs: Path, tmp_path: Path) -> Path:
    """A folder with the model and a benchmark of pages, one of them with a prompt that is too long."""
    (tmp_path / "model").mkdir()
    maker, *words = program.maker
    made = [programs / program.kind / "bin" / "python", MAKERS / maker, tmp_path / "model", *words]
    subprocess.run(made, check=True, capture_output=True, timeout=300, env={**os.environ, **SETTINGS})
    page = Image.new("RGB", (280, 112), "white")
    ImageDraw.Draw(page).text((8, 8), "a page", "black")
    page.save(tmp_path / "page.png")
    (tmp_path / "pages.py").write_text(PAGES.replace("LONG", str(3 * program.context)), encoding="utf-8")
    return tmp_path


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """After every test: no process of it, no port."""
    mark = secrets.token_hex(8)
    monkeypatch.setenv(TEST_MARK, mark)
    yield
    left, ports = started_by_test(mark), ports_in_use(tmp_path)
    for process in left:
        os.kill(process.pid, signal.SIGKILL)
    assert (left, ports) == ([], [])


def start(program: Program, programs: Path, here: Path, *more: str) -> subprocess.Popen[str]:
    """`loupe run` of the pages with a server of this kind, one page at a time."""
    arguments = [f"--server-arg={argument}" for argument in (*program.arguments, *more)]
    words = command(
        *("run", "./pages.py", "--serve", f"{program.kind}:{program.model}", "--server-port", "auto", "-n", "1"),
        *("--max-tokens", str(program.max_tokens), "--name", "served", "--json", *arguments),
    )
    path = f"{programs / program.kind / 'bin'}{os.pathsep}{os.environ['PATH']}"
    env = environment(here, {**SETTINGS, "PATH": path})
    return subprocess.Popen(words, cwd=here, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def read_pages(here: Path) -> list[dict[str, Any]]:
    """What is stored of the answers so far."""
    file = here / "runs/served/pages/predictions.jsonl"
    *whole, _ = file.read_text(encoding="utf-8").split("\n") if file.exists() else [""]
    return [json.loads(line) for line in whole]


def first_page(process: subprocess.Popen[str], here: Path) -> ServerRecord:
    """Wait until one page is read; gives the record of the server."""
    wait_for(lambda: read_pages(here) or process.poll() is not None, seconds=PATIENCE)
    assert process.poll() is None, process.communicate()
    return record_of(here / "runs/served/pages")


def asked(url: str) -> Any:
    """The JSON of an address, or nothing where it answers without."""
    with urllib.request.urlopen(url, timeout=30) as answer:
        body = answer.read()
    return json.loads(body) if body else None


def test_it_starts_reads_is_killed_and_heals_and_nothing_is_left(program: Program, programs: Path, here: Path) -> None:
    with start(program, programs, here) as process:
        running = first_page(process, here)
        asked(running.url.removesuffix("/v1") + templates()[program.kind].health)
        if program.kind != "mlx_vlm":  # it lists what lies in the hub's cache
            assert program.model in [each["id"] for each in asked(f"{running.url}/models")["data"]]
        os.kill(running.pid, signal.SIGKILL)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    record = record_of(here / "runs/served/pages")
    assert (record.state, record.origin, record.restarts) == ("stopped", "started", 1) and record.pid != running.pid
    pages = {each["sample"]: each for each in read_pages(here)}
    too_long = [pages.pop("p2")] if program.context else []
    assert len(pages) == 4 and all(each["class"] in ("truncated", "repeated") for each in pages.values()), pages
    assert all(program.refused in each["error"] for each in too_long), too_long
    assert len(json.loads(out)["failures"]) >= len(too_long)
    if program.context:
        # 5000 were asked for: llama-server cuts the answer; vLLM says how many it gives, and is asked again for these.
        again = {each["response"].get("max_tokens_reduced_to") for each in pages.values()}
        assert again == ({program.context} if program.kind == "vllm" else {None})
        used = {each["input_tokens"] + each["output_tokens"] for each in pages.values()}
        assert all(program.context - 2 <= tokens <= program.context for tokens in used), used


def test_a_wrong_argument_is_shown_in_the_servers_own_words(program: Program, programs: Path, here: Path) -> None:
    with start(program, programs, here, "--no-such-argument=1") as process:
        out, err = process.communicate(timeout=PATIENCE)
    error, hint = [line for line in err.splitlines() if line.startswith(("error: ", "hint: "))]
    assert process.returncode == 4 and out == "", err
    assert error.endswith(f"did not start: {program.wrong}") and hint == "hint: see the server's own --help"


def test_a_killed_loupe_takes_the_server_with_it(program: Program, programs: Path, here: Path) -> None:
    with start(program, programs, here) as process:
        record = first_page(process, here)
        process.kill()
        process.communicate()
    wait_for(lambda: not started_by_test(os.environ[TEST_MARK]), seconds=60)
    assert record.state == "running" and (here / "runs/served/pages" / FILE).exists()


@pytest.mark.parametrize("program", PROGRAMS[:1], indirect=True, ids=lambda each: each.kind)
def test_one_ctrl_c_finishes_the_page_and_stops_the_server(program: Program, programs: Path, here: Path) -> None:
    with start(program, programs, here) as process:
        first_page(process, here)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and "Traceback" not in err
    assert record_of(here / "runs/served/pages").state == "stopped"
