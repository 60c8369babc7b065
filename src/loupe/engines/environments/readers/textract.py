"""Amazon Textract through boto3: lines of text, or headings and tables in reading order.

Its answer is a flat list of blocks that name each other by id. Errors are told apart by their names: throttling can
come as HTTP 400. The SDK is told not to repeat anything itself, so that Loupe measures and counts every attempt. It is
imported when it is needed: the text of stored answers (`service_json`) is taken without it.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

BUSY = {"ProvisionedThroughputExceededException", "ThrottlingException", "LimitExceededException"}
REJECTED = {
    *("BadDocumentException", "UnsupportedDocumentException", "DocumentTooLargeException"),
    *("InvalidParameterException", "ValidationException"),
}
UNAVAILABLE = {
    *("AccessDeniedException", "UnrecognizedClientException", "InvalidSignatureException", "ExpiredTokenException"),
    *("SubscriptionRequiredException", "OptInRequired", "InvalidClientTokenId"),
}
HEADINGS = {"LAYOUT_TITLE": "# ", "LAYOUT_SECTION_HEADER": "## "}
Block = dict[str, Any]


class ServiceError(Exception):
    """The error that the service reported; `outcome` tells Loupe what to make of it."""

    def __init__(self, message: str, outcome: str) -> None:
        super().__init__(message)
        self.outcome = outcome


def load(options: dict[str, Any]) -> Callable[[Any], str]:
    """`region`, `features` (none: lines alone), `endpoint` for another server than Amazon's."""
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    client = boto3.client(
        "textract",
        region_name=options["region"],
        endpoint_url=options.get("endpoint"),
        config=Config(retries={"total_max_attempts": 1}, read_timeout=120, max_pool_connections=1),
    )
    features = options["features"]

    def read(page: Any) -> str:
        document = {"Bytes": Path(page.path).read_bytes()}
        try:
            if not features:
                return text_of(client.detect_document_text(Document=document)["Blocks"])
            return markdown_of(client.analyze_document(Document=document, FeatureTypes=features)["Blocks"])
        except (ClientError, BotoCoreError) as error:
            raise told(error) from None

    return read


def told(error: Exception) -> ServiceError:
    """The error in the words that Loupe knows."""
    from botocore.exceptions import ClientError, ConnectTimeoutError, NoCredentialsError, ReadTimeoutError

    if isinstance(error, (ReadTimeoutError, ConnectTimeoutError)):
        return ServiceError(str(error), "timeout")
    if isinstance(error, NoCredentialsError):
        return ServiceError(
            "no AWS credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile", "unavailable"
        )
    if not isinstance(error, ClientError):
        return ServiceError(str(error), "transient")
    code = error.response.get("Error", {}).get("Code", "")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    known = ((BUSY, "busy"), (REJECTED, "rejected"), (UNAVAILABLE, "unavailable"))
    outcome = next((word for names, word in known if code in names), "transient" if status >= 500 else "rejected")
    return ServiceError(f"{code}: {error.response.get('Error', {}).get('Message', '')}", outcome)


def text_of(blocks: list[Block]) -> str:
    """The lines as the service orders them."""
    return "\n".join(block["Text"] for block in blocks if block["BlockType"] == "LINE")


def markdown_of(blocks: list[Block]) -> str:
    """Layout blocks in their order: headings, paragraphs, and tables as HTML where a table lies in one.

    Each block is written once, however many name it, so the text is never longer than its blocks allow.
    """
    by_id = {block["Id"]: block for block in blocks}
    tables = [block for block in blocks if block["BlockType"] == "TABLE"]
    inside = {
        child["Id"] for block in blocks if block["BlockType"] == "LAYOUT_LIST" for child in children(block, by_id)
    }
    parts = []
    for block in blocks:
        if not block["BlockType"].startswith("LAYOUT_") or block["Id"] in inside:
            continue
        own = [table for table in tables if block["BlockType"] == "LAYOUT_TABLE" and overlap(block, table) > 0.5]
        for table in own:
            tables.remove(table)
        text = "\n\n".join(table_html(table, by_id) for table in own) or plain(block, by_id)
        parts.append(HEADINGS.get(block["BlockType"], "") + text if text else "")
    parts += [table_html(table, by_id) for table in tables]  # tables that no layout block claims
    return "\n\n".join(part for part in parts if part.strip())


