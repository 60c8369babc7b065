"""From the hub to samples: every data set in its published layout is fetched, loaded, and comes back when prepared.

The fixtures are ours (own text, tables, formulas), in the layouts that the protocols describe.
"""

from __future__ import annotations

import base64
import io
import itertools
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from loupe.benchmarks.registry import data_sets, find_data_set, get_benchmark
from loupe.cli.shared.suite_files import entries_of, find_suite
from loupe.data.hub.download import Order, get
from loupe.data.hub.patience import Patience
from loupe.data.hub.store import default_root
from loupe.data.pages import load_page
from loupe.data.prepared import write
from loupe.types import Prediction, Sample
from tests.support.command_line import loupe
from tests.support.hub_server import hub_server


def picture(width: int, kind: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, 40), "white").save(buffer, kind)
    return buffer.getvalue()


def parquet(**columns: list[Any]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def feature(count: int) -> list[dict[str, Any]]:
    """Images as the hub's Image feature stores them."""
    return [{"bytes": picture(50 + number), "path": f"{number}.png"} for number in range(count)]


def zipped(members: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def unimer() -> Mapping[str, bytes]:
    members = {}
    for subset in ("spe", "cpe", "sce", "hwe"):
        members[f"UniMER-Test/{subset}.txt"] = b"x ^ { 2 }\n\\frac { a } { b }\n"
        for number in range(2):
            members[f"UniMER-Test/{subset}/{number:07d}.png"] = picture(50 + number)
    return {"UniMER-Test.zip": zipped(members)}


def fox() -> Mapping[str, bytes]:
    members = {}
    for language, text in (("en", "A page of words."), ("cn", "\u4e00\u9875\u6587\u5b57\u3002")):
        rows = [
            {
                "image": f"{language}_{number}.png",
                "len": 700 + number,
                "conversations": [
                    {"from": "human", "value": "<image>\nOCR this image: "},
                    {"from": "gpt", "value": f"{text} {number}"},
                ],
            }
            for number in range(2)
        ]
        members[f"focus_benchmark_test/{language}_page_ocr.json"] = json.dumps(rows).encode()
        for row in rows:
            members[f"focus_benchmark_test/{language}_pdf_png/{row['image']}"] = picture(60)
    return {"focus_benchmark_test.zip": zipped(members)}


def dp_bench() -> Mapping[str, bytes]:
    corners = [{"x": 0.1, "y": 0.1}, {"x": 0.9, "y": 0.1}, {"x": 0.9, "y": 0.2}, {"x": 0.1, "y": 0.2}]

    def element(number: int, category: str, text: str, html: str = "") -> dict[str, Any]:
        content = {"text": text, "html": html, "markdown": ""}
        return {"coordinates": corners, "category": category, "id": number, "page": 1, "content": content}

    table = "<tr><td>a</td><td>b</td></tr>"
    elements = [
        element(0, "Heading1", "A title"),
        element(1, "Paragraph", "Some\nwords"),
        element(2, "Table", "a b", table),
    ]
    reference = {f"0103000000000{number}.pdf": {"elements": elements} for number in (1, 2)}
    files = {"dataset/reference.json": json.dumps(reference).encode()}
    return files | {f"dataset/pdfs/{name}": picture(80, "PDF") for name in reference}


def omnidocbench() -> Mapping[str, bytes]:
    def page(number: int) -> dict[str, Any]:
        blocks = [
            {"category_type": "title", "order": 1, "anno_id": 1, "text": f"A page of words. {number}", "attribute": {}},
            {"category_type": "table", "order": 2, "anno_id": 2, "html": "<table><tr><td>1</td></tr></table>"},
        ]
        attributes = {"data_source": "book", "language": "english", "special_issue": ["watermark"]}
        info = {"image_path": f"page_{number}.png", "page_no": number, "page_attribute": attributes}
        return {"layout_dets": blocks, "page_info": info, "extra": {"relation": []}}

    images = {f"images/page_{number}.png": picture(50 + number) for number in range(2)}
    return {"OmniDocBench.json": json.dumps([page(number) for number in range(2)]).encode(), **images}


def mdpbench() -> Mapping[str, bytes]:
    names = ("hi_book_0", "hi_book_0_indoor_light_top")
    pages = [
        {
            "layout_dets": [{"category_type": "title", "order": 1, "anno_id": 1, "text": "हिन्दी भाषा"}],
            "page_info": {"image_path": f"{name}.png", "page_attribute": {"language": "Hindi"}},
            "extra": {"relation": []},
        }
        for name in names
    ]
    images = {f"MDPBench_img_public/{name}.png": picture(50 + number) for number, name in enumerate(names)}
    return {"MDPBench_public.json": json.dumps(pages).encode(), **images}


def cc_ocr() -> Mapping[str, bytes]:
    names = ("index", "image", "image_name", "question", "answer", "category", "l2-category", "split")
    rows = [
        ("7", picture(50), "a.jpg", 'Read "it",\nall.', "A page of words.", "multi_lan_ocr", "French", "French"),
        ("8", b"", "b.jpg", "Fill in.", '{"date": "x1"}', "kie", "c", "POIE"),
    ]
    lines = ["\t".join(names)]
    for ident, image, *others in rows:
        cells = [ident, base64.b64encode(image).decode() or "7", *others]
        quoted = ['"{}"'.format(cell.replace('"', '""')) if set(cell) & set('"\n') else cell for cell in cells]
        lines.append("\t".join(quoted))
    return {"multi_lan_ocr/own_2.tsv": "\n".join([*lines, ""]).encode()}


def omni_parse_bench() -> Mapping[str, bytes]:
    def test(ident: str, kind: str, content: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
        reads = "blocks" if kind == "layout_kind" else "html"
        known = {"derivation": "authored", "tags": ["eng", "list"], "args": {"content": content}, "settings": settings}
        return {"id": ident, "test_type": kind, "output_type": reads, **known}

    files: dict[str, bytes] = {}
    rows: list[dict[str, Any]] = []
    for ident, end in (("p1", "pdf"), ("p2", "png")):
        text = {"text": "A page of words", "max_diffs": 1}
        tests = [
            test(f"{ident}_a", "present", text, {}),
            test(f"{ident}_b", "layout_kind", text | {"place": [[0, 0.1, 1, 0.2]]}, {"kind": "text"}),
        ]
        files[f"gold/{ident}.json"] = json.dumps({"tests": tests}).encode()
        files[f"pages/{ident}.{end}"] = picture(60, end.upper())
        row = {"page_id": ident, "document": "d", "suite": "own", "doc_path": f"pages/{ident}.{end}"}
        rows.append(row | {"gt_path": f"gold/{ident}.json", "outputs": ["html", "blocks"]})
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return {"manifest.parquet": parquet(**columns), **files}


def olmocr_bench() -> Mapping[str, bytes]:
    tests = [
        {"pdf": f"own/{name}.pdf", "page": 1, "id": f"{name}_0", "type": "present", "text": "A page of words"}
        for name in ("a", "b")
    ]
    lines = "".join(f"{json.dumps(test)}\n" for test in tests)
    pages = {f"bench_data/pdfs/{test['pdf']}": picture(80, "PDF") for test in tests}
    return {"README.md": b"", "bench_data/multi_column.jsonl": lines.encode(), **pages}


#: Where a set of questions lies, and its columns but question and image.
QUESTIONS: Mapping[str, tuple[str, dict[str, list[Any]]]] = {
    "docvqa": (
        "DocVQA/validation",
        {
            "questionId": ["7", "8"],
            "question_types": [["form", "layout"], ["form"]],
            "ucsf_document_id": ["d1", "d1"],
            "answers": [["one"], ["x1", "x 1"]],
        },
    ),
    "infovqa": (
        "InfographicVQA/validation",
        {
            "questionId": ["7", "8"],
            "answer_type": [["single span"], None],
            "image_url": ["u", "u"],
            "answers": [["one"], ["x1", "x 1"]],
        },
    ),
    "chartqa": ("data/test", {"type": ["human_test", "augmented_test"], "answer": ["one", "2"]}),
    "textvqa": (
        "data/validation",
        {"question_id": [7, 8], "image_id": ["a", "a"], "answers": [["one"] * 10, ["x1"] * 10]},
    ),
}


def published(ident: str) -> Mapping[str, bytes]:
    """A small data set in the layout of its repository."""
    fields = ("date", "doc_no_receipt_no", "seller_address", "seller_gst_id", "seller_name", "seller_phone")
    values = dict.fromkeys((*fields, "total_amount"), "x1") | {"total_tax": ""}
    form = {"person": {"name": "A B", "county": "C"}, "person_data": {"Age": "70"}, "relation": {"Father": "D"}}
    tables = ["<table><tr><td>1</td><td>2</td></tr></table>", "<table><tr><td>3</td></tr></table>"]
    if ident == "ocrbench":
        kinds = ["Regular Text Recognition", "Scene Text-centric VQA"]
        found = parquet(
            dataset=["svt", "STVQA"], question=["a?", "b?"], question_type=kinds, answer=[["1"], ["2", "two"]],
            image=feature(2),
        )  # fmt: skip
        return {"README.md": b"", "data/test-00000-of-00001.parquet": found}
    if ident == "ocrbench_v2":
        kinds = ["text recognition en", "text spotting en"]
        found = parquet(
            type=kinds, dataset_name=["own"] * 2, question=["a?", "b?"], answers=[["one"], [""]], eval=[None] * 2,
            bbox=[None, [[10, 20, 30, 20, 30, 40, 10, 40]]], content=[None, ["one"]], image=feature(2),
        )  # fmt: skip
        return {"data/test-00000-of-00001.parquet": found}
    if ident in QUESTIONS:
        folder, columns = QUESTIONS[ident]
        return {f"{folder}-00000-of-00001.parquet": parquet(question=["a?", "b?"], **columns, image=feature(2))}
    if ident == "nanonets_kie":
        return {"data/test-00000-of-00001.parquet": parquet(image=[picture(50)] * 2, annotations=[values] * 2)}
    if ident == "handwritten_forms":
        truth = json.dumps({"gt_parse": form})
        return {"data/val-00000-of-00001.parquet": parquet(image=feature(2), ground_truth=[truth] * 2)}
    if ident == "iam_lines":
        return {"data/test.parquet": parquet(image=feature(2), text=["one , two .", "three"])}
    if ident in ("pubtabnet", "teds_test"):
        # TEDS_TEST begins at row 4000.
        count = 2_001
        rows = parquet(image=feature(2) * count, html_table=tables * count, html=["{}", "{}"] * count)
        return {"data/validation-00000-of-00001.parquet": rows, "data/train-00000-of-00001.parquet": rows}
    others = {
        "unimer_test": unimer,
        "fox": fox,
        "dp_bench": dp_bench,
        "omnidocbench": omnidocbench,
        "mdpbench": mdpbench,
        "cc_ocr": cc_ocr,
        "omni_parse_bench": omni_parse_bench,
        "olmocr_bench": olmocr_bench,
    }
    return others[ident.partition("@")[0]]()


IDS = sorted(data_sets())


@pytest.fixture(params=IDS)
def fetched(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a benchmark whose data lies in the store."""
    ident = str(request.param)
    monkeypatch.setenv("LOUPE_DATA", str(tmp_path / "store"))
    dataset = find_data_set(ident)
    with hub_server({dataset.repo: published(ident)}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        get(Order(dataset=dataset, root=default_root(dataset.place), patience=Patience(attempts=1)))
    return ident


def samples(ident: str, root: Path | None) -> list[Sample]:
    return list(itertools.islice(get_benchmark(ident).load(root), 4))


def test_what_get_fetches_is_what_the_benchmark_reads(fetched: str) -> None:
    found = samples(fetched, None)
    assert len(found) >= 2 and len({sample.id for sample in found}) == len(found)
    assert all(min(load_page(source).size) >= 30 for sample in found for source in sample.images)
    assert all(sample.images for sample in found)


def test_what_is_prepared_is_read_back_with_the_same_ids_and_scores(fetched: str, tmp_path: Path) -> None:
    before = samples(fetched, None)
    write(before, tmp_path / "form")
    after = samples(fetched, tmp_path / "form")
    assert [sample.id for sample in after] == [sample.id for sample in before]
    assert [dict(sample.tags) for sample in after] == [dict(sample.tags) for sample in before]
    assert [sample.prompt for sample in after] == [sample.prompt for sample in before]
    benchmark = get_benchmark(fetched)
    for text in ("", "one 2 x1", '{"date": "x1"}', "<table><tr><td>1</td></tr></table>", "A page of words. 0"):
        prediction = Prediction(text=text)
        assert [benchmark.score(sample, prediction) for sample in after] == [
            benchmark.score(sample, prediction) for sample in before
        ]


READER = """
def read(request):
    return "A page of words. 0"
"""
#: The formulas of the copy in parquet, which is no data set of its own.
COPY = {"data/test-00000-of-00001.parquet": parquet(image=feature(3), text=["a", "b", "c"])}


@pytest.fixture(scope="module")
def whole_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the store as `loupe setup` fills it, and an engine."""
    home = tmp_path_factory.mktemp("setup")
    repos: dict[str, dict[str, bytes]] = {"deepcopy/UniMER": dict(COPY)}
    for ident, dataset in data_sets().items():
        repos.setdefault(dataset.repo, {}).update(published(ident))
    with hub_server(repos) as hub:
        done = loupe("setup", cwd=home, env={"HF_ENDPOINT": hub.url})
    assert done.returncode == 0, done.stderr
    (home / "reader.py").write_text(READER)
    return home


@pytest.mark.parametrize("suite", ["full", "eight"])
def test_every_suite_runs_on_what_setup_has_fetched(whole_store: Path, suite: str) -> None:
    without_tex = ("-o", "omnidocbench@1.5.cdm=off", "-o", "unimer_test.cdm=off")
    words = ("--suite", suite, "-e", "python:reader.py:read", "--limit", "2", "--runs", suite, *without_tex)
    done = loupe("run", *words, "--json", cwd=whole_store)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    entries = entries_of(find_suite(suite).benchmarks)
    assert (document["skipped"], document["failed"]) == ({}, {})
    found = [(each["benchmark"], each["version"]) for each in document["results"]]
    assert found == [(entry.benchmark.partition("@")[0], get_benchmark(entry.benchmark).version) for entry in entries]
