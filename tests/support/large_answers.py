"""A server on loopback whose answers are very large, in several shapes, and the memory that a command needs for them.

The server is a process of its own that sends one buffer over and over, so 64 answers of 20 MB cost it 20 MB. By hand:
`python -m tests.support.large_answers` prints a table of shapes and peaks.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import socketserver
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.chat_server import module_server
from tests.support.command_line import command, environment

SIZE = 20_000_000
BENCHMARK = """
from loupe.types import Benchmark, Measure, Sample, Score

def load(root):
    for number in range({count}):
        yield Sample(id=f"s{{number:03}}", text="x", truth="x", prompt="x")

def score(sample, prediction):
    return [Score(measure="right", counts=(float(prediction.text == sample.truth), 1.0))]

benchmark = Benchmark(
    title="Large", version="1", task="text", load=load, score=score,
    measures=(Measure(name="right", higher_is_better=True),),
)
"""
#: Prints the most memory, in bytes, that the command in its arguments took; a process that is small itself, because
#: a child inherits the peak of the process that starts it.
_WATCH = (
    "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]);"
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024, code)"
)


def words(size: int = SIZE) -> str:
    """Text without a loop: numbers, in lines."""
    return "".join(f"{number} line {number * 7919 % 10007}\n" for number in range(size // 16))[:size]


def _answer(text: str, **more: object) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **more}, "finish_reason": "stop"}
    return json.dumps({"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}).encode()


def _event(text: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": {"content": text}}]}).encode() + b"\n\n"


_END = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
_LOGPROB = {"token": "word", "logprob": -0.25, "bytes": [1, 2, 3], "top_logprobs": []}
_JSON, _STREAM = "application/json", "text/event-stream"
#: Body of about so many bytes, content type and content encoding.
SHAPES: dict[str, tuple[Callable[[int], bytes], str, str]] = {
    "small": (lambda size: _answer("hello"), _JSON, ""),
    "text": (lambda size: _answer(words(size)), _JSON, ""),
    "lines": (lambda size: _answer("a\n" * (size // 3)), _JSON, ""),
    "one event": (lambda size: _event(words(size)) + _END, _STREAM, ""),
    "small deltas": (lambda size: _event("x") * (size // len(_event("x"))) + _END, _STREAM, ""),
    "no event": (lambda size: b"data: " + b"x" * size, _STREAM, ""),
    "gzip": (lambda size: gzip.compress(_answer(words(size)), 1), _JSON, "gzip"),
    "bomb": (lambda size: gzip.compress(_answer("x" * 20 * size), 1), _JSON, "gzip"),
    "deep": (lambda size: b'{"choices": ' + b"[" * size, _JSON, ""),
    "wide": (lambda size: _answer("x")[:-1] + b', "x": [' + b"[]," * (size // 3) + b"0]}", _JSON, ""),
    "many choices": (lambda size: b'{"choices": [' + b"{}," * (size // 3) + b"{}]}", _JSON, ""),
    "parts": (lambda size: b'{"choices": [{"message": {"content": [' + b"{}," * (size // 3) + b"{}]}}]}", _JSON, ""),
    "logprobs": (lambda size: _answer("x", logprobs=[_LOGPROB] * (size // 80)), _JSON, ""),
    "error": (lambda size: b'{"choices": [], "error": {"message": "' + b"x" * size + b'"}}', _JSON, ""),
}


def serve(shape: str, size: int) -> None:
    """Send one body to everybody; prints the base URL. A process of its own."""
    make, kind, encoding = SHAPES[shape]
    body = make(size)
    models = b'{"object": "list", "data": [{"id": "m", "object": "model"}]}'

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                while line := self.rfile.readline():
                    length = 0
                    while (header := self.rfile.readline()) not in (b"\r\n", b""):
                        if header.lower().startswith(b"content-length:"):
                            length = int(header.split(b":")[1])
                    self.rfile.read(length)
                    data = body if line.startswith(b"POST") else models
                    said = kind if line.startswith(b"POST") else "application/json"
                    packed = f"Content-Encoding: {encoding}\r\n" if encoding and data is body else ""
                    head = f"HTTP/1.1 200 OK\r\nContent-Type: {said}\r\n{packed}Content-Length: {len(data)}\r\n\r\n"
                    self.connection.sendall(head.encode())
                    self.connection.sendall(data)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 256

    with Server(("127.0.0.1", 0), Handler) as server:
        print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
        server.serve_forever()


@contextlib.contextmanager
def server(shape: str, size: int = SIZE) -> Iterator[str]:
    """The base URL of a running server."""
    with module_server("tests.support.large_answers", "serve", shape, str(size)) as url:
        yield url


@dataclass(frozen=True)
class Measured:
    """What a command took and said."""

    peak: int
    code: int
    said: str
    classes: list[str]


def measure(folder: Path, url: str, *, count: int = 1, stage: str = "infer", more: tuple[str, ...] = ()) -> Measured:
    """Ask `count` samples all at once, in a process of its own."""
    folder.mkdir(exist_ok=True)
    (folder / "large.py").write_text(BENCHMARK.format(count=count))
    loupe = command(stage, folder / "large.py", "-e", "openai", "--base-url", url, "--model", "m", "-n", str(count))
    loupe += ["--runs", str(folder / "runs"), "--retries", "0", "--plain", *more]
    done = subprocess.run(
        [sys.executable, "-c", _WATCH, *loupe],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(folder),
        cwd=folder,
    )
    peak, code = map(int, done.stdout.splitlines()[-1].split())
    records = [*folder.glob("runs/*/*/predictions.jsonl")]
    found = [re.search(rb'"class":"(\w+)"', line) for file in records for line in file.read_bytes().splitlines()]
    return Measured(peak, code, done.stderr, [one[1].decode() for one in found if one])


def main() -> None:
    """A server, or a table of all shapes."""
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2], int(sys.argv[3]))
        return
    for shape in sys.argv[1:] or SHAPES:
        with server(shape) as url, tempfile.TemporaryDirectory() as folder:
            found = measure(Path(folder), url)
        print(f"{shape:14} {found.peak / 1e6:6.0f} MB {found.classes} {found.said.strip()[-150:]!r}", flush=True)


if __name__ == "__main__":
    main()
