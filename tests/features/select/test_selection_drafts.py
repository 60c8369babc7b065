"""Documents made ready, and drafts of their ground truth by two models, against a real server."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from PIL import Image

from loupe.engines.registry import load_profile
from loupe.errors import EngineUnavailableError
from loupe.features.select.benchmark import Phase, Rules
from loupe.features.select.documents import Document, Truth, read_truth, write_truth
from loupe.features.select.ground_truth import Drafter
from loupe.features.select.preparing import Prepared, Wanted, prepare
from loupe.features.select.serving import Backend, Candidate, Limits, Served, open_model
from loupe.servers.keeper import Keeper
from tests.features.select.selecting import MODELS, answer, invoice
from tests.support.chat_server import Received, Reply, in_thread
from tests.support.pages import draw_page, write_pdf

READER = """
def read(request):
    if request.id.endswith("#2"):
        raise ValueError("smudged")
    return f"  {request.id} " + "x" * 5000
"""


def test_a_text_layer_is_used_where_there_is_enough_of_it_and_three_pages_are_read(tmp_path: Path) -> None:
    (tmp_path / "reader.py").write_text(READER)
    words = [f"Page {number} of this report says a little." for number in range(1, 6)]
    names = ("l.pdf", "s.pdf", "p.png", "fax.TIF", "torn.tiff")
    layer, scan, picture, fax, torn = (Document(path=tmp_path / name, positive=True) for name in names)
    sheets = [Image.new("1", (300, 400), number % 2) for number in range(5)]
    sheets[0].save(fax.path, "TIFF", save_all=True, append_images=sheets[1:])
    sheets[0].save(torn.path, "TIFF")
    torn.path.write_bytes(torn.path.read_bytes()[:-4] + b"\x07\x00\x00\x00")
    write_pdf(layer.path, *words)
    write_pdf(scan.path, "49 characters are too few for a layer", "", "", "")
    draw_page(picture.path)
    _, profile = load_profile(f"python:{tmp_path / 'reader.py'}:read")
    made = asyncio.run(
        prepare([layer, scan, picture, fax, torn], Wanted(folder=tmp_path, ocr=("reader", profile)), lambda *_: None)
    )
    assert made.texts[layer.id].split("\n\n") == words[:3]
    assert made.texts[fax.id].startswith(f"{fax.id}#1") and f"{fax.id}#3" in made.texts[fax.id]
    assert f"{fax.id}#4" not in made.texts[fax.id] and made.texts[torn.id].startswith(f"{torn.id}#1")
    pages = made.texts[scan.id].split("\n\n")
    assert pages[0].startswith("positive/s.pdf#1 x") and pages[1] == "" and pages[2].startswith("positive/s.pdf#3 x")
    assert len(pages) == 3 and made.texts[picture.id].startswith("positive/p.png#1")
    assert list(made.unread) == [scan.id, fax.id] and "smudged" in made.unread[scan.id]
    assert max(map(len, made.texts.values())) <= 12_000
    assert all(path.stat().st_size for path in made.images.values())


def drafts(
    folder: Path, url: str, text_model: str, vlm: str, *texts: str
) -> tuple[dict[str, Truth], list[Document], list[str]]:
    """Drafts for documents with these texts; `folder` is theirs."""
    documents = [Document(path=folder / f"{number}.png", positive=True) for number in range(len(texts))]
    picture = draw_page(folder / "page.jpg")
    prepared = Prepared(
        images={each.id: picture for each in documents},
        texts={each.id: text for each, text in zip(documents, texts, strict=True)},
        unread={},
    )
    said: list[str] = []
    limits = Limits(timeout=1.0, warm_up=20.0, second_look=0.01, most_timeouts=2)
    with Keeper() as keeper:

        @asynccontextmanager
        async def opened(phase: Phase, model: Candidate) -> AsyncIterator[Served]:
            backend = Backend(kind="unknown", base_url=url)
            async with open_model(model, phase, backend, keeper, limits) as served:
                yield served

        drafter = Drafter(
            rules=Rules(document_type="invoice"),
            prepared=prepared,
            text_model=Candidate(id=text_model),
            vlm=Candidate(id=vlm),
            open_model=opened,
            limits=limits,
            blank=picture,
            say=said.append,
            tell=lambda *_: None,
        )
        return drafter.draft(documents), documents, said


def test_a_draft_is_the_text_models_and_the_page_is_asked_for_what_it_left_empty(tmp_path: Path) -> None:
    with in_thread(answer, models=MODELS) as server:
        found, (document,), said = drafts(tmp_path, server.url, "yes", "right", invoice(0))
        asked = [
            (request.body["model"], len(request.images), request.body["max_tokens"]) for request in server.requests
        ]
        # Each model is loaded by a call that no limit of a document counts for.
        assert asked == [("yes", 0, 16), ("yes", 0, 256), ("right", 1, 16), ("right", 1, 256)]
        assert server.requests[1].prompt == server.requests[3].prompt
        draft = found[document.id]
        assert (draft.date, draft.name, draft.verified) == ("2025-11-10", "Autohaus_Hoffmann_e.K.", False)
        assert (draft.text_model, draft.vlm_model, said) == ("yes", "right", [])
        assert read_truth(document, "invoice").truth == draft

        drafts(tmp_path, server.url, "right", "right", invoice(1))
        assert [request.body["model"] for request in server.requests[4:]] == ["right"] * 2
        # A model that gave no value is not named beside the values.
        found, (document,), _ = drafts(tmp_path, server.url, "vague", "right", invoice(0))
        assert (found[document.id].text_model, found[document.id].vlm_model) == ("", "right")


def test_where_no_model_answers_at_all_no_file_is_touched(tmp_path: Path) -> None:
    document = Document(path=tmp_path / "0.png", positive=True)
    write_truth(document, "invoice", Truth(date="2025-11-26", name="Mine", verified=True))
    before = document.truth_file.read_bytes()
    with in_thread(answer, models=MODELS) as server:
        for text_model in ("absent", "broken"):
            with pytest.raises(EngineUnavailableError, match=f"no answer from {text_model} and gone"):
                drafts(tmp_path, server.url, text_model, "gone", *["no invoice"] * 4)
    assert document.truth_file.read_bytes() == before and not (tmp_path / "1.json").exists()


def test_documents_that_no_model_answers_for_keep_what_stood_there_unverified_or_get_empty_fields(
    tmp_path: Path,
) -> None:
    for name in ("0.png", "1.png"):
        document = Document(path=tmp_path / name, positive=True)
        write_truth(document, "invoice", Truth(date="2025-11-26", name="Mine", verified=True))

    def sometimes(request: Received) -> str | Reply:
        return answer(request) if "Hoffmann" in request.prompt or "one word" in request.prompt else Reply(status=500)

    with in_thread(sometimes, models=MODELS) as server:
        found, documents, said = drafts(tmp_path, server.url, "right", "absent", *map(invoice, range(3)))
    read = [read_truth(each, "invoice").truth for each in documents]
    assert [(each.name, each.verified) for each in read if each] == [
        *(("Autohaus_Hoffmann_e.K.", False), ("Mine", False), ("", False)),
    ]
    assert read == [found[each.id] for each in documents]
    # What a person had confirmed, and a draft has replaced, is not lost.
    assert json.loads((tmp_path / "0.json.old").read_text())["secondaryField"] == "Mine"
    assert not list(tmp_path.glob("[12].json.old"))
    assert sum("stays unchanged for review" in line for line in said) == 1
    assert sum("HTTP 500" in line for line in said) == 2 and any("absent cannot draft" in line for line in said)
