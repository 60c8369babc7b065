"""A large answer costs the client at most four times its bytes, and many of them at once no more than a fixed total."""

from pathlib import Path

import pytest

from tests.support.large_answers import SIZE, measure, server

#: What a run takes without any large answer: Python, its libraries, the array of a search for loops.
_ELSE = 130_000_000


@pytest.mark.parametrize(
    ("shape", "outcome"),
    [
        ("text", "ok"),
        ("lines", "repeated"),
        ("one event", "ok"),
        ("small deltas", "repeated"),
        ("no event", "error"),
        ("gzip", "ok"),
        ("bomb", "error"),
        ("deep", "error"),
        ("wide", "ok"),
        ("many choices", "error"),
        ("parts", "error"),
        ("logprobs", "ok"),
        ("error", "error"),
    ],
)
def test_an_answer_of_20_mb_takes_at_most_four_times_its_bytes(shape: str, outcome: str, tmp_path: Path) -> None:
    with server(shape) as url:
        found = measure(tmp_path, url)
    assert found.classes == [outcome], found.said
    assert found.peak < _ELSE + 4 * SIZE
    assert "Traceback" not in found.said


def test_many_large_answers_at_once_have_a_total(tmp_path: Path) -> None:
    with server("text", 5_000_000) as url:
        found = measure(tmp_path, url, count=32)
    assert found.classes == ["ok"] * 32
    assert found.peak < _ELSE + 250_000_000


def test_a_run_scores_and_continues_over_a_large_answer(tmp_path: Path) -> None:
    with server("text") as url:
        first = measure(tmp_path, url, stage="run")
        again = measure(tmp_path, url, stage="run")
    assert (first.classes, again.classes, again.code) == (["ok"], ["ok"], 0)
    assert max(first.peak, again.peak) < _ELSE + 6 * SIZE
