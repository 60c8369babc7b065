"""The rules of model selection: verdicts, extractions, documents, ground-truth files, points."""

import doctest
import json
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loupe.features.select.questions
from loupe.errors import DatasetError
from loupe.features.select.benchmark import Known, Rules, score_image, score_text, text_samples
from loupe.features.select.documents import Document, Truth, check_stems, find_documents, read_truth, write_truth
from loupe.features.select.questions import (
    FIELDS,
    Extraction,
    extraction_prompt,
    image_prompt,
    match_extraction,
    parse_extraction,
    parse_verdict,
    text_prompt,
)
from loupe.features.select.serving import default_models
from loupe.types import Prediction, Sample

PROTOCOL = Path(__file__).parents[3] / "docs/protocols/model_selection.md"


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("YES", "yes"),
        ("No.", "no"),
        ("**Yes**, it is.", "yes"),
        ("_no_", "no"),
        ("```\nYES\n```", "yes"),
        ("<think>yes? no!</think>NO", "no"),
        ("<think>it says yes", None),
        ("no doubt about it</think>\nYes", "yes"),
        ("ＹＥＳ", "yes"),
        ("Sí", "yes"),
        ("Nein, das ist keine.", "no"),
        ("The document is clearly an invoice, so: true", "yes"),
        ("yes or no", None),
        ("Yes, there is no doubt", None),
        ("Yes, it is an invoice and there is no doubt", "yes"),
        ("", None),
        ("maybe", None),
        ("nothing", None),
        ('{"match": true}', "yes"),
        ('{"is_invoice": "no"}', "no"),
        ('```json\n{"isMatch": false, "why": "yes"}\n```', "no"),
        ('{"answer": "perhaps"} yes', "yes"),
    ],
)
def test_a_verdict_is_one_word_or_one_json_value(answer: str, verdict: str | None) -> None:
    assert parse_verdict(answer, "invoice") == verdict


@pytest.mark.parametrize(
    ("answer", "date", "name"),
    [
        ('{"date": "2025-11-26", "company": "Foo"}', "2025-11-26", "Foo"),
        ('Sure!\n```json\n{"Date": "26.11.2025", "SecondaryField": "Foo"}\n```\nDone {x}', "26.11.2025", "Foo"),
        ("{'date': '2025-11-26', 'vendor': 'Foo',}", "2025-11-26", "Foo"),
        ('{"date": "2025-11-26", "company": "Foo"', "2025-11-26", "Foo"),
        ('<think>{"date": "1"}</think>{"date": ["2025-11-26", "x"], "issuer": null, "name": 7}', "2025-11-26", "7"),
        ('{set} then {"date": "2025-11-26", "company": "a } b"}', "2025-11-26", "a } b"),
        ('{"thoughts": {"date": "x"}} {"date": "2025-11-26", "company": "Foo"}', "", ""),
        ('{} {"date": "2025-11-26", "company": "Foo"}', "", ""),
        ('{"date": 20251126, "company": []}', "20251126", ""),
        (r"""{'date': None, 'company': 'Sol d'Or "Bar"'}""", "", '''Sol d'Or "Bar"'''),
        ('{"date": "2025-11-26", "company": "Foo', "2025-11-26", "Foo"),
    ],
)
def test_an_extraction_is_the_first_object_that_can_be_read(answer: str, date: str, name: str) -> None:
    found = parse_extraction(answer, FIELDS["company"])
    assert (found.date, found.name, found.parsable) == (date, name, True)


def test_an_answer_without_an_object_extracts_nothing() -> None:
    assert parse_extraction("The date is 2025-11-26.", FIELDS["company"]) == Extraction()
    assert parse_extraction('{"physician": "Dr. Weber"}', FIELDS["doctor"]).name == "Dr. Weber"


@given(st.text(max_size=200) | st.text("{}\"',:[]<think>/\\ yesno", max_size=200))
def test_no_answer_crashes_the_readers(answer: str) -> None:
    assert parse_verdict(answer, "invoice") in ("yes", "no", None)
    parse_extraction(answer, FIELDS["doctor"])


