"""OmniDocBench's attribute tables as a person sees them: `--by`, the report, and the worst slices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import loupe
from tests.support.omnidocbench.small_pages import TABLE, WORDS, block, page


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pages: white text read rightly, coloured text not; one table without lines."""
    root = tmp_path_factory.mktemp("there")
    white, colour = ({"text_background": name} for name in ("white", "single_colored"))
    pages = [
        page("a.jpg", {**block(1, "text_block", text=WORDS), "attribute": white}),
        page(
            "b.jpg",
            {**block(1, "text_block", text=WORDS), "attribute": colour},
            {**block(2, "table", html=TABLE), "attribute": {"line": "wireless_line", "with_span": False}},
        ),
    ]
    (root / "OmniDocBench.json").write_text(json.dumps(pages), encoding="utf-8")
    (root / "answers").mkdir()
    (root / "answers/a.md").write_text(WORDS, encoding="utf-8")
    (root / "answers/b.md").write_text(f"{WORDS[:40]}\n\n{TABLE}", encoding="utf-8")
    done = loupe("score", "omnidocbench", "answers", "--data", ".", "-o", "cdm=off", "--plain", cwd=root)
    assert done.returncode == 0, done.stderr
    (root / "shown.txt").write_text(done.stdout, encoding="utf-8")
    return root


def test_text_by_background_and_tables_by_frame_are_shown_by_name(there: Path) -> None:
    (run,) = (there / "runs").glob("*/omnidocbench")
    rows = loupe("score", run, "--by", "text.background", "--plain", cwd=there).stdout.splitlines()
    assert {line.split("\t")[0]: line.split("\t")[1:] for line in rows}["white"] == ["1", "0"]
    edits = next(line.split("\t")[2] for line in rows if line.startswith("single_colored\t1\t"))
    assert 0.4 < float(edits) < 0.6
    tables = loupe("score", run, "--by", "table.line", "--plain", cwd=there).stdout
    assert "wireless_line\t1\t" in tables and "100.00 %" in tables
    assert "table.with_span" in loupe("score", run, "--by", "nothing", cwd=there).stderr


def test_the_worst_slices_count_no_attribute_that_never_has_their_measure(there: Path) -> None:
    """No table has a background, and so no slice by it is missing from those by TEDS."""
    assert "without any table_teds" not in (there / "shown.txt").read_text(encoding="utf-8")


def test_the_report_has_a_table_for_each_attribute_with_several_values(there: Path) -> None:
    (run,) = (there / "runs").glob("*/omnidocbench")
    assert loupe("report", run, "-o", "r.html", cwd=there).returncode == 0
    shown = (there / "r.html").read_text(encoding="utf-8")
    assert "text.background" in shown and "single_colored" in shown
