"""Amazon Textract and Google Document AI as their SDKs know them, on this machine; each answer is said beforehand."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: A page as Textract tells it: a heading, a table with a merged cell, a list, and the words and lines below them.
_BOX = {"Left": 0.1, "Top": 0.1, "Width": 0.8, "Height": 0.2}
_TABLE_BOX = {"Left": 0.1, "Top": 0.5, "Width": 0.8, "Height": 0.2}


def _block(ident: str, kind: str, *children: str, box: dict[str, float] = _BOX, **more: Any) -> dict[str, Any]:
    links = [{"Type": "CHILD", "Ids": list(children)}] if children else []
    geometry = {"BoundingBox": box, "Polygon": []}
    return {"Id": ident, "BlockType": kind, "Geometry": geometry, "Relationships": links, **more}


def textract_blocks() -> list[dict[str, Any]]:
    """The blocks of one page."""
    cell: dict[str, Any] = {"box": _TABLE_BOX, "RowSpan": 1, "ColumnSpan": 1}
    words = {"w1": "Year", "w2": "1 & 2", "w3": "2024"}
    table = _block("t", "TABLE", "c1", "c2", "c3", "c4", box=_TABLE_BOX)
    table["Relationships"].append({"Type": "MERGED_CELL", "Ids": ["m"]})
    return [
        _block("p", "PAGE"),
        *(_block(ident, "LINE", Text=text) for ident, text in (("l1", "Annual"), ("l2", "Report"), ("l3", "one"))),
        *(_block(ident, "WORD", Text=text, box=_TABLE_BOX) for ident, text in words.items()),
        table,
        _block("c1", "CELL", "w1", RowIndex=1, ColumnIndex=1, EntityTypes=["COLUMN_HEADER"], **cell),
        _block("c2", "CELL", RowIndex=1, ColumnIndex=2, **cell),
        _block("c3", "CELL", "w2", RowIndex=2, ColumnIndex=1, **cell),
        _block("c4", "CELL", "w3", RowIndex=2, ColumnIndex=2, **cell),
        _block(
            "m", "MERGED_CELL", "c1", "c2", box=_TABLE_BOX, RowIndex=1, ColumnIndex=1, RowSpan=1, ColumnSpan=2,
            EntityTypes=["COLUMN_HEADER"],
        ),
        _block("h", "LAYOUT_TITLE", "l1", "l2"),
        _block("y", "LAYOUT_LIST", "e"),
        _block("e", "LAYOUT_TEXT", "l3"),
        _block("g", "LAYOUT_TABLE", box=_TABLE_BOX),
    ]  # fmt: skip


def google_document(layout: bool) -> dict[str, Any]:
    """A document of an OCR processor, or of a layout parser."""
    if not layout:
        return {"document": {"text": "Annual Report\n"}}
    cell = {"blocks": [{"blockId": "3", "textBlock": {"text": "a < b", "type": "paragraph"}}], "colSpan": 2}
    blocks = [
        {
            "blockId": "1",
            "textBlock": {
                "text": "Annual Report",
                "type": "heading-1",
                "blocks": [{"blockId": "2", "textBlock": {"text": "Some words.", "type": "paragraph"}}],
            },
        },
        {"blockId": "4", "tableBlock": {"bodyRows": [{"cells": [cell]}]}},
        {
            "blockId": "5",
            "listBlock": {"listEntries": [{"blocks": [{"textBlock": {"text": "one", "type": "paragraph"}}]}]},
        },
    ]
    return {"document": {"documentLayout": {"blocks": blocks}}}


@dataclass
class Service:
    """What it answers next (a status and a body; else `usual`), and what it was asked."""

    url: str = ""
    usual: dict[str, Any] = field(default_factory=dict)
    next: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    asked: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)

    @property
    def pages(self) -> list[bytes]:
        """The pages that were sent."""
        documents = [
            body.get("Document", {}).get("Bytes") or body["rawDocument"]["content"] for _, _, body in self.asked
        ]
        return [base64.b64decode(each) for each in documents]


@contextmanager
def cloud_service(usual: dict[str, Any]) -> Iterator[Service]:
    """The service while the block runs."""
    service = Service(usual=usual)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            service.asked.append((self.path, dict(self.headers), body))
            status, answer = service.next.pop(0) if service.next else (200, service.usual)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing on standard error."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        service.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield service
        finally:
            server.shutdown()
