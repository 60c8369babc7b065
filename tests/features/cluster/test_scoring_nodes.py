"""Scoring on nodes that fail in ways which no real cluster shows on demand: others score, and who fails is named."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from loupe.errors import LoupeError
from loupe.features.cluster import scoring_hands
from loupe.features.cluster.scoring_hands import ScoringHands
from loupe.scoring.pool import ScorePool
from loupe.scoring.process import NobodyYetError
from loupe.types import Prediction, Sample, SampleScores
from tests.features.cluster.support.ray_stub import RayError, StubNodes, StubRay
from tests.support.command_line import make_folder

pytest.importorskip("ray")

Fault = Callable[[str, str, Any], None]


@pytest.fixture(autouse=True)
def short_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring_hands, "_REST", 0.05)


@pytest.fixture
def benchmark(tmp_path: Path) -> str:
    return str(make_folder(tmp_path))


@contextmanager
def hands_of(benchmark: str, nodes: StubNodes, fault: Fault) -> Iterator[tuple[ScoringHands, list[str]]]:
    """Hands, and what they say."""
    said: list[str] = []
    ray = StubRay(lambda node, method, actor, _: fault(node, method, actor))
    hands = ScoringHands(ray, nodes, benchmark, (), shared=False, tell=said.append)  # type: ignore[arg-type]
    try:
        yield hands, said
    finally:
        hands.close()
        ray.shutdown()


def scored(benchmark: str, hands: ScoringHands, *samples: Sample) -> list[SampleScores]:
    answers = [(each, Prediction(sample=each.id, outcome="ok", text="alpha")) for each in samples]
    with ScorePool(benchmark, hands=hands) as pool:
        futures = [pool.submit(*each) for each in answers]
    return [each.result() for each in futures]


TEXTS = [Sample(id=f"p{number}", task="text", truth="alpha") for number in range(30)]


def test_a_node_that_starts_no_scorer_is_refused_after_three_failures_and_others_score(benchmark: str) -> None:
    def fault(node: str, method: str, actor: Any) -> None:
        if node == "full" and method == "open":
            raise OSError(28, "No space left on device")

    nodes = StubNodes(full=8, good=1)
    with hands_of(benchmark, nodes, fault) as (hands, said):
        found = scored(benchmark, hands, *TEXTS)
    assert not [each.error for each in found if each.error]
    # As long as others have room it need not be tried; three times is as often as it may be.
    with hands_of(benchmark, StubNodes(full=1), fault) as (hands, said), pytest.raises(LoupeError) as raised:
        scored(benchmark, hands, *TEXTS)
    assert "no node of the cluster can score (full: " in raised.value.message
    assert "No space left on device, 3 times" in said[-1]


def test_a_node_whose_scorers_die_as_they_start_ends_nothing(benchmark: str) -> None:
    def fault(node: str, method: str, actor: Any) -> None:
        if node == "bad" and method == "read":
            for process, _ in actor.host._processes.values():
                process.kill()

    with hands_of(benchmark, StubNodes(bad=8, good=1), fault) as (hands, _):
        found = scored(benchmark, hands, *TEXTS)
    assert not [each.error for each in found if each.error]


def test_a_node_opens_a_benchmark_once_for_all_its_processes(benchmark: str) -> None:
    opened: list[str] = []

    def note(node: str, method: str, actor: Any) -> None:
        opened.extend([node] if method == "open" else [])

    with hands_of(benchmark, StubNodes(a=2, b=2), note) as (hands, _):
        lines = [hands.line() for _ in range(4)]
        for line in lines:
            line.close()
    assert sorted(opened) == ["a", "b"]


def test_a_node_that_dies_costs_no_score_and_one_that_joins_is_waited_for(benchmark: str) -> None:
    nodes = StubNodes(first=1)

    def fault(node: str, method: str, actor: Any) -> None:
        if node == "first" and method == "write" and len(nodes.cpus) == 1:
            actor.dead = True
            nodes.cpus = {}
            raise RayError("The node died.")

    with hands_of(benchmark, nodes, fault) as (hands, said):
        answers = [(each, Prediction(sample=each.id, outcome="ok", text="alpha")) for each in TEXTS]
        with ScorePool(benchmark, hands=hands) as pool:
            futures = [pool.submit(*each) for each in answers]
            while not said:
                time.sleep(0.01)
            with pytest.raises(NobodyYetError):
                hands.line()
            nodes.cpus = {"second": 1}
        found = [each.result() for each in futures]
    assert said == ["no node can score just now: waiting for one"]
    assert not [each.error for each in found if each.error]


def test_a_full_disk_on_a_node_is_no_error_of_a_page(tmp_path: Path, benchmark: str) -> None:
    def fault(node: str, method: str, actor: Any) -> None:
        if node == "full" and method == "write":
            for process, _ in actor.host._processes.values():
                resource.prlimit(process._process.pid, resource.RLIMIT_FSIZE, (10, 10))

    pages = [tmp_path / f"{number}.png" for number in range(3)]
    for page in pages:
        Image.new("RGB", (300, 300), "white").save(page)
    blank = [Sample(id=each.stem, task="text", truth="", images=(each,)) for each in pages]
    with hands_of(benchmark, StubNodes(full=2, good=1), fault) as (hands, _):
        found = scored(benchmark, hands, *blank)
    assert not [each.error for each in found if each.error]
    with hands_of(benchmark, StubNodes(full=1), fault) as (hands, said), pytest.raises(LoupeError):
        scored(benchmark, hands, *blank)
    assert "larger than the system allows" in said[-1]


def test_more_samples_may_be_in_flight_when_a_cluster_grows(benchmark: str) -> None:
    nodes = StubNodes()
    packed: list[str] = []

    async def scene() -> tuple[int, int]:
        with hands_of(benchmark, nodes, lambda *_: None) as (hands, _):
            pack = hands.pack
            hands.pack = lambda sample, *rest: packed.append(sample.id) or pack(sample, *rest)  # type: ignore
            pool = ScorePool(benchmark, hands=hands)
            try:
                with pool:
                    ask = (pool.score(each, Prediction(sample=each.id, outcome="ok", text="")) for each in 999 * TEXTS)
                    tasks = [asyncio.create_task(each) for _, each in zip(range(2000), ask, strict=False)]
                    await asyncio.sleep(0.1)
                    few = len(packed)
                    nodes.cpus = {"large": 15}
                    tasks.append(asyncio.create_task(next(ask)))
                    for _ in range(1000):
                        await asyncio.sleep(0.01 if len(packed) <= 4 * few else 0)
                    ask.close()
                    raise KeyboardInterrupt
            except KeyboardInterrupt:
                await asyncio.gather(*tasks, return_exceptions=True)
            return few, len(packed)

    few, many = asyncio.run(scene())
    assert few == 2 * 64 * 2
    assert many > 4 * few
