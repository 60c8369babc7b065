"""`--junit` and `--markdown`: files for CI systems and pull requests, in which nothing foreign becomes markup."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from loupe.results.comparing.records import Compared, Regression, RunRow
from loupe.results.exports.junit import MOST_FAILED, junit_xml, run_suite
from loupe.results.exports.markdown import block, comparison_markdown, example
from loupe.results.tables.files import code, pipe_table
from loupe.runs.folder import RunFolder
from loupe.types import Estimate, Failure, Result
from tests.support.command_line import complaint, loupe, make_folder

READER = """
from loupe.errors import EngineError

def good(request):
    return request.text

def bad(request):
    if request.id == "p3":
        raise EngineError("no \\x1b[31mink \\x00 @octocat <script>alert(1)</script>")
    return request.text.upper() + "```\\n# Hi @octocat\\n![x](http://example.org/x.png) </code></pre><script>"
"""
NEW, BASE = "runs/new/mydocs", "runs/base/mydocs"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good run, a bad one, and the files that `run` and `compare` wrote of them."""
    root = tmp_path_factory.mktemp("summaries")
    make_folder(root, count=12)
    (root / "hostile.py").write_text(READER)
    loupe("run", "mydocs", "-e", "python:hostile.py:good", "--name", "base", cwd=root)
    words = ["--junit", "run.xml", "--markdown", "run.md", "--fail-under", "99"]
    done = loupe("run", "mydocs", "-e", "python:hostile.py:bad", "--name", "new", *words, cwd=root)
    assert done.returncode == 1, done.stderr
    words = ["--fail-on-regression", "--junit", "compare.xml", "--markdown", "compare.md"]
    assert loupe("compare", NEW, "--baseline", BASE, *words, cwd=root).returncode == 1
    return root


def test_a_run_has_a_case_for_each_measure_and_each_sample_without_an_answer(files: Path) -> None:
    (suite,) = ElementTree.parse(files / "run.xml").getroot()
    cases = {case.get("name"): [child.tag for child in case] for case in suite.iter("testcase")}
    assert cases == {"text_similarity": ["failure"], "cer": [], "wer": [], "sample p3": ["error"]}
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["4", "1", "1", "0"]
    message = next(suite.iter("error")).get("message")
    assert message == "no \N{REPLACEMENT CHARACTER}[31mink \N{REPLACEMENT CHARACTER} @octocat <script>alert(1)</script>"


def test_a_comparison_fails_where_a_measure_got_worse(files: Path) -> None:
    (suite,) = ElementTree.parse(files / "compare.xml").getroot()
    assert suite.get("name") == "new against base"
    failed = {case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None}
    assert "text_similarity" in failed and suite.get("failures") == str(len(failed))


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("run.xml", r"cer: [\d.]+ %, 95 % interval [\d.]+ … [\d.]+, n=12"),
        ("compare.xml", r"cer: [+-][\d.]+, 95 % interval \(Bonferroni\) -?[\d.]+ … -?[\d.]+, p \(Holm\) .*: worse"),
    ],
)
def test_suites_name_their_intervals(files: Path, name: str, line: str) -> None:
    (suite,) = ElementTree.parse(files / name).getroot()
    said = (suite.findtext("system-out") or "").splitlines()
    assert [each for each in said if re.fullmatch(line, each)], said


@pytest.mark.parametrize("name", ["run.xml", "compare.xml"])
def test_suites_hold_what_both_schemas_ask_for_in_their_order(files: Path, name: str) -> None:
    for suite in ElementTree.parse(files / name).getroot():
        wanted = {"name", "package", "id", "hostname", "timestamp", "tests", "failures", "errors", "skipped", "time"}
        assert set(suite.attrib) == wanted
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp", ""))
        tags = [child.tag for child in suite]
        assert tags == ["properties", *["testcase"] * int(suite.get("tests", "")), "system-out", "system-err"]
        assert all(set(case.attrib) == {"name", "classname", "time"} for case in suite.iter("testcase"))


def test_failed_samples_are_bounded(files: Path) -> None:
    failures = [Failure(sample=f"p{n}", outcome="error", error="x" * 5000) for n in range(MOST_FAILED + 7)]
    result = Result(
        benchmark="toy",
        version="1",
        engine="\x00\ud800",
        signature="",
        headline="cer",
        measures={"cer": Estimate(value=None)},
        directions={},
        units={},
        failures=failures,
    )
    (suite,) = ElementTree.fromstring(junit_xml([run_suite(RunFolder.open(files / NEW), result)]))
    assert len(list(suite.iter("error"))) == MOST_FAILED
    assert "7 more samples failed" in (suite.findtext("system-out") or "")
    assert max(len(error.get("message", "")) for error in suite.iter("error")) == 1000


