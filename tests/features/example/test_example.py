"""The worked example: its papers and their ground truth, and made-up models that know them."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path

from PIL import Image

from loupe.benchmarks.folders.own import open_folder
from loupe.features.example.made_up_models import ERRORS, Paper, _errs, documents, facts, known_papers, reply
from loupe.metrics.dates import normalize_date
from tests.support.command_line import loupe

TABLE = known_papers()
SORT = "Is it an invoice? Answer with exactly one word: YES or NO."


def test_the_papers_are_sixty_and_the_truth_of_the_thirty_invoices_is_written(tmp_path: Path) -> None:
    made = loupe("example", "pages", ".", cwd=tmp_path)
    assert made.returncode == 0 and made.stdout == "60 documents in papers\n", made.stderr
    assert {path.name for path in tmp_path.iterdir()} >= {"papers", "extract.py", "loupe.toml"}
    invoices = {name: fact["truth"] for name, fact in facts().items() if fact["truth"]}
    assert len(invoices) == 30 and all(normalize_date(truth["date"]) for truth in invoices.values())
    fields = ("--field", "date:date", "--field", "total:amount")
    assert loupe("init", "papers/invoices", "--task", "fields", *fields, cwd=tmp_path).returncode == 0
    done = loupe("example", "truth", "papers/invoices", cwd=tmp_path)
    assert done.stdout == "30 samples verified; 0 drafts were right without edits\n", done.stderr
    expected = [{name: truth[name] for name in ("date", "total")} for truth in invoices.values()]
    assert [sample.truth for sample in open_folder(tmp_path / "papers/invoices").load()] == expected
    again = loupe("example", "pages", ".", cwd=tmp_path)
    assert again.returncode == 2 and "has extract.py and loupe.toml and papers already" in again.stderr


def test_truth_of_the_example_is_not_written_for_documents_that_only_have_its_names(tmp_path: Path) -> None:
    Image.new("L", (40, 30)).save(tmp_path / "invoice-02.png")
    assert loupe("init", ".", "--task", "fields", "--field", "total:amount", cwd=tmp_path).returncode == 0
    before = (tmp_path / "samples.jsonl").read_bytes()
    done = loupe("example", "truth", ".", cwd=tmp_path)
    assert done.returncode == 2 and "invoice-02 is not the document of this name in the example" in done.stderr
    assert (tmp_path / "samples.jsonl").read_bytes() == before


def test_models_know_papers_by_their_image_and_by_their_words() -> None:
    files = {Path(path).stem: data for path, data in documents().items()}
    for paper in (TABLE[1], TABLE[2], TABLE[31]):
        expected = "YES" if paper.name.startswith("invoice") else "NO"
        text = f"{SORT}\n<document>\n{facts()[paper.name]['text']}\n</document>"
        assert reply("example/careful", [{"role": "user", "content": text}], TABLE) == expected
        target = io.BytesIO()
        Image.open(io.BytesIO(files[paper.name])).convert("RGB").save(target, "JPEG", quality=80)
        url = f"data:image/jpeg;base64,{base64.b64encode(target.getvalue()).decode()}"
        content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": SORT}]
        assert reply("example/careful", [{"role": "user", "content": content}], TABLE) == expected


def test_extractions_are_json_from_the_table() -> None:
    paper: Paper = TABLE[0]
    text = f"Return only one JSON object.\n<document>\n{facts()[paper.name]['text']}\n</document>"
    found = json.loads(reply("example/careful", [{"role": "user", "content": text}], TABLE))
    assert found == {"date": paper.truth["date"], "company": paper.truth["company"]}


def test_each_model_errs_on_its_share_of_questions_and_always_on_the_same() -> None:
    questions = [f"question {number}" for number in range(2000)]
    for model, share in ERRORS.items():
        wrong = [question for question in questions if _errs(model, question)]
        assert abs(len(wrong) / 20 - share) < 2.5
        assert wrong == [question for question in questions if _errs(model, question)]
