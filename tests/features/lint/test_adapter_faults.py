"""Faults of form that an adapter mends: named, priced as the adapter would mend them, and suggested after a run."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.engines.adapters.steps import STEPS
from loupe.features.lint.adapter_faults import FAULTS
from loupe.features.lint.measure import lint
from loupe.features.lint.mended_answers import edits_between, mend
from tests.features.lint.test_omnidoc_lint import MORE, PARTS, TEXTS
from tests.support.command_line import complaint, loupe, make_folder
from tests.support.omnidocbench.small_pages import WORDS, block, page

#: Fault → a perfect answer to a page of two paragraphs below a heading, in a form that costs points.
FORMS = {
    "thinking": f"The page shows a harbour; I shall read it.</think>\n# Harbour\n\n{WORDS}\n\n{MORE}\n",
    "stop-token": f"# Harbour\n\n{WORDS}\n\n{MORE}<|endoftext|><|im_end|>\n",
    "front-matter": "---\nprimary_language: en\nis_rotation_valid: true\nrotation_correction: 0\nis_table: false\n---\n"
    f"# Harbour\n\n{WORDS}\n\n{MORE}\n",
    "olmocr-json": json.dumps({"is_table": False, "natural_text": f"# Harbour\n\n{WORDS}\n\n{MORE}\n"}),
    "grounding": "<|ref|>title<|/ref|><|det|>[[52, 30, 480, 66]]<|/det|>\n# Harbour\n\n"
    f"<|ref|>text<|/ref|><|det|>[[50, 90, 940, 130]]<|/det|>\n{WORDS}\n\n"
    f"<|ref|>text<|/ref|><|det|>[[50, 150, 940, 190]]<|/det|>\n{MORE}\n",
    "layout-json": json.dumps(
        [
            {"bbox": [5, 3, 48, 6], "category": "Section-header", "text": "# Harbour"},
            {"bbox": [5, 9, 94, 13], "category": "Text", "text": WORDS},
            {"bbox": [5, 15, 94, 19], "category": "Text", "text": MORE},
        ]
    ),
    "nanonets-tags": f"# Harbour\n\n{WORDS}\n\n<watermark>{MORE}</watermark>\n\n<page_number>14</page_number>\n",
    "html-text": f'<div><h1 data-bbox="52 30 480 66">Harbour</h1>\n<p>{WORDS}</p>\n<p>{MORE}</p></div>\n',
    "service-json": json.dumps({"analyzeResult": {"content": f"# Harbour\n\n{WORDS}\n\n{MORE}\n", "pages": []}}),
    "html-comment": f"# Harbour\n\n{WORDS} <!-- image -->\n\n{MORE}\n",
}


def set_of_pages(folder: Path) -> Path:
    titled = (block(1, "title", text="Harbour"), block(2, "text_block", text=WORDS), block(3, "text_block", text=MORE))
    pages = [page(f"{name}.jpg", *titled) for name in FORMS]
    (folder / "OmniDocBench.json").write_text(json.dumps(pages), encoding="utf-8")
    (folder / "answers").mkdir()
    for name, text in FORMS.items():
        (folder / "answers" / f"{name}.md").write_text(text, encoding="utf-8")
    return folder


def test_each_form_is_named_on_its_page_and_priced_and_its_adapter_stands_beside_it(tmp_path: Path) -> None:
    found = lint(set_of_pages(tmp_path) / "answers", "omnidocbench", data=tmp_path, jobs=1)
    faults = {fault.name: fault for fault in found.faults}
    for each in found.pages:
        assert each.page in each.faults, each.page
        before, after = each.official["text_edit"], each.alone[each.page]["text_edit"]
        assert after < before or each.page == "stop-token", each.page
        assert faults[each.page].adapter == next(one.adapter for one in FAULTS if one.name == each.page)
    assert found.official["text_edit"] > 0.05 and found.mended["text_edit"] < 0.01
    assert set(found.adapters) == {fault.adapter for fault in FAULTS} - {"paddle_tables"}


def test_what_lint_says_a_fault_costs_is_what_its_adapter_brings(tmp_path: Path) -> None:
    set_of_pages(tmp_path)
    found = lint(tmp_path / "answers", "omnidocbench", data=tmp_path, jobs=1)
    adapters = f"adapters={json.dumps(found.adapters)}"
    words = ("score", "omnidocbench", "answers", "--data", ".", "-o", adapters, "--json", "--name", "adapted")
    done = loupe(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["measures"]["text_edit"]["value"] == pytest.approx(found.mended["text_edit"])


def test_the_table_of_faults_names_adapters_and_how_they_are_given(tmp_path: Path) -> None:
    set_of_pages(tmp_path)
    done = loupe("lint", "answers", "--for", "omnidocbench", "--data", ".", "--plain", cwd=tmp_path)
    assert "YAML front matter above the page (adapter front_matter)" in done.stdout
    assert "fixed by " in done.stderr and '-o \'adapters=["think","end_tokens","front_matter",' in done.stderr


def test_a_fence_names_the_adapter_only_where_that_takes_it_away(tmp_path: Path) -> None:
    for name, text in {"whole": f"```md\n{WORDS}\n```\n", "more": f"```md\n{WORDS}\n```\nI hope this helps!\n"}.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "OmniDocBench.json").write_text(json.dumps([page("p.jpg", *TEXTS)]), encoding="utf-8")
        (folder / "answers").mkdir()
        (folder / "answers/p.md").write_text(text)
        found = lint(folder / "answers", "omnidocbench", data=folder, jobs=1)
        fence = next(fault for fault in found.faults if fault.name == "page-fence")
        assert (fence.pages, fence.adapter) == (1, "unfence" if name == "whole" else "")


def own_answers(folder: Path, form: str) -> None:
    """Six pages of one's own, and answers that are right but for their form."""
    make_folder(folder, count=6)
    rows = [json.loads(line) for line in (folder / "mydocs/samples.jsonl").read_text().splitlines()]
    (folder / "answers").mkdir()
    for row in rows:
        (folder / "answers" / f"{row['id']}.txt").write_text(form.format(row["reference"]), encoding="utf-8")


