"""`loupe load` against real servers whose capacity it does not know."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from loupe.engines.registry import load_profile
from loupe.errors import EngineUnavailableError
from loupe.features.load.command import notes_of
from loupe.features.load.measure import Level, LoadTest, Percentiles, find_knee, measure
from loupe.features.load.plot import load_page, load_svg
from loupe.inference.progress import Progress
from loupe.pipeline import Plan, infer
from loupe.results.tables.record import Table
from loupe.servers.keeper import Keeper
from tests.support.chat_server import Reply, in_thread
from tests.support.command_line import loupe
from tests.support.served import make_benchmark
from tests.support.streaming_server import WORDS, streaming_server


def plan_of(folder: Path, url: str, count: int, **keys: Any) -> Plan:
    _, profile = load_profile("openai", {"base_url": url, "model": "test-model", **keys})
    words = make_benchmark(folder, [f"w{number}" for number in range(count)])
    return Plan(benchmark=str(words), label="toy", profile=profile, runs=folder / "runs", jobs=1)


def load(plan: Plan, sweep: tuple[int, ...], *, requests: int | None = None, stream: bool = True) -> LoadTest:
    with Keeper() as keeper:
        return asyncio.run(measure(plan, sweep, Progress(), requests=requests, stream=stream, keeper=keeper))


def test_the_sweep_finds_the_capacity_and_asks_what_a_run_asks(tmp_path: Path) -> None:
    with streaming_server(capacity=8, seconds=0.08) as server:
        plan = plan_of(tmp_path, server.url, 200)
        test = load(plan, (2, 8, 32), requests=64)
        asked = list(server.prompts)
        assert server.streamed == len(asked) == 1 + 3 * 64
        server.prompts.clear()
        asyncio.run(infer(plan, Progress()))
        assert set(asked) <= set(server.prompts), "the same pages and prompts as the run"
    assert test.streamed and not test.repeated and test.pages == 192
    assert (test.knee, test.still_growing) == find_knee(test.levels)
    # A busy machine only slows things down: what it cannot change are the most pages a second and the least seconds.
    for level, waits in zip(test.levels, (1, 1, 4), strict=True):
        assert (level.requests, level.answered, level.errors) == (64, 64, {})
        assert level.pages_per_second is not None
        assert level.pages_per_second <= 1.02 * min(level.in_flight, 8) / 0.08
        assert level.tokens_per_second == pytest.approx(len(WORDS) * level.pages_per_second)
        assert level.latency is not None and level.first_token is not None
        assert 0.02 <= level.first_token.p50 < level.latency.p50 and level.latency.p50 >= 0.98 * waits * 0.08
        assert level.latency.p50 <= level.latency.p95 <= level.latency.p99
    assert not (tmp_path / "runs/toy/words/result.json").exists()


def test_without_streaming_the_first_token_is_not_measured_and_refusals_are_errors(tmp_path: Path) -> None:
    with streaming_server(capacity=4, seconds=0.03, streams=False, refuses=True) as server:
        test = load(plan_of(tmp_path, server.url, 5, price={"output": 1000}), (2, 16))
    assert not test.streamed and test.repeated and test.pages == 5
    low, high = test.levels
    assert low.first_token is None and low.errors == {}
    assert high.errors.keys() == {"error"} and "HTTP 429" in high.first_error and high.answered > 0
    counted = f"{high.errors['error']} error{'s' if high.errors['error'] > 1 else ''}; the first: "
    assert any(counted in note for note in notes_of(test))
    assert (test.knee, test.still_growing) == (2, False), "a level with refusals is none to choose"
    assert test.cost == pytest.approx((1 + low.answered + high.answered) * len(WORDS) / 1000), "the warm-up is paid too"
    said = " ".join(notes_of(test))
    assert "16 in flight: " in said and "too many" in said and "not streamed" in said and "more than once" in said


def test_every_request_is_sent_once_whatever_becomes_of_it(tmp_path: Path) -> None:
    def main(script: Reply) -> tuple[LoadTest, int]:
        with in_thread(script) as server:
            test = load(plan_of(tmp_path, server.url, 4), (1, 2), requests=8, stream=False)
            return test, len(server.requests)

    empty, sent = main(Reply(text="", delay=0.02))
    assert sent == 1 + 2 * 8 and [level.answered for level in empty.levels] == [8, 8]
    assert all(0.02 <= level.latency.p50 < 0.5 for level in empty.levels if level.latency)
    broken, sent = main(Reply(status=500))
    assert sent == 1 + 8 and broken.levels[0].errors == {"error": 8}
    assert broken.stopped == "1 in flight: nothing was answered"


def test_loupe_serve_streams(tmp_path: Path) -> None:
    serving = pytest.importorskip("tests.features.serve.test_serving")

    async def main() -> LoadTest:
        async with serving.server() as url:
            plan = plan_of(tmp_path, url, 8, model="toy")
            with Keeper() as keeper:
                return await measure(plan, (1,), Progress(), requests=8, stream=True, keeper=keeper)

    test = asyncio.run(main())
    (level,) = test.levels
    assert test.streamed and level.answered == 8 and level.first_token is not None


def test_the_command_writes_figures_and_pictures(tmp_path: Path) -> None:
    make_benchmark(tmp_path, [f"w{number}" for number in range(20)])
    with streaming_server(capacity=4, seconds=0.02) as server:
        words = ["load", "words.py", "--base-url", server.url, "--sweep", "4,1", "--limit", "10", "--plain"]
        done = loupe(*words, "--json", "load.json", "--plot", "load.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert rows[1][:4] == ["in flight", "pages/s", "tokens/s", "first token"]
    assert [row[0] for row in rows[2:]] == ["1", "4"]
    assert "in flight" in done.stderr and "10 pages were sent more than once" in done.stderr
    document = json.loads((tmp_path / "load.json").read_bytes())
    assert [level["in_flight"] for level in document["levels"]] == [1, 4] and document["pages"] == 10
    page = (tmp_path / "load.html").read_text()
    assert "<table>" in page and "http" not in re.sub(r'xmlns="[^"]*"', "", page).replace("http-equiv", "")
    assert not (tmp_path / "runs").exists()
    few = loupe("load", "words.py", "--base-url", server.url, "--requests", "4", cwd=tmp_path)
    assert few.returncode == 2 and "--requests 128" in few.stderr


def test_a_server_that_is_not_there_is_no_load_test(tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailableError, match="no server answers"):
        load(plan_of(tmp_path, "http://127.0.0.1:9/v1", 3), (1,))


def level(number: int, rate: float | None, errors: int = 0) -> Level:
    seconds = Percentiles(p50=0.1 * number, p95=0.2 * number, p99=0.3 * number)
    return Level(
        in_flight=number, requests=100, answered=100 - errors, seconds=1.0, pages_per_second=rate, first_token=None,
        tokens_per_second=None, latency=seconds, errors={"error": errors} if errors else {},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rates", "knee"),
    [
        ({1: 10, 4: 40, 16: 100, 64: 105}, (16, False)),
        ({1: 10, 4: 40, 16: 160}, (16, True)),
        ({1: 10}, (1, False)),
        ({4: None, 8: None}, (None, False)),
        ({1: 100, 4: 91, 8: 99}, (1, False)),
    ],
)
def test_the_knee_is_the_smallest_number_near_the_best(
    rates: dict[int, float | None], knee: tuple[int | None, bool]
) -> None:
    assert find_knee([level(number, rate) for number, rate in rates.items()]) == knee


def test_levels_with_errors_are_no_knee() -> None:
    assert find_knee([level(1, 10), level(4, 40), level(8, 80, errors=2)]) == (4, False)
    assert find_knee([level(4, 40, errors=50)]) == (None, False)


def test_the_picture_says_in_words_what_it_shows_and_escapes_names() -> None:
    test = LoadTest(
        benchmark="toy", version="1", engine='<script>"&', pages=9, repeated=False, streamed=False, knee=4,
        still_growing=False, levels=[level(1, 10), level(4, 40), level(64, 41, errors=3)], prompt_digest="",
        settings={}, facts={},
    )  # fmt: skip
    picture = ElementTree.fromstring(load_svg(test))
    label = picture.attrib["aria-label"]
    assert "4 in flight: 40 pages/s, p95 0.8 s" in label and "3 of 100 failed" in label and '<script>"&' in label
    assert "<script" not in load_page(test, ["a <b> note"], Table(title="", header=["in flight"], rows=[["<i>"]]))
