"""Stand-ins for OCR services on loopback: each answers one service's documented format, and refuses any other request.

    async with service("datalab") as server:
        ... server.url ... server.received ...

Written from the formats in docs/engines/http.md and its sources, not from the profiles. `faults` are answered first, to
what begins a job or to what asks about it; `pending` is how often a job is not ready yet. Answers that lie elsewhere
(presigned downloads) are given by a second server, which notes the headers that it gets. A page is read as TEXT; the
pages of a PDF as "page 1", "page 2", …
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pypdfium2
from aiohttp import web

TEXT = "# Invoice\n\nTotal: 12 €"
#: What a service says of a page that it refuses.
REASON = "the page is too dark"


class WrongError(Exception):
    """A request that the service's documentation does not describe."""

    status = 418


class UnknownJobError(WrongError):
    """A job that there is not, or no longer."""

    status = 404


@dataclass(frozen=True)
class Answer:
    """What is answered: `body` as JSON, or as it is if it is a text; `cut` ends the connection in the middle."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0


@dataclass(frozen=True)
class Received:
    """One request: its fields, files by field name with (name, type, bytes), and JSON."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    data: bytes
    fields: Mapping[str, str]
    files: Mapping[str, tuple[str, str, bytes]]
    json: Any

    def file(self, name: str) -> bytes:
        """The one file of a form, which has this field name and a file name."""
        if set(self.files) != {name}:
            raise WrongError(f"files {sorted(self.files)}, not {name}")
        filename, _, data = self.files[name]
        if not filename or "/" in filename:
            raise WrongError(f"file name {filename!r}")
        return data


def need(**wanted: tuple[Any, Any]) -> None:
    """Refuse a request in which something (found, wanted) is different."""
    for name, (found, value) in wanted.items():
        if found != value:
            raise WrongError(f"{name} is {found!r}, not {value!r}")


def pages_of(data: bytes) -> list[str]:
    """What stands on the pages of a file."""
    if data.startswith(b"%PDF"):
        return [f"page {number + 1}" for number in range(len(pypdfium2.PdfDocument(data)))]
    if not data.startswith((b"\x89PNG", b"\xff\xd8\xff")):
        raise WrongError("neither PDF nor PNG nor JPEG")
    return [TEXT]


def of_data_url(url: str) -> bytes:
    head, _, data = url.partition(",")
    if head not in ("data:image/png;base64", "data:image/jpeg;base64", "data:application/pdf;base64"):
        raise WrongError(f"data URL {head!r}")
    return base64.b64decode(data, validate=True)


@dataclass
class ServiceServer:
    """The state of a running stand-in. `jobs` holds the pages of each job that was begun."""

    name: str
    key: Mapping[str, str] = field(default_factory=dict)
    port: int = 0
    elsewhere: str = ""
    pending: int = 1
    faults: list[Answer] = field(default_factory=list)
    poll_faults: list[Answer] = field(default_factory=list)
    change: Callable[[Any], Any] | None = None
    received: list[Received] = field(default_factory=list)
    fetched: list[Mapping[str, str]] = field(default_factory=list)
    jobs: dict[str, list[str]] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    stored: dict[str, Any] = field(default_factory=dict)
    long: bool = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def begun(self) -> int:
        """How many requests brought a page."""
        return sum(each.method != "GET" for each in self.received)

    def begin(self, pages: list[str]) -> str:
        ident = f"job-{len(self.jobs) + 1}"
        self.jobs[ident] = pages
        return ident

    def is_pending(self, ident: str) -> bool:
        self.asked[ident] = self.asked.get(ident, 0) + 1
        return self.asked[ident] <= self.pending

    def store(self, body: Any) -> str:
        """An address on another origin at which this is found."""
        self.stored[name := f"{len(self.stored)}"] = body
        return f"{self.elsewhere}/{name}?X-Amz-Signature=a%2Fb+c&x=1"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/":  # Is anybody there?
            return web.Response(status=404)
        got = await _received(request)
        self.received.append(got)
        faults = self.poll_faults if got.method == "GET" else self.faults
        try:
            given = {name: got.headers.get(name.lower(), "") for name in self.key}
            if any(value != self.key[name] for name, value in given.items()):
                return _response(Answer({"error": f"unauthorized: {' '.join(given.values())}"}, 401))
            found = faults.pop(0) if faults else SERVICES[self.name](self, got)
        except WrongError as wrong:
            found = Answer({"wrong": str(wrong)}, wrong.status)
        if self.change is not None and found.status == 200:
            found = Answer(self.change(found.body), headers=found.headers)
        await asyncio.sleep(found.delay)
        return _response(found)

    async def answer_elsewhere(self, request: web.Request) -> web.StreamResponse:
        self.fetched.append({name.lower(): value for name, value in request.headers.items()})
        if request.raw_path.partition("?")[2] != "X-Amz-Signature=a%2Fb+c&x=1":
            return web.Response(status=403, text="<Error><Code>SignatureDoesNotMatch</Code></Error>")
        return _response(Answer(self.stored[request.path.strip("/")]))


