"""Kill a run with SIGKILL at random moments, continue it, and check that nothing acknowledged was ever lost.

A harness, used by tests/pipeline/test_kill.py with a few kills and by hand with many:
`python -m tests.support.kill_harness --kills 200`.
The server is real (aiohttp on loopback), the run is a real process, and the run tells on a pipe which answers it has
acknowledged, after `keep` returned and before it goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from aiohttp import web

from loupe.engines.registry import load_profile
from loupe.inference.progress import Progress
from loupe.pipeline import Plan, run
from loupe.runs.folder import RunFolder
from loupe.types import Prediction, Result

BENCHMARK = '''
"""Words to be echoed, a third of them wrongly."""
from loupe.metrics import character_errors
from loupe.types import Benchmark, Measure, Sample, Score

def load(root):
    for number in range({count}):
        yield Sample(id=f"s{{number:05}}", text=f"word {{number}}", truth=f"word {{number}}", prompt=f"word {{number}}")

def score(sample, prediction):
    return [Score(measure="cer", counts=tuple(map(float, character_errors(prediction.text, sample.truth))))]

benchmark = Benchmark(
    title="Echo", version="1", task="text", load=load, score=score,
    measures=(Measure(name="cer", higher_is_better=False),),
)
'''


@dataclass
class Report:
    """What happened: all but `kills` and `acknowledged` must be empty or equal for the test to pass."""

    kills: int = 0
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    unequal: list[str] = field(default_factory=list)
    asked_again: int = 0


class TellingProgress(Progress):
    """Writes the id of each acknowledged sample to standard output, unbuffered."""

    def count(self, prediction: Prediction) -> None:
        os.write(1, f"{prediction.sample}\n".encode())
        super().count(prediction)


def work(benchmark: str, url: str, runs: str) -> None:
    """The process that gets killed: one run against the server."""
    overrides = {"base_url": url, "model": "echo", "concurrency": 16}
    label, profile = load_profile("openai", overrides)
    asyncio.run(
        run(Plan(benchmark=benchmark, label=label, profile=profile, runs=Path(runs), jobs=1), TellingProgress())
    )


@contextmanager
def echo_server(delay: float) -> Iterator[tuple[str, Counter[str]]]:
    """An OpenAI-compatible server in a thread: answers with the prompt, every third answer spoiled, after `delay` s."""
    asked: Counter[str] = Counter()
    ready = threading.Event()
    place: list[str] = []
    loop = asyncio.new_event_loop()

    async def chat(request: web.Request) -> web.Response:
        content = (await request.json())["messages"][-1]["content"]
        text = content if isinstance(content, str) else content[-1]["text"]
        asked[text] += 1
        await asyncio.sleep(delay * random.random() * 2)
        answer = text.upper() if sum(map(ord, text)) % 3 == 0 else text
        message = {"role": "assistant", "content": answer}
        return web.json_response({"choices": [{"message": message, "finish_reason": "stop"}], "usage": None})

    async def models(request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "echo", "object": "model"}]})

    async def serve() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", chat)
        app.router.add_get("/v1/models", models)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        place.append(f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
        ready.set()
        try:
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    task = loop.create_task(serve())
    thread = threading.Thread(target=lambda: loop.run_until_complete(asyncio.gather(task, return_exceptions=True)))
    thread.start()
    ready.wait(20)
    try:
        yield place[0], asked
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()


def kill_and_continue(folder: Path, *, kills: int, samples: int, seed: int, delay: float = 0.03) -> Report:
    """Interrupt runs `kills` times, finish them, and compare with an undisturbed run."""
    report, chance = Report(), random.Random(seed)
    benchmark = folder / "echo.py"
    benchmark.write_text(BENCHMARK.format(count=samples))
    with echo_server(delay) as (url, asked):
        undisturbed = folder / "undisturbed"
        began = time.monotonic()
        _session(benchmark, url, undisturbed, None)
        whole = time.monotonic() - began
        expected = _result(undisturbed)
        asked.clear()
        while report.kills < kills:
            runs = folder / f"runs-{report.kills}"
            _one_run(benchmark, url, runs, report, chance, kills, whole)
            _compare(expected, _result(runs), report)
            report.asked_again += sum(asked.values()) - samples
            asked.clear()
    return report


def _one_run(
    benchmark: Path, url: str, runs: Path, report: Report, chance: random.Random, kills: int, whole: float
) -> None:
    acknowledged: dict[str, str | None] = {}
    finished = False
    while not finished:
        # Moments are spread over the whole life of the process: imports, inference, scoring, writing the result.
        moment = chance.uniform(0.05, 0.6) * whole if report.kills < kills else None
        told, finished = _session(benchmark, url, runs, moment)
        report.kills += not finished
        report.acknowledged += len(told)
        report.duplicates += [sample for sample in told if sample in acknowledged]
        found = _folder(runs).predictions() if (runs / "openai" / "echo" / "run.json").exists() else {}
        for sample in [*acknowledged, *told]:
            before = acknowledged.get(sample)
            if sample not in found:
                report.lost.append(sample)
            elif before is not None and found[sample].text != before:
                report.changed.append(sample)
            else:
                acknowledged[sample] = found[sample].text
    lines = _folder(runs).predictions_file.read_bytes().splitlines()
    counts = Counter(msgspec.json.decode(line, type=Prediction).sample for line in lines)
    report.duplicates += [sample for sample, count in counts.items() if count > 1]


def _session(benchmark: Path, url: str, runs: Path, moment: float | None) -> tuple[list[str], bool]:
    """One process, killed after `moment` seconds; the ids that it acknowledged, and whether it came to its end."""
    command = [sys.executable, "-m", "tests.support.kill_harness", "--work", str(benchmark), url, str(runs)]
    with tempfile.TemporaryFile() as told:
        process = subprocess.Popen(command, stdout=told, cwd=Path(__file__).parents[2])
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        told.seek(0)
        ids = [line.decode().strip() for line in told if line.endswith(b"\n")]
    if process.returncode not in (0, -9):
        raise AssertionError(f"the run ended with {process.returncode}")
    return ids, process.returncode == 0


def _folder(runs: Path) -> RunFolder:
    return RunFolder.open(runs / "openai" / "echo")


def _result(runs: Path) -> Result:
    result = _folder(runs).stored_result()
    assert result is not None
    return result


def _compare(expected: Result, found: Result, report: Report) -> None:
    plain = {"speed": {}}
    if msgspec.structs.replace(expected, **plain) != msgspec.structs.replace(found, **plain):
        report.unequal.append(repr(found))


def main() -> None:
    """Run by hand: many kills, a line of figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", nargs=3)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--samples", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.work:
        work(*arguments.work)
        return
    with tempfile.TemporaryDirectory() as folder:
        report = kill_and_continue(Path(folder), kills=arguments.kills, samples=arguments.samples, seed=arguments.seed)
    print(
        f"{report.kills} kills, {report.acknowledged} answers acknowledged: {len(report.lost)} lost, "
        f"{len(report.changed)} changed, {len(report.duplicates)} duplicates, {len(report.unequal)} unequal results, "
        f"{report.asked_again} answers in flight asked for again"
    )


if __name__ == "__main__":
    main()
