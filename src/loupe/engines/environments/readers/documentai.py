"""Google Document AI through its SDK: the text of an OCR processor, or the blocks of a layout parser as Markdown."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from google.api_core import exceptions
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import GoogleAuthError
from google.cloud import documentai
from google.cloud.documentai_v1.services.document_processor_service.transports import (
    DocumentProcessorServiceRestTransport,
)

OUTCOMES: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str], ...] = (
    (exceptions.ResourceExhausted, "busy"),
    (exceptions.TooManyRequests, "busy"),
    ((exceptions.Unauthenticated, exceptions.Forbidden, exceptions.Unauthorized, GoogleAuthError), "unavailable"),
    ((exceptions.DeadlineExceeded, exceptions.GatewayTimeout), "transient"),
    (exceptions.ServerError, "transient"),
    (exceptions.ClientError, "rejected"),
)


class ServiceError(Exception):
    """The error that the service reported; `outcome` tells Loupe what to make of it."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.outcome = next((word for kinds, word in OUTCOMES if isinstance(error, kinds)), "transient")


def load(options: dict[str, Any]) -> Callable[[Any], str]:
    """`processor` (projects/…/locations/…/processors/…), `location`, `endpoint` for another server than Google's."""
    if not options["processor"]:
        raise ValueError(
            'no processor: -o \'options={location="eu", processor="projects/…/locations/eu/processors/…"}\''
        )
    try:
        client = connected(options)
    except GoogleAuthError as error:
        raise ServiceError(error) from None

    def read(page: Any) -> str:
        content = Path(page.path).read_bytes()
        kind = "application/pdf" if page.type == "page" else "image/png" if content[:4] == b"\x89PNG" else "image/jpeg"
        raw = documentai.RawDocument(content=content, mime_type=kind)
        request = documentai.ProcessRequest(name=options["processor"], raw_document=raw, skip_human_review=True)
        try:
            document = client.process_document(request=request, retry=None, timeout=120).document
        except (exceptions.GoogleAPICallError, GoogleAuthError) as error:
            raise ServiceError(error) from None
        blocks = document.document_layout.blocks
        return "\n\n".join(markdown_of(blocks)) if blocks else str(document.text)

    return read


def connected(options: dict[str, Any]) -> documentai.DocumentProcessorServiceClient:
    """The client: Google's server of a location, or another one, without credentials."""
    if not options.get("endpoint"):
        where = ClientOptions(api_endpoint=f"{options['location']}-documentai.googleapis.com")
        return documentai.DocumentProcessorServiceClient(client_options=where, transport="rest")
    scheme, _, host = options["endpoint"].partition("://")
    transport = DocumentProcessorServiceRestTransport(host=host, url_scheme=scheme, credentials=AnonymousCredentials())
    return documentai.DocumentProcessorServiceClient(transport=transport)


def markdown_of(blocks: Iterable[Any]) -> Iterator[str]:
    """The tree of a layout parser: headings, paragraphs, lists, and tables as HTML."""
    for block in blocks:
        if block.text_block.text or block.text_block.blocks:
            text, kind = block.text_block.text, block.text_block.type_
            level = int(kind.rpartition("-")[2]) if kind.startswith("heading-") else 0
            if text:
                yield "#" * level + " " * bool(level) + text
            yield from markdown_of(block.text_block.blocks)
        elif block.table_block.body_rows or block.table_block.header_rows:
            yield table_html(block.table_block)
        elif block.list_block.list_entries:
            yield "\n".join("- " + " ".join(markdown_of(entry.blocks)) for entry in block.list_block.list_entries)


def table_html(table: Any) -> str:
    """A table of the layout parser."""
    rows = [(row, "th") for row in table.header_rows] + [(row, "td") for row in table.body_rows]
    return (
        "<table>"
        + "".join(f"<tr>{''.join(cell_html(cell, tag) for cell in row.cells)}</tr>" for row, tag in rows)
        + "</table>"
    )


def cell_html(cell: Any, tag: str) -> str:
    """One cell with its spans."""
    spans = "".join(
        f' {name}="{count}"' for name, count in (("rowspan", cell.row_span), ("colspan", cell.col_span)) if count > 1
    )
    return f"<{tag}{spans}>{html.escape(' '.join(markdown_of(cell.blocks)), quote=False)}</{tag}>"
