"""Answers that are the error of a service are no answers; JSON of a page is one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import loupe
from loupe.engines.shared.foreign_formats import error_reply
from loupe.errors import NoAnswerError
from tests.engines.test_engine_own import answer, page
from tests.support.asking import ASK
from tests.support.chat_server import Reply, in_thread

ERRORS: list[tuple[Any, str]] = [
    ({"error": "rate limit exceeded"}, "rate limit exceeded"),
    ({"error": {"message": "overloaded", "type": "server_error", "code": 503}}, "overloaded"),
    ({"error": {"code": "InternalServerError"}, "request_id": "7"}, "InternalServerError"),
    ({"errors": [{"message": "no page"}, "bad image"], "success": False}, "no page; bad image"),
    ({"detail": "Not Found"}, "Not Found"),
    ({"detail": [{"loc": ["body"], "msg": "field required", "type": "missing"}]}, "field required"),
    ({"type": "about:blank", "title": "Too Many Requests", "status": 429}, "Too Many Requests"),
    ({"status": "error", "message": "model is loading"}, "model is loading"),
    ({"Error_Message": "quota", "status_code": 402}, "quota"),
    ({"error": True, "message": "gone"}, "gone"),
    ({"object": "error", "message": "too long", "code": "3000"}, "too long"),
    ({"code": 503, "message": "overloaded"}, "overloaded"),
    ({"errors": ["quota"], "success": False}, "quota"),
]
PAGES: list[Any] = [
    *({}, [], {"error": None}, {"error": ""}, {"error": {}}, {"error": {"total": "5"}}, {"errors": []}),
    {"error": "none", "total": "12.50"},
    {"message": "Dear Sir"},
    {"title": "Invoice", "detail": "Consulting", "id": "7"},
    {"detail": "Consulting", "status": "paid"},
    {"status": "error rate 5 %", "message": "a"},
    {"text": "a", "error": "b"},
    {"title": "Algebra II", "code": "401"},
    {"title": "Algebra II", "code": 401},
    {"message": "Happy birthday", "code": "500"},
    {"detail": "2 x M8 bolt"},
    {"detail": ["2 x M8 bolt", "nuts"], "code": 404},
    {"errors": ["page 3: typo"]},
    {"error": "E-12", "time": "12:30", "code": "404"},
    {"reason": "moved", "code": 410},
]


@pytest.mark.parametrize(("value", "said"), ERRORS)
def test_the_error_of_a_service_is_known(value: Any, said: str) -> None:
    for text in (json.dumps(value), f"\ufeff{json.dumps(value, indent=2)}\n"):
        assert error_reply(text) == said
        assert error_reply(f"```json\n{text}\n```") == error_reply(f"The reply was {text}") == ""


@pytest.mark.parametrize("value", PAGES)
def test_other_json_is_an_answer(value: Any) -> None:
    assert error_reply(json.dumps(value)) == ""


def test_an_error_in_place_of_an_answer_is_a_failure_of_chat_servers_programs_and_files(tmp_path: Path) -> None:
    text = json.dumps({"error": "no credits left"})
    with in_thread(Reply(text=text)) as server:
        with pytest.raises(NoAnswerError, match="the answer is an error: no credits left"):
            answer("openai", ASK, base_url=server.url, model="m")
        assert server.count == 1, "asking again would cost"
    (script := tmp_path / "reader.py").write_text(f"print({text!r})")
    with pytest.raises(NoAnswerError, match="the output is an error: no credits left"):
        answer("command", page(tmp_path), command=[sys.executable, str(script), "{image}"])
    (tmp_path / "own").mkdir()
    (tmp_path / "own/loupe.toml").write_text('[benchmark]\ntask = "markdown"\n')
    rows = [{"id": ident, "text": "x", "reference": text} for ident in ("a", "b")]
    (tmp_path / "own/samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers/a.json").write_text(text)
    (tmp_path / "answers/b.json").write_text(f"```json\n{text}\n```")
    run = loupe.score(tmp_path / "own", tmp_path / "answers", runs=tmp_path / "runs", jobs=1)
    [failure] = run.failures
    assert failure.sample == "a" and "an error of a service, not text" in failure.error and "```" in failure.error
    assert run["markdown_similarity"].value == 0.5