async def _received(request: web.Request) -> Received:
    headers = {name.lower(): value for name, value in request.headers.items()}
    fields: dict[str, str] = {}
    files: dict[str, tuple[str, str, bytes]] = {}
    data, body = b"", None
    if request.content_type == "multipart/form-data":
        async for part in await request.multipart():
            content = await part.read()
            if part.filename is None:
                fields[part.name] = content.decode()
            else:
                files[part.name] = (part.filename, part.headers["Content-Type"], bytes(content))
    else:
        data = await request.read()
        body = json.loads(data) if request.content_type == "application/json" and data else None
    return Received(request.method, request.path, dict(request.query), headers, data, fields, files, body)


def _response(found: Answer) -> web.Response:
    if isinstance(found.body, bytes):
        return web.Response(body=found.body, status=found.status, headers=found.headers)
    if isinstance(found.body, str) or found.body is None:
        return web.Response(text=found.body, status=found.status, headers=found.headers)
    return web.json_response(found.body, status=found.status, headers=found.headers)


# ---- the services


def mistral(_: ServiceServer, got: Received) -> Answer:
    body = got.json
    need(path=(got.path, "/v1/ocr"), model=(body["model"], "mistral-ocr-4-1"), blocks=(body["include_blocks"], False))
    kind = body["document"]["type"]
    pages = pages_of(of_data_url(body["document"][kind]))
    need(kind=(kind, "document_url" if pages != [TEXT] else "image_url"))
    listed = [{"index": number, "markdown": text, "images": [], "tables": []} for number, text in enumerate(pages)]
    usage = {"pages_processed": len(pages), "doc_size_bytes": 9}
    return Answer({"pages": listed, "model": body["model"], "usage_info": usage})


def deepseek(_: ServiceServer, got: Received) -> Answer:
    need(path=(got.path, "/v1/tools/ocr"), fields=(dict(got.fields), {"purpose": "rich_layout_recognition"}))
    mark = "<|ref|>text<|/ref|><|box|>[[1, 2, 30, 40]]<|/box|>\n"
    listed = [{"text": mark + text, "finish_reason": "stop"} for text in pages_of(got.file("file"))]
    return Answer(b"\n\n\n" + json.dumps({"pages": listed}).encode(), headers={"Content-Type": "application/json"})


def glm(_: ServiceServer, got: Received) -> Answer:
    need(path=(got.path, "/api/paas/v4/layout_parsing"), model=(got.json["model"], "glm-ocr"))
    (text,) = pages_of(of_data_url(got.json["file"]))
    return Answer({"md_results": text, "layout_details": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})


def glmocr_server(_: ServiceServer, got: Received) -> Answer:
    need(path=(got.path, "/glmocr/parse"))
    (url,) = got.json["images"]
    return Answer({"md_results": "\n\n".join(pages_of(of_data_url(url)))})


def paddleocr_cloud(server: ServiceServer, got: Received) -> Answer:
    if got.method == "POST":
        need(path=(got.path, "/api/v2/ocr/jobs"), model=(got.fields["model"], "PaddleOCR-VL-1.6"))
        need(payload=(json.loads(got.fields["optionalPayload"]), {"visualize": False}))
        return Answer({"code": 0, "data": {"jobId": server.begin(pages_of(got.file("file")))}})
    pages = _job(server, got, "/api/v2/ocr/jobs/{}")
    if server.is_pending(got.path.rpartition("/")[2]):
        return Answer({"code": 0, "data": {"state": "running"}})
    lines = [{"result": {"layoutParsingResults": [{"markdown": {"text": text}}]}} for text in pages]
    url = server.store("\n".join(map(json.dumps, lines)) + "\n")
    return Answer({"code": 0, "data": {"state": "done", "resultUrl": {"jsonUrl": url}}})