@pytest.mark.parametrize(
    ("form", "fault"),
    [
        ("---\nprimary_language: en\n---\n{}\n", "front-matter"),
        ("<|ref|>text<|/ref|><|det|>[[1, 2, 3, 4]]<|/det|>\n{}\n", "grounding"),
        ("<p>{}</p>\n", "html-text"),
        ("{}\n<page_number>1</page_number>\n", "nanonets-tags"),
    ],
)
def test_after_a_run_one_line_suggests_the_adapter_with_a_command_that_mends_the_scores(
    tmp_path: Path, form: str, fault: str
) -> None:
    own_answers(tmp_path, form)
    done = loupe("score", "mydocs", "answers", cwd=tmp_path)
    said = [line for line in done.stderr.splitlines() if "adapters=" in line]
    chosen = next(each for each in FAULTS if each.name == fault)
    assert len(said) == 1 and said[0].startswith(f"6 of 6 answers hold {chosen.meaning} (what it costs: ")
    (run,) = (tmp_path / "runs").glob("*/mydocs")
    assert f"loupe lint {run.relative_to(tmp_path)})" in said[0]
    (command,) = re.findall(r"answers without that: loupe (.*)", said[0])
    again = loupe(*shlex.split(command), "--json", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    before = json.loads((run / "result.json").read_text())["measures"]["text_similarity"]["value"]
    after = json.loads(again.stdout)["measures"]["text_similarity"]["value"]
    assert before < after and (after == 1 or fault == "nanonets-tags")
    priced = json.loads(loupe("lint", run, "--json", cwd=tmp_path).stdout)
    assert priced["mended"]["text_similarity"] == pytest.approx(after)


def test_nothing_is_suggested_for_plain_answers_nor_for_one_page_in_many(tmp_path: Path) -> None:
    own_answers(tmp_path, "{}")
    assert "adapters=" not in loupe("score", "mydocs", "answers", cwd=tmp_path).stderr
    rows = [{"id": f"p{n}", "text": "x", "reference": f"page {n}"} for n in range(30)]
    (tmp_path / "mydocs/samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = [{"id": row["id"], "text": ("<p>{}</p>" if row["id"] == "p3" else "{}").format("page")} for row in rows]
    (tmp_path / "few.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = loupe("score", "mydocs", "few.jsonl", cwd=tmp_path)
    assert done.returncode == 0 and "adapters=" not in done.stderr


@pytest.mark.parametrize("text", ["", WORDS, f"# H\n\n{WORDS}\n\n<table><tr><td><p>x</p></td></tr></table>\n"])
def test_a_page_without_marks_has_none_of_these_faults(text: str) -> None:
    assert not [fault.name for fault in FAULTS if fault.edits(text)]


def test_a_table_as_tokens_is_named_too() -> None:
    assert [fault.name for fault in FAULTS if fault.edits("Rain\n<fcel>at<fcel>10:30<nl>\n")] == ["otsl-table"]


def test_an_adapter_that_would_leave_nothing_of_an_answer_is_no_cure() -> None:
    """With its prompt for plain OCR, DeepSeek-OCR writes the text where a label stands otherwise."""
    spotted = "<|ref|>Harbour<|/ref|><|det|>[[1, 2, 3, 4]]<|/det|>\n"
    assert not [fault.name for fault in FAULTS if fault.edits(spotted)]


@given(PARTS, PARTS)
def test_edits_make_the_second_text_of_the_first(before: str, after: str) -> None:
    assert mend(before, edits_between(before, after)) == after


@given(st.lists(st.sampled_from([*FORMS.values(), "<fcel>a<nl>", "\n", "word"]), max_size=3).map("".join))
def test_mending_such_a_fault_is_applying_its_adapter(text: str) -> None:
    for fault in FAULTS:
        if edits := fault.edits(text):
            assert mend(text, edits) == STEPS[fault.adapter](text)


def test_answers_that_exist_are_cleaned_by_steps_which_the_signature_names(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, count=3)
    (folder / "loupe.toml").write_text('[benchmark]\ntask = "markdown"\n')
    rows = [{"id": f"p{n}", "text": "x", "reference": f"# Report {n}\n\nSales rose."} for n in range(3)]
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "answers").mkdir()
    for row in rows:
        text = row["reference"].replace("\n\n", "\n\n<!-- image -->\n\n")
        (tmp_path / "answers" / f"{row['id']}.md").write_text(text)
    done = loupe("score", "mydocs", "answers", "--runs", "all", cwd=tmp_path)
    assert "3 of 3 answers hold HTML comments" in done.stderr
    again = shlex.split(done.stderr.splitlines()[-1].partition("the same answers without that: ")[2])
    done = loupe(*again[1:], "--json", cwd=tmp_path)
    result = json.loads(done.stdout)
    assert result["measures"]["markdown_similarity"]["value"] == 1.0
    assert "|adapter:html_comments|" in result["signature"]
    assert (tmp_path / "all/NAME/mydocs/run.json").is_file()
    error, hint = complaint(loupe("score", "all/answers/mydocs", "-o", 'adapters=["html_comments"]', cwd=tmp_path))
    assert "keeps them" in error
    assert shlex.split(hint.partition(": ")[2]) == again
    _, hint = complaint(loupe("score", "mydocs", "answers", "-o", 'adapters=["html_comment"]', cwd=tmp_path))
    assert hint.startswith("adapters = [") and not (tmp_path / "runs").exists()
    done = loupe("score", "mydocs", "answers", "--runs", "all", "-o", 'adapters=["strip"]', cwd=tmp_path)
    assert done.returncode == 2 and "use --name answers-strip to keep both" in done.stderr
