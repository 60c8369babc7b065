"""Prices, `--max-cost` and the figures beside a result, with a real server that counts tokens."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from array import array
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loupe.engines.registry import load_profile
from loupe.engines.shared.prices import Price, Usage, busy_seconds
from loupe.errors import EngineUnavailableError, ProfileError, UsageError
from loupe.inference.budget import Budget, money
from loupe.inference.progress import Progress
from loupe.pipeline import Plan, infer
from loupe.pipeline.spent import priced, speed_of
from loupe.runs.folder import RunFolder
from tests.support.chat_server import Received, Reply, in_thread
from tests.support.served import make_benchmark

#: A page costs 1,000 × 2 + 500 × 8 = 6,000 millionths.
USAGE = {"prompt_tokens": 1000, "completion_tokens": 500}
PRICE = "price={input=2, output=8, currency='EUR'}"


def loupe(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "loupe", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


def run(folder: Path, url: str, *more: str, price: str = PRICE, verb: str = "run") -> subprocess.CompletedProcess[str]:
    words = [verb, folder / "words.py", "--base-url", url, "--model", "test-model", "--name", "paid", "--plain"]
    return loupe(*words, "-o", price, *more, cwd=folder)


def infer_here(
    folder: Path, url: str, words: list[str], *, price: dict[str, float], max_cost: float | None = None
) -> RunFolder:
    """Ask for these words in this process, one at a time."""
    _, profile = load_profile("openai", {"base_url": url, "model": "test-model", "concurrency": 1, "price": price})
    file = make_benchmark(folder, words)
    plan = Plan(benchmark=str(file), label="here", profile=profile, runs=folder / "runs", max_cost=max_cost)
    return asyncio.run(infer(plan, Progress()))


def result_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "runs/paid/words/result.json").read_bytes())


def asked(folder: Path) -> int:
    return len((folder / "runs/paid/words/predictions.jsonl").read_text().splitlines())


def test_a_run_stops_before_it_costs_more_and_goes_on_with_more_money(tmp_path: Path) -> None:
    make_benchmark(tmp_path, [f"w{number}" for number in range(40)])
    with in_thread(Reply(text="read {prompt}", usage=USAGE, delay=0.01)) as server:
        first = run(tmp_path, server.url, "--max-cost", "0.1", "-n", "8")
        assert first.returncode == 4
        assert "0.096 of --max-cost 0.10 EUR is spent, and a page has cost up to 0.006" in first.stderr
        assert "to continue: loupe run" in first.stderr and "-n 8 --max-cost 0.103\n" in first.stderr
        assert asked(tmp_path) == server.count == 16
        result = result_of(tmp_path)
        assert "partial: 0.096 of --max-cost" in " ".join(result["warnings"])
        assert result["speed"]["cost"] == pytest.approx(0.096)
        # Money that an earlier session has spent counts, and what it leaves is too little for one more page.
        again = run(tmp_path, server.url, "--max-cost", "0.1", "-n", "8", verb="infer")
        assert (again.returncode, server.count) == (4, 16)
        more = run(tmp_path, server.url, "--max-cost", "0.24", "-n", "8", verb="infer")
        assert (more.returncode, server.count) == (0, 40), more.stderr
        done = run(tmp_path, server.url, "--max-cost", "0.24", "-n", "8")
        assert (done.returncode, server.count) == (0, 40), "a finished run needs no money"
    speed = result_of(tmp_path)["speed"]
    assert result_of(tmp_path)["currency"] == "EUR"
    assert speed["cost"] == pytest.approx(0.24) and speed["cost_per_page"] == pytest.approx(0.006)
    assert speed["input_tokens_per_page"] == 1000 and speed["output_tokens_per_page"] == 500
    assert 0.01 <= speed["latency_p50"] <= speed["latency_p95"] <= speed["latency_p99"]
    assert speed["pages_per_second"] * 500 == pytest.approx(speed["output_tokens_per_second"])
    assert "cost per page\t0.006 EUR" in done.stdout


def test_answers_that_were_given_up_are_paid_for_too(tmp_path: Path) -> None:
    def hiccup(request: Received) -> Reply:
        return Reply(text="" if request.number == 1 else "read {prompt}", usage=USAGE)

    with in_thread(hiccup) as server:
        folder = infer_here(tmp_path, server.url, ["one", "two"], price={"input": 2, "output": 8})
    first = next(iter(folder.predictions().values()))
    assert (first.discarded_tokens, first.endpoint, first.attempt) == ((1000, 500), server.url, 2)
    assert speed_of(folder, folder.prediction_places()).figures["cost"] == pytest.approx(3 * 0.006)


def test_money_spent_before_kill_9_counts(tmp_path: Path) -> None:
    make_benchmark(tmp_path, [f"w{number}" for number in range(60)])
    with in_thread(Reply(text="read {prompt}", usage=USAGE, delay=0.05)) as server:
        words = ["infer", "words.py", "--base-url", server.url, "--model", "test-model", "--name", "paid", "-n", "2"]
        command = [sys.executable, "-m", "loupe", *words, "-o", PRICE, "--max-cost", "0.2"]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
            end = time.monotonic() + 60
            while server.count < 12 and time.monotonic() < end:
                time.sleep(0.01)
            os.kill(process.pid, signal.SIGKILL)
        before = asked(tmp_path)
        assert 8 <= before <= 14
        assert run(tmp_path, server.url, "--max-cost", "0.2", "-n", "4", verb="infer").returncode == 4
    assert asked(tmp_path) == 33, "33 pages of 0.006 are what 0.2 pays for"


def test_latency_is_from_taking_a_page_to_its_answer_not_the_sum_of_the_calls_for_its_parts(tmp_path: Path) -> None:
    with in_thread(Reply(text="read {prompt}", usage=None)) as server:
        folder = infer_here(tmp_path, server.url, ["one", "two"], price={"page": 1})
    lines = folder.predictions_file.read_bytes().splitlines()
    changed = [{**json.loads(line), "seconds": 30.0, "began": 100.0, "ended": 110.0} for line in lines]
    folder.predictions_file.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in changed))
    figures = speed_of(folder, folder.prediction_places()).figures
    assert (figures["seconds_per_page"], figures["latency_p50"], figures["latency_p99"]) == (10.0, 10.0, 10.0)


def test_without_prices_or_tokens_a_limit_is_refused(tmp_path: Path) -> None:
    words = ["one", "two", "three"]
    with in_thread(Reply(text="read {prompt}", usage=None)) as server:
        make_benchmark(tmp_path, words)
        bare = loupe("run", "words.py", "--base-url", server.url, "--model", "m", "--max-cost", "1", cwd=tmp_path)
        assert bare.returncode == 2 and "no prices are known" in bare.stderr and server.count == 0
        with pytest.raises(EngineUnavailableError, match="does not say how many tokens"):
            infer_here(tmp_path, server.url, words, price={"input": 2}, max_cost=1.0)
        assert server.count == 1
        folder = infer_here(tmp_path, server.url, words, price={"page": 0.25}, max_cost=1.0)
        found = speed_of(folder, folder.prediction_places())
        assert (found.figures["cost"], found.currency, server.count) == (0.75, "USD", 3)
        folder = infer_here(tmp_path, server.url, words, price={"input": 2})
        blind = speed_of(folder, folder.prediction_places())
    zeros = tmp_path / "zeros"
    zeros.mkdir()
    # A server that does not count says 0 of everything.
    with (
        in_thread(Reply(text="read {prompt}", usage={"prompt_tokens": 0, "completion_tokens": 0})) as server,
        pytest.raises(EngineUnavailableError, match="does not say how many tokens"),
    ):
        infer_here(zeros, server.url, words, price={"input": 2}, max_cost=1.0)
    assert "cost" not in blind.figures and blind.warnings == ("no cost: tokens of 3 answers are not known",)


def test_what_reads_here_costs_nothing_and_a_service_through_its_package_needs_a_price() -> None:
    def price_of(engine: str) -> Price:
        label, profile = load_profile(engine)
        return priced(Plan(benchmark="sample_pages", label=label, profile=profile))

    assert price_of("pypdf") == price_of("pdf_text") == Price(page=0.0)
    for engine in ("textract-text", "azure-layout", "glm-ocr"):
        with pytest.raises(UsageError, match="no prices are known"):
            price_of(engine)


def test_prices_change_no_answer_and_mistakes_in_them_are_named(tmp_path: Path) -> None:
    _, plain = load_profile("glm-ocr")
    _, dear = load_profile("glm-ocr", {"price": {"input": 1, "hour": 2.5}})
    assert dear.version == plain.version and dear.defining() == plain.defining()
    assert dear.stored()["price"] == {"input": 1.0, "hour": 2.5}
    for wrong, said in (({"input": -1}, "from 0 on"), ({}, "names no price"), ({"output": "1"}, "must be a number")):
        with pytest.raises(ProfileError, match=said):
            load_profile("glm-ocr", {"price": wrong})


def test_hours_are_those_in_which_something_was_in_flight() -> None:
    spans = [(0.0, 10.0), (5.0, 15.0), (100.0, 105.0), (101.0, 102.0)]
    assert busy_seconds(array("d", itertools.chain(*spans))) == 20.0
    records = [Usage(sample=str(number), began=a, ended=b) for number, (a, b) in enumerate(spans)]
    budget = Budget.after(Price(hour=360.0), 2.0, records)
    assert budget.total == 2.0 and not budget._affords(1)
    now = [0.0]
    budget = Budget(Price(hour=360.0), 2.0, dearest=0.0, clock=lambda: now[0])
    budget._since = 0.0
    now[0] = 19.0
    assert budget._affords(50) and budget.status() == "1.90 of 2.00 USD"
    now[0] = 20.0
    assert not budget._affords(1)


def test_a_timeout_is_expected_to_have_cost_as_much_as_the_dearest_page() -> None:
    usage = Usage(sample="a", input_tokens=1_000_000)
    late = Usage(sample="b", outcome="timeout")
    budget = Budget.after(Price(input=2.0), 10.0, [late, usage, msgspec.structs.replace(late, sample="c")])
    assert (budget.total, budget.dearest) == (6.0, 2.0)
    assert [money(each) for each in (0, 12, 0.25, 0.006, 0.00123456)] == ["0.00", "12.00", "0.25", "0.006", "0.00123"]