def plain(block: Block, by_id: dict[str, Block]) -> str:
    """The lines of a layout block; the entries of a list, each with a dash."""
    if block["BlockType"] == "LAYOUT_LIST":
        return "\n".join("- " + " ".join(lines_of(entry, by_id)) for entry in taken(children(block, by_id), by_id))
    joint = " " if block["BlockType"] in HEADINGS else "\n"
    return joint.join(lines_of(block, by_id))


def lines_of(block: Block, by_id: dict[str, Block]) -> list[str]:
    """The texts of the lines below a block."""
    lines = (child for child in children(block, by_id) if child["BlockType"] == "LINE")
    return [line["Text"] for line in taken(lines, by_id)]


def children(block: Block, by_id: dict[str, Block], kind: str = "CHILD") -> Iterator[Block]:
    """The blocks that a block names, without those that were taken."""
    for relation in block.get("Relationships") or ():
        if relation["Type"] == kind:
            yield from (by_id[name] for name in relation["Ids"] if name in by_id)


def taken(blocks: Iterable[Block], by_id: dict[str, Block]) -> Iterator[Block]:
    """Take blocks out, so that none is written twice."""
    return (by_id.pop(block["Id"]) for block in blocks)


def table_html(table: Block, by_id: dict[str, Block]) -> str:
    """A table with its merged cells; cells that a merged one covers are left out."""
    merged = list(taken(children(table, by_id, "MERGED_CELL"), by_id))
    covered = {child["Id"] for cell in merged for child in children(cell, by_id)}
    plain_cells = (cell for cell in children(table, by_id) if cell["BlockType"] == "CELL" and cell["Id"] not in covered)
    cells = list(taken(plain_cells, by_id))
    rows: dict[int, list[Block]] = {}
    for cell in sorted([*cells, *merged], key=lambda each: (each["RowIndex"], each["ColumnIndex"])):
        rows.setdefault(cell["RowIndex"], []).append(cell)
    body = "".join("<tr>" + "".join(cell_html(cell, by_id) for cell in row) + "</tr>" for row in rows.values())
    return f"<table>{body}</table>"


def cell_html(cell: Block, by_id: dict[str, Block]) -> str:
    """One cell with its spans."""
    tag = "th" if "COLUMN_HEADER" in cell.get("EntityTypes", ()) else "td"
    spans = "".join(
        f' {name}="{cell[key]}"'
        for name, key in (("rowspan", "RowSpan"), ("colspan", "ColumnSpan"))
        if cell.get(key, 1) > 1
    )
    return f"<{tag}{spans}>{html.escape(' '.join(words_of(cell, by_id)), quote=False)}</{tag}>"


def words_of(block: Block, by_id: dict[str, Block]) -> Iterator[str]:
    """The words below a cell, also of the cells that a merged one covers."""
    below = (child for child in children(block, by_id) if child["BlockType"] in ("WORD", "CELL"))
    for child in taken(below, by_id):
        if child["BlockType"] == "WORD":
            yield child["Text"]
        else:
            yield from words_of(child, by_id)


def overlap(block: Block, other: Block) -> float:
    """The share of `other`'s box that lies in `block`'s."""
    first, second = (each["Geometry"]["BoundingBox"] for each in (block, other))
    sides = []
    for start, length in (("Left", "Width"), ("Top", "Height")):
        low = max(first[start], second[start])
        high = min(first[start] + first[length], second[start] + second[length])
        sides.append(max(0.0, high - low) / (second[length] or 1.0))
    return float(sides[0] * sides[1])
