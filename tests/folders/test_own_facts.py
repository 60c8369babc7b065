"""Facts about one's own pages, through the real commands: begun, drafted, reviewed, scored, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from loupe.benchmarks.folders.own import check_folder, open_folder
from loupe.benchmarks.folders.own.config import read_config
from loupe.benchmarks.folders.own.facts import FACTS
from loupe.errors import DatasetError, UsageError
from loupe.explanation import Fact
from loupe.report.stored_facts import FactIndex
from loupe.types import FAILED, Prediction, SampleScores
from loupe.web.review import drafts
from loupe.web.review.drafts import marked_margins
from loupe.web.review.line_file import LineFile
from loupe.web.review.review_target import open_folder as open_review
from loupe.web.review.review_target import open_tests
from loupe.web.review.session import Documents
from loupe.web.review.views import Views
from tests.support.command_line import loupe

TEXT = """The Harbour Book

Seven boats lie at the southern quay this morning.

Nobody has counted the gulls, and nobody wants to.

| fish | weight |
|---|---|
| herring | 12 kg |
| cod | 31 kg |

Page 7 of the gazette"""
READER = f"""
from loupe.types import Output
TEXT = {TEXT!r}
def good(request):
    return TEXT if request.id == "a" else "Another page, on which four sentences of news are printed."
def bad(request):
    return "Nobody has counted the gulls, and nobody wants to. Seven boats lie at the southern quay this morning."
