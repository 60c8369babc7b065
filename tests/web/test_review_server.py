"""Who may read and write through the server of `loupe review`, and what it gives away: real requests to a real one."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from loupe.errors import PageError
from loupe.types import PdfPage
from loupe.web import server as web_server
from loupe.web.review.session import Documents, documents_folder
from loupe.web.server import Keys
from tests.support.command_line import loupe
from tests.support.web.review_app import LINES, Served, make_set, served, start

HOSTILE = (
    '{"pdf": "../secret.png", "page": 1, "id": "up", "type": "present", "text": "x"}\n',
    '{"pdf": "link.png", "page": 1, "id": "link", "type": "present", "text": "x"}\n',
    '{"pdf": "a/fox.pdf", "page": 99, "id": "far", "type": "present", "text": "\\ud800 <b>&"}\n',
    '{"pdf": 7, "page": "one", "id": ["x"], "type": "present", "text": {"a": 1}}\n',
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("review")
    make_set(folder, LINES[:-1] + HOSTILE)
    (folder / "pdfs" / "link.png").symlink_to(folder / "secret.png")
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    with served(folder / "tests.jsonl") as running:
        yield running


def test_only_this_very_address_is_answered_and_only_to_who_has_the_cookie(server: Served) -> None:
    port = server.port
    for host in (f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"127.0.0.1.evil.example:{port}", ""):
        assert server.ask("/", headers={"Host": host})[0] == 403, host
    assert server.ask("/", headers={"Host": f"localhost:{port}"})[0] == 200
    for path in ("/", "/list", "/state", "/entry/1", "/page/0?longest=1000", "/marks/1", "/static/review.js"):
        assert server.ask(path, headers={"Cookie": None})[0] == 403, path
        assert server.ask(path, headers={"Cookie": f"loupe-review-{port}={'0' * 64}"})[0] == 403, path
        assert server.ask(path)[0] == 200, path
    assert server.ask("/?token=wrong", headers={"Cookie": None})[0] == 403
    assert server.ask("/", headers={"Origin": "http://evil.example"})[0] == 403
    cookie = server.ask(f"/?line=3&token={server.token}", headers={"Cookie": None})[1]
    assert cookie["location"] == f"/?line=3#token={server.token}"
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie["set-cookie"].split("; "))


def test_a_change_needs_token_origin_and_json(server: Served, folder: Path) -> None:
    before = (folder / "tests.jsonl").read_bytes()
    body = {"number": 1, "seen": server.get("/entry/1")["seen"], "status": "verified"}
    foreign: list[dict[str, str | None]] = [
        {"X-Loupe-Token": None},
        {"X-Loupe-Token": "x" * 32},
        {"Cookie": None},
        {"Origin": None},
        {"Origin": "null"},
        {"Origin": f"http://localhost:{server.port}"},
        {"Origin": f"https://127.0.0.1:{server.port}"},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Host": f"evil.example:{server.port}", "Origin": f"http://evil.example:{server.port}"},
    ]
    for headers in foreign:
        status, _, answer = server.ask("/change", method="POST", body=body, headers=headers)
        assert status == 403, (headers, answer)
    assert server.ask("/change?number=1")[0] == 405
    for path in ("/undo", "/leave", "/preview"):
        assert server.ask(path, method="POST", body={}, headers={"X-Loupe-Token": None})[0] == 403
    for wrong in (b"{", b"\xff", b"[" * 100_000, {"number": 1}, {**body, "status": "x"}, {**body, "more": 1}):
        assert server.ask("/change", method="POST", body=wrong)[0] == 400
    assert server.ask("/change", method="POST", body=b'"' + b"x" * (5 << 20))[0] == 413
    assert (folder / "tests.jsonl").read_bytes() == before
    assert server.post("/change", **body)[0] == 200
    status, answer = server.post("/change", **body)
    assert status == 409 and "another tab or program" in answer["message"]
    assert server.post("/undo")[0] == 200
    assert (folder / "tests.jsonl").read_bytes() == before


def test_every_answer_has_a_policy_that_admits_nothing_from_elsewhere(server: Served) -> None:
    for path, kind in (("/", "text/html"), ("/static/review.css", "text/css"), ("/nothing", "application/json")):
        _, headers, _ = server.ask(path)
        assert headers["content-type"].startswith(kind)
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"] and "http" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers
    assert "content-security-policy" in server.ask("/", headers={"Host": "evil.example"})[1]


def test_no_file_is_reached_but_the_documents(server: Served) -> None:
    (first,) = server.get("/entry/1")["pages"]  # a page has a number once an entry has named it
    assert server.ask(f"/page/{first['picture']}?longest=1000")[2].startswith(b"\x89PNG")
    for number, why in ((9, "not shown"), (10, "not shown"), (11, ""), (12, "does not name a document")):
        entry = server.get(f"/entry/{number}")
        (shown,) = entry["pages"]
        assert why in shown["problem"]
        status, _, body = server.ask(f"/page/{shown['picture']}?longest=1000")
        assert status == 404 and not body.startswith(b"\x89PNG"), number
    for path in (
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/katex/..%2f..%2fx",
        "/katex/fonts/..%2fkatex.min.js",
        "/katex/fonts/KaTeX_x.woff2",
        "/page/999?longest=1000",
        "/page/-1?longest=1000",
        "/page/../secret.png",
        "/entry/999",
        *(f"/{what}/{'9' * 5000}?longest=1000" for what in ("entry", "page", "marks")),
        "/pdfs/a/fox.pdf",
    ):
        assert server.ask(path)[0] == 404, path
    assert server.ask("/page/0?longest=999999")[0] == 400
    for odd in ("123456789abc", "9" * 5000, "-1", "%D9%A3", ""):
        assert server.ask(f"/?line={odd}")[0] == server.ask(f"/marks/1?picture={odd}")[0] == 200


def test_names_that_lead_out_are_refused_whatever_they_look_like(tmp_path: Path) -> None:
    make_set(tmp_path)
    documents = Documents(documents_folder(tmp_path / "tests.jsonl", None))
    assert documents.source(documents.number("a/fox.pdf", 3)) == PdfPage(tmp_path / "pdfs/a/fox.pdf", 3)
    names = ["../secret.png", "a/../../secret.png", str(tmp_path / "secret.png"), "/etc/passwd", "a\\..\\x.pdf"]
    names += ["", ".", "..", "a", "x\0.pdf", "a/fox.pdf\n", "~/x.pdf", "file:///etc/passwd", "x" * 5000, "//x/y.pdf"]
    for name in names:
        with pytest.raises(PageError):
            documents.source(documents.number(name, 1))
    assert documents_folder(tmp_path / "tests.jsonl", tmp_path / "pdfs") == tmp_path / "pdfs"


def test_marks_stand_where_the_text_does_and_texts_are_escaped(server: Served) -> None:
    marks = server.get("/marks/1")["marks"]
    ((box,),) = marks["text"]
    left, top, right, bottom = box
    assert 0.08 < left < 0.12 and 0.08 < top < bottom < 0.14 and 0.2 < right < 0.5
    assert set(server.get("/marks/2")["marks"]) == {"before", "after"}
    form = server.get("/entry/11")["form"]
    assert "&lt;b&gt;&amp;" in form and "<b>" not in form
    assert server.get("/entry/12")["form"].count("{&#34;a&#34;: 1}") == 1


def test_one_line_says_what_is_wrong_and_ctrl_c_ends_quietly(folder: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = loupe("review", "tests", str(folder / "tests.jsonl"), "--no-browser", "--port", str(port), cwd=tmp_path)
    assert done.returncode == 2
    first = f"error: cannot listen on 127.0.0.1 port {port}: address already in use"
    assert done.stderr.splitlines() == [first, "hint: choose another port: --port 0"]
    (tmp_path / "broken.jsonl").write_text('{"id": 1\n' + LINES[0])
    process = start(tmp_path / "broken.jsonl")
    assert process.stdout is not None and process.stderr is not None
    assert "token=" in process.stdout.readline()
    assert "broken.jsonl, line 1: not JSON" in process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    out, said = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, ""), out
    assert "Traceback" not in said, said


def test_a_server_that_is_ended_before_it_has_answered_says_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("loupe.web.server._PATIENCE", 0.05)

    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return
        asked.set()
        await asyncio.Event().wait()

    async def ended_while_asked() -> None:
        addresses: list[str] = []

        def ready(address: str) -> None:
            addresses.append(address)
            listening.set()

        serving = asyncio.create_task(web_server.serve(never, name="review", ports=[0], on_ready=ready, stop=stop))
        await asyncio.wait_for(listening.wait(), 20)
        port, token = addresses[0].partition("127.0.0.1:")[2].split("/?token=")
        cookie = f"loupe-review-{port}={Keys(token).cookie}"
        _, writer = await asyncio.open_connection("127.0.0.1", int(port))
        writer.write(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\n\r\n".encode())
        await asyncio.wait_for(asked.wait(), 20)
        stop.set()
        await serving
        writer.close()

    listening, asked, stop = asyncio.Event(), asyncio.Event(), asyncio.Event()
    asyncio.run(ended_while_asked())
    assert [record.getMessage() for record in caplog.records if record.name.startswith("uvicorn")] == []


def test_json_of_a_change_shows_what_came_of_it(server: Served) -> None:
    status, answer = server.change(6, fields={"text": "页眉"}, status="verified", known=-1)
    assert status == 200 and answer["alone"] is False
    assert answer["entry"]["status"] == "verified" and "页眉" in answer["row"]
    assert answer["undo"] == "照片: Text edited, verified"
    status, answer = server.change(7, fields={"format": "blue"})
    assert (status, answer["field"]) == (422, "format")
    assert json.loads(json.dumps(server.post("/undo")[1]))["entry"]["status"] == "rejected"