def azure(server: ServiceServer, got: Received) -> Answer:
    model = "/documentintelligence/documentModels/prebuilt-layout"
    if got.method == "POST":
        query = {"api-version": "2024-11-30", "outputContentFormat": "markdown"}
        need(path=(got.path, f"{model}:analyze"), query=(dict(got.query), query))
        need(type=(got.headers["content-type"].partition("/")[0] in ("image", "application"), True))
        ident = server.begin(pages_of(got.data))
        place = f"{server.url}{model}/analyzeResults/{ident}?api-version=2024-11-30"
        return Answer(None, 202, {"Operation-Location": place, "Retry-After": "0"})
    need(query=(dict(got.query), {"api-version": "2024-11-30"}))
    pages = _job(server, got, f"{model}/analyzeResults/{{}}")
    if server.is_pending(got.path.rpartition("/")[2]):
        return Answer({"status": "running"}, headers={"Retry-After": "0"})
    content = "\n\n<!-- PageBreak -->\n\n".join(f'<!-- PageHeader="x" -->\n{text}' for text in pages)
    result = {"content": content, "pages": [{"pageNumber": 1}] * len(pages)}
    return Answer({"status": "succeeded", "analyzeResult": result})


def llamaparse(server: ServiceServer, got: Received) -> Answer:
    if got.method == "POST":
        wanted = {"tier": "agentic", "version": "2026-07-15", "disable_cache": True}
        need(path=(got.path, "/api/v2/parse/upload"), settings=(json.loads(got.fields["configuration"]), wanted))
        return Answer({"id": server.begin(pages_of(got.file("file"))), "status": "PENDING", "project_id": "p"})
    need(expand=(got.query.get("expand"), "markdown"))
    pages = _job(server, got, "/api/v2/parse/{}")
    if server.is_pending(got.path.rpartition("/")[2]):
        return Answer({"job": {"status": "RUNNING", "error_message": None}})
    listed = [{"page_number": at + 1, "success": True, "markdown": text} for at, text in enumerate(pages)]
    job = {"status": "COMPLETED", "error_message": None, "usage": {"credits": 10 * len(pages)}}
    return Answer({"job": job, "markdown": {"pages": listed}})


def datalab(server: ServiceServer, got: Received) -> Answer:
    if got.method == "POST":
        need(path=(got.path, "/api/v1/convert"), mode=(got.fields["mode"], "balanced"))
        need(cache=(got.fields["skip_cache"], "true"), format=(got.fields["output_format"], "markdown"))
        pages = pages_of(got.file("file"))
        if "paginate" in got.fields:
            pages = [f"{{{number}}}{'-' * 48}\n\n{text}\n\n" for number, text in enumerate(pages)]
        ident = server.begin(pages)
        place = f"{server.url}/api/v1/convert/{ident}"
        return Answer({"success": True, "error": None, "request_id": ident, "request_check_url": place})
    pages = _job(server, got, "/api/v1/convert/{}")
    if server.is_pending(got.path.rpartition("/")[2]):
        return Answer({"status": "processing", "success": None})
    done = {"status": "complete", "success": True, "error": "", "page_count": len(pages)}
    return Answer({**done, "markdown": "".join(pages)})


def marker(_: ServiceServer, got: Received) -> Answer:
    need(path=(got.path, "/marker/upload"), format=(got.fields["output_format"], "markdown"))
    pages = pages_of(got.file("file"))
    if got.fields.get("paginate_output") == "true":
        pages = [f"\n\n{{{number}}}{'-' * 48}\n\n{text}" for number, text in enumerate(pages)]
    return Answer({"format": "markdown", "output": "".join(pages), "images": {}, "metadata": {}, "success": True})


def mathpix(_: ServiceServer, got: Received) -> Answer:
    need(path=(got.path, "/v3/text"), kept=(got.json["metadata"], {"improve_mathpix": False}))
    need(inline=(got.json["math_inline_delimiters"], ["$", "$"]))
    (text,) = pages_of(of_data_url(got.json["src"]))
    return Answer({"request_id": "r", "text": text, "confidence": 0.9})


def upstage(_: ServiceServer, got: Received) -> Answer:
    need(path=(got.path, "/v1/document-digitization"), formats=(got.fields["output_formats"], "['markdown']"))
    need(model=(got.fields["model"], "document-parse-260930"))
    (text,) = pages_of(got.file("document"))
    return Answer({"content": {"html": "", "markdown": text, "text": ""}, "elements": [], "usage": {"pages": 1}})


def reducto(server: ServiceServer, got: Received) -> Answer:
    if got.path == "/upload":
        return Answer({"file_id": f"reducto://{server.begin(pages_of(got.file('file')))}"})
    need(path=(got.path, "/parse"), tables=(got.json["formatting"], {"table_output_format": "html"}))
    pages = server.jobs[got.json["input"].removeprefix("reducto://")]
    full = {"type": "full", "chunks": [{"content": text, "blocks": []} for text in pages]}
    result = {"type": "url", "url": server.store({"chunks": full["chunks"]})} if server.long else full
    return Answer({"job_id": "j", "usage": {"num_pages": 1, "credits": None}, "result": result})