@pytest.mark.parametrize("piece", ["{", '{"a":', "<think>", "</think>", "```", "yes ", '"', "{'", "}{", "[", "*", "\\"])
def test_a_megabyte_of_answer_costs_little(piece: str) -> None:
    answer, began = piece * (1_000_000 // len(piece)), time.process_time()
    parse_verdict(answer, "invoice")
    parse_extraction(answer, FIELDS["company"])
    assert time.process_time() - began < 3


def test_the_prompts_are_those_of_the_protocol() -> None:
    text = PROTOCOL.read_text(encoding="utf-8")
    section = text[text.index("## 8.") : text.index("## 9.")]
    written = [block.strip("\n") for block in section.split("```")[1::2]]
    made = [
        image_prompt("{type}"),
        text_prompt("{type}", "{text}"),
        extraction_prompt("{type}", FIELDS["company"], "{text}"),
    ]
    field = FIELDS["company"]
    made[2] = (
        made[2].replace(f'"{field.key}"', '"{key}"').replace(f"- {field.key}: {field.description}", "- {key}: {field}")
    )
    assert made == [written[0], written[1], written[-1]]
    assert all(f'"{FIELDS[name].description}"' in section.replace("\n", " ") for name in ("company", "doctor"))


def test_the_candidate_lists_are_those_of_the_protocol() -> None:
    text = PROTOCOL.read_text(encoding="utf-8")
    tables = text[text.index("### Vision models") :].split("### Text models")
    models = default_models()
    for table, listed in zip(tables, (models.vlm, models.textllm), strict=True):
        rows = [row.split("|") for row in table.splitlines() if row[:3].strip("| ").isdigit()]
        assert [row[2].strip() for row in rows] == [each.id for each in listed if not isinstance(each, str)]
        assert len(rows) == 25
    kinds = Counter((each.kind, each.thinking) for each in (*models.vlm, *models.textllm) if not isinstance(each, str))
    assert kinds == {("", False): 38, ("ocr", False): 7, ("", True): 5}


def folders(root: Path, positive: dict[str, str], negative: dict[str, str]) -> tuple[Path, Path]:
    for name, files in (("yes", positive), ("no", negative)):
        (root / name).mkdir()
        for file, content in files.items():
            (root / name / file).write_text(content)
    return root / "yes", root / "no"


def test_documents_are_the_accepted_files_in_byte_order(tmp_path: Path) -> None:
    files = {"b.PDF": "1", "a.tiff": "2", "Z.jpg": "3", ".hidden.png": "4", "x.txt": "5", "ä.webp": "6"}
    yes, no = folders(tmp_path, files, {"n.png": "7"})
    (yes / "deeper").mkdir()
    (yes / "deeper" / "d.png").write_text("8")
    assert [each.id for each in find_documents(yes, no)] == [
        *("positive/Z.jpg", "positive/a.tiff", "positive/b.PDF", "positive/ä.webp", "negative/n.png"),
    ]


@pytest.mark.parametrize(
    ("positive", "negative", "said"),
    [
        ({}, {"a.png": "1"}, "yes holds no documents"),
        ({"a.png": "1"}, {"a.txt": "1"}, "no holds no documents"),
        ({"a.png": "1"}, {"b.png": "1"}, "are the same document in both folders"),
    ],
)
def test_folders_that_make_no_selection_are_refused(
    tmp_path: Path, positive: dict[str, str], negative: dict[str, str], said: str
) -> None:
    with pytest.raises(DatasetError, match=said):
        find_documents(*folders(tmp_path, positive, negative))


def test_the_same_folder_twice_and_documents_that_share_a_truth_file_are_refused(tmp_path: Path) -> None:
    yes, no = folders(tmp_path, {"a.png": "1", "a.pdf": "2"}, {"n.png": "3"})
    with pytest.raises(DatasetError, match="in both folders"):
        find_documents(yes, yes)
    with pytest.raises(DatasetError, match=r"a\.pdf and a\.png would share the ground truth a\.json"):
        check_stems(find_documents(yes, no))


def test_a_truth_file_has_the_exact_form_and_keeps_foreign_keys(tmp_path: Path) -> None:
    document = Document(path=tmp_path / "a.pdf", positive=True)
    document.truth_file.write_text('{"note": "mine", "metadata": {"by": "me"}}')
    truth = Truth(date="2025-11-26", name="Müller", text_model="t", vlm_model="v", generated="2026-02-22T18:46:12Z")
    write_truth(document, "invoice", truth)
    assert document.truth_file.read_text(encoding="utf-8") == (
        '{\n  "date": "2025-11-26",\n  "documentType": "invoice",\n  "isMatch": true,\n  "metadata": {\n'
        '    "by": "me",\n    "generatedAt": "2026-02-22T18:46:12Z",\n    "textModel": "t",\n    "verified": false,\n'
        '    "vlmModel": "v"\n  },\n  "note": "mine",\n  "secondaryField": "Müller"\n}\n'
    )
    assert read_truth(document, "invoice").truth == truth
    assert list(tmp_path.iterdir()) == [document.truth_file]


GOOD = {"date": "2025-11-26", "documentType": "invoice", "isMatch": True, "metadata": {}, "secondaryField": "Foo"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"date": "2025-02-30"}, "is no day"),
        ({"date": "26.11.2025"}, "is no day"),
        ({"date": "0008-11-26"}, "is no day"),
        ({"date": None}, "date is missing"),
        ({"documentType": "letter"}, "documentType is 'letter', not 'invoice'"),
        ({"isMatch": "yes"}, "isMatch is neither"),
        ({"secondaryField": 7}, "secondaryField is no text"),
        ({"metadata": []}, "metadata is no object"),
        ({"metadata": {"verified": 1}}, "verified is neither"),
        ({"metadata": {"generatedAt": "yesterday"}}, "is not YYYY-MM-DDTHH:MM:SSZ"),
    ],
)
def test_a_truth_file_with_a_wrong_value_cannot_be_used(tmp_path: Path, change: dict[str, object], said: str) -> None:
    document = Document(path=tmp_path / "a.pdf", positive=True)
    document.truth_file.write_text(json.dumps({**GOOD, **change}))
    found = read_truth(document, "invoice")
    assert found.truth is None and said in found.problem and not found.missing


