"""The made-up models of the worked example: papers are found by picture and by words, and errors stay the same."""

from __future__ import annotations

import base64
import io
import json
from itertools import chain, islice

from PIL import Image

from loupe.cli.example.made_up_models import ERRORS, _errs, _known, reply
from loupe.data.example_documents.papers import Paper, drawn, papers

PAPERS = list(chain(islice(papers(), 2), islice(papers(), 31, 32)))
TABLE = [_known(paper) for paper in PAPERS]
SORT = "Is it an invoice? Answer with exactly one word: YES or NO."


def picture(paper: Paper) -> str:
    """The scan once more as a JPEG, as a client would send it."""
    target = io.BytesIO()
    Image.open(io.BytesIO(drawn(paper))).convert("RGB").save(target, "JPEG", quality=80)
    return f"data:image/jpeg;base64,{base64.b64encode(target.getvalue()).decode()}"


def test_papers_are_known_by_their_picture_and_by_their_words() -> None:
    for paper in PAPERS:
        text = f"{SORT}\n<document>\n{' '.join(paper.sheet().texts)}\n</document>"
        expected = "YES" if paper.is_invoice else "NO"
        assert reply("example/careful", [{"role": "user", "content": text}], TABLE) == expected
        if paper.kind != "pdf":
            image = {"type": "image_url", "image_url": {"url": picture(paper)}}
            content = [image, {"type": "text", "text": SORT}]
            assert reply("example/careful", [{"role": "user", "content": content}], TABLE) == expected


def test_extractions_are_json_from_the_table() -> None:
    paper = PAPERS[0]
    text = f"Return only one JSON object.\n<document>\n{' '.join(paper.sheet().texts)}\n</document>"
    found = json.loads(reply("example/careful", [{"role": "user", "content": text}], TABLE))
    assert found == {"date": paper.truth["date"], "company": paper.truth["company"]}


def test_each_model_errs_on_its_share_of_questions_and_always_on_the_same() -> None:
    questions = [f"question {number}" for number in range(2000)]
    for model, share in ERRORS.items():
        wrong = [question for question in questions if _errs(model, question)]
        assert abs(len(wrong) / 20 - share) < 2.5
        assert wrong == [question for question in questions if _errs(model, question)]
