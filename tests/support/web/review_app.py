"""A real `loupe review` on small sets of our own, and a plain client that can send what browsers never do."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

#: A PDF with a text layer: "The quick brown fox" and a small table.
_CONTENT = (
    b"BT /F 18 Tf 60 700 Td (The quick brown fox) Tj 0 -40 Td (jumps over the lazy dog) Tj "
    b"0 -60 Td (Item) Tj 120 0 Td (Price) Tj -120 -30 Td (Apple) Tj 120 0 Td (4.20) Tj ET"
)
PDF = (
    b"%%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj\n"
    b"4 0 obj<</Length %d>>stream\n%s\nendstream endobj\n5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\n"
    b"trailer<</Root 1 0 R>>\n%%%%EOF\n"
) % (len(_CONTENT), _CONTENT)

#: Spelled by hand, each line in a manner of its own: what nobody changes must stay as it is, byte for byte.
LINES = (
    '{"pdf": "a/fox.pdf", "page": 1, "id": "t1", "type": "present", "text": "The quick brown fox", "max_diffs": 1}\n',
    '{"pdf":"a/fox.pdf","page":1,"id":"t2","type":"order","before":"brown","after":"lazy","who":{"x":[1, 2.50]}}\r\n',
    "\n",
    '{ "id" : "t3", "type" : "table", "pdf" : "a/fox.pdf", "page" : 1,   "cell" : "4.20", "left" : "Apple" }\n',
    '{"pdf": "a/fox.pdf", "page": 1, "id": "t4", "type": "math", "math": "\\\\frac{a}{b}", "url": "\\u00fc"}\n',
    '{"pdf": "photo.png", "page": 1, "id": "照片", "type": "absent", "text": "头部", "checked": "rejected"}\n',
    '{"pdf": "photo.png", "page": 1, "id": "t6", "type": "format", "text": "Photo", "format": "bold"}\n',
    '{"pdf": "photo.png", "page": 1, "id": "t7", "type": "footnote", "marker": "1"}\n',
    '{"pdf": "a/fox.pdf", "page": 1, "id": "t8", "type": "baseline", "checked": null}',
)


def make_set(folder: Path, lines: tuple[str, ...] = LINES) -> Path:
    """The folder as upstream lays it out; the test file in it."""
    (folder / "pdfs" / "a").mkdir(parents=True)
    (folder / "pdfs" / "a" / "fox.pdf").write_bytes(PDF)
    picture = Image.new("RGB", (400, 300), "white")
    ImageDraw.Draw(picture).text((20, 20), "Photo", fill="black")
    picture.save(folder / "pdfs" / "photo.png")
    (folder / "secret.png").write_bytes((folder / "pdfs" / "photo.png").read_bytes())
    file = folder / "tests.jsonl"
    file.write_bytes("".join(lines).encode())
    return file


@dataclass
class Served:
    """A running review: its address, and requests to it with any headers."""

    process: subprocess.Popen[str]
    address: str

    @property
    def port(self) -> int:
        """The port of the address."""
        match = re.search(r":(\d+)/", self.address)
        assert match is not None
        return int(match[1])

    @property
    def token(self) -> str:
        """The token of the address."""
        return self.address.partition("token=")[2]

    def ask(
        self, path: str, *, method: str = "GET", body: object = None, headers: Mapping[str, str | None] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """One request as the page would send it; `headers` replace what it sends, None leaves one out."""
        wanted: dict[str, str | None] = {"Host": f"127.0.0.1:{self.port}", "Cookie": self.cookie()}
        if method == "POST":
            wanted |= {"Origin": f"http://127.0.0.1:{self.port}", "X-Loupe-Token": self.token}
            wanted |= {"Content-Type": "application/json"}
        wanted |= headers or {}
        return self._raw(path, method, body, {name: value for name, value in wanted.items() if value is not None})

    def _raw(
        self, path: str, method: str, body: object, headers: Mapping[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            if data is not None:
                connection.putheader("Content-Length", str(len(data)))
            connection.endheaders(data)
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def cookie(self) -> str:
        """The cookie that the printed address sets."""
        path = self.address.partition(f":{self.port}")[2]
        status, headers, _ = self._raw(path, "GET", None, {"Host": f"127.0.0.1:{self.port}"})
        assert status == 303 and headers["location"] == f"/#token={self.token}"
        return headers["set-cookie"].partition(";")[0]

    def get(self, path: str) -> Any:
        """The JSON of an answer that says yes."""
        status, _, body = self.ask(path)
        assert status == 200, body
        return json.loads(body)

    def post(self, path: str, **body: object) -> tuple[int, Any]:
        """Status and JSON of a change."""
        status, _, answer = self.ask(path, method="POST", body=body)
        return status, json.loads(answer)

    def change(self, number: int, **body: object) -> tuple[int, Any]:
        """A change of the line as it is now."""
        return self.post("/change", number=number, seen=self.get(f"/entry/{number}")["seen"], **body)


def start(file: Path, *words: str) -> subprocess.Popen[str]:
    """The process, before it says anything."""
    what = [] if file.is_dir() else ["tests"]
    command = [sys.executable, "-m", "loupe", "review", *what, str(file), "--no-browser", *words]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


@contextmanager
def served(file: Path, *words: str) -> Iterator[Served]:
    """A review of the file or folder, ended by Ctrl-C."""
    with address_of(start(file, *words)) as running:
        yield running


@contextmanager
def address_of(process: subprocess.Popen[str], *, ends_within: float = 20) -> Iterator[Served]:
    """A started server that prints its address. Ctrl-C ends it afterwards, with exit code 0 and no traceback."""
    assert process.stdout is not None and process.stderr is not None
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), process.stderr.read()
        yield Served(process, address)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=ends_within)
    assert process.returncode == 0, said
    assert "Traceback" not in said, said
    assert out == "", out
