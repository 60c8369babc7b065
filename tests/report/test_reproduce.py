"""`loupe reproduce` and `--with-published`: figures of others beside real runs, marked, unranked, with what differs."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from loupe.benchmarks import get_benchmark, published
from loupe.benchmarks.published import published_rows
from loupe.cli.reproduce import reproductions
from loupe.engines.registry import load_profile
from loupe.errors import UsageError
from loupe.hooks import folders
from loupe.results.deciding import deciding
from loupe.results.published import NOT_MEASURED, listing
from tests.support.chat_server import Reply, in_thread
from tests.support.command_line import loupe, needs_engine
from tests.support.synthetic import write_prepared

PUBLISHED = Path(published.__file__).parent
MODEL = "zai-org/GLM-OCR"
MODELS = {"object": "list", "data": [{"id": MODEL, "object": "model", "max_model_len": 16384}]}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve OCRBench questions, half answered, as two runs of glm-ocr: one as the profile has it, one changed."""
    root = tmp_path_factory.mktemp("published")
    answers = list(write_prepared("ocrbench", root / "data", 12).values())
    with in_thread(Reply(text=" ".join(answers[::2])), models=MODELS) as server:
        for more in ([], ["--name", "changed", "--image", "none", "--max-tokens", "100", "--prompt", "Read."]):
            words = ["run", "ocrbench", "-e", "glm-ocr", "--base-url", server.url, "--data", "data", "-j", "1", *more]
            done = loupe(*words, cwd=root)
            assert done.returncode == 0, done.stderr
    return root


def reproduced(root: Path, target: str, *more: str) -> list[dict[str, Any]]:
    done = loupe("reproduce", target, "--json", *more, cwd=root)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["reproductions"]
    assert isinstance(found, list)
    return found


def test_published_stands_against_measured_with_interval_difference_and_settings(here: Path) -> None:
    ours, official = reproduced(here, "glm-ocr/ocrbench", "--run", "runs/glm-ocr/ocrbench")
    result = json.loads((here / "runs/glm-ocr/ocrbench/result.json").read_text())
    numbers = {each["measure"]: each for each in ours["measures"]}
    measured = result["measures"]["accuracy"]
    assert numbers["accuracy"]["measured"]["value"] == measured["value"]
    assert numbers["accuracy"]["difference"] == pytest.approx(measured["value"] - 0.838)
    assert numbers["accuracy"]["inside"] == (measured["low"] <= 0.838 <= measured["high"])
    assert numbers["score"]["published"] == 838
    settings = {each["name"]: each for each in ours["settings"]}
    assert {name for name, each in settings.items() if each["verdict"] == "same"} == {
        "way",
        "model",
        "prompt",
        "image",
    }
    assert (settings["samples"]["published"], settings["samples"]["here"]) == ("1000", "12")
    assert settings["sampling"]["here"] == "temperature 0.0, top_p 1e-05, top_k 1, repetition_penalty 1.1"
    assert settings["sampling"]["verdict"] == settings["max_tokens"]["verdict"] == "unknown"
    assert ours["signature"] == result["signature"] and ours["command"] == ""
    assert {each["verdict"] for each in official["settings"] if each["name"] != "data"} == {"unknown"}
    assert (settings["data"]["here"], settings["data"]["verdict"]) == ("data of unknown origin", "differs")


def test_a_part_of_a_benchmark_is_said_and_its_counts_have_no_difference(here: Path, tmp_path: Path) -> None:
    shutil.copytree(here, tmp_path / "here")
    info = tmp_path / "here/runs/glm-ocr/ocrbench/run.json"
    info.write_text(json.dumps(json.loads(info.read_text()) | {"limit": 12, "whole": 1000}))
    ours, _ = reproduced(tmp_path / "here", "glm-ocr/ocrbench", "--run", "runs/glm-ocr/ocrbench")
    numbers = {each["measure"]: each for each in ours["measures"]}
    assert ours["part"] == "first 12 of 1,000"
    assert numbers["score"]["measured"]["value"] and numbers["score"]["difference"] is None
    assert numbers["accuracy"]["difference"] is not None
    shown = loupe("reproduce", "glm-ocr/ocrbench", "--run", "runs/glm-ocr/ocrbench", "--plain", cwd=tmp_path / "here")
    assert "a part only\tthe run has first 12 of 1,000 samples" in shown.stdout and "-8" not in shown.stdout


def test_the_newest_finished_run_of_the_profile_counts_and_what_it_changed_differs(here: Path) -> None:
    (ours, _) = reproduced(here, "glm-ocr/ocrbench")
    assert ours["run"] == "runs/changed/ocrbench"
    settings = {each["name"]: each["verdict"] for each in ours["settings"]}
    assert settings["image"] == "differs" and settings["way"] == settings["model"] == "same"


