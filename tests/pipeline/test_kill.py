"""`kill -9` at random moments loses nothing that was acknowledged (longer: python -m tests.support.kill_harness)."""

from pathlib import Path

from tests.support.kill_harness import kill_and_continue


def test_a_killed_run_continues_without_losing_or_repeating_an_answer(tmp_path: Path) -> None:
    report = kill_and_continue(tmp_path, kills=4, samples=400, seed=7)
    assert report.kills >= 4 and report.acknowledged >= 390  # a kill may fall between writing and telling
    assert (report.lost, report.changed, report.duplicates, report.unequal) == ([], [], [], [])
