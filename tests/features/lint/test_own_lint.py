"""`loupe lint` on folders of one's own: the same options, the folder's own measures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import complaint, loupe, make_folder


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """Six pages; the answer to one of them is right, in a code fence."""
    make_folder(tmp_path, count=6)
    rows = [json.loads(line) for line in (tmp_path / "mydocs/samples.jsonl").read_text().splitlines()]
    (tmp_path / "answers").mkdir()
    for number, row in enumerate(rows):
        fenced = "```markdown\n{}\n```\n" if number == 1 else "{}"
        (tmp_path / "answers" / f"{row['id']}.txt").write_text(fenced.format(row["reference"]), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", ["mydocs", "./mydocs"])
def test_a_fault_of_form_in_an_answer_to_a_page_of_ones_own_is_named_and_priced(there: Path, name: str) -> None:
    done = loupe("lint", "answers", "--for", name, "--json", cwd=there)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    fence = next(fault for fault in found["faults"] if fault["name"] == "page-fence")
    assert (fence["pages"], fence["places"]) == (1, 2)
    assert found["official"]["text_similarity"] < 1 == found["mended"]["text_similarity"]


def test_a_run_on_a_folder_of_ones_own_is_looked_through_without_more_words(there: Path) -> None:
    assert loupe("score", "mydocs", "answers", cwd=there).returncode == 0
    (run,) = (there / "runs").glob("*/mydocs")
    done = loupe("lint", run, "--plain", "--fail-on-faults", cwd=there)
    assert done.returncode == 1 and "page-fence\t2\t1\t" in done.stdout


def test_answers_that_are_no_pages_have_no_known_faults(tmp_path: Path) -> None:
    folder = tmp_path / "forms"
    folder.mkdir()
    (folder / "loupe.toml").touch()
    (folder / "samples.jsonl").write_text(
        json.dumps({"id": "a", "text": "x", "task": "fields", "reference": {"total": "1"}}) + "\n"
    )
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers/a.txt").write_text("{}")
    error, _ = complaint(loupe("lint", "answers", "--for", "forms", cwd=tmp_path))
    assert error.startswith("lint has nothing for answers to ")
    assert loupe("score", "forms", "answers", cwd=tmp_path).returncode == 0
    run = next((tmp_path / "runs").glob("*/forms")).relative_to(tmp_path)
    for above in (run.parent, run.parent.parent):
        error, hint = complaint(loupe("lint", above, cwd=tmp_path))
        assert error == f"{above} is not a run" and hint.startswith(f"name a run: loupe lint {run};")
    error, hint = complaint(loupe("lint", run, cwd=tmp_path))
    assert error.startswith("lint has nothing for answers to ") and "--for" not in hint


def test_answers_to_pages_whose_truth_is_a_draft_are_taken_by_the_same_option_as_elsewhere(there: Path) -> None:
    file = there / "mydocs/samples.jsonl"
    rows = [json.loads(line) | {"truth": {"status": "draft"}} for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for words in (["lint", "answers", "--for", "./mydocs"], ["score", "./mydocs", "answers"]):
        error, hint = complaint(loupe(*words, cwd=there))
        assert "unverified draft" in error and hint.endswith("--allow-unverified")
        done = loupe(*words, "--allow-unverified", cwd=there)
        assert done.returncode == 0, done.stderr
    (run,) = (there / "runs").glob("*/mydocs")
    for words in (["lint", str(run)], ["score", str(run)]):
        error, _ = complaint(loupe(*words, "--allow-unverified", cwd=there))
        assert error == "--allow-unverified is for answers, not for a run"
