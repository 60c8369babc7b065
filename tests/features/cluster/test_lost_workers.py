"""Reading on nodes that fail in ways which no real cluster shows on demand: what page is blamed, what node is used."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from loupe.engines.registry import WorkerNeeds, load_profile
from loupe.errors import EngineError, EngineUnavailableError, LoupeError
from loupe.features.cluster import engine_pool as pools
from loupe.features.cluster.engine_host import EngineHost, NodeError, Opened, Order
from loupe.features.cluster.engine_pool import EnginePool, engine_pool
from loupe.features.cluster.nodes import LostClusterError, Nodes
from loupe.features.cluster.pages import Packing
from loupe.inference.concurrency import AdaptivePlaces
from loupe.inference.progress import Progress
from loupe.types import Engine, Output, Request
from tests.features.cluster.support.ray_stub import RayError, StubNodes, StubRay

pytest.importorskip("ray")

Answer = Callable[[str, str], Awaitable[Output | LoupeError]]


async def plain(node: str, ident: str) -> Output:
    await asyncio.sleep(0.01)
    return Output(text=f"{ident} on {node}")


def stand_in(answer: Answer, facts: dict[str, str], late: dict[str, float]) -> type:
    """An actor that answers so; `facts` of its engine and the seconds until it has opened go by its node."""

    class Host:
        node = ""

        async def open(self, order: Order) -> Opened:
            await asyncio.sleep(late.get(self.node, 0.0))
            return Opened(facts={"engine": facts.get(self.node, "1")}, fits=2, is_watched=False)

        async def ask(self, request: Request, *_: object) -> Output | LoupeError:
            return await answer(self.node, request.id)

        async def close(self) -> None:
            """Nothing is left."""

    return Host


@asynccontextmanager
async def opened(
    nodes: StubNodes,
    answer: Answer = plain,
    *,
    engine: str = "pdf_text",
    deadly: str = "",
    facts: dict[str, str] | None = None,
    late: dict[str, float] | None = None,
    known: dict[str, str] | None = None,
    said: deque[str] | None = None,
    **given: Any,
) -> AsyncIterator[tuple[Engine, EnginePool]]:
    """The engine of these nodes; whoever is asked for `deadly` dies a moment later, with all that it was asked."""

    def fault(node: str, method: str, actor: Any, arguments: tuple[Any, ...]) -> None:
        actor.host.node = node
        if method == "ask" and arguments[0].id == deadly:
            asyncio.get_running_loop().call_later(0.02, actor.die)

    profile = load_profile(engine, given)[1]
    ray = StubRay(fault, {EngineHost: stand_in(answer, facts or {}, late or {})})
    progress = Progress(news=deque() if said is None else said)
    pool = EnginePool(
        ray=ray,
        nodes=nodes,  # type: ignore[arg-type]
        order=Order(profile=profile, versions={}, cores=1),
        needs=WorkerNeeds(),
        chosen=False,
        packing=Packing(ray, shared=True),
        progress=progress,
        known=known or {},
    )
    async with asyncio.timeout(60), engine_pool(pool) as found:
        yield found, pool


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "_LOOK", 0.02)
    monkeypatch.setattr(pools, "_OPENING", 0.01)


async def asked(engine: Engine, *idents: str) -> dict[str, Output | BaseException]:
    found = await asyncio.gather(*(engine.predict(Request(id=each)) for each in idents), return_exceptions=True)
    return dict(zip(idents, found, strict=True))


def test_a_cluster_that_is_gone_ends_the_run_and_fails_no_page() -> None:
    def gone() -> list[dict[str, Any]]:
        raise ConnectionError("the head is gone")

    row = {"NodeID": "a" * 56, "Alive": True, "Resources": {"CPU": 1.0}, "NodeManagerAddress": "a"}
    ray = SimpleNamespace(nodes=lambda: [row])
    nodes = Nodes(ray)
    ray.nodes = gone

    async def slow(node: str, ident: str) -> Output:
        await asyncio.sleep(60)
        return Output(text=ident)

    async def main() -> None:
        async with opened(StubNodes(a=1), slow, deadly="p") as (engine, pool):
            pool.nodes = nodes
            with pytest.raises(LostClusterError, match="the head is gone"):
                await engine.predict(Request(id="p"))

    try:
        asyncio.run(main())
    finally:
        nodes.close()


SERVER: dict[str, Any] = {"engine": "openai", "serve": "vllm:m", "model": "m", "concurrency": 12}


@pytest.mark.parametrize("kind", [{}, SERVER], ids=["one page at a time", "a server with many"])
def test_only_the_page_under_which_workers_die_is_blamed(kind: dict[str, Any]) -> None:
    async def answer(node: str, ident: str) -> Output:
        await asyncio.sleep(5 if ident == "deadly" else 0.05)
        return Output(text=ident)

    async def scene() -> dict[str, Output | BaseException]:
        async with opened(StubNodes(a=1, b=1), answer, deadly="deadly", **kind) as (engine, _):
            return await asked(engine, "deadly", *(f"p{number}" for number in range(20)))

    found = asyncio.run(scene())
    blamed = found.pop("deadly")
    assert isinstance(blamed, EngineError)
    assert "died 2 times under this page" in str(blamed)
    assert [each for each in found.values() if not isinstance(each, Output)] == []


def test_pages_on_a_worker_that_gives_up_are_read_elsewhere() -> None:
    """The others on it, which end with it, are to blame for nothing, however often that happens to them."""
    asked_of: Counter[str] = Counter()

    async def answer(node: str, ident: str) -> Output | LoupeError:
        await asyncio.sleep(0.02)
        asked_of[node] += 1
        if node == "bad" and asked_of[node] % 4 == 0:
            return EngineUnavailableError("out of memory")
        await asyncio.sleep(0.2)
        return Output(text=ident)

    async def scene() -> dict[str, Output | BaseException]:
        async with opened(StubNodes(bad=1, good=1), answer, **SERVER) as (engine, _):
            return await asked(engine, *(f"p{number}" for number in range(24)))

    found = asyncio.run(scene())
    assert [each for each in found.values() if not isinstance(each, Output)] == []
    assert asked_of["bad"] >= 4


def test_a_node_with_a_full_disk_is_named_and_costs_no_page() -> None:
    said: deque[str] = deque()

    async def answer(node: str, ident: str) -> Output | LoupeError:
        await asyncio.sleep(0.01)
        return NodeError("the disk is full") if node == "full" else Output(text=node)

    async def scene() -> dict[str, Output | BaseException]:
        async with opened(StubNodes(full=2, good=1), answer, said=said) as (engine, _):
            return await asked(engine, *(f"p{number}" for number in range(20)))

    assert {each.text for each in asyncio.run(scene()).values() if isinstance(each, Output)} == {"good"}
    assert [line.partition(": ")[2] for line in said] == ["node full is not used: the disk is full"]


def test_a_host_says_that_its_disk_is_full_and_blames_no_page(tmp_path: Any) -> None:
    """As `EngineHost` sees it: the pages cannot be laid down, or the engine meets the full disk itself."""
    from loupe.features.cluster.pages import Shipped, Spool

    host = EngineHost()
    host._spool = Spool(tmp_path / "gone")

    async def predict(request: Request) -> Output:
        raise OSError(28, "No space left on device")

    host._engine = Engine(predict=predict)
    lost = asyncio.run(host.ask(Request(id="a", images=(tmp_path,)), [Shipped("k", "/data/a.png", 1)], b"x"))
    full = asyncio.run(host.ask(Request(id="a"), []))
    assert isinstance(lost, NodeError)
    assert isinstance(full, NodeError)
    assert "the disk is full" in full.message


def test_a_refused_node_that_is_gone_is_waited_for_no_less_than_others() -> None:
    nodes = StubNodes(bad=1)

    async def answer(node: str, ident: str) -> Output | LoupeError:
        return NodeError("the disk is full") if node == "bad" else Output(text=node)

    async def scene() -> Output | BaseException:
        async with opened(nodes, answer) as (engine, _):
            asking: asyncio.Future[Output] = asyncio.ensure_future(engine.predict(Request(id="p")))
            await asyncio.sleep(0)
            nodes.cpus.clear()
            await asyncio.sleep(0.1)
            assert not asking.done()
            nodes.cpus["good"] = 1
            return await asking

    found = asyncio.run(scene())
    assert isinstance(found, Output)
    assert found.text == "good"


@pytest.mark.parametrize(("known", "used"), [(None, {"b", "c"}), ({"engine": "2"}, {"a"})])
def test_most_nodes_say_what_the_engine_is_unless_the_run_knows(known: dict[str, str] | None, used: set[str]) -> None:
    said: deque[str] = deque()

    async def scene() -> tuple[dict[str, str], set[str]]:
        late = {"b": 0.05, "c": 0.1}
        nodes = StubNodes(a=1, b=1, c=1)
        async with opened(nodes, facts={"a": "2"}, late=late, known=known, said=said) as (engine, _):
            found = await asked(engine, *(f"p{number}" for number in range(12)))
            return dict(engine.facts), {each.endpoint for each in found.values() if isinstance(each, Output)}

    facts, nodes = asyncio.run(scene())
    assert (facts["engine"], nodes) == ("2" if known else "1", used)
    assert all("its engine differs: engine" in line for line in said)


def test_what_ray_refuses_is_said_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(*_: object, **__: object) -> Any:
        raise ValueError("GPU resource quantities >1 must be whole numbers")

    async def scene() -> None:
        async with opened(StubNodes(a=1)):
            raise AssertionError("no worker can be there")

    monkeypatch.setattr(StubRay, "remote", lambda *_: SimpleNamespace(options=refusing))
    with pytest.raises(EngineUnavailableError, match="must be whole numbers"):
        asyncio.run(scene())


def test_servers_that_follow_the_speed_are_given_as_many_requests_each_as_one_alone() -> None:
    async def scene() -> tuple[int, int]:
        nodes = StubNodes(a=1, b=1, c=1)
        async with opened(nodes, **SERVER | {"concurrency": "auto"}) as (_, pool):
            for _ in range(1000):
                await asyncio.sleep(0.01 if len(pool._ready) < 3 else 0)
            places = pool.places
            assert isinstance(places, AdaptivePlaces)
            for _ in range(40):  # each doubling pays
                places._search.measured.clear()
                places._draining = 0
                places._measured(float(places.limit))
            return places.limit, places.most

    limit, most = asyncio.run(scene())
    assert (limit, most) == (3 * 256, 4096)


def test_a_death_of_a_node_is_no_death_under_a_page() -> None:
    nodes = StubNodes(a=1, b=1)

    async def answer(node: str, ident: str) -> Output:
        if node == "a":
            nodes.cpus.pop("a", None)
            raise RayError("The node died.")
        await asyncio.sleep(0.01)
        return Output(text=node)

    async def scene() -> dict[str, Output | BaseException]:
        async with opened(nodes, answer) as (engine, _):
            return await asked(engine, *(f"p{number}" for number in range(6)))

    assert {each.text for each in asyncio.run(scene()).values() if isinstance(each, Output)} == {"b"}
