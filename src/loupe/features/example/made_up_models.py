"""Serve made-up models with an OpenAI-compatible API, which look up papers of the worked example in a table.

A paper is known by its image (the nearest of all, at 32 by 32 grays) or by its words. Each model errs on a fixed
share of the questions, always the same ones.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web

from loupe.cli.shared.signals import told

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Questions of a hundred that each model gets wrong.
ERRORS: Mapping[str, int] = {"example/careful": 3, "example/hasty": 20}
_SIDE = 32
#: The documents, which were drawn once for Loupe and name nobody, and `facts.json`: by the name of a document, its
#: ground truth (empty if it is not an invoice) and its text.
_PAPERS = Path(__file__).with_name("papers.zip")
_WORD = re.compile(r"[^\W_]{2,}")


def documents() -> dict[str, bytes]:
    """Return the example's documents by their path, `papers/invoices/invoice-01.pdf` for one."""
    with zipfile.ZipFile(_PAPERS) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name.startswith("papers/")}


def facts() -> dict[str, dict[str, Any]]:
    """Return the ground truth and the text of each document, by its name."""
    with zipfile.ZipFile(_PAPERS) as archive:
        found: dict[str, dict[str, Any]] = json.loads(archive.read("facts.json"))
    return found


@dataclass(frozen=True, slots=True)
class Paper:
    """A document that the models know."""

    name: str
    truth: Mapping[str, str]
    pixels: NDArray[np.float32]
    words: frozenset[str]


def serve_models(port: int, *, ready: Callable[[str], None]) -> None:
    """Serve until Ctrl-C; `ready` gets the address."""
    asyncio.run(_serve(port, ready))


async def _serve(port: int, ready: Callable[[str], None]) -> None:
    table = known_papers()

    async def chat(request: web.Request) -> web.Response:
        body = await request.json()
        if body.get("model") not in ERRORS:
            return web.json_response({"error": {"message": f"no model {body.get('model')!r}"}}, status=404)
        text = reply(body["model"], body["messages"], table)
        message = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        return web.json_response({"id": "1", "object": "chat.completion", "model": body["model"], "choices": [message]})

    async def listed(request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": name, "object": "model"} for name in ERRORS]})

    app = web.Application(client_max_size=64 * 1024**2)
    app.add_routes([web.post("/v1/chat/completions", chat), web.get("/v1/models", listed)])
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        stop = asyncio.Event()
        with told(stop.set):
            ready(f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
            await stop.wait()
    finally:
        await runner.cleanup()


def reply(model: str, messages: list[dict[str, Any]], table: list[Paper]) -> str:
    """Return YES, NO, or the date and the company as JSON, as the question asks."""
    content = messages[-1]["content"]
    parts: list[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    question = "\n".join(part["text"] for part in parts if part["type"] == "text")
    image = next((part["image_url"]["url"] for part in parts if part["type"] == "image_url"), "")
    paper = _by_image(image, table) if image else _by_words(question, table)
    task = "extract" if "JSON" in question else "sort"
    wrong = _errs(model, f"{paper.name} {task} {bool(image)}")
    if task == "sort":
        return "YES" if bool(paper.truth) != wrong else "NO"
    found = {"date": paper.truth.get("date", ""), "company": paper.truth.get("company", "")}
    if wrong:
        found["date"] = found["date"].replace("2026", "2025")
    return json.dumps(found, ensure_ascii=False)


def _errs(model: str, question: str) -> bool:
    digest = hashlib.sha256(f"{model} {question}".encode()).digest()
    return int.from_bytes(digest[:4], "big") % 100 < ERRORS[model]


def known_papers() -> list[Paper]:
    """Return all papers of the example as the models know them."""
    known = facts()
    return [
        Paper(name := Path(path).stem, known[name]["truth"], _small(data), _words(known[name]["text"]))
        for path, data in documents().items()
    ]


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def _small(data: bytes) -> NDArray[np.float32]:
    """Return an image or a PDF page at 32 by 32 grays, around their mean."""
    import numpy as np
    from PIL import Image

    from loupe.data.pages import load_page
    from loupe.types import PdfPage

    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        path = Path(file.name)
        image = load_page(PdfPage(path), longest=600) if data.startswith(b"%PDF") else load_page(path)
    pixels = np.asarray(image.convert("L").resize((_SIDE, _SIDE), Image.Resampling.BOX), np.float32)
    spread: NDArray[np.float32] = (pixels - pixels.mean()) / (pixels.std() + 1)
    return spread


def _by_image(url: str, table: list[Paper]) -> Paper:
    pixels = _small(base64.b64decode(url.partition(",")[2]))
    return min(table, key=lambda known: float(((known.pixels - pixels) ** 2).sum()))


def _by_words(text: str, table: list[Paper]) -> Paper:
    words = _words(text.partition("<document>")[2] or text)
    return max(table, key=lambda known: len(known.words & words) / max(1, len(known.words | words)))
