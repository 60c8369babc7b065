"""Every fault of a server ends in the right class in `predictions.jsonl`, and none in a silent empty answer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from loupe.engines.registry import load_profile
from loupe.errors import EngineUnavailableError
from loupe.inference.progress import Progress
from loupe.inference.retries import Policy
from loupe.pipeline import Plan, run
from loupe.runs.folder import RunFolder
from loupe.types import Prediction, Result
from tests.support.chat_server import ChatServer, Received, Reply, chat_server

BENCHMARK = '''
"""One question for each fault."""
from loupe.metrics import character_errors
from loupe.types import Benchmark, Measure, Sample, Score

def load(root, names: str = ""):
    for name in names.split("+"):
        yield Sample(id=name, prompt=name, truth="right")

def score(sample, prediction):
    return [Score(measure="cer", counts=tuple(map(float, character_errors(prediction.text, sample.truth))))]

benchmark = Benchmark(
    title="Faults", version="1", task="text", load=load, score=score,
    measures=(Measure(name="cer", higher_is_better=False),),
)
'''

LOOP = "And the ship sailed on over the sea. " * 400
RATE = {"Retry-After": "0"}
#: fault → (what the server answers to each try, class, text that must be stored, part of the error)
FAULTS: dict[str, tuple[list[Reply], str, str, str]] = {
    "fine": ([Reply(text="right")], "ok", "right", ""),
    "busy": ([Reply(status=429, headers=RATE, error="slow down")] * 5 + [Reply(text="right")], "ok", "right", ""),
    "once-500": ([Reply(status=500, error="oops"), Reply(text="right")], "ok", "right", ""),
    "ever-500": ([Reply(status=500, error="oops")], "error", "", "500"),
    "once-503": ([Reply(status=503, error="loading"), Reply(text="right")], "ok", "right", ""),
    "slow": ([Reply(text="right", delay=0.3)], "ok", "right", ""),
    "never": ([Reply(hang=True)], "timeout", "", "1 s"),
    "cut": ([Reply(text="right" * 100, cut=40)], "error", "", "payload is not completed"),
    "drop": ([Reply(drop=True)], "error", "", "disconnected"),
    "not-json": ([Reply(raw=b"<html>bad gateway</html>")], "error", "", "<html>bad gateway"),
    "no-choices": ([Reply(raw=b'{"object": "chat.completion"}')], "error", "", "choices"),
    "empty-choices": ([Reply(raw=b'{"choices": []}')], "error", "", "choices"),
    "null": ([Reply(text=None)], "empty", "", ""),
    "null-once": ([Reply(text=None), Reply(text="right")], "ok", "right", ""),
    "html-type": ([Reply(text="right", content_type="text/html")], "ok", "right", ""),
    "ten-megabytes": ([Reply(text="x y z " * 1_700_000, finish_reason="length")], "repeated", "x y z " * 1_700_000, ""),
    "loop": ([Reply(text=LOOP, finish_reason="length")], "repeated", LOOP, ""),
    "cut-off": ([Reply(text="righ", finish_reason="length")], "truncated", "righ", ""),
    "too-long": ([Reply(status=400, error="image too large")], "rejected", "", "image too large"),
    "not-found": ([Reply(status=404, error="no such model")], "rejected", "", "no such model"),
}


def run_faults(tmp_path: Path, server: ChatServer, names: list[str]) -> Plan:
    (tmp_path / "faults.py").write_text(BENCHMARK)
    overrides = {"base_url": server.url, "model": "test-model", "concurrency": 4, "timeout": 1.0, "retries": 2}
    label, profile = load_profile("openai", overrides)
    policy = Policy(concurrency=4, retries=2, backoff=0.001, backoff_cap=0.002, health_poll=0.01, health_limit=0.1)
    options = {"names": "+".join(names)}
    return Plan(
        benchmark=str(tmp_path / "faults.py"),
        label=label,
        profile=profile,
        runs=tmp_path,
        policy=policy,
        options=options,
    )


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Prediction], Result]:
    """One run over all faults at once, as it happens with a bad server."""
    tmp_path = tmp_path_factory.mktemp("faults")
    tries: dict[str, int] = {}

    def script(request: Received) -> Reply:
        number = tries.get(request.prompt, 0)
        tries[request.prompt] = number + 1
        replies = FAULTS[request.prompt][0]
        return replies[min(number, len(replies) - 1)]

    async def go() -> Path:
        async with chat_server(script) as server:
            return (await run(run_faults(tmp_path, server, list(FAULTS)), Progress())).path

    folder = RunFolder.open(asyncio.run(go()))
    result = folder.result()
    assert result is not None
    return folder.predictions(), result


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_ends_in_its_class(fault: str, outcome: tuple[dict[str, Prediction], Result]) -> None:
    _, expected, text, reason = FAULTS[fault]
    prediction = outcome[0][fault]
    assert prediction.outcome == expected
    assert prediction.text == text
    assert bool(reason) == bool(prediction.error) == prediction.failed
    assert reason in prediction.error


def test_the_result_names_every_failure(outcome: tuple[dict[str, Prediction], Result]) -> None:
    _, result = outcome
    failing = {name for name, fault in FAULTS.items() if fault[1] in ("timeout", "error", "rejected")}
    assert {failure.sample for failure in result.failures} == failing
    assert result.total == result.measures["cer"].n == len(FAULTS)
    assert (result.outcomes["empty"], result.outcomes["truncated"], result.outcomes["repeated"]) == (1, 1, 2)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_stops_the_run_and_leaves_it_resumable(tmp_path: Path, status: int) -> None:
    async def go() -> None:
        async with chat_server([Reply(text="right"), Reply(status=status, error="bad key sk-secret")]) as server:
            await run(run_faults(tmp_path, server, ["a", "b", "c", "d", "e", "f"]), Progress())

    with pytest.raises(EngineUnavailableError) as error:
        asyncio.run(go())
    assert error.value.exit_code == 4
    kept = (tmp_path / "openai" / "faults" / "predictions.jsonl").read_text()
    assert '"class":"ok"' in kept and '"class":"error"' not in kept


def test_a_server_that_is_gone_stops_the_run_after_its_health_check(tmp_path: Path) -> None:
    async def go() -> None:
        async with chat_server("right") as server:
            plan = run_faults(tmp_path, server, [f"s{number}" for number in range(20)])
        await run(plan, Progress())

    with pytest.raises(EngineUnavailableError):
        asyncio.run(go())
