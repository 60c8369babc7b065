"""Key information extraction: prompts, variants, the fall-back field by field, published layouts, hostile answers."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import loupe
from loupe.benchmarks import get_benchmark, handwritten_forms, nanonets_kie
from loupe.benchmarks.nanonets_kie import FIELDS
from loupe.benchmarks.registry import check_options
from loupe.benchmarks.shared.fields.documents import RULES, normalize_value
from loupe.benchmarks.shared.fields.fallback import read_with_fallback
from loupe.data.pages import load_page
from loupe.errors import DatasetError, UsageError
from loupe.types import Prediction, Sample

VERIFY = Path(loupe.__file__).parent / "verify_cases"
KIE, FORMS = get_benchmark("nanonets_kie"), get_benchmark("handwritten_forms")
TRUTH = {"date": "12/03/2018", "total_amount": "RM 12.00", "total_tax": ""}
RECEIPT = """# **NORTHPIER TRADING (M) SDN BHD** (1234567-X)
12, Jalan Kenari 5,
Bandar Puchong Jaya, 47100 Puchong
Tel: 03-8070 1234  Fax: 03-8070 1235
GST Reg No: 000912343040
Invoice.No : INV-42869   Cashier: 3
Date: 12/03/2018 18:20
Item A   10.00
Sub Total        RM 11.32
GST 6%: 0.68
Total (incl. GST 6%): RM 12.00
Cash 20.00
"""
FORM = {
    "gt_parse": {
        "relation": {"Mother": "MARY E. WARD"},
        "person": {"name": "JOHN A. HOLLIS", "State file #": "731", "death": "1943-02-11"},
        "person_data": {"Age": "73", "birth_day": "1870-01-02", "birth_place": None},
    }
}


def shipped(ident: str) -> list[dict[str, Any]]:
    """The parity cases of a benchmark that come with the package."""
    lines = (VERIFY / f"{ident}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def picture() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (60, 80), "white").save(file, "PNG")
    return file.getvalue()


def write_parquet(path: Path, columns: dict[str, Sequence[Any]]) -> Path:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path.parent.mkdir(parents=True)
    parquet.write_table(pa.table(columns), path)
    return path.parent.parent


def load(root: Path, **options: Any) -> list[Sample]:
    return list(KIE.load(root, **options))


def values(answer: str, truth: dict[str, str] = TRUTH, variant: str = "docext") -> dict[str, list[float]]:
    sample = Sample(id="x", truth=truth, tags={"variant": variant})
    found: dict[str, list[float]] = {}
    for score in KIE.score(sample, Prediction(text=answer)):
        found.setdefault(score.measure, []).append(score.counts[0])
    return found


def test_documents_are_read_from_parquet_with_raw_bytes_and_a_struct_of_fields(tmp_path: Path) -> None:
    annotations = [dict.fromkeys(FIELDS, "x"), {**dict.fromkeys(FIELDS, ""), "date": None}]
    file = tmp_path / "data/test-00000-of-00001.parquet"
    samples = load(write_parquet(file, {"image": [picture()] * 2, "annotations": annotations}))
    assert [sample.id for sample in samples] == ["test-0000", "test-0001"]
    assert samples[0].truth == dict.fromkeys(FIELDS, "x")
    assert samples[1].truth["date"] == ""
    assert load_page(samples[1].images[0]).size == (60, 80)


def test_forms_are_read_from_nested_json_in_the_order_of_its_keys(tmp_path: Path) -> None:
    images = [{"bytes": picture(), "path": None}]
    columns = {"image": images, "ground_truth": [json.dumps(FORM)]}
    root = write_parquet(tmp_path / "data/validation-00000-of-00001.parquet", columns)
    (sample,) = FORMS.load(root)
    assert list(sample.truth.items()) == [
        ("mother_name", "MARY E. WARD"),
        ("name_of_deceased", "JOHN A. HOLLIS"),
        ("State file #", "731"),
        ("deceased_age", "73"),
        ("birth_place", ""),
    ]
    (eleven,) = FORMS.load(root, variant="strict_json")
    assert len(eleven.truth) == 11


@pytest.mark.parametrize("truth", [FORM, json.dumps(FORM), {"mother_name": "MARY E. WARD"}])
def test_the_prepared_form_holds_the_ground_truth_nested_as_json_or_flat(tmp_path: Path, truth: object) -> None:
    line = {"idx": 0, "sample_id": "form_0", "ground_truth": truth, "metadata": {}}
    (tmp_path / "metadata.jsonl").write_text(json.dumps(line), encoding="utf-8")
    (sample,) = FORMS.load(tmp_path)
    assert (sample.id, sample.truth["mother_name"]) == ("form_0", "MARY E. WARD")


def test_the_prepared_form_is_one_split(tmp_path: Path) -> None:
    line = {"idx": 0, "sample_id": "form_0", "ground_truth": FORM}
    (tmp_path / "metadata.jsonl").write_text(json.dumps(line), encoding="utf-8")
    assert list(FORMS.load(tmp_path, split="validation"))
    for benchmark in (KIE, FORMS):
        with pytest.raises(UsageError, match="the option split can no longer be chosen"):
            list(benchmark.load(tmp_path, split="train"))


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ("{", "the ground truth is not JSON"),
        ([1], "no object of fields"),
        ({"other": "1"}, "none of the fields"),
    ],
)
def test_a_ground_truth_of_another_shape_is_refused_with_its_place(tmp_path: Path, truth: Any, message: str) -> None:
    line = {"idx": 0, "ground_truth": truth}
    (tmp_path / "metadata.jsonl").write_text(json.dumps(line), encoding="utf-8")
    with pytest.raises(DatasetError, match=f"document 1: .*{message}"):
        load(tmp_path)


def test_a_folder_without_the_data_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"expected data/test-\*\.parquet \(columns image, annotations\)") as raised:
        load(tmp_path)
    assert raised.value.hint == "download it: loupe data get nanonets_kie"


@pytest.mark.parametrize("variant", ["docext", "repair_regex"])
@pytest.mark.parametrize("fence", ["{}", "```json\n{}\n```"])
def test_json_after_long_reasoning_is_found(variant: str, fence: str) -> None:
    reasoning = "<think>" + "The receipt says a total, let me look again.\n" * 500 + "</think>\n"
    answer = reasoning + fence.format(json.dumps(TRUTH))
    assert len(answer) > 20_000
    assert values(answer, variant=variant)["field_accuracy"] == [1.0, 1.0, 1.0]
    scores = KIE.score(Sample(id="x", truth=TRUTH, tags={"variant": variant}), Prediction(text=answer))
    assert [score.tags for score in scores if score.measure == "json_read"] == [
        {"answer": "too long to be repaired whole"}
    ]


def test_json_that_opens_a_long_answer_is_read_from_its_beginning() -> None:
    answer = json.dumps(TRUTH)[:-1] + ', "notes": "' + "and so on " * 2_500
    assert values(answer)["field_accuracy"] == [1.0, 1.0, 1.0]


def test_an_unknown_variant_is_refused() -> None:
    with pytest.raises(UsageError, match="variant=lenient"):
        check_options(KIE, {"variant": "lenient"})


def test_docext_asks_for_the_fields_of_the_document_and_the_others_for_all_fields(tmp_path: Path) -> None:
    line = {"idx": 0, "ground_truth": {"total_tax": "1", "date": "2"}}
    (tmp_path / "metadata.jsonl").write_text(json.dumps(line), encoding="utf-8")
    (docext,), (request,) = load(tmp_path), load(tmp_path, variant="strict_json")
    assert docext.prompt == (
        "Extract the following ['total_tax', 'date'] from the above document. If a field is not present, return ''. "
        "Return the output in a valid JSON format as {'total_tax': '..', 'date': '..'}."
    )
    assert (request.prompt, list(request.truth)) == ("", list(FIELDS))
    assert KIE.prompt.splitlines()[1] == f"Return a JSON object with these keys: {', '.join(FIELDS)}"


def test_a_missing_field_is_right_only_where_nothing_was_to_be_found() -> None:
    assert values('{"date": "12/03/2018"}')["anls"] == [1.0, 0.0, 1.0]
    assert values('{"date": "12/03/2018"}')["both_empty"] == [0.0, 0.0, 1.0]


def test_keys_must_agree_exactly_in_docext_and_need_not_with_the_fallback() -> None:
    answer = '{"receipt": {"DATE": "12/03/2018", "Total Amount": "RM 12.00"}}'
    assert values(answer)["anls"] == [0.0, 0.0, 1.0]
    assert values(answer, variant="repair_regex")["anls"] == [1.0, 1.0, 1.0]


def test_white_space_around_a_value_costs_in_docext_and_not_in_strict_json() -> None:
    answer = json.dumps({"date": " 12/03/2018", "total_amount": "RM 12.00\n", "total_tax": ""})
    assert values(answer)["field_accuracy"] == [0.0, 0.0, 1.0]
    assert values(answer, variant="strict_json")["field_accuracy"] == [1.0, 1.0, 1.0]


def test_classic_anls_drops_what_is_less_than_half_right() -> None:
    found = values('{"date": "12/"}', {"date": "12/03/20"})
    assert (found["anls_0.5"], found["anls"]) == ([0.0], [0.375])


def test_forms_with_more_fields_weigh_more_but_not_in_the_mean_of_documents() -> None:
    found = values('{"date": "1"}', {"date": "1", "total_tax": "2"})
    assert (found["anls"], found["anls_document_mean"]) == ([1.0, 0.0], [0.5])


def test_a_receipt_read_as_plain_text_gives_all_eight_fields() -> None:
    reading = read_with_fallback(RECEIPT, FIELDS)
    assert reading.fields == {
        "date": "12/03/2018",
        "doc_no_receipt_no": "INV-42869",
        "seller_address": "12, Jalan Kenari 5, Bandar Puchong Jaya, 47100 Puchong",
        "seller_gst_id": "000912343040",
        "seller_name": "NORTHPIER TRADING (M) SDN BHD",
        "seller_phone": "03-8070 1234",
        "total_amount": "RM 12.00",
        "total_tax": "0.68",
    }
    assert set(reading.sources.values()) == {"regex"}


@pytest.mark.parametrize(
    "answer",
    [
        "| field | value |\n|---|---|\n| Invoice No | A-17 |\n| **Grand Total** | $5.00 |",
        "<table><tr><th>Invoice No</th><td>A-17</td></tr><TR><td>Grand Total<td>$5.00</TR></table>",
    ],
)
def test_tables_are_read_where_there_is_no_object(answer: str) -> None:
    reading = read_with_fallback(answer, FIELDS)
    assert reading.fields == {"doc_no_receipt_no": "A-17", "total_amount": "$5.00"}
    assert set(reading.sources.values()) == {"table"}


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("Invoice #: A-17", "doc_no_receipt_no", "A-17"),
        ("Receipt # : 00-771", "doc_no_receipt_no", "00-771"),
        ("Bill #CB9917", "doc_no_receipt_no", "CB9917"),
        ("INVOICE NUMBER: 778-21", "doc_no_receipt_no", "778-21"),
        ("TOTAL 24 HOUR MART\nTotal 5.00", "total_amount", "5.00"),
        ("Total 5.00\nTOTAL 24 HOUR MART", "total_amount", "5.00"),
        ("TOTAL 24HOUR MART", "total_amount", None),
        ("Total 12 RM", "total_amount", "12"),
        ("Total RM 12", "total_amount", "RM 12"),
        ("Total: 1,200 only", "total_amount", "1,200"),
        ("TOTAL 24 BAR", "total_amount", None),
        ("SST 88 CAFE", "total_tax", None),
        ("ACME (GST REG. NO: 000912343040)", "seller_gst_id", "000912343040"),
        ("ACME (GST REG. NO: 000912343040)", "total_tax", None),
        ("TARIKH : 3.4.19", "date", "3.4.19"),
        ("printed 5 Mar 2018", "date", "5 Mar 2018"),
        ("date: last Friday", "date", "last Friday"),
        ("TAX INVOICE NO. 00123/18", "doc_no_receipt_no", "00123/18"),
        ("Receipt No\n778-21", "doc_no_receipt_no", "778-21"),
        ("Cash Bill # CB9917", "doc_no_receipt_no", "CB9917"),
        ("Store: MEGA MART GST 0012", "seller_name", "MEGA MART"),
        ("MEGA MART - Puchong Branch", "seller_name", "MEGA MART"),
        ("A&B HARDWARE CO. NO 12345-K", "seller_name", "A&B HARDWARE"),
        ("address: 1 Mill Lane\nLeeds LS2 9JT\nFax 1", "seller_address", "1 Mill Lane Leeds LS2 9JT"),
        ("GSTIN 27AAPFU0939F1ZV", "seller_gst_id", "27AAPFU0939F1ZV"),
        ("Contact (03) 8070-1234", "seller_phone", "(03) 8070-1234"),
        ("Total 5.00\nTotal qty 3\nSub Total 4.00", "total_amount", "5.00"),
        ("Amount Due $7.50\nTotal 5.00", "total_amount", "$7.50"),
        ("GST ID 000912343040\nGST (6%) 0.30", "total_tax", "0.30"),
        ("Total Sales (Inclusive of GST) 21.20", "total_tax", None),
        ("Total Amount (Incl. 6% GST) 21.20\nSub total before tax 20.00\nTax 6% 1.20", "total_tax", "1.20"),
        ("Tax (6%) : 1.20", "total_tax", "1.20"),
        ("GST included in total 1.20", "total_tax", "1.20"),
        ("Tax Invoice 1234\nVAT No 123456", "total_tax", None),
        ("Doc. No.: 12", "doc_no_receipt_no", "12"),
        ("Inv. No. 7", "doc_no_receipt_no", "7"),
        ("Slip No: 123", "doc_no_receipt_no", "123"),
        ("CB#: A1", "doc_no_receipt_no", "A1"),
        ("Order #55\nInvoice No: 77", "doc_no_receipt_no", "77"),
        ("Order # 5", "doc_no_receipt_no", "5"),
        ("Invoice No: 12 Date: 01/02/2018", "doc_no_receipt_no", "12"),
        ("Invoice No\n1 Coffee 3.50", "doc_no_receipt_no", None),
        ("total_amount: Rs. 749.57", "total_amount", "Rs. 749.57"),
    ],
)
def test_patterns_find_a_field_in_plain_lines(line: str, field: str, value: str | None) -> None:
    assert read_with_fallback(line, FIELDS).fields.get(field) == value


ADDRESS = "12, Jalan Kenari 5, 47100 Puchong"


@pytest.mark.parametrize(
    "first",
    [
        "ACME SDN BHD (REG NO: 123456-A)",
        "ACME SDN BHD COMPANY NO: 12345-X",
        "ACME SDN BHD (COMPANY NO. : 12345-X)",
        "ACME SDN BHD GST ID: 1",
        "ACME SDN BHD (GST REG. NO: 000912343040)",
        "ACME SDN BHD CO. REG. NO. 123456-A",
        "ACME SDN BHD CO. REG. NO.: 123456-A",
        "ACME SDN BHD [Co. Reg No 123456-A]",
        "ACME SDN BHD (ROC NO: 123456-A)",
        "ACME SDN BHD TEL: 03-8070 1234",
        "ACME SDN BHD (1234567-X)",
        "ACME SDN BHD\n(REG NO: 123456-A)",
        "ACME SDN BHD\nCO. REG. NO. : 123456-A\nGST ID: 000912343040",
        "ACME SDN BHD\n(123456-A)\nTAX INVOICE",
        "TAX INVOICE\nACME SDN BHD",
        "RECEIPT\nACME SDN BHD",
        "*** CASH SALE ***\nACME SDN BHD",
        "INVOICE #A-17\nACME SDN BHD",
        "Invoice No 4711\nACME SDN BHD",
        "BILL\nCompany No: 12345-X\nACME SDN BHD",
        "OFFICIAL RECEIPT / TAX INVOICE (COPY)\nACME SDN BHD",
        "12/03/2018\nACME SDN BHD",
        "![logo](images/1.png)\nACME SDN BHD",
        "![ACME logo](https://example.org/a.png) ACME SDN BHD",
        "```text\nACME SDN BHD",
        "```\nTAX INVOICE\n# ACME SDN BHD",
    ],
)
def test_the_seller_is_a_name_and_its_address_is_kept(first: str) -> None:
    fields = read_with_fallback(f"{first}\n{ADDRESS}\nDate: 12/03/2018", FIELDS).fields
    assert (fields["seller_name"], fields["seller_address"]) == ("ACME SDN BHD", ADDRESS)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("THE BILL SHOP", "THE BILL SHOP"),
        ("CASH CONVERTERS", "CASH CONVERTERS"),
        ("RECEIPT BANK LTD (123-X)", "RECEIPT BANK LTD"),
        ("TOTAL 24 HOUR MART", "TOTAL 24 HOUR MART"),
        ("ACME (M) SDN BHD", "ACME (M) SDN BHD"),
        ("99 SPEEDMART S/B", "99 SPEEDMART S/B"),
        ("TEL AVIV FALAFEL", "TEL AVIV FALAFEL"),
        ("CO NORTHPIER", "CO NORTHPIER"),
        ("Cashier: 3", None),
        ("Company No: 12345-X", None),
        ("GST ID: 000912343040", None),
        ("Buyer GST ID: 000912343040", None),
        ("Invoice #: A-17", None),
    ],
)
def test_what_is_a_seller_and_what_is_not(line: str, name: str | None) -> None:
    assert read_with_fallback(line, FIELDS).fields.get("seller_name") == name


@pytest.mark.parametrize(
    "answer",
    [
        json.dumps({"text": RECEIPT}),
        json.dumps(
            {"page": 1, "content": {"blocks": [{"bbox": [1, 2, 3], "text": line} for line in RECEIPT.split("\n")]}}
        ),
        json.dumps({"text": RECEIPT})[:-2],
        json.dumps(RECEIPT),
        json.dumps(RECEIPT.split("\n")),
        json.dumps([{"line": line} for line in RECEIPT.split("\n")]),
        "Here it is:\n```json\n" + json.dumps({"markdown": RECEIPT}, indent=1) + "\n```",
        "```markdown\n" + RECEIPT + "```",
        "![logo](a.png)\n" + RECEIPT,
    ],
)
def test_text_in_json_in_a_fence_and_below_an_image_is_read_as_text(answer: str) -> None:
    assert read_with_fallback(answer, FIELDS).fields == read_with_fallback(RECEIPT, FIELDS).fields


def test_a_table_in_json_is_read_as_a_table_and_labels_in_json_name_their_values() -> None:
    table = json.dumps({"table": "| field | value |\n|---|---|\n| Invoice # | A-17 |\n| Grand Total | $5.00 |"})
    assert read_with_fallback(table, FIELDS).fields == {"doc_no_receipt_no": "A-17", "total_amount": "$5.00"}
    labels = read_with_fallback('{"Invoice No": "A-17", "Total": 5.5, "lines": 3}', FIELDS).fields
    assert (labels["doc_no_receipt_no"], labels["total_amount"]) == ("A-17", "5.5")


def test_a_brace_in_plain_text_is_no_json() -> None:
    receipt = '{"LUCKY STAR" SDN BHD}\n12 Jalan Besar\nInvoice No: INV-123\nTotal: 45.60'
    assert read_with_fallback(receipt, FIELDS).fields["total_amount"] == "45.60"
    assert read_with_fallback(RECEIPT + '{"a": "b"}', FIELDS).fields == read_with_fallback(RECEIPT, FIELDS).fields


def test_fields_of_forms_are_found_by_their_labels() -> None:
    names = ("name_of_deceased", "place_of_death_county", "State file #", "deceased_age")
    reading = read_with_fallback("- **Name**: JOHN\n- County: COOK\nState file #: 12", names)
    assert reading.fields == {"name_of_deceased": "JOHN", "place_of_death_county": "COOK", "State file #": "12"}


def test_where_fields_came_from_is_counted() -> None:
    found = values('{"Date": "12/03/2018"}', variant="repair_regex")
    assert (found["from_json"], found["from_table"], found["from_regex"]) == ([1, 0, 0], [0, 0, 0], [0, 0, 0])
    assert "from_json" not in values('{"date": "12/03/2018"}')


def test_blanks_around_commas_dashes_and_full_stops_of_values() -> None:
    assert normalize_value("No 27 - 1 ,Jalan  Molek\n3 . 5") == "No 27-1, Jalan Molek 3.5"


ANSWERS = st.text(alphabet='{}[]":,|<>/tr d-\\\n0a.', max_size=60) | st.text(max_size=30)
TRUTHS = st.dictionaries(st.sampled_from(FIELDS), st.text(max_size=8), min_size=1)


@given(ANSWERS, TRUTHS, st.sampled_from(sorted(RULES)))
def test_any_answer_scores_between_nothing_and_everything(answer: str, truth: dict[str, str], variant: str) -> None:
    found = values(answer, truth, variant)
    assert all(0.0 <= value <= 1.0 for each in found.values() for value in each)
    assert len(found["anls"]) == len(truth)


@given(TRUTHS)
def test_the_ground_truth_as_an_answer_scores_everything(truth: dict[str, str]) -> None:
    for variant in ("docext", "strict_json"):
        assert set(values(json.dumps(truth), truth, variant)["field_accuracy"]) == {1.0}


@pytest.mark.parametrize("unit", ["{", "<tr", "gst ", "date:", "| a", "address ", "(", "1,", "\\"])
def test_a_hostile_answer_of_200_kb_takes_bounded_time(unit: str) -> None:
    answer = (unit * 200_000)[:200_000]
    began = time.perf_counter()
    values(answer, variant="repair_regex")
    assert time.perf_counter() - began < 30


@pytest.mark.parametrize("ident", ["nanonets_kie", "handwritten_forms"])
def test_the_parity_cases_in_the_package_hold(ident: str) -> None:
    verify = {"nanonets_kie": nanonets_kie.verify_case, "handwritten_forms": handwritten_forms.verify_case}[ident]
    checked = {case["id"]: (verify(case), case["tolerance"]) for case in shipped(ident)}
    assert len(checked) == 40
    assert [name for name, (pairs, most) in checked.items() if not all(abs(a - b) <= most for a, b in pairs)] == []
    assert all(pairs for pairs, _ in checked.values())