def unstructured(_: ServiceServer, got: Received) -> Answer:
    need(path=(got.path, "/general/v0/general"), strategy=(got.fields["strategy"], "hi_res"))
    title, _, rest = pages_of(got.file("files"))[0].partition("\n\n")
    table = {"type": "Table", "text": "x", "metadata": {"page_number": 1, "text_as_html": rest}}
    return Answer([{"type": "Title", "text": title, "metadata": {}}, {"type": "PageBreak", "text": "-"}, table])


def transform(server: ServiceServer, got: Received) -> Answer:
    if got.method == "POST":
        need(path=(got.path, "/api/v2/parse"))
        pages = pages_of(got.file("input"))
        if server.pending:
            return Answer({"status": "queued"}, 202, {"Location": f"/api/v2/parse/{server.begin(pages)}"})
        return Answer({"markdown": pages[0]})
    pages = _job(server, got, "/api/v2/parse/{}")
    if server.is_pending(got.path.rpartition("/")[2]):
        return Answer({"status": "running"}, 202)
    return Answer({"markdown": pages[0]})


def landingai(_: ServiceServer, got: Received) -> Answer:
    need(path=(got.path, "/v2/parse"), model=(got.fields["model"], "dpt-3-pro"))
    (text,) = pages_of(got.file("document"))
    metadata = {"failed_pages": [], "billing": {"total_credits": 1.5}}
    return Answer({"markdown": f"<!-- anchor 1 -->{text}", "metadata": metadata})


def nanonets(_: ServiceServer, got: Received) -> Answer:
    need(path=(got.path, "/api/v1/extract/sync"), format=(got.fields["output_format"], "markdown"))
    (text,) = pages_of(got.file("file"))
    return Answer({"success": True, "record_id": "1", "status": "completed", "result": {"markdown": {"content": text}}})


def extend(server: ServiceServer, got: Received) -> Answer:
    need(version=(got.headers.get("x-extend-api-version"), "2026-02-09"))
    if got.path == "/files/upload":
        return Answer({"object": "file", "id": server.begin(pages_of(got.file("file")))})
    if got.method == "POST":
        need(path=(got.path, "/parse_runs"), target=(got.json["config"]["target"], "markdown"))
        need(chunks=(got.json["config"]["chunkingStrategy"], {"type": "page"}))
        return Answer({"object": "parse_run", "id": got.json["file"]["id"], "status": "PROCESSING"})
    pages = _job(server, got, "/parse_runs/{}")
    if server.is_pending(got.path.rpartition("/")[2]):
        return Answer({"status": "PROCESSING", "output": None})
    output = {"chunks": [{"content": text, "blocks": []} for text in pages]}
    return Answer({"status": "PROCESSED", "output": output, "usage": {"credits": 2}})


def pulse(server: ServiceServer, got: Received) -> Answer:
    need(path=(got.path, "/extract"), stored=(json.loads(got.fields["storage"]), {"enabled": False}))
    body = {"markdown": pages_of(got.file("file"))[0], "page_count": 1, "credits_used": 1}
    return Answer({"is_url": True, "url": server.store(body)} if server.long else body)


def ocr_space(_: ServiceServer, got: Received) -> Answer:
    need(path=(got.path, "/parse/image"), engine=(got.fields["OCREngine"], "2"))
    results = [{"ParsedText": text, "FileParseExitCode": 1} for text in pages_of(got.file("file"))]
    return Answer({"ParsedResults": results, "OCRExitCode": 1, "IsErroredOnProcessing": False})


def docling(server: ServiceServer, got: Received) -> Answer:
    if got.method == "POST":
        need(path=(got.path, "/v1/convert/file/async"), images=(got.fields["image_export_mode"], "placeholder"))
        between = f"\n\n{got.fields.get('md_page_break_placeholder', '')}\n\n"
        ident = server.begin([between.join(pages_of(got.file("files")))])
        return Answer({"task_id": ident, "task_status": "pending"})
    if got.path.startswith("/v1/status"):
        need(wait=(got.query.get("wait"), "5"))
        _job(server, got, "/v1/status/poll/{}")
        state = "started" if server.is_pending(got.path.rpartition("/")[2]) else "success"
        return Answer({"task_id": "x", "task_status": state})
    pages = _job(server, got, "/v1/result/{}")
    del server.jobs[got.path.rpartition("/")[2]]  # A result is given out once.
    return Answer({"document": {"md_content": pages[0]}, "status": "success", "errors": [], "processing_time": 0.1})


