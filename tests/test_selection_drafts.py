"""Documents made ready, and drafts of their ground truth by two models, against a real server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from loupe.benchmarks.selection.documents import Document
from loupe.benchmarks.selection.questions import Phase, Rules
from loupe.benchmarks.selection.truth_files import Truth, read_truth
from loupe.engines.registry import load_profile
from loupe.selection.candidates import Candidate
from loupe.selection.drafts import Drafter
from loupe.selection.limits import Limits
from loupe.selection.preparation import Prepared, Wanted, prepare
from loupe.selection.serving import Backend, Served, open_model
from loupe.servers.keeper import Keeper
from tests.chat_server import in_thread
from tests.pages import draw_page, write_pdf
from tests.selecting import MODELS, answer, invoice

READER = """
def read(request):
    if request.id.endswith("#2"):
        raise ValueError("smudged")
    return f"  {request.id} " + "x" * 5000
"""


def test_a_text_layer_is_used_where_there_is_enough_of_it_and_three_pages_are_read(tmp_path: Path) -> None:
    (tmp_path / "reader.py").write_text(READER)
    words = [f"Page {number} of this report says a little." for number in range(1, 6)]
    layer, scan, picture = (Document(path=tmp_path / name, positive=True) for name in ("l.pdf", "s.pdf", "p.png"))
    write_pdf(layer.path, *words)
    write_pdf(scan.path, "49 characters are too few for a layer", "", "", "")
    draw_page(picture.path)
    _, profile = load_profile(f"python:{tmp_path / 'reader.py'}:read")
    made = asyncio.run(
        prepare([layer, scan, picture], Wanted(folder=tmp_path, ocr=("reader", profile)), lambda *_: None)
    )
    assert made.texts[layer.id].split("\n\n") == words[:3]
    pages = made.texts[scan.id].split("\n\n")
    assert pages[0].startswith("positive/s.pdf#1 x") and pages[1] == "" and pages[2].startswith("positive/s.pdf#3 x")
    assert len(pages) == 3 and made.texts[picture.id].startswith("positive/p.png#1")
    assert list(made.unread) == [scan.id] and "smudged" in made.unread[scan.id]
    assert max(map(len, made.texts.values())) <= 12_000
    assert all(path.stat().st_size for path in made.images.values())


def drafts(
    folder: Path, url: str, text_model: str, vlm: str, text: str
) -> tuple[dict[str, Truth], Document, list[str]]:
    document = Document(path=folder / "a.png", positive=True)
    draw_page(document.path).rename(folder / "a.jpg")
    prepared = Prepared(images={document.id: folder / "a.jpg"}, texts={document.id: text}, unread={})
    said: list[str] = []
    with Keeper() as keeper:

        @asynccontextmanager
        async def opened(phase: Phase, model: Candidate) -> AsyncIterator[Served]:
            backend, limits = Backend(kind="unknown", base_url=url), Limits(timeout=5.0)
            async with open_model(model, phase, backend, keeper, limits) as served:
                yield served

        drafter = Drafter(
            rules=Rules(document_type="invoice"),
            prepared=prepared,
            text_model=Candidate(id=text_model),
            vlm=Candidate(id=vlm),
            open_model=opened,
            limits=Limits(timeout=5.0),
            say=said.append,
            tell=lambda *_: None,
        )
        return drafter.draft([document]), document, said


def test_a_draft_is_the_text_models_and_the_page_is_asked_for_what_it_left_empty(tmp_path: Path) -> None:
    with in_thread(answer, models=MODELS) as server:
        found, document, said = drafts(tmp_path, server.url, "yes", "right", invoice(0))
        asked = [
            (request.body["model"], len(request.images), request.body["max_tokens"]) for request in server.requests
        ]
        assert asked == [("yes", 0, 256), ("right", 1, 256)]
        assert server.requests[0].prompt == server.requests[1].prompt
        draft = found[document.id]
        assert (draft.date, draft.name, draft.verified) == ("2025-11-10", "Autohaus_Hoffmann_e.K.", False)
        assert (draft.text_model, draft.vlm_model, said) == ("yes", "right", [])
        assert read_truth(document, "invoice").truth == draft

        drafts(tmp_path, server.url, "right", "right", invoice(1))
        assert [request.body["model"] for request in server.requests[2:]] == ["right"]


def test_models_that_cannot_draft_leave_empty_fields_and_are_named(tmp_path: Path) -> None:
    with in_thread(answer, models=MODELS) as server:
        found, document, said = drafts(tmp_path, server.url, "broken", "vague", invoice(0))
    draft = read_truth(document, "invoice").truth
    assert draft is not None and (draft.date, draft.name, draft.verified) == ("", "", False)
    assert found[document.id].date == "" and len(said) == 1 and "HTTP 500" in said[0]