def rendered(text: str) -> list[str]:
    """The kinds of all that CommonMark with tables makes of a text."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return [each.type for token in tokens for each in [token, *(token.children or [])]]


@pytest.mark.parametrize("name", ["run.md", "compare.md"])
def test_answers_and_errors_become_no_markup(files: Path, name: str) -> None:
    text = (files / name).read_text("utf-8")
    kinds = set(rendered(text))
    assert not kinds & {"image", "link_open", "html_inline"}
    blocks = [token.content for token in MarkdownIt("commonmark").parse(text) if token.type == "html_block"]
    assert all(re.fullmatch(r"<details><summary>Signatures</summary>\n|</details>\n", each) for each in blocks)
    headings = [line for line in text.splitlines() if line.startswith("#")]
    inside = [line for line in headings if "octocat" in line]
    assert inside and kinds.isdisjoint({"fence_open"})
    assert not any(
        "octocat" in each.content
        for each in MarkdownIt("commonmark").parse(text)
        if each.type == "inline" and "`" not in each.content
    )


def test_a_comparison_shows_the_outcome_and_three_samples_that_got_worse(files: Path) -> None:
    text = (files / "compare.md").read_text("utf-8")
    assert "❌ **" in text and "**What got worse most**, by `text_similarity`:" in text
    moved = r"^`p\d+`: [\d.]+ % → [\d.]+ %, which adds -[\d.]+ points to the difference$"
    assert len(re.findall(moved, text, re.MULTILINE)) == 3
    same = loupe("compare", BASE, "--baseline", NEW, "--fail-on-regression", "--markdown", "same.md", cwd=files)
    assert same.returncode == 0
    assert "✅ **No regression.**" in (files / "same.md").read_text("utf-8")


def test_the_reason_of_a_regression_becomes_no_markup() -> None:
    """A name and a reason of a run.json and result.json that somebody else has written."""
    hostile = "<img src=x> [a](http://example.org) ![b](http://example.org/b.png) @octocat\n# `Hi` |"
    row = RunRow(
        run="r", engine=hostile, name=hostile, rank=1, failed=0, total=1, signature="", measures={}, not_computed={}
    )
    why = f"cannot be compared: not computed in {hostile} ({hostile})"
    lost = [Regression(run="r", name=hostile, measure="score", why=why)]
    compared = Compared(
        benchmark="toy", version="1", headline="score", baseline="r", units={}, directions={}, differing={},
        runs=[row], pairs=[], regressions=lost,
    )  # fmt: skip
    text = comparison_markdown(compared)
    assert "cannot be compared" in text and "❌ **" in text
    assert not set(rendered(text)) & {"image", "link_open", "html_inline"}
    tokens = MarkdownIt("commonmark").parse(text)
    plain = [part for token in tokens for part in token.children or [] if part.type != "code_inline"]
    assert not any("octocat" in part.content for part in plain)


def test_what_too_few_samples_leave_open_is_not_called_a_pass(tmp_path: Path) -> None:
    make_folder(tmp_path, count=3)
    (tmp_path / "hostile.py").write_text(READER)
    for name, reads in (("base", "good"), ("new", "bad")):
        loupe("run", "mydocs", "-e", f"python:hostile.py:{reads}", "--name", name, cwd=tmp_path)
    few = loupe("compare", NEW, "--baseline", BASE, "--fail-on-regression", "--markdown", "few.md", cwd=tmp_path)
    text = (tmp_path / "few.md").read_text("utf-8")
    assert few.returncode == 0 and "it passes untested" in few.stderr
    assert "⚠️ **Not tested:**" in text and "✅" not in text


@given(st.text(alphabet=st.sampled_from("`|\\ \n\ra<@#[]()!*_~$"), max_size=30))
def test_no_text_leaves_its_code_span_or_block(text: str) -> None:
    made = pipe_table(("a", "b"), [(code(text), "1")])
    tokens = MarkdownIt("commonmark").enable("table").parse(made)
    cells = [token.children or [] for token in tokens if token.type == "inline"]
    assert [[child.type for child in cell] for cell in cells] == [["text"], ["text"], ["code_inline"], ["text"]]
    assert rendered(block(text)) == ["fence"]


@pytest.mark.parametrize(
    ("reference", "answer"), [("A" + "x" * 2000, "B" + "x" * 2000), ("x" * 2000 + "A", "x" * 2000)]
)
def test_excerpts_show_where_two_texts_first_differ(reference: str, answer: str) -> None:
    _, first, second = example("p1", {"reference": reference, "answer": answer})
    assert first.partition("text\n")[2] != second.partition("text\n")[2]
    assert "A" in first.partition("text\n")[2] and "A" not in second.partition("text\n")[2]


def test_a_table_of_all_runs_has_no_such_files(files: Path) -> None:
    done = loupe("compare", "--junit", "x.xml", cwd=files)
    assert complaint(done)[0] == "--junit needs RUNs to compare"


def test_several_benchmarks_become_several_suites(files: Path, tmp_path: Path) -> None:
    make_folder(tmp_path)
    make_folder(tmp_path / "more" if (tmp_path / "more").mkdir() is None else tmp_path, name="others")
    words = ["-e", "python:reader.py:right", "--junit", "all.xml", "--markdown", "all.md"]
    done = loupe("run", "mydocs", "more/others", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    packages = [suite.get("package") for suite in ElementTree.parse(tmp_path / "all.xml").getroot()]
    assert packages == ["mydocs@1", "others@1"]
    assert "`others@1`" in (tmp_path / "all.md").read_text("utf-8")
