"""Replies that are no answer, as a user meets them: what they earn, the exit code, and the hint that helps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from loupe.engines.chat.remedies import remedy
from loupe.types import Outcome
from tests.support.chat_server import Received, Reply, in_thread
from tests.support.command_line import loupe

TEXT = "The harbour office opens at nine"
CONTEXT = (
    "This model's maximum context length is 4096 tokens. However, you requested 6000 tokens (1904 in the messages, "
    "4096 in the completion)."
)
CALL = {"function": {"name": "read", "arguments": json.dumps({"text": TEXT})}}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """Three pages, the first of them blank."""
    Image.new("L", (64, 64), "white").save(tmp_path / "blank.png")
    Image.new("L", (64, 64), "black").save(tmp_path / "page.png")
    (tmp_path / "loupe.toml").write_text('[benchmark]\ntitle = "pages"\ntask = "text"\n')
    lines = [{"id": "back", "image": "blank.png", "reference": ""}]
    lines += [{"id": name, "image": "page.png", "reference": TEXT} for name in ("a", "b")]
    (tmp_path / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def test_refused_pages_earn_nothing_count_as_failed_and_name_what_helps(here: Path) -> None:
    replies = [Reply(text="", finish_reason="content_filter"), Reply(status=413, error="too large"), TEXT]

    def script(request: Received) -> str | Reply:
        return replies[min(request.number, 3) - 1]

    with in_thread(script) as server:
        words = ("--base-url", server.url, "-n", "1", "--strict", "--retries", "0")
        done = loupe("run", ".", *words, "--json", cwd=here)
        again = loupe("run", ".", *words, "--plain", cwd=here)
        assert server.count == 3, "a refusal is final"
    result = json.loads(done.stdout)
    assert done.returncode == again.returncode == 3
    assert result["outcomes"] == {"refused": 1, "rejected": 1, "ok": 1}
    assert result["measures"]["text_similarity"]["value"] == pytest.approx(1 / 3)
    assert "hint: 1 of 2 failed samples: send smaller images: add --image fit1024 --fresh" in done.stderr
    assert "refused\t1 of 3\t33.3 %\trefused, or blocked by a content filter" in again.stdout


def test_if_every_page_fails_the_hint_is_about_the_reason(here: Path) -> None:
    with in_thread(Reply(status=413, raw=b"<html><title>413 Request Entity Too Large</title></html>")) as server:
        done = loupe("infer", ".", "--base-url", server.url, "--image", "fit1024", cwd=here)
    assert done.returncode == 3
    hint = done.stderr.partition("hint: ")[2]
    assert "send smaller images: add --image fit512 --fresh" in hint and "PDF" not in hint


@pytest.mark.parametrize(
    ("outcome", "error", "words"),
    [
        ("rejected", f"HTTP 400: {CONTEXT}", ["--max-tokens N", "--image fit1024", "--max-model-len"]),
        ("rejected", "HTTP 400: prompt is too long: 210000 tokens > 200000 maximum", ["--max-model-len"]),
        ("rejected", "http://a:1/v1: HTTP 413: too large", ["--image fit1024"]),
        ("error", "HTTP 500: the request exceeds the available context size", ["--ctx-size"]),
        ("rejected", "HTTP 400: bad image", ["--redo rejected"]),
        ("unfinished", "cut off at the token limit before the answer began", ["--max-tokens N"]),
        ("refused", "the model refuses: no", ["--redo refused"]),
        ("error", "ValueError: HTTP is fun", []),
    ],
)
def test_a_failure_has_the_remedy_of_its_reason(outcome: Outcome, error: str, words: list[str]) -> None:
    found = remedy(outcome, error)
    assert bool(found) == bool(words) and all(word in found for word in words) and "PDF" not in found


@pytest.mark.parametrize(
    ("image", "words"),
    [
        ("none", "add --image fit1024"),
        ("fit1024", "add --image fit512"),
        ("longest(600)", "add --image fit300"),
        ("smart(28, 3136, 1003520)", "add --image fit500"),
        ("fit128", "raise the server's limit"),
    ],
)
def test_images_that_are_small_already_get_a_smaller_size(image: str, words: str) -> None:
    assert words in remedy("rejected", "HTTP 413: too large", image)
    context = remedy("rejected", f"HTTP 400: {CONTEXT}", image)
    assert (words.removeprefix("add ") in context) == (image != "fit128") and "--ctx-size" in context


@pytest.mark.parametrize(
    ("text", "message", "said", "option"),
    [
        (None, {"reasoning_content": TEXT}, "3 of 3 answers have reasoning and no content", "answer_from=reasoning"),
        (
            "Here is",
            {"tool_calls": [CALL]},
            "all 3 samples failed; the first: the answer is a tool call",
            "answer_from=tool_call",
        ),
    ],
)
def test_an_answer_filed_elsewhere_is_named_and_the_hint_uses_it(
    here: Path, text: str | None, message: dict[str, object], said: str, option: str
) -> None:
    with in_thread(Reply(text=text, message=message)) as server:
        words = ("run", ".", "--base-url", server.url, "--plain")
        done = loupe(*words, cwd=here)
        assert said in done.stdout + done.stderr
        assert f"-o {option} --fresh" in done.stdout + done.stderr
        assert server.count == 3, "thinking is no hiccup"
        better = loupe(*words, "-o", option, "--fresh", cwd=here)
    assert better.returncode == 0, better.stderr
    assert f"|from:{option.partition('=')[2]}|" in better.stdout
    assert "text_similarity ↑\t66.67 %" in better.stdout
