"""A clock that is set back gives no absurd durations; what cannot be known is left out."""

from pathlib import Path

import msgspec

from tests.support.command_line import loupe, make_folder


def test_records_of_a_clock_that_was_set_back_give_no_rate_and_no_negative_seconds(tmp_path: Path) -> None:
    make_folder(tmp_path)
    loupe("infer", "mydocs", "-e", "python:reader.py:right", "--runs", "runs", cwd=tmp_path)
    (file,) = tmp_path.glob("runs/*/*/predictions.jsonl")
    rows = [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]
    for row in rows[3:]:
        row["began"] -= 7200
        row["ended"] -= 7200
    rows[0]["ended"] = rows[0]["began"] - 3600
    file.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    assert loupe("score", str(file.parent), cwd=tmp_path).returncode == 0
    speed = msgspec.json.decode((file.parent / "result.json").read_bytes())["speed"]
    assert "pages_per_second" not in speed
    assert 0 <= speed["seconds_per_page"] < 60


def test_cost_by_the_hour_is_unknown_because_the_clock_was_set_back_and_the_run_says_so(tmp_path: Path) -> None:
    make_folder(tmp_path)
    by_hour = ("-o", "price={hour=2.0}")
    done = loupe("infer", "mydocs", "-e", "python:reader.py:right", *by_hour, "--runs", "runs", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.glob("runs/*/*/predictions.jsonl")
    rows = [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]
    for row in rows[3:]:
        row["began"] -= 7200
        row["ended"] -= 7200
    file.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    scored = loupe("score", str(file.parent), cwd=tmp_path)
    assert "no cost: the clock was set back while this run was made" in scored.stdout + scored.stderr