def test_a_setting_of_another_type_in_a_run_of_strangers_is_no_setting(here: Path, tmp_path: Path) -> None:
    run = shutil.copytree(here / "runs" / "changed" / "ocrbench", tmp_path / "run")
    info = json.loads((run / "run.json").read_text(encoding="utf-8"))
    info["profile"]["timeout"] = "xxxx"
    (run / "run.json").write_text(json.dumps(info), encoding="utf-8")
    assert reproduced(here, "glm-ocr/ocrbench", "--run", str(run))


@needs_engine("glm-ocr-pipeline")
def test_without_a_run_the_command_that_would_make_one_is_printed(tmp_path: Path) -> None:
    done = loupe("reproduce", "glm-ocr/omnidocbench@1.5", "--plain", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "loupe run omnidocbench -e glm-ocr-pipeline --serve vllm --download"
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert sum(line[0].startswith("# GLM-OCR") or line[0].startswith("# glm-ocr") for line in lines) == 3
    assert ["overall", "94.62 %"] in lines and ["measure", "published"] in lines
    assert ["measure", "unpublished"] in lines, "what nobody can look up is not called published"
    assert not [line for line in lines if line[0] == "direct or pipeline"], "the suggested engine is that of the row"
    asked = loupe("reproduce", "deepseek-ocr2/nanonets_kie", "--plain", "--runs", "elsewhere", cwd=tmp_path)
    assert asked.stdout.splitlines()[-1].endswith(
        "-o variant=normalized --name deepseek-ocr2-normalized --download --runs elsewhere"
    )


@needs_engine("paddleocr-vl-pipeline")
def test_the_command_names_the_version_that_was_published(tmp_path: Path) -> None:
    done = loupe("reproduce", "paddleocr-vl-pipeline/omnidocbench@1.6", "--plain", cwd=tmp_path)
    assert "loupe run omnidocbench@1.6 -e paddleocr-vl-pipeline --serve vllm --download" in done.stdout.splitlines()
    assert ["table_teds", "91.67 %"] in [line.split("\t") for line in done.stdout.splitlines()]


def test_all_that_is_published_is_listed_with_its_sources(tmp_path: Path) -> None:
    rows = json.loads(loupe("reproduce", "--json", cwd=tmp_path).stdout)
    files = (
        tomllib.loads(path.read_text())
        for folder in (PUBLISHED, *folders("published"))
        for path in folder.glob("*.toml")
    )
    assert len(rows) == sum(len(table["rows"]) for file in files for table in file["table"]) > 200
    assert all(row["source"] and row["values"] for row in rows)
    found = published_rows("olmocr_bench")
    table, rest, sources = listing("olmocr_bench", found, get_benchmark("olmocr_bench").measures)
    assert len(table.rows) == len(rest.rows) == len(found) and len(sources.rows) == 2
    assert table.rows[0][:3] == ("got-ocr", "GOT OCR", "48.3 %") and table.rows[-1][-1] == "[2]"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["glm-ocr"], "'glm-ocr' is not ENGINE/BENCHMARK"),
        (["glm-ocr/ocrbenchh"], "no benchmark or folder 'ocrbenchh'; did you mean 'ocrbench'?"),
        (["glm-ocr/sample_pages"], "no published figures on sample_pages here"),
        (["glm-ocrr/ocrbench"], "no published figure of 'glm-ocrr' on ocrbench; did you mean 'glm-ocr'?"),
        (["glm-ocr/chartqa", "--run", "runs/glm-ocr/ocrbench"], "no published figure of 'glm-ocr' on chartqa"),
        (["deepseek-ocr/mdpbench", "--run", "runs/glm-ocr/ocrbench"], "is a run of ocrbench@1, not of mdpbench@"),
    ],
)
def test_what_cannot_be_compared_is_said_in_a_line(here: Path, words: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        reproductions(words[0], here / words[2] if words[1:] else None, here / "runs")
    assert message in caught.value.message and caught.value.hint


def test_compare_shows_published_rows_below_and_ranks_only_what_was_measured(here: Path) -> None:
    words = ("compare", "runs/glm-ocr/ocrbench", "runs/changed/ocrbench", "--with-published")
    lines = loupe(*words, "--plain", cwd=here).stdout.splitlines()
    start = lines.index(f"# {NOT_MEASURED}")
    assert lines[start + 1 : start + 3] == ["engine\tscore\taccuracy\tsource", "glm-ocr\t838 / 1,000\t83.8 %\t[1]"]
    assert [line.split("\t")[0] for line in lines[2:4]] == ["1", "1"]
    assert lines[start - 1].startswith("only 12 of the 1,000 samples of ocrbench@1")
    found = json.loads(loupe(*words, "--json", cwd=here).stdout)
    assert len(found["runs"]) == 2 and len(found["published"]) == 4
    table = loupe("compare", "--with-published", "--plain", cwd=here).stdout
    assert "# ocrbench@1, published figures, not measured here" in table and "paddleocr-vl\t713 / 1,000\t[1]" in table


def test_the_report_marks_published_rows_and_gives_them_neither_rank_nor_interval(here: Path) -> None:
    words = ("report", "runs/glm-ocr/ocrbench", "-o")
    assert loupe(*words, "with.html", "--with-published", cwd=here).returncode == 0
    page = (here / "with.html").read_text(encoding="utf-8")
    row = page[page.index('<tr class="published muted">') :]
    row = row[: row.index("</tr>")]
    assert (
        '<td class="rank">–</td>' in row and "unpublished [1]" in row and "<svg" not in row and ">838 / 1,000<" in row
    )
    assert "[1] measured by an unpublished source, not published" in page


def test_score_shows_them_beside_a_run(here: Path) -> None:
    done = loupe("score", "runs/glm-ocr/ocrbench", "--with-published", "--plain", cwd=here)
    assert "\nGLM-OCR\tpublished [2]\t" in done.stdout
    assert any(line.startswith("glm-ocr\there\t") for line in done.stdout.splitlines())


def test_the_four_deciding_settings_come_first_and_what_nobody_can_reproduce_is_said(here: Path) -> None:
    done = loupe("reproduce", "hunyuan-ocr@vendor/omnidocbench@1.5", "--plain", cwd=here)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    start = lines.index(["# what decides most gaps"])
    assert lines[start + 2 : start + 6] == [
        ["joining of blocks", "unknown", "as the model writes them", "unknown"],
        ["headers and footers", "unknown", "as the model writes them", "unknown"],
        ["sampling left to the server", "unknown", "min_p", "unknown"],
        ["retries and loop guards", "unknown", "hunyuan_repeats cuts loops", "unknown"],
    ]
    assert lines[start - 1] == ["overall", "94.1 %"], "only the numbers stand before them"
    assert [
        "not reproducible",
        "measured with TensorRT inside the vendor, and formulas were matched again, some by hand",
    ] in lines
    found = published_rows("omnidocbench", "1.6")
    table, *_ = listing("omnidocbench", found, get_benchmark("omnidocbench").measures)
    marked = {row[1] for row in table.rows if row[-1].endswith(", not reproducible")}
    assert marked == {"GLM-OCR"}
    assert {row.name for row in published_rows("omnidocbench", "1.5") if row.not_reproducible} == {
        "GLM-OCR (pipeline)",
        "GLM-OCR (cloud API re-run)",
        "HunyuanOCR",
    }
    (ours, _) = reproduced(here, "glm-ocr/ocrbench")
    first = {each["name"]: each["here"] for each in ours["settings"][:4]}
    written = "as the model writes them"
    assert first == {"joins": written, "margins": written, "defaults": "min_p", "guards": "none"}


@pytest.mark.parametrize(
    ("engine", "joins", "margins", "guards"),
    [
        (
            "chandra-2@vendor",
            "an empty line",
            "left out",
            "if repeated, again at temperature 0.2, 0.4, 0.6, 0.8, 0.8, 0.8",
        ),
        ("dots-ocr@vendor", "an empty line", "left out", "none"),
        ("dots-mocr@mdpbench", "an empty line", "kept", "none"),
        ("glm-ocr@opb", "an empty line", "left out", "none"),
        ("paddleocr-vl-1.6@opb", "", "left out", "none"),
        pytest.param(
            *("paddleocr-vl-pipeline", "an empty line", "left out", "paddle_repeats cuts loops"),
            marks=needs_engine("paddleocr-vl-pipeline"),
        ),
        (
            "deepseek-ocr@pdf",
            "as the model writes them",
            "as the model writes them",
            "no n-gram twice: size 20, window 50",
        ),
        (
            "deepseek-ocr-2@batch-eval",
            "as the model writes them",
            "as the model writes them",
            "no n-gram twice: size 40, window 90",
        ),
    ],
)
def test_what_decides_follows_from_the_settings(engine: str, joins: str, margins: str, guards: str) -> None:
    profile = load_profile(engine)[1]
    found = deciding(profile.kind, profile.defining(), profile.adapters)
    assert (found["joins"], found["margins"], found["guards"]) == (joins, margins, guards)
    assert deciding("rapidocr", {}, []) == {}