@pytest.mark.parametrize("content", ["", "{", "[1]", "\x00", '{"a":' * 5000])
def test_a_truth_file_that_is_no_object_cannot_be_used(tmp_path: Path, content: str) -> None:
    document = Document(path=tmp_path / "a.pdf", positive=True)
    assert read_truth(document, "invoice").missing
    document.truth_file.write_text(content)
    assert "no " in read_truth(document, "invoice").problem


def points(sample: Sample, prediction: Prediction) -> tuple[float, ...]:
    score = score_text if sample.group else score_image
    return next((each.counts for each in score(sample, prediction).scores if each.measure == "score"), (0.0, 0.0))


@pytest.mark.parametrize(
    ("match", "answer", "expected"),
    [(True, "yes", 1), (True, "no", 0), (True, "?", 0), (False, "no", 1), (False, "yes", 0), (False, "?", 0)],
)
def test_phase_a_gives_one_point_for_the_right_word(match: bool, answer: str, expected: int) -> None:
    sample = Sample(id="x", truth={"match": match, "type": "invoice"})
    assert points(sample, Prediction(text=answer)) == (expected, 1)
    assert points(sample, Prediction(text=answer, outcome="timeout")) == (0, 1)


def phase_b(known: Known, *, negative_points: int = 2, field: str = "company") -> list[Sample]:
    documents = [Document(path=Path("p.png"), positive=True), Document(path=Path("n.png"), positive=False)]
    rules = Rules(document_type="invoice", negative_points=negative_points, field=field)
    return list(text_samples(documents, {"positive/p.png": known, "negative/n.png": Known()}, rules))


@pytest.mark.parametrize(
    ("date", "name", "answer", "expected"),
    [
        ("2025-11-26", "Foo_GmbH", '{"date": "26.11.2025", "company": "FOO"}', (1, 1)),
        ("2025-11-26", "Foo_GmbH", '{"date": "27.11.2025", "company": "FOO"}', (0, 1)),
        ("2025-11-26", "Foo_GmbH", '{"date": "26.11.2025", "company": "Bar"}', (0, 1)),
        ("2025-11-26", "", '{"date": "26.11.2025", "company": "whoever"}', (1, 1)),
        ("", "Foo", '{"date": "whenever", "company": "Foo"}', (1, 1)),
        ("2025-11-26", "", "I cannot", (0, 1)),
        ("", "", '{"date": "", "company": ""}', (0, 0)),
    ],
)
def test_an_extraction_is_right_where_all_that_is_known_agrees(
    date: str, name: str, answer: str, expected: tuple[int, int]
) -> None:
    sample = phase_b(Known(date=date, name=name))[1]
    assert points(sample, Prediction(text=answer)) == expected


def test_negatives_of_phase_b_are_worth_two_points_or_one_and_have_no_extraction() -> None:
    known = Known(date="2025-11-26", name="Foo")
    for worth in (1, 2):
        category, extraction, negative = phase_b(known, negative_points=worth)
        assert points(category, Prediction(text="yes")) == (1, 1)
        assert points(extraction, Prediction(outcome="timeout")) == (0, 1)
        assert points(negative, Prediction(text="no")) == (worth, worth)
        assert points(negative, Prediction(text="")) == (0, worth)


def test_with_the_date_alone_no_name_is_asked_for_or_compared() -> None:
    sample = phase_b(Known(date="2025-11-26", name="Foo"), field="date")[1]
    assert "company" not in sample.prompt and '{"date": "..."}' in sample.prompt
    assert points(sample, Prediction(text='{"date": "2025-11-26"}')) == (1, 1)


def test_the_order_of_day_and_month_can_be_chosen() -> None:
    found = Extraction(date="03/04/2025", parsable=True)
    field = FIELDS["company"]
    assert match_extraction(found, "2025-04-03", "", field=field).date
    assert match_extraction(found, "2025-03-04", "", field=field, date_order="mdy").date


def test_the_examples_are_true() -> None:
    for module in (loupe.features.select.questions, loupe.features.select.questions):
        assert doctest.testmod(module).failed == 0
