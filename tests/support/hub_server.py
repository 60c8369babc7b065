"""A dataset hub on loopback, for tests: the protocol of the real one, and every fault on demand.

    with hub_server({"own/pages": {"data/test.parquet": b"..."}}, [Fault(method="GET", path="test", cut=1000)]) as hub:
        ... hub.url ... hub.requests ...

Protocol: docs/protocols/hf_hub_local.md. Faults are used up one by one, in order, by the requests that they fit;
leaving the block fails if one of them never fired, because such a test has tested nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Files = Mapping[str, bytes]
#: Files above this size count as large: the listing has their sha256.
LARGE = 1000
#: The commit of every repository here until `commit` gives it another.
COMMIT = hashlib.sha1(b"first").hexdigest()


@dataclass(kw_only=True)
class Fault:
    """What goes wrong, `times` times, on requests of `method` whose path contains `path`.

    `cut` ends the body after so many bytes; `flip` sends wrong bytes of the right number; `longer` sends more than
    there is; `status` answers with it; `full` ignores a Range; `shifted` answers another range; `to` redirects there;
    `silent` waits so many seconds instead of an answer, or after the part that `cut` names; `interim` sends HTTP 100
    until nobody listens; `reason` is what an answer of `status` says in its headers.
    """

    method: str
    path: str
    status: int = 0
    retry_after: str = ""
    cut: int | None = None
    flip: bool = False
    longer: bool = False
    full: bool = False
    shifted: bool = False
    silent: float = 0.0
    to: str = ""
    interim: bool = False
    reason: str = ""
    times: int = 1
    fired: int = 0


@dataclass(frozen=True)
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]

    @property
    def range(self) -> str:
        return self.headers.get("range", "")


@dataclass
class Hub:
    """A running hub: what it has, and what it was asked."""

    repos: dict[str, dict[str, bytes]]
    faults: list[Fault]
    page: int = 1000
    url: str = ""
    commit: str = COMMIT
    token: str = ""
    sizes: dict[str, int] = field(default_factory=dict)
    #: Lines of the listing that no hub would send, and where it claims to go on.
    lines: list[Any] = field(default_factory=list)
    following: str = ""
    requests: list[Asked] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    done: threading.Event = field(default_factory=threading.Event)

    def asked(self, part: str, method: str = "GET") -> list[Asked]:
        """The requests whose path contains `part`, in order."""
        return [item for item in self.requests if part in item.path and item.method == method]

    def fault_for(self, method: str, path: str) -> Fault | None:
        with self.lock:
            for fault in self.faults:
                if fault.fired < fault.times and fault.method == method and fault.path in path:
                    fault.fired += 1
                    return fault
        return None


@contextmanager
def hub_server(repos: Mapping[str, Files], faults: Sequence[Fault] = (), **settings: Any) -> Iterator[Hub]:
    """Serve these repositories on 127.0.0.1. Every fault must have fired all its times at the end."""
    hub = Hub({name: dict(files) for name, files in repos.items()}, list(faults), **settings)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hub
        unused = [fault for fault in hub.faults if fault.fired < fault.times]
        assert not unused, f"faults that never fired: {unused}"
    finally:
        hub.done.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self, *, body: bool) -> None:
        hub, path = self.hub, unquote(self.path)
        headers = {key.lower(): value for key, value in self.headers.items()}
        hub.requests.append(Asked(self.command, path, headers))
        fault = hub.fault_for(self.command, path)
        if fault and fault.silent and fault.cut is None:
            hub.done.wait(fault.silent)
            self.close_connection = True
        elif fault and fault.interim:
            self.close_connection = True
            with suppress(OSError):
                while not hub.done.wait(0.01):
                    self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        elif fault and (fault.status or fault.to):
            extra = {"Retry-After": fault.retry_after} if fault.retry_after else {}
            extra |= {"X-Error-Message": fault.reason} if fault.reason else {}
            extra |= {"Location": fault.to + self.path} if fault.to else {}
            self._send(fault.status or 302, b"{}", extra)
        elif hub.token and headers.get("authorization") != f"Bearer {hub.token}":
            self._send(401, b"{}", {"X-Error-Code": "GatedRepo"})
        elif found := re.fullmatch(r"/api/datasets/([^/]+/[^/]+)(?:/revision/([^/?]+))?(?:\?.*)?", path):
            self._info(found[1], found[2] or "main")
        elif found := re.fullmatch(r"/api/datasets/([^/]+/[^/]+)/tree/([^/?]+)(?:\?.*)?", path):
            self._tree(found[1], found[2])
        elif found := re.fullmatch(r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self._file(found[1], found[3], fault, body=body)
        else:
            self._send(404, b"{}", {})

    def _info(self, repo: str, revision: str) -> None:
        if repo not in self.hub.repos:
            self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
        elif revision not in ("main", "v1.5", self.hub.commit, COMMIT):
            self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        else:
            sha = COMMIT if revision == COMMIT else self.hub.commit
            files = [{"rfilename": path} for path in self.hub.repos[repo]]
            facts = {"_id": "1", "id": repo, "author": repo.split("/")[0], "sha": sha, "private": False, "gated": False}
            more = {"disabled": False, "tags": [], "downloads": 0, "likes": 0, "siblings": files}
            when = {"lastModified": "2025-01-01T00:00:00.000Z", "createdAt": "2025-01-01T00:00:00.000Z"}
            self._send(200, json.dumps(facts | more | when).encode(), {})

    def _tree(self, repo: str, revision: str) -> None:
        """One page of the listing; a Link header names the next."""
        entries = [_entry(path, data, self.hub.sizes) for path, data in sorted(self.hub.repos[repo].items())]
        start = int(parse_qs(urlsplit(self.path).query).get("cursor", ["0"])[0])
        end = start + self.hub.page
        link = f'<{self.hub.url}/api/datasets/{repo}/tree/{revision}?recursive=true&cursor={end}>; rel="next"'
        link = f'<{self.hub.following}>; rel="next"' if self.hub.following else link if end < len(entries) else ""
        lines = entries[start:end] + self.hub.lines
        self._send(200, json.dumps(lines).encode(), {"Link": link} if link else {})

    def _file(self, repo: str, path: str, fault: Fault | None, *, body: bool) -> None:
        data = self.hub.repos.get(repo, {}).get(path)
        if data is None:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        headers = {"ETag": f'"{_entry(path, data, {})["oid"]}"', "X-Repo-Commit": self.hub.commit}
        status, start, end = 200, 0, len(data)
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked and not (fault and fault.full):
            start, end = int(asked[1]), int(asked[2] or len(data) - 1) + 1
            if start >= len(data):
                self._send(416, b"", {"Content-Range": f"bytes */{len(data)}"})
                return
            status = 206
            shown = start + 7 if fault and fault.shifted else start
            headers["Content-Range"] = f"bytes {shown}-{end - 1}/{len(data)}"
        piece = data[start:end]
        if fault and fault.flip:
            piece = bytes(byte ^ 1 for byte in piece)
        if fault and fault.longer:
            piece += b"more than was announced"
        self._send(status, piece if body else b"", headers, fault=fault)

    def _send(self, status: int, body: bytes, headers: Mapping[str, str], *, fault: Fault | None = None) -> None:
        cut = fault.cut if fault else None
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(body)), "Accept-Ranges": "bytes"}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(body if cut is None else body[:cut])
        if cut is not None:
            self.wfile.flush()
            if fault and fault.silent:
                self.hub.done.wait(fault.silent)
            self.close_connection = True


def _entry(path: str, data: bytes, sizes: Mapping[str, int]) -> dict[str, Any]:
    blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    size = sizes.get(path, len(data))
    entry: dict[str, Any] = {"type": "file", "oid": blob, "size": size, "path": path}
    if len(data) > LARGE:
        entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": size, "pointerSize": 130}
    return entry
