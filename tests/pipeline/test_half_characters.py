"""Half a surrogate pair, which JSON can escape and UTF-8 cannot hold, is data like any other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loupe.typed import decode_json, json_decoder, storable
from loupe.types import Score
from tests.support.chat_server import Reply, in_thread
from tests.support.command_line import loupe, make_folder
from tests.support.synthetic import MAKERS, write_prepared


@pytest.mark.parametrize("ident", sorted(set(MAKERS) - {"unimer_test", "olmocr_bench", "omni_parse_bench"}))
def test_every_benchmark_scores_half_characters_in_ground_truth_and_answers(tmp_path: Path, ident: str) -> None:
    answers = write_prepared(ident, tmp_path / "data", 2)
    file = tmp_path / "data" / "metadata.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    rows = [row | {"ground_truth": in_texts(row["ground_truth"], lambda text: text + "\ud800")} for row in rows]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = [json.dumps({"id": name, "text": text + " \udc00x"}) for name, text in answers.items()]
    (tmp_path / "answers.jsonl").write_text("\n".join(lines))

    done = loupe("score", ident, "answers.jsonl", "--data", "data", "--json", cwd=tmp_path)

    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert loupe("report", "runs/answers/" + ident, cwd=tmp_path).returncode == 0


def test_a_data_set_with_half_characters_is_prepared(tmp_path: Path) -> None:
    write_prepared("iam_lines", tmp_path / "data", 2)
    file = tmp_path / "data" / "metadata.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    rows = [row | {"ground_truth": "a\ud800", "sample_id": f"{row['sample_id']}\udc00"} for row in rows]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))

    done = loupe("data", "prepare", "iam_lines", "--data", "data", "--to", "new", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    written = [json.loads(line) for line in (tmp_path / "new" / "metadata.jsonl").read_text().splitlines()]
    assert [row["ground_truth"] for row in written] == ["a\ufffd"] * 2


def test_a_folder_whose_name_is_no_text_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    make_folder(tmp_path)
    (tmp_path / "mydocs").rename(tmp_path / "caf\udce9")
    done = loupe("run", "./caf\udce9", "-e", "python:reader.py:right", cwd=tmp_path)
    assert done.returncode == 2 and "a name that is not UTF-8 cannot be recorded" in done.stderr


@pytest.mark.parametrize("layout", ["lines", "document", "list"])
def test_an_answer_with_half_a_character_equals_the_ground_truth_that_has_it(tmp_path: Path, layout: str) -> None:
    write_prepared("iam_lines", tmp_path / "data", 2)
    file = tmp_path / "data" / "metadata.jsonl"
    rows = [
        json.loads(line) | {"ground_truth": text}
        for line, text in zip(file.read_text().splitlines(), HALVES, strict=True)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    answers = {row["sample_id"]: row["ground_truth"] for row in rows}
    listed = [{"id": name, "text": text} for name, text in answers.items()]
    written = {"lines": "\n".join(map(json.dumps, listed)), "document": json.dumps(answers), "list": json.dumps(listed)}
    name = "answers.jsonl" if layout == "lines" else "answers.json"
    (tmp_path / name).write_text(written[layout])

    done = loupe("score", "iam_lines", name, "--data", "data", "--json", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["measures"]["cer"]["value"] == 0


#: What a server sends in the place of a key that it echoes is looked for in all of its answer.
LONG_KEY = {"LOUPE_API_KEY": "key-0123456789"}
ANSWER = (
    rb'{"choices": [{"message": {"content": "caf\ud83d e"}, "finish_reason": "stop"}], "id": "\udc00 key-0123456789"}'
)
HALVES = ("caf\ud83d e", "end \ude00\ud800")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (r'"a\ud800"', "a\ufffd"),
        (r'"\udc00\ud800 \uD83D\uDE00"', "\ufffd\ufffd 😀"),
        (r'"\\ud800 \n \ud83d\u0041"', "\\ud800 \n \ufffdA"),
        (r'"\ud83d\ud83d\ude00"', "\ufffd😀"),
    ],
)
def test_only_halves_are_replaced(raw: str, text: str) -> None:
    assert decode_json(raw) == decode_json(raw.encode()) == text == storable(json.loads(raw))


@pytest.mark.parametrize("raw", [r'"\ud800', r'["\ud800" 1]', r'"\ux"', "{"])
def test_what_is_no_json_stays_an_error(raw: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_json(raw)


def test_types_are_checked_where_halves_were_replaced() -> None:
    with pytest.raises(msgspec.ValidationError):
        json_decoder(Score).decode(r'{"measure": "\ud800", "counts": "x"}')


@pytest.mark.parametrize(
    ("reply", "text", "error"),
    [
        (Reply(raw=ANSWER), "caf\ufffd e", ""),
        (Reply(raw=b"data: " + ANSWER + b"\n\ndata: [DONE]\n\n", content_type="text/event-stream"), "caf\ufffd e", ""),
        (Reply(status=400, raw=rb'{"error": {"message": "no \udc00 \n 5"}}'), "", "HTTP 400: no \ufffd 5"),
    ],
    ids=["answer", "stream", "refusal"],
)
def test_what_a_server_says_with_half_a_character_is_data(tmp_path: Path, reply: Reply, text: str, error: str) -> None:
    make_folder(tmp_path, count=1)
    models = Reply(raw=rb'{"data": [{"id": "m", "owned_by": "\ud800"}]}')
    with in_thread(reply, models=models) as server:
        done = loupe("infer", "mydocs", "--base-url", server.url, "--retries", "0", cwd=tmp_path, env=LONG_KEY)

    [line] = (tmp_path / "runs" / "m" / "mydocs" / "predictions.jsonl").read_text().splitlines()
    said = json.loads(line)
    assert (said["text"], said.get("error", "")) == (text, error), done.stderr


def in_texts(value: Any, change: Callable[[str], str]) -> Any:
    """The value with what people read in it changed: not keys, and not words that say what kind something is."""
    if isinstance(value, dict):
        kinds = ("category_type", "category", "type", "dataset_name", "question_type", "image_path")
        return {key: item if key in kinds else in_texts(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [in_texts(item, change) for item in value]
    return change(value) if isinstance(value, str) else value
