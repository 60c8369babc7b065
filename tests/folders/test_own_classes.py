"""Classes from sorted folders to the report: the confusion matrix, shown in terminal and page, never as markup."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from tests.support.command_line import loupe

READER = """
def read(request):
    return "<b>bill" if "3" in request.id or "positive" in request.id else "other things"
"""


def test_sorted_folders_end_in_a_confusion_matrix_in_terminal_and_report(tmp_path: Path) -> None:
    for name in ("positive/1.png", "positive/2.png", "negative/3.png", "negative/4.png", "negative/5.png"):
        (tmp_path / "mail" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (20, 20), 255).save(tmp_path / "mail" / name)
    (tmp_path / "reader.py").write_text(READER)
    labels = ["--label", "positive=<b>bill", "--label", "negative=other"]
    begun = loupe("init", "mail", *labels, cwd=tmp_path)
    assert begun.returncode == 0 and "next: loupe run mail" in begun.stderr, begun.stderr
    done = loupe("run", "mail", "-e", "python:reader.py:read", "--plain", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert ["truth", "other", "<b>bill", "(none of the labels)"] in rows
    assert ["<b>bill", "0", "2", "0"] in rows and ["other", "0", "1", "2"] in rows
    (ratios,) = (row for row in rows if row[0] == "<b>bill" and "%" in row[1])
    assert [ratios[1].split()[0], ratios[2].split()[0], ratios[4]] == ["66.67", "100.00", "2"]
    made = loupe("report", "runs/python-reader.py_read/mail", "-o", "report.html", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "precision, recall and F1 of every label" in page and "confusion matrix" in page
    assert "classes (accuracy)" in page
    assert "&lt;b&gt;bill" in page and "<b>bill" not in page
