"""What `loupe view` gives away and to whom, what lists hold, what-if, and runs that grow: requests to a real server."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from loupe.cli.view import what_opens
from loupe.web.view.grid import counted_outcome
from tests.support.command_line import loupe
from tests.support.report_runs import Toy
from tests.support.served import wait_for
from tests.support.web.review_app import Served
from tests.support.web.view_app import ATTACK, begun_run, make_runs, viewed


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    toy = make_runs(tmp_path_factory.mktemp("view"))
    (toy.root / "secret.txt").write_text("the secret")
    return toy


@pytest.fixture(scope="module")
def server(toy: Toy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("home")
    with viewed(toy.root / "runs", home=home, trusted=toy.root / "toy.py") as found:
        yield found


def page(server: Served, path: str) -> str:
    status, headers, body = server.ask(path)
    assert status == 200, (path, body[:300])
    assert "unsafe" not in headers["content-security-policy"]
    return body.decode()


def board(server: Served) -> str:
    return re.findall(r'href="(/b/[^"/?]+)"', page(server, "/"))[0]


def names(html: str) -> list[str]:
    return re.findall(r'<a class="card [^"]*" href="[^"]*" title="([^"]*)"', html)


def test_slices_say_of_how_many_samples_they_are_before_their_measures(server: Served) -> None:
    html = page(server, f"{board(server)}/slices")
    assert re.search(r'<th scope="col">slice</th><th scope="col" class="number"><abbr [^>]+>n</abbr></th>', html)
    assert re.search(r'all samples</th><td class="number muted">70</td><td class="heat-cell', html)


def test_only_the_browser_that_has_the_address_may_look(server: Served) -> None:
    root = board(server)
    for path in ("/", root, f"{root}/samples", f"{root}/payload?id=book/page-0000", "/static/view.js", "/state"):
        assert server.ask(path, headers={"Cookie": None})[0] == 403, path
        assert server.ask(path, headers={"Host": "evil.example"})[0] == 403, path
        assert server.ask(path, headers={"Origin": "http://evil.example"})[0] == 403, path


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Loupe-Token": None},
        {"X-Loupe-Token": "wrong"},
        {"Origin": None},
        {"Origin": "null"},
        {"Content-Type": "text/plain"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Cookie": None},
    ],
)
def test_an_edited_answer_needs_token_origin_and_json(server: Served, headers: dict[str, str | None]) -> None:
    assert server.ask("/what-if", method="POST", body={}, headers=headers)[0] == 403


def test_no_address_leads_out(server: Served) -> None:
    root = board(server)
    ups = ["../secret.txt", "..%2fsecret.txt", "%2e%2e/secret.txt", "..%5csecret.txt", "/etc/passwd", "%00", "a" * 5000]
    found = [f"/static/{up}" for up in ups] + [f"/run/{up}" for up in ups] + [f"/b/{up}/samples" for up in ups]
    for piece in ("picture", "payload", "sample", "drawings", "what-if"):
        found += [f"{root}/{piece}?id={quote(up)}&n=0" for up in ups]
    numbers = ["99", "-1", "1e3", "9" * 40, "%D9%A3", ""]
    found += [f"{root}/picture?id=book/page-0000&n={number}" for number in numbers]
    for path in found:
        status, _, body = server.ask(path)
        assert status == 404, (path[:80], status)
        assert b"the secret" not in body and b"root:" not in body


def test_what_is_not_there_is_a_page_for_people_and_json_for_scripts(server: Served) -> None:
    root = board(server)
    for path in ("/run/gone", "/b/nothere", f"{root}/sample?id=nope", "/nowhere"):
        status, headers, body = server.ask(path, headers={"Accept": "text/html,*/*"})
        assert (status, headers["content-type"]) == (404, "text/html; charset=utf-8"), path
        assert b'<a href="/">Benchmarks</a>' in body and b"{" not in body.split(b"<main")[1]
        status, headers, body = server.ask(path)
        assert status == 404 and json.loads(body)["message"], path


def test_keys_from_compare_go_through_the_samples_in_its_order(server: Served) -> None:
    root = board(server)
    for order in ("losses", "wins"):
        html = page(server, f"{root}/compare?order={order}")
        links = [unescape(link) for link in re.findall(r'<th scope="row"><a href="([^"]*)"', html)]
        at = links[0]
        for link in links[1:6]:
            index = json.loads(re.findall(r'id="index">(.*?)</script>', page(server, at))[0])
            at = index["addresses"]["next"]
            assert parse_qs(urlsplit(at).query) == parse_qs(urlsplit(link).query)


def test_a_failed_sample_is_no_answer_of_nought_in_a_comparison(server: Served, toy: Toy) -> None:
    root = board(server)
    html = page(server, f"{root}/compare?order=wins")
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", html)
    (failed,) = [row for row in rows if "page-0004" in row]
    assert '<span class="swatch q-failed"></span> error' in failed and "100.00 %" not in failed
    assert "1 failed in A" in html and html.count(" hollow") == 1 and "70 of 70 samples" in html


def test_odd_wishes_of_a_list_show_what_they_can(server: Served) -> None:
    root = board(server)
    odd = f"page={'9' * 5000}"
    for query in (
        odd,
        "page=0",
        "page=-3",
        "page=99999999999999",
        "page=2&order=nothing",
        "a=../..&b=x",
        "tag=%00=%00",
    ):
        page(server, f"{root}/samples?{query}")
        page(server, f"{root}/compare?{query}")


def test_the_leaderboard_ranks_and_the_run_says_how_it_went(server: Served) -> None:
    html = page(server, board(server))
    assert re.findall(r'class="engine"><a href="/run/[^"]*"><bdi>(\w+)', html) == ["good", "worse"]
    worse = re.findall(r'href="(/run/[^"]*)"', html)[1]
    run = page(server, worse)
    assert re.search(r">error</td><td[^>]*><bdi>boom &lt;b&gt;</bdi>", run)
    (query,) = re.findall(r'samples\?([^"]*error=[^"]*)"', run)
    assert names(page(server, f"{board(server)}/samples?{unescape(query)}")) == ["book/page-0004"]
    assert "1 error" in run and "1 errors" not in run and "1 cut off" in run and "68 answered" in run
    assert [counted_outcome(name, 2) for name in ("error", "empty", "ok")] == ["errors", "empty answers", "answered"]
    assert "<h2>What differs from the " in run and "the profile the" not in run


def test_lists_are_filtered_sorted_and_cut_into_pages(server: Served) -> None:
    root = board(server)
    first, second = names(page(server, f"{root}/samples")), names(page(server, f"{root}/samples?page=2"))
    assert len(first) == 60 and len(second) == 10 and not set(first) & set(second)
    assert names(page(server, f"{root}/samples?outcome=failed")) == ["book/page-0004"]
    assert names(page(server, f"{root}/samples?outcome=truncated")) == ["book/page-0005"]
    # Both runs have read 68 pages otherwise than each other; nobody read page 4 without any points.
    assert names(page(server, f"{root}/samples?outcome=failed_by_all")) == []
    worse = re.findall(r'href="/run/([^"]*)"', page(server, root))[1]
    assert names(page(server, f"{root}/samples?outcome=failed_by_all&a={worse}")) == ["book/page-0004"]
    assert "book/page-0004" in names(page(server, f"{root}/samples?outcome=differ"))
    assert names(page(server, f"{root}/samples?outcome=differ&a={worse}")) == []
    assert names(page(server, f"{root}/samples?q=page-0012")) == ["book/page-0012"]
    assert set(names(page(server, f"{root}/samples?order=spread"))[:2]) <= {f"book/page-000{n}" for n in (0, 1, 4, 5)}
    assert all(int(name[-4:]) % 3 == 1 for name in names(page(server, f"{root}/samples?tag=kind%3Dtable")))


def test_the_payload_of_a_sample_is_that_of_the_report_and_sanitised(server: Served) -> None:
    root = board(server)
    status, headers, body = server.ask(f"{root}/payload?id=book/page-0001")
    assert status == 200 and headers["content-encoding"] == "gzip"
    payload = json.loads(gzip.decompress(body))
    shown = payload["answers"][0]
    assert shown["text"] == ATTACK and "<strong>bold</strong>" in shown["html"]
    assert "<script" not in shown["html"] and "<img" not in shown["html"]
    status, headers, picture = server.ask(payload["pictures"][0]["src"])
    assert (status, headers["content-type"]) == (200, "image/png") and picture.startswith(b"\x89PNG")


def test_an_edited_answer_is_scored_and_nothing_is_saved(server: Served, toy: Toy) -> None:
    root = board(server)
    before = {path: path.read_bytes() for path in sorted((toy.root / "runs").rglob("*")) if path.is_file()}
    run = re.findall(r'href="/run/(worse[^"]*)"', page(server, root))[0]
    truth = next(sample.truth for sample in toy.samples if sample.id == "book/page-0010")
    asked = {"board": root[3:], "run": run, "sample": "book/page-0010"}
    status, found = server.post("/what-if", **asked, text=truth)
    assert status == 200
    (line,) = found["sample"]
    assert line["after"] == "0.00 %" and line["better"] and line["change"].startswith("-")
    assert found["run"][0]["name"] == "cer" and found["run"][0]["better"]
    status, found = server.post("/what-if", **asked, text=ATTACK + "\x00" + "spam " * 2000)
    assert status == 200 and not found["sample"][0]["better"]
    # Half a character is one, as anywhere else.
    assert server.post("/what-if", **asked, text="\ud800")[0] == 200
    assert server.post("/what-if", **asked, text="x" * 1_000_001)[0] == 413
    assert server.post("/what-if", **{**asked, "run": "../.."}, text="x")[0] == 404
    assert server.post("/what-if", **{**asked, "sample": "../../secret.txt"}, text="x")[0] == 404
    assert server.ask("/what-if", method="POST", body=b"{" * 100_000)[0] == 400
    assert {path: path.read_bytes() for path in before} == before


def test_what_cannot_be_scored_is_said_and_is_no_fault_of_the_server(server: Served, toy: Toy) -> None:
    root = board(server)
    with begun_run(toy, server) as path:
        info = json.loads((path / "run.json").read_text())
        (path / "run.json").write_text(json.dumps(info | {"benchmark": str(toy.root / "gone.py")}))
        line = {"sample": "book/page-0000", "text": "x" * 1_000_001, "class": "ok"}
        (path / "predictions.jsonl").write_text(json.dumps(line) + "\n")
        wait_for(lambda: ">1 of 70<" in page(server, "/").partition("slow</bdi>")[2])
        key = re.findall(r'href="/run/(slow[^"]*)"', page(server, "/"))[0]
        html = page(server, f"{root}/what-if?id=book/page-0000&run={key}")
        assert "has 1,000,001 characters. Only its beginning is shown" in html and "readonly" in html
        status, found = server.post("/what-if", board=root[3:], run=key, sample="book/page-0000", text="x")
        assert status == 409 and found["message"]


def test_a_run_is_followed_while_it_grows(server: Served, toy: Toy) -> None:
    root, old = board(server), server.get("/state")["stamp"]
    with begun_run(toy, server) as path:
        wait_for(lambda: "slow</bdi>" in page(server, root))
        assert server.get("/state")["stamp"] != old
        line = json.dumps({"sample": "book/page-0000", "text": "one", "class": "ok", "seconds": 1.5}).encode() + b"\n"
        with (path / "predictions.jsonl").open("ab") as file:
            file.write(line + line.replace(b"page-0000", b"page-0001")[:30])
            file.flush()
            wait_for(lambda: "1 of 70" in page(server, root))
            file.write(line.replace(b"page-0000", b"page-0001")[30:])
        wait_for(lambda: "2 of 70" in page(server, root))
        assert "running" in page(server, root)
        with (path / "predictions.jsonl").open("ab") as file:
            file.write(b"{not json}\n")
        wait_for(lambda: "cannot be read" in page(server, "/"))
        damaged = page(server, "/")
        assert "not a record of this run" in damaged and ">good<" in damaged


def test_a_missing_folder_is_an_error_of_one_line(tmp_path: Path) -> None:
    assert what_opens("runs", [tmp_path / "runs"]).startswith("no run below runs yet")
    (tmp_path / "runs" / "three" / "folders" / "deep").mkdir(parents=True)
    (tmp_path / "runs" / "three" / "folders" / "deep" / "run.json").write_text("{}")
    assert what_opens("runs", [tmp_path / "runs"]).startswith("no run below runs yet")
    done = loupe("view", "nowhere", "--no-browser", cwd=tmp_path)
    assert done.returncode == 2 and "nowhere" in done.stderr and "Traceback" not in done.stderr
