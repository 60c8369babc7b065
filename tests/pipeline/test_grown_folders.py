"""A folder of one's own with more, fewer or other samples than a run was made on: only what is new is read."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

import loupe
from loupe.errors import RunError
from loupe.pipeline.stages import score_run
from loupe.types import Request
from tests.support.command_line import complaint, make_folder
from tests.support.command_line import loupe as command


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]


def write(folder: Path, rows: list[dict[str, Any]]) -> None:
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def row(ident: str, text: str) -> dict[str, Any]:
    return {"id": ident, "text": text, "task": "text", "reference": text}


def test_the_order_of_lines_is_no_change(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    asked: list[str] = []

    def read(request: Request) -> str:
        asked.append(request.id)
        return request.text

    first = loupe.run(folder, read, runs=tmp_path / "runs", name="mine", jobs=1)
    write(folder, rows_of(folder)[::-1])
    again = loupe.run(folder, read, runs=tmp_path / "runs", name="mine", jobs=1)
    assert len(asked) == 6 and first.signature == again.signature
    assert again["text_similarity"].value == 1.0


def test_another_order_is_another_run_if_a_limit_then_means_other_samples(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)

    def run(name: str, limit: int | None) -> loupe.Run:
        return loupe.run(folder, lambda request: request.text, runs=tmp_path / "runs", name=name, limit=limit, jobs=1)

    first = run("mine", 2)
    rows = rows_of(folder)
    write(folder, [*rows[:2], *rows[:1:-1]])
    assert run("mine", 2).signature == first.signature  # The same two samples are asked for.
    write(folder, [rows[1], rows[0], *rows[2:]][::-1])
    with pytest.raises(RunError, match=r"the first 2 lines of .* are other samples than this run asked for"):
        run("mine", 2)
    with pytest.raises(RunError, match="has other samples in its first 2 lines"):
        score_run(first.path)
    other = run("other", 2)
    assert other.signature.split("|")[1] == "n:2" and other.signature.split("|")[2] != first.signature.split("|")[2]
    assert run("mine", None)["text_similarity"].value == 1.0


def test_the_printed_command_keeps_the_answers_to_what_is_still_the_same(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    (tmp_path / "reader.py").write_text(
        "def right(request):\n    open('asked', 'a').write(request.id + ' ')\n    return request.text\nagain = right\n"
    )
    done = command("run", "mydocs", "-e", "python:reader.py:right", "--runs", "all", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [old] = tmp_path.glob("all/*/mydocs")
    kept, asked = (old / "predictions.jsonl").read_bytes(), tmp_path / "asked"
    asked.unlink()
    rows = rows_of(folder)
    # p0 is gone, p1 is another text, p2 has another reference, q is new, and all lines stand elsewhere.
    rows = [row("q", "new"), *rows[:2:-1], {**rows[2], "reference": "other"}, row("p1", "changed")]
    write(folder, rows)
    done = command("run", "mydocs", "-e", "python:reader.py:right", "--runs", "all", cwd=tmp_path)
    error, hint = done.stderr.splitlines()[0], done.stderr.splitlines()[-1]
    assert "pages or references changed since" in done.stderr and error.startswith("error: ")
    assert hint.startswith(
        "hint: keep 4 answers and read only the other 2 samples, as another run: loupe run mydocs -e "
    )
    both = ("-e", "python:reader.py:right", "-e", "python:reader.py:again")
    several = command("run", "mydocs", *both, "--runs", "all", cwd=tmp_path)
    assert "as another run: run mydocs with " in " ".join(several.stderr.split())
    asked.unlink(missing_ok=True)
    done = command(*shlex.split(hint.partition("as another run: loupe ")[2]), "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(asked.read_text().split()) == ["p1", "q"]
    assert json.loads(done.stdout)["outcomes"] == {"ok": 6}
    assert (old / "predictions.jsonl").read_bytes() == kept and len([*tmp_path.glob("all/*right*/mydocs")]) == 2
    again = command(*shlex.split(hint.partition("as another run: loupe ")[2]), cwd=tmp_path)
    assert again.returncode == 0 and len(asked.read_text().split()) == 2
    _, hint = complaint(command("score", old.relative_to(tmp_path), cwd=tmp_path))
    done = command(*shlex.split(hint.partition("loupe ")[2]), "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["outcomes"] == {"ok": 5, "missing": 1}
    assert (tmp_path / "all/NAME/mydocs").is_dir()


@pytest.mark.parametrize(
    ("kept", "more", "said"),
    [
        (5, [], "keep 5 answers and read nothing, as"),
        (1, ["q"], "keep 1 answer and read only the other sample, as"),
    ],
)
def test_the_hint_counts_what_is_kept_and_what_is_left(tmp_path: Path, kept: int, more: list[str], said: str) -> None:
    folder = make_folder(tmp_path)

    def read(request: Request) -> str:
        return request.text

    loupe.run(folder, read, runs=tmp_path / "runs", name="mine", jobs=1)
    write(folder, [*rows_of(folder)[:kept], *(row(ident, "new") for ident in more)])
    with pytest.raises(RunError) as refused:
        loupe.run(folder, read, runs=tmp_path / "runs", name="mine", jobs=1)
    assert refused.value.hint.startswith(said)


def test_answers_are_only_kept_if_they_were_read_in_the_same_way(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)

    def read(request: Request) -> str:
        return request.text

    first = loupe.run(folder, read, runs=tmp_path / "runs", name="first", jobs=1, prompt="Read.")
    write(folder, [*rows_of(folder)[1:], row("q", "new")])
    with pytest.raises(RunError, match="prompts differ"):
        loupe.run(folder, read, runs=tmp_path / "runs", name="second", reuse=first.path, jobs=1, prompt="Read all.")
    write(folder, [row("q", "new")])
    with pytest.raises(RunError, match="no answer to a sample that is still the same"):
        loupe.run(folder, read, runs=tmp_path / "runs", name="third", reuse=first.path, jobs=1, prompt="Read.")
