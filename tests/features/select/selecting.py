"""Documents, and a table-driven model server, for tests of `loupe select`.

Models are named after what they do: `right` knows everything, `vague` says yes and no, and so on; see `answer`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from loupe.features.select.benchmark import Known
from loupe.features.select.documents import Document
from tests.support.chat_server import Received, Reply
from tests.support.pages import draw_page, write_pdf

NAMES = ("Autohaus Hoffmann e.K.", "Nordwind GmbH", "Weber Bau AG")
MODELS = {"object": "list", "data": [{"id": name} for name in ("right", "vague", "absent")]}
#: Reads images for `--ocr`.
OCR = "def read(request):\n    return 'Invoice\\nNordwind GmbH\\nDate: 11.11.2025'\n"


def invoice(number: int) -> str:
    """The text of an invoice, with more than fifty characters."""
    day = f"{10 + number}.11.2025"
    return f"Invoice\n{NAMES[number]}\nInvoice number 10{number}\nDate: {day}\nTotal amount due 99.50, payable at once"


def letter(number: int) -> str:
    """The text of something else."""
    return f"Letter {number}\nDear Anna, thank you for the lovely evening at the lake; the boat was grand."


def texts() -> tuple[list[Document], dict[str, Known]]:
    """Three invoices and three letters that are only texts: nothing is on the disk."""
    documents = [Document(path=Path(f"p{number}.png"), positive=True) for number in range(3)]
    documents += [Document(path=Path(f"n{number}.png"), positive=False) for number in range(3)]
    known = {}
    for number in range(3):
        date, name = f"2025-11-{10 + number}", NAMES[number].replace(" ", "_")
        known[documents[number].id] = Known(text=invoice(number), date=date, name=name)
        known[documents[number + 3].id] = Known(text=letter(number))
    return documents, known


def make_documents(folder: Path) -> tuple[Path, Path]:
    """Two folders: invoices and letters as PDF files with a text layer, and one invoice as a picture."""
    positive, negative = folder / "yes", folder / "no"
    positive.mkdir()
    negative.mkdir()
    for number in range(2):
        write_pdf(positive / f"{number}.pdf", invoice(number).replace("\n", " \\\n"))
        write_pdf(negative / f"{number}.pdf", letter(number).replace("\n", " \\\n"))
    draw_page(positive / "2.PNG")
    (folder / "ocr.py").write_text(OCR)
    return positive, negative


def answer(request: Received) -> str | Reply:
    """What a model says, by its name."""
    model, prompt = request.body["model"], request.prompt
    if prompt.startswith("Answer with one word") and model not in ("absent", "gone"):
        return "ready"
    if "Extract" in prompt:
        return _extraction(model, prompt)
    is_invoice = "Invoice" in prompt
    if request.images:
        is_invoice = request.number % 2 == 0
    replies: dict[str, str | Reply] = {
        "right": "YES" if is_invoice else "No.",
        "thinker": f"<think>Is it? no, yes</think>\n**{'Yes' if is_invoice else 'No'}**",
        "yes": "yes",
        "vague": "yes or no",
        "silent": "",
        "hangs": Reply(hang=True),
        "hangs-then-knows": Reply(hang=True),
        "broken": Reply(status=500, error="no memory left"),
        "refuses": Reply(status=400, error="too long"),
        "drops": Reply(drop=True),
    }
    return replies.get(model, Reply(status=404, error=f"no model {model!r}"))


def _extraction(model: str, prompt: str) -> str | Reply:
    name, day = re.search(r"Invoice *\n(.*)\n", prompt), re.search(r"Date: (\S+)", prompt)
    found = {"date": day[1] if day else "", "company": name[1].strip() if name else ""}
    if model in ("right", "thinker", "hangs-then-knows"):
        return f"Here it is:\n```json\n{json.dumps(found)}\n```"
    if model == "yes":
        return json.dumps(found | {"company": ""})
    return Reply(status=500) if model == "broken" else "I cannot say."
