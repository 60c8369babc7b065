"""`loupe compare --to`: tables that a paper, a page and a script can take, whatever a stranger calls an engine."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
from pathlib import Path

import pytest

from loupe.results.tables.files import WRITERS
from loupe.results.tables.record import Cell, Column, Table
from loupe.types import Estimate
from tests.support.command_line import loupe, make_folder

HOSTILE = (
    r"\input{/etc/passwd} \end{tabular}",
    r"100 % & a_b^2 #1 ~x~ {$\alpha$} <|> \\",
    "`a`|b **c** @everyone [x](http://example.org)",
    "\"quoted\" 'it' – … ± − ↑ -- [9pt], ?` !`",
    "Zürich Ångström façade Łódź Ð × 模型 😀 \u202eevil\x1b[2J\nnext line",
)
VALUE = Cell(text="91.2", margin="± 1.2", estimate=Estimate(value=0.912, low=0.9, high=0.924, n=40))
BEST = Cell(
    text="99.1",
    margin="98.2 … 99.7",
    estimate=Estimate(value=0.991, low=0.982, high=0.997, n=40),
    marks=("best", "significant"),
)


def hostile_table(names: tuple[str, ...] = HOSTILE) -> Table:
    names = (*names, "* starred", "[9pt] optional")
    return Table(
        title=names[1],
        header=("engine", *(Column(name=name, group="bench@1", unit="%", better="↑") for name in names)),
        rows=[(name, *([VALUE, BEST] * len(names))[: len(names)]) for name in names]
        + [(names[0], *(Cell(text="–", note=name) for name in names))],
        notes=names,
    )


@pytest.mark.parametrize("program", ["pdflatex", "xelatex", "lualatex"])
def test_hostile_names_compile_and_stay_names(program: str, tmp_path: Path) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    # What some engine has a glyph for is another question: only its letters of Latin are set by all.
    document = r"\documentclass{article}\usepackage{booktabs}\begin{document}" + WRITERS["latex"](hostile_table())
    (tmp_path / "a.tex").write_text(document + r"\end{document}", encoding="utf-8")
    words = [program, "-no-shell-escape", "-halt-on-error", "-interaction=nonstopmode", "a.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    assert (tmp_path / "a.pdf").stat().st_size > 1000
    if shutil.which("pdftotext"):
        text = subprocess.run(
            ["pdftotext", "a.pdf", "-"], cwd=tmp_path, capture_output=True, check=True
        ).stdout.decode()
        assert r"\input{/etc/passwd}" in "".join(text.split()) and "root:" not in text


def test_a_hostile_name_is_neither_a_cell_nor_markup_in_markdown() -> None:
    lines = WRITERS["markdown"](hostile_table()).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert {line.count("|") for line in rows} == {len(HOSTILE) + 4}
    assert "**99.1**\\* [98.2 … 99.7]" in rows[2] and "91.2 ± 1.2" in rows[2]
    assert "`` `a`¦b **c** @everyone [x](http://example.org) ``" in rows[4]


def test_csv_has_a_line_for_each_value_and_no_formula() -> None:
    table = Table(
        title="", header=("engine", Column(name="=cer", unit="%")), rows=[("=A1+1", BEST), ("b", Cell(text="–"))]
    )
    found = list(csv.DictReader(io.StringIO(WRITERS["csv"](table))))
    assert [row["engine"] for row in found] == ["'=A1+1"]
    assert found[0]["column"] == "'=cer"
    assert [found[0][name] for name in ("value", "low", "high", "n", "best", "significant")] == [
        *("0.991", "0.982", "0.997", "40", "1", "1")
    ]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs on twelve texts: one that is right, one that is wrong everywhere."""
    root = tmp_path_factory.mktemp("paper")
    make_folder(root, count=12)
    for name, function in {"base": "right", "worse_1": "wrong"}.items():
        done = loupe("run", "mydocs", "-e", f"python:reader.py:{function}", "--name", name, cwd=root)
        assert done.returncode == 0, done.stderr
    return root


def test_best_values_and_clear_differences_are_marked(finished: Path) -> None:
    done = loupe("compare", "runs/base/mydocs", "runs/worse_1/mydocs", "--to", "latex", cwd=finished)
    assert done.returncode == 0, done.stderr
    base = next(line for line in done.stdout.splitlines() if line.startswith("base"))
    worse = next(line for line in done.stdout.splitlines() if line.startswith(r"worse\_1"))
    assert r"\textbf{100.00}" in base and "$^{*}$" not in base
    assert r"\textbf" not in worse and "$^{*}$" in worse
    assert "differs clearly from base" in done.stdout and r"\toprule" in done.stdout


def test_without_runs_benchmarks_are_the_columns(finished: Path) -> None:
    done = loupe("compare", "--to", "csv", cwd=finished)
    assert done.returncode == 0, done.stderr
    rows = {row["engine"]: row for row in csv.DictReader(io.StringIO(done.stdout))}
    assert rows["base"]["group"].startswith("mydocs") and rows["base"]["best"] == "1"
    assert rows["worse_1"]["significant"] == "1" and float(rows["worse_1"]["high"]) < 1
    shown = loupe("compare", "runs", "--to", "markdown", cwd=finished).stdout
    assert "| `base` | **100.00**" in shown and "the best of its column" in shown
    refused = loupe("compare", "--to", "csv", "--json", cwd=finished)
    assert refused.returncode == 2 and "--to" in refused.stderr