"""


@pytest.fixture
def scans(tmp_path: Path) -> Path:
    folder = tmp_path / "scans"
    folder.mkdir()
    for name in ("a.png", "b.png"):
        Image.new("RGB", (40, 30), "white").save(folder / name)
    (tmp_path / "reader.py").write_text(READER)
    return folder


def facts_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / FACTS).read_text().splitlines()]


def mark(folder: Path, checked: str, *, only: str = "") -> None:
    rows = [row | ({"checked": checked} if only in row["id"] else {}) for row in facts_of(folder)]
    (folder / FACTS).write_text("".join(json.dumps(row) + "\n" for row in rows))


def drafted(folder: Path) -> Path:
    for done in (
        loupe("init", "scans", "--task", "facts", cwd=folder.parent),
        loupe("draft", "scans", "-e", "python:reader.py:good", "--name", "good", cwd=folder.parent),
    ):
        assert done.returncode == 0, done.stderr
    return folder


def test_from_scans_to_a_score(scans: Path) -> None:
    begun = loupe("init", "scans", "--task", "facts", cwd=scans.parent)
    assert "then loupe review tests scans/facts.jsonl" in begun.stderr
    done = loupe("draft", "scans", "-e", "python:reader.py:good", "--name", "good", cwd=scans.parent)
    assert "scans/facts.jsonl: " in done.stderr and "to check them: loupe review tests scans/facts.jsonl" in done.stderr
    kinds = {row["type"] for row in facts_of(scans)}
    assert kinds == {"present", "order", "table"}
    refused = loupe("run", "scans", "-e", "python:reader.py:good", cwd=scans.parent)
    assert refused.returncode == 2 and "loupe review tests scans/facts.jsonl" in refused.stderr
    # Taken as it is, the run says whose draft it is measured against, and the table that the engine drafted it.
    marked = loupe(
        "run", "scans", "-e", "python:reader.py:good", "--name", "good", "--allow-unverified", cwd=scans.parent
    )
    assert marked.returncode == 0 and "100.00 %" in marked.stdout
    assert "scored against unreviewed drafts, by good" in marked.stdout
    mark(scans, "verified")
    assert check_folder(scans) == []
    run = loupe("run", "scans", "-e", "python:reader.py:bad", "--json", cwd=scans.parent)
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    result = result[0] if isinstance(result, list) else result
    assert 0 < result["measures"]["facts"]["value"] < 1
    assert result["slices"]["type"]["table"]["facts"]["value"] == 0
    assert result["slices"]["type"]["order"]["facts"]["value"] < 1
    assert "drafted by" not in json.dumps(result["figures"].get("truth", {}))


def test_every_drafted_fact_holds_on_the_transcript_it_came_from_and_shows_in_the_report(scans: Path) -> None:
    drafted(scans)
    benchmark = open_folder(scans)
    assert benchmark.task == "markdown" and benchmark.facts is not None
    samples = list(benchmark.load(allow_unverified=True))
    assert [sample.id for sample in samples] == ["a", "b"]
    scored: Any = benchmark.score(samples[0], Prediction(sample="a", text=TEXT))
    assert scored.scores and all(score.counts == (1.0, 1.0) for score in scored.scores)
    wrong: Any = benchmark.score(samples[0], Prediction(sample="a", text="nothing of it"))
    assert all(score.counts == (0.0, 1.0) for score in wrong.scores)
    row = SampleScores(sample="a", details=wrong.details)
    shown: list[Fact] = list(benchmark.facts(samples[0], Prediction(sample="a", text="nothing of it"), row))
    assert len(shown) == len(wrong.scores) and not any(fact.passed for fact in shown)


def test_a_page_without_an_answer_earns_nothing_and_every_fact_of_it_is_shown_as_failed(scans: Path) -> None:
    drafted(scans)
    absent = {"pdf": "a.png", "page": 1, "id": "a-absent-1", "type": "absent", "text": "Gazette of the north"}
    (scans / FACTS).write_text((scans / FACTS).read_text() + json.dumps(absent) + "\n")
    mark(scans, "verified")
    benchmark = open_folder(scans)
    sample = next(iter(benchmark.load()))
    for outcome in FAILED:
        lost: Any = benchmark.score(sample, Prediction(sample="a", outcome=outcome))
        assert {score.unit: score.counts for score in lost.scores} == {
            row["id"]: (0.0, 1.0) for row in facts_of(scans) if row["pdf"] == "a.png"
        }
        row = SampleScores(sample="a", outcome=outcome, details=lost.details)
        shown = FactIndex().of_answer(benchmark, sample, Prediction(sample="a", outcome=outcome), row, adapters=())
        assert len(shown) == len(lost.scores) and {fact.why for fact in shown} == {"There is no answer to this page."}
        assert not any(fact.passed or fact.comparisons or fact.table for fact in shown)
    empty: Any = benchmark.score(sample, Prediction(sample="a", outcome="empty"))
    assert [score.unit for score in empty.scores if score.counts[0]] == ["a-absent-1"], "an empty answer is one"
    done = loupe("run", "scans", "-e", "command:false {image}", "--json", cwd=scans.parent)
    assert json.loads(done.stdout)["measures"]["facts"]["value"] == 0, done.stderr


def test_rejected_facts_are_not_asked_and_a_page_of_rejected_ones_is_skipped(scans: Path) -> None:
    drafted(scans)
    mark(scans, "verified")
    mark(scans, "rejected", only="b-")
    assert [sample.id for sample in open_folder(scans).load()] == ["a"]
    mark(scans, "", only="a-present-1")
    with pytest.raises(UsageError, match="the truth of 1 of 2 samples is an unverified draft"):
        list(open_folder(scans).load())


def test_drafting_again_leaves_what_a_person_has_touched(scans: Path) -> None:
    drafted(scans)
    rows = facts_of(scans)
    rows[0]["text"] = "Seven boats"
    (scans / FACTS).write_text("".join(json.dumps(row) + "\n" for row in rows))
    again = loupe("draft", "scans", cwd=scans.parent)
    assert again.returncode == 0 and "2 pages already have facts" in again.stderr, again.stderr
    assert facts_of(scans)[0]["text"] == "Seven boats"
    mark(scans, "verified", only="a-order-1")
    (scans / FACTS).write_text((scans / FACTS).read_text() + '{"pdf": "b.png", "page": 1, "id": "mine", '
                               '"type": "present", "text": "four sentences"}\n')  # fmt: skip
    before = (scans / FACTS).read_bytes()
    fresh = loupe("draft", "scans", "--fresh", "-e", "python:reader.py:good", "--name", "good", cwd=scans.parent)
    assert fresh.returncode == 0, fresh.stderr
    assert (scans / FACTS).read_bytes() == before, "a page with a mark, or with a test of a person's own, stays"


@pytest.mark.parametrize("fresh", [True, False])
def test_a_mark_set_while_facts_are_drafted_stays(fresh: bool, scans: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drafted(scans)
    config, _ = read_config(scans)
    assert config is not None
    if not fresh:
        (scans / FACTS).write_text("".join(json.dumps(row) + "\n" for row in facts_of(scans) if row["pdf"] == "a.png"))
    before = facts_of(scans)

    def draft_while_a_person_marks(*jobs: Any, **options: Any) -> Any:
        file = LineFile(scans / FACTS)
        file.replace(1, file.lines[0], json.dumps(before[0] | {"checked": "verified"}).encode() + b"\n")
        return drafted_tests(*jobs, **options)

    drafted_tests = drafts._drafted
    monkeypatch.setattr(drafts, "_drafted", draft_while_a_person_marks)
    written = drafts.write_facts(scans, config, fresh=fresh)
    rows = facts_of(scans)
    assert written.kept == 1 and [row for row in rows if row["pdf"] == "a.png"] == [
        before[0] | {"checked": "verified"},
        *(row for row in before[1:] if row["pdf"] == "a.png"),
    ]
    assert len([row for row in rows if row["pdf"] == "b.png"]) == written.drafted.total() > 0


def test_a_page_that_takes_too_long_costs_its_own_facts(scans: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loupe("init", "scans", "--task", "facts", cwd=scans.parent)
    slow = "<table>" + "".join(f"<tr><td>{n}</td><td>x</td></tr>" for n in range(6000)) + "</table>"
    texts = {"a": slow, "b": "The quick brown fox jumps over the lazy dog.\n\nThe end of it all comes on Monday."}
    lines = [{"id": name, "image": f"{name}.png", "reference": text} for name, text in texts.items()]
    (scans / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    config, _ = read_config(scans)
    assert config is not None
    monkeypatch.setattr(drafts, "_SECONDS_OF_PAGE", 1.0)
    written = drafts.write_facts(scans, config)
    assert list(written.failed) == ["a"] and {row["pdf"] for row in facts_of(scans)} == {"b.png"}


def test_the_seller_of_a_group_of_scans_is_no_header(scans: Path) -> None:
    loupe("init", "scans", "--task", "facts", cwd=scans.parent)
    Image.new("RGB", (40, 30), "white").save(scans / "c.png")
    lines = [
        {"id": name, "image": f"{name}.png", "group": "seller", "reference": f"Marigold & Sons\n\nNo. {name}\n\n12 kg"}
        for name in "abc"
    ]
    (scans / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    config, _ = read_config(scans)
    assert config is not None and drafts.write_facts(scans, config).drafted["absent"] == 0


def test_transcripts_of_ones_own_need_no_engine(scans: Path) -> None:
    loupe("init", "scans", "--task", "facts", cwd=scans.parent)
    lines = [json.loads(line) for line in (scans / "samples.jsonl").read_text().splitlines()]
    lines[0] |= {"reference": "<header>Gazette of the north</header>\n" + TEXT}
    lines[1] |= {"reference": ""}
    (scans / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = loupe("draft", "scans", cwd=scans.parent)
    assert done.returncode == 0 and "1 absent" in done.stderr and "too little text for a fact: b" in done.stderr
    [absent] = [row for row in facts_of(scans) if row["type"] == "absent"]
    assert absent["text"] == "Gazette of the north"
    mark(scans, "verified")
    assert [sample.id for sample in open_folder(scans).load()] == ["a"], "a page without facts is not asked"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON"),
        ("[]", "not an object"),
        ('{"pdf": "a.png", "page": 1, "id": "x", "type": "presnt", "text": "a"}', "unknown test type"),
        ('{"pdf": "a.png", "page": 1, "id": "x", "type": "present", "text": ""}', "`text` is empty"),
        ('{"pdf": "a.png", "page": "1", "id": "x", "type": "present", "text": "abc"}', "`page` a number"),
        ('{"pdf": "z.png", "page": 1, "id": "x", "type": "present", "text": "abc"}', "no sample of the task facts"),
    ],
)
def test_a_wrong_fact_is_named_with_its_line(scans: Path, line: str, message: str) -> None:
    drafted(scans)
    mark(scans, "verified")
    (scans / FACTS).write_text((scans / FACTS).read_text() + line + "\n")
    [problem] = check_folder(scans)
    assert message in str(problem) and FACTS in problem.file
    if problem.line:
        assert problem.line == len((scans / FACTS).read_text().splitlines())
        with pytest.raises(DatasetError):
            list(open_folder(scans).load())


@pytest.mark.parametrize("words", [("--serve", "vllm"), ("--model", "some/model"), ("--temperature", "0.5")])
def test_no_option_for_an_engine_is_passed_over(scans: Path, words: tuple[str, str]) -> None:
    drafted(scans)
    done = loupe("draft", "scans", *words, cwd=scans.parent, env={"PATH": ""})
    assert done.returncode != 0 and "already" not in done.stderr, done.stderr


def test_the_tests_are_reviewed_beside_their_page(scans: Path) -> None:
    drafted(scans)
    review = open_tests(scans / FACTS)
    counts = review.counts()
    assert counts["unreviewed"] == len(facts_of(scans)) and not counts["broken"]
    assert review.next_command() == f"loupe run {scans} -e ENGINE"


def test_a_review_of_transcripts_says_that_tests_are_what_counts_and_where(scans: Path) -> None:
    drafted(scans)
    review = open_review(scans, document_type=None, by="a")
    tests = f"loupe review tests {scans / FACTS}"
    assert review.next_command() == tests
    assert review.remark == f"These transcripts are not scored; what counts are their tests: {tests}"
    page = Views(review, Documents(scans)).page(None)
    assert f'id="remark">{review.remark}</p>' in page


def test_a_leaderboard_on_drafts_names_the_command_that_verifies_them(scans: Path) -> None:
    drafted(scans)
    for name in ("one", "two"):
        words = ("-e", "python:reader.py:good", "--name", name, "--allow-unverified")
        assert loupe("run", "scans", *words, cwd=scans.parent).returncode == 0
    runs = ("runs/one/scans", "runs/two/scans")
    shown = loupe("compare", *runs, "--plain", cwd=scans.parent).stdout
    assert "next, check it with loupe review tests scans/facts.jsonl." in shown


def test_headers_that_a_layout_model_tells_become_marks() -> None:
    regions = [
        {"label": "header", "content": "The  Gazette"},
        {"native_label": "page_number", "label": "text", "content": "7"},
        {"label": "text", "content": "x"},
        {"label": "footer", "content": "in the text"},
        {"label": "footer", "content": "<b>"},
        "nothing",
    ]
    text = marked_margins("in the text", {"regions": regions})
    assert text == "in the text\n<header>The Gazette</header>\n<header>7</header>"
    assert marked_margins("x", None) == "x"


def test_options_without_a_use_for_drafts_are_not_offered(scans: Path) -> None:
    shown = loupe("draft", "--help-all", cwd=scans.parent).stdout
    assert not any(f" {option} " in shown or f"{option}," in shown for option in ("--data", "--download", "-j"))
    assert loupe("draft", "scans", "-j", "2", cwd=scans.parent).returncode == 2


def test_a_hint_after_init_names_an_engine_that_can_answer(scans: Path) -> None:
    done = loupe("init", "scans", "--task", "fields", "--field", "total:amount", cwd=scans.parent)
    assert "loupe draft scans -e ocr_and_text:rapidocr --base-url URL" in done.stderr
    config, _ = read_config(scans)
    assert config is not None and config.task == "fields"
