# ruff: noqa: E501
"""How long a run waits for a server that is busy, and when it stops: no key, no quota, a pause of hours."""

import time
from pathlib import Path

import pytest

from tests.support.chat_server import Received, Reply, in_thread
from tests.support.command_line import loupe, make_folder


def run(tmp_path: Path, url: str, *more: str):
    make_folder(tmp_path)
    return loupe(
        "infer", "mydocs", "-e", "openai", "--base-url", url, "--model", "test-model", "--plain", *more, cwd=tmp_path
    )


def records(tmp_path: Path) -> str:
    return "".join(file.read_text() for file in tmp_path.glob("runs/*/*/predictions.jsonl"))


def test_without_retries_a_busy_server_is_asked_once_for_each_sample(tmp_path: Path) -> None:
    busy = Reply(status=429, error="slow down", headers={"Retry-After": "3600"})
    began = time.monotonic()
    with in_thread(busy) as server:
        done = run(tmp_path, server.url, "--retries", "0")
    assert (server.count, time.monotonic() - began < 20) == (6, True)
    assert "all 6 samples failed; the first: HTTP 429: slow down" in done.stderr
    assert "repeat the command to try again" in done.stderr


def test_a_pause_of_hours_stops_the_run_and_says_how_to_go_on(tmp_path: Path) -> None:
    with in_thread(Reply(status=429, error="slow down", headers={"Retry-After": "7200"})) as server:
        done = run(tmp_path, server.url, "-n", "1")
    assert (done.returncode, server.count) == (4, 1)
    assert "the server asks to wait 7,200 s, longer than the 300 s that Loupe waits: HTTP 429: slow down" in done.stderr
    assert "hint: run the same command " in done.stderr


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, '{"error": {"message": "You exceeded your current quota, please check your plan", "type": "insufficient_quota"}}'),
        (429, '{"error": {"message": "Billing hard limit has been reached", "code": "billing_hard_limit_reached"}}'),
        (400, '{"error": {"message": "Billing hard limit has been reached", "code": "billing_hard_limit_reached"}}'),
        (429, '{"error": {"message": "Rate limit reached on requests per day (RPD): Limit 200, Used 200"}}'),
        (429, '{"error": {"status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota.", "details":'
              ' [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}}'),
        (400, '{"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}}'),
        (403, '{"error": {"message": "Out of call volume quota. Quota will be replenished in 2.08:00:00."}}'),
        (402, '{"error": {"message": "Insufficient Balance"}}'),
        (429, '{"object": "error", "message": "You have reached your monthly limit", "type": "usage_limit"}'),
    ],
)  # fmt: skip
def test_a_used_up_quota_stops_the_run_in_the_words_of_the_server(status: int, body: str, tmp_path: Path) -> None:
    with in_thread(Reply(status=status, raw=body.encode())) as server:
        done = run(tmp_path, server.url, "-n", "1")
    assert (done.returncode, server.count) == (4, 1)
    assert f"error: the quota is used up: HTTP {status}: " in done.stderr
    assert "hint: run the same command " in done.stderr


@pytest.mark.parametrize(
    "body",
    [
        '{"error": {"message": "Rate limit reached on tokens per min (TPM): Limit 30000", "code": "rate_limit_exceeded"}}',
        '{"error": {"status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota.", "details":'
        ' [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]}}',
        '{"error": {"message": "This request would exceed your rate limit of 40,000 input tokens per minute"}}',
        '{"message": "Requests rate limit exceeded"}',
    ],
)  # fmt: skip
def test_a_limit_by_the_minute_is_waited_for(body: str, tmp_path: Path) -> None:
    def answer(request: Received) -> Reply:
        return Reply(status=429, raw=body.encode(), headers={"Retry-After": "0"}) if request.number == 1 else Reply()

    with in_thread(answer) as server:
        done = run(tmp_path, server.url, "-n", "1")
    assert (done.returncode, server.count) == (0, 7)


def test_what_is_in_flight_when_the_quota_ends_is_kept(tmp_path: Path) -> None:
    def answer(request: Received) -> Reply:
        return Reply(status=402, error="empty", delay=0.5) if request.number == 3 else Reply(text="read", delay=1.5)

    with in_thread(answer) as server:
        done = run(tmp_path, server.url, "-n", "4")
    assert (done.returncode, server.count) == (4, 4)
    assert records(tmp_path).count('"class":"ok"') == 3
    assert "3 answers are kept; to continue: loupe infer mydocs" in done.stderr
