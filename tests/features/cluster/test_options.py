"""`--on`, `--worker` and `--shared-data`: what is refused before anything is connected, and how nodes are compared."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loupe.engines.registry import load_profile
from loupe.errors import EngineUnavailableError, ProfileError, UsageError
from loupe.features.cluster import connection, pages
from loupe.features.cluster.connection import _hush, _listed, _start_or_join, check_address
from loupe.features.cluster.engine_host import Order, code_of
from loupe.features.cluster.executor import check_profile, runs_on_nodes
from loupe.features.cluster.nodes import Node
from loupe.features.cluster.pages import Packing, Shipped, Spool, named_again
from loupe.features.cluster.sameness import differences, differing, versions
from loupe.features.cluster.scoring_host import carrying, files_of
from loupe.files.scratch import clear_away
from loupe.helpers import for_children, for_own_program
from loupe.types import PdfPage, Request, Sample
from tests.support.command_line import complaint, loupe, make_folder


class Store:
    """Ray's object store, without Ray."""

    def put(self, content: bytes) -> bytes:
        return content


async def fetched(content: bytes) -> bytes:
    return content


def test_a_cluster_at_which_nobody_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        host, port = unused.getsockname()
        monkeypatch.setenv("RAY_ADDRESS", f"{host}:{port}")
        for address in ("ray", f"ray://{host}:{port}"):
            with pytest.raises(EngineUnavailableError, match="Connection refused"):
                _start_or_join(None, address, ())


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--on", "kubernetes"], "--on kubernetes: unknown"),
        (["--on", "ray://"], "--on ray://: unknown"),
        (["--worker", "cpus=2"], "--worker goes with --on"),
        (["--shared-data"], "--shared-data goes with --on"),
    ],
)
def test_options_that_make_no_sense_are_refused_in_one_line(tmp_path: Path, words: list[str], error: str) -> None:
    make_folder(tmp_path)
    done = loupe("run", "mydocs", "-e", "python:reader.py:right", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert error in complaint(done)[0]


@pytest.mark.parametrize("needs", ["tpus=1", "cpus", "cpus=0", "cpus=nan", "gpus=-1", "cpus=1,,gpus=1", "cpus=inf"])
def test_needs_that_are_none_are_refused(tmp_path: Path, needs: str) -> None:
    done = loupe("run", "mydocs", "-e", "rapidocr", "--on", "ray", "--worker", needs, cwd=tmp_path)
    assert done.returncode == 2
    assert "is neither cpus=N above 0 nor gpus=N" in done.stderr


@pytest.mark.parametrize("needs", ["gpus=1.5", "cpus=2,gpus=2.25"])
def test_a_gpu_and_a_half_is_refused_as_ray_has_none(tmp_path: Path, needs: str) -> None:
    done = loupe("run", "sample_pages", "-e", "rapidocr", "--on", "ray", "--worker", needs, cwd=tmp_path)
    assert done.returncode == 2
    assert "a part of one GPU, or whole ones" in complaint(done)[0]
    with pytest.raises(ProfileError, match="a part of one GPU, or whole ones"):
        load_profile("rapidocr", {"worker": {"gpus": 1.5}})


def test_a_profile_says_what_a_worker_needs_and_it_changes_no_answer() -> None:
    _, profile = load_profile("rapidocr", {"worker": {"cpus": 2, "gpus": 0.5}})
    assert profile.worker is not None
    assert (profile.worker.cpus, profile.worker.gpus) == (2, 0.5)
    assert "worker" not in profile.defining()
    with pytest.raises(ProfileError, match="cpus"):
        load_profile("rapidocr", {"worker": {"cpus": -1}})


def test_clients_of_running_servers_stay_on_this_machine() -> None:
    engines = {
        "pdf_text": {},
        "openai": {"base_url": "http://127.0.0.1:1/v1", "model": "m"},
        "glm-ocr": {"serve": "vllm", "base_url": ""},
        "mistral-ocr": {},
        "pypdf": {},
        "textract-text": {},
    }
    found = [runs_on_nodes(load_profile(name, given)[1]) for name, given in engines.items()]
    assert found == [True, False, True, False, True, False]


@pytest.mark.parametrize(("key", "value"), [("gpus", "0,1"), ("server_port", 8000)])
def test_settings_that_only_one_machine_can_follow_are_refused(key: str, value: object) -> None:
    _, profile = load_profile("openai", {"serve": "vllm:m", "model": "m", key: value})
    with pytest.raises(UsageError, match="does not go with --on"):
        check_profile(profile)


def test_a_missing_client_of_ray_is_named_with_its_package() -> None:
    pytest.importorskip("ray")
    check_address("ray")


def test_a_node_with_another_version_is_named_with_both() -> None:
    here = versions()
    assert differences(here) == differences(here, scoring=True) == ""
    assert differences({**here, "pillow": "1.0"}) == f"pillow {here['pillow']} (here 1.0)"
    assert differences({**here, "lxml": "1"}) == ""
    assert "lxml" in differences({**here, "lxml": "1"}, scoring=True)
    assert differing({"xelatex": "2023"}, {"xelatex": ""}, ["xelatex"]) == "xelatex is missing (here 2023)"


@pytest.mark.parametrize(
    ("cpus", "gpus", "holds"), [(1, 0, 8), (3, 0, 2), (0.5, 0, 16), (1, 0.5, 4), (1, 1, 2), (4, 4, 0), (16, 0, 0)]
)
def test_a_node_holds_as_many_workers_as_its_scarcest_resource_allows(cpus: float, gpus: float, holds: int) -> None:
    assert Node(id="a", name="a", cpus=8, gpus=2).holds(cpus=cpus, gpus=gpus) == holds


@pytest.mark.parametrize("size", [0, 1, 89_999, 90_000, 90_001, 400_000, (4 << 20) + 1])
def test_a_page_arrives_as_it_was_sent(tmp_path: Path, size: int) -> None:
    page = tmp_path / "page.png"
    page.write_bytes(bytes(range(256)) * (size // 256) + b"x" * (size % 256))
    document = tmp_path / "book.pdf"
    document.write_bytes(b"a book")
    request = Request(id="a", images=(page, PdfPage(document, 3, "turned"), tmp_path / "gone.png"))
    sent, files, pieces = Packing(Store()).pack(request)
    (tmp_path / "node").mkdir()
    spool = Spool(tmp_path / "node", fetched)
    names = spool.hold(files)
    here, there, gone = asyncio.run(spool.unpack(sent, files, pieces)).images
    assert isinstance(here, Path)
    assert here.read_bytes() == page.read_bytes()
    assert isinstance(there, PdfPage)
    assert (there.page, there.variant, there.path.read_bytes()) == (3, "turned", b"a book")
    assert isinstance(gone, Path)
    assert not gone.exists()
    assert named_again(f"{gone}: no such file", names) == f"{tmp_path}/gone.png: no such file"
    spool.release(names)


def test_shared_data_sends_paths_alone(tmp_path: Path) -> None:
    request = Request(id="a", images=(Path("page.png"),))
    sent, files, pieces = Packing(Store(), shared=True).pack(request)
    assert (sent.images, files, pieces) == ((Path("page.png").absolute(),), [], [])


def test_pages_travel_to_scorers_only_where_scoring_looks_at_them(tmp_path: Path) -> None:
    page = tmp_path / "blank.png"
    page.write_bytes(b"white")
    sample = Sample(id="a", images=(page,), truth="text")
    assert carrying(sample) is sample
    blank = carrying(replace(sample, truth=""))
    page.unlink()
    [found] = pickle.loads(pickle.dumps(blank)).images
    assert (found.name, found.read_bytes()) == ("blank.png", b"white")


def test_pages_of_a_batch_stay_until_it_is_scored(tmp_path: Path) -> None:
    page = tmp_path / "blank.png"
    page.write_bytes(b"white")
    message = pickle.dumps(carrying(Sample(id="a", images=(page,) * 3, truth="")))
    found = [image for _ in range(100) for image in pickle.loads(message).images]
    assert all(image.is_file() for image in found)
    clear_away()
    assert not any(image.parent.exists() for image in found)


def test_a_document_is_stored_once_and_fetched_once_for_all_its_pages(tmp_path: Path) -> None:
    document, stored, asked = tmp_path / "a.pdf", [], []
    document.write_bytes(b"%PDF" * 50_000)

    class Counting:
        def put(self, content: bytes) -> int:
            stored.append(content)
            return len(stored) - 1

    async def fetch(reference: int) -> bytes:
        asked.append(reference)
        await asyncio.sleep(0)
        return stored[reference]

    packing = Packing(Counting())
    requests = [Request(id=str(page), images=(PdfPage(document, page),)) for page in range(1, 40)]
    with ThreadPoolExecutor(8) as threads:
        packed = list(threads.map(packing.pack, requests))

    async def unpacked() -> list[Request]:
        spool = Spool(tmp_path, fetch)
        for _, files, _ in packed:
            spool.hold(files)
        return await asyncio.gather(*(spool.unpack(*each) for each in packed))

    pages = [image for request in asyncio.run(unpacked()) for image in request.images]
    assert (len(stored), len(asked), len({page.path for page in pages if isinstance(page, PdfPage)})) == (1, 1, 1)


def test_a_function_travels_with_the_files_beside_it_and_a_benchmark_with_those_that_define_it(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    (tmp_path / "words.py").write_text("")
    (folder / "page.png").write_bytes(b"")
    (folder / "old_answers.jsonl").write_text("{}")
    _, profile = load_profile(f"python:{tmp_path}/reader.py:right")
    assert sorted(code_of(profile)) == ["reader.py", "words.py"]
    assert sorted(files_of(str(folder))) == ["loupe.toml", "samples.jsonl"]
    assert files_of("sample_pages") == {}
    order: Any = Order(profile=profile, versions={}, cores=1)
    assert (order.serves, order.places) == (False, 1)


def test_ray_learns_no_command_line_in_which_a_key_may_stand() -> None:
    utils = pytest.importorskip("ray._private.utils")
    before = utils.get_entrypoint_name
    try:
        _hush()
        assert utils.get_entrypoint_name() == "loupe"
    finally:
        utils.get_entrypoint_name = before


def test_what_ray_starts_gets_the_listed_variables_and_this_process_keeps_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    services = pytest.importorskip("ray._private.services")
    started: dict[str, dict[str, str]] = {}

    def start(command: list[str], process_type: str, fate_share: bool, env_updates: dict[str, str]) -> None:
        assert os.environ["MYVAR_X"] == "x" and fate_share
        given = {**os.environ, **env_updates}
        started[process_type] = json.loads(subprocess.check_output(command, env=given, text=True))

    monkeypatch.setattr(services, "start_ray_process", start)
    monkeypatch.setenv("MYVAR_X", "x")
    monkeypatch.setenv("LANG", "C")
    words = [sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))"]
    listed = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HTTP_PROXY": "http://p"}
    with _listed(listed):
        monkeypatch.setenv("RAY_SET_MEANWHILE", "1")
        for kind in ("raylet", "dashboard"):
            services.start_ray_process(words, kind, fate_share=True, env_updates={"RAY_NODE": "n"})
    assert services.start_ray_process is start
    for found in started.values():
        found.pop("LC_CTYPE", None)  # Python sets it
    assert started["raylet"] == {**listed, "RAY_NODE": "n", "RAY_SET_MEANWHILE": "1"}
    assert started["dashboard"]["HTTP_PROXY"] == "http://127.0.0.1:0" and "MYVAR_X" not in started["dashboard"]


def test_engines_on_a_cluster_of_this_machine_get_what_they_get_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, str] = {}

    class Ray:
        def init(self, **_: object) -> None:
            raise ConnectionError

    def listed(variables: dict[str, str]) -> nullcontext[None]:
        given.update(variables)
        return nullcontext()

    monkeypatch.setattr(connection, "_listed", listed)
    monkeypatch.setattr(connection, "_start", lambda *_: None)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("HF_TOKEN", "t")
    for name in ("VLLM_PORT", "CONDA_PREFIX", "VIRTUAL_ENV", "DISPLAY", "MINERU_DEVICE_MODE"):
        monkeypatch.setenv(name, "1")
    assert connection._start_or_join(Ray(), "ray", ["MINE"])
    alone = {**for_own_program(), **for_children("servers")}
    assert alone.keys() <= given.keys() and given["VLLM_PORT"] == given["CONDA_PREFIX"] == "1"
    assert "HF_TOKEN" not in given


def test_a_document_that_a_request_names_twice_is_released_and_one_that_was_cut_off_is_not_read(tmp_path: Path) -> None:
    document = tmp_path / "a.pdf"
    document.write_bytes(b"%PDF" * 100)
    request = Request(id="s", images=(PdfPage(document, 1), PdfPage(document, 2)))
    packed, files, pieces = Packing(Store()).pack(request)
    node = tmp_path / "node"
    node.mkdir()
    spool = Spool(node, fetched)
    (node / files[0].key).mkdir()
    (node / f"{files[0].key}.new").write_bytes(b"%P")  # what a full disk left
    names = spool.hold(files)
    moved = asyncio.run(spool.unpack(packed, files, pieces))
    assert {page.path.read_bytes() for page in moved.images if isinstance(page, PdfPage)} == {document.read_bytes()}
    spool.release(names)
    assert not spool._used and len(spool._idle) == 1


def test_a_file_that_is_read_stays_when_the_same_content_by_another_name_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_KEPT", 0)
    spool = Spool(tmp_path, fetched)
    first, second = Shipped("key", "a.png", 1), Shipped("key", "b.png", 1)

    async def laid(file: Shipped) -> tuple[dict[str, str], Path]:
        names = spool.hold([file])
        request = await spool.unpack(Request(id="s", images=(Path(file.shown),)), [file], [b"page"])
        (image,) = request.images
        assert isinstance(image, Path)
        return names, image

    async def main() -> None:
        (done, gone), (reading, read) = await laid(first), await laid(second)
        spool.release(done)
        assert not gone.exists() and read.read_bytes() == b"page"
        spool.release(reading)

    asyncio.run(main())
    assert list(tmp_path.iterdir()) == []