def mineru(server: ServiceServer, got: Received) -> Answer:
    if got.method == "POST":
        need(path=(got.path, "/v1/tasks"), tier=(got.query.get("tier"), "standard"))
        return Answer({"task_id": server.begin(pages_of(got.file("files")))}, 202)
    pages = _job(server, got, "/v1/tasks/{}/result")
    if server.is_pending(got.path.split("/")[-2]):
        return Answer("still working", 202)
    return Answer({"files": [{"filename": "page.png", "content": {"markdown": pages[0]}}]})


def paddlex(_: ServiceServer, got: Received) -> Answer:
    need(path=(got.path, "/layout-parsing"), pictures=(got.json["visualize"], False))
    pages = pages_of(base64.b64decode(got.json["file"], validate=True))
    need(kind=(got.json["fileType"], 0 if pages != [TEXT] else 1))
    listed = [{"prunedResult": {}, "markdown": {"text": text}} for text in pages]
    return Answer({"logId": "l", "errorCode": 0, "errorMsg": "Success", "result": {"layoutParsingResults": listed}})


def kreuzberg(_: ServiceServer, got: Received) -> Answer:
    need(path=(got.path, "/extract"), format=(got.fields["output_format"], "markdown"))
    (text,) = pages_of(got.file("files"))
    return Answer([{"content": text, "mime_type": "image/png", "metadata": {}, "tables": []}])


def rapidocr(_: ServiceServer, got: Received) -> Answer:
    need(path=(got.path, "/ocr"))
    lines = pages_of(got.file("image_file"))[0].split("\n")
    return Answer({str(at): {"rec_txt": line, "dt_boxes": [], "score": 0.9} for at, line in enumerate(lines)})


def tika(_: ServiceServer, got: Received) -> Answer:
    need(path=(got.path, "/tika"), method=(got.method, "PUT"), accept=(got.headers["accept"], "text/plain"))
    return Answer("\n" + "".join(pages_of(got.data)) + "\n")


def _job(server: ServiceServer, got: Received, path: str) -> list[str]:
    """The pages of the job that a request asks about; an unknown one is not found, as everywhere."""
    begin, _, end = path.partition("{}")
    ident = got.path.removeprefix(begin).removesuffix(end)
    need(path=(got.path, path.format(ident)))
    if ident not in server.jobs:
        raise UnknownJobError(f"no job {ident}")
    return server.jobs[ident]


SERVICES: dict[str, Callable[[ServiceServer, Received], Answer]] = {
    "azure-layout": azure,
    "datalab": datalab,
    "deepseek-ocr-api": deepseek,
    "docling-serve": docling,
    "extend": extend,
    "glm-ocr-api": glm,
    "glmocr-server": glmocr_server,
    "kreuzberg-server": kreuzberg,
    "landingai": landingai,
    "llamaparse": llamaparse,
    "marker-server": marker,
    "mathpix": mathpix,
    "mineru-api": mineru,
    "mistral-ocr": mistral,
    "nanonets-api": nanonets,
    "ocr-space": ocr_space,
    "paddleocr-api": paddleocr_cloud,
    "paddlex": paddlex,
    "pulse": pulse,
    "rapidocr-api": rapidocr,
    "reducto": reducto,
    "tika": tika,
    "unstructured": unstructured,
    "unstructured-transform": transform,
    "upstage": upstage,
}


@contextlib.asynccontextmanager
async def service(name: str, key: Mapping[str, str] | None = None, **state: Any) -> AsyncIterator[ServiceServer]:
    """A running stand-in, which refuses requests without the headers in `key`."""
    server = ServiceServer(name, key or {}, **state)
    async with _listening(server.answer) as port, _listening(server.answer_elsewhere) as other:
        server.port, server.elsewhere = port, f"http://127.0.0.1:{other}"
        yield server


@contextlib.asynccontextmanager
async def _listening(answer: Callable[[web.Request], Any]) -> AsyncIterator[int]:
    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@contextlib.contextmanager
def in_thread(name: str, key: Mapping[str, str] | None = None, **state: Any) -> Iterator[ServiceServer]:
    """The same beside synchronous tests."""
    ready, end = threading.Event(), asyncio.Event()
    found: list[Any] = []

    async def main() -> None:
        async with service(name, key, **state) as server:
            found[:] = [server, asyncio.get_running_loop()]
            ready.set()
            await end.wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
    thread.start()
    ready.wait(30)
    try:
        yield found[0]
    finally:
        found[1].call_soon_threadsafe(end.set)
        thread.join(30)
