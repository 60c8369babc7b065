"""Every fault of a server ends in the right class in `predictions.jsonl`, and none in a silent empty answer."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from loupe.engines.registry import load_profile
from loupe.errors import EngineUnavailableError
from loupe.inference.progress import Progress
from loupe.inference.retries import Policy
from loupe.pipeline import Plan, run
from loupe.runs.folder import RunFolder
from loupe.types import Prediction, Result
from tests.support.chat_server import ChatServer, Received, Reply, chat_server

BENCHMARK = '''
"""One question for each fault."""
from loupe.metrics import character_errors
from loupe.types import Benchmark, Measure, Sample, Score

def load(root, names: str = ""):
    for name in names.split("+"):
        yield Sample(id=name, prompt=name, truth="right")

def score(sample, prediction):
    return [Score(measure="cer", counts=tuple(map(float, character_errors(prediction.text, sample.truth))))]

benchmark = Benchmark(
    title="Faults", version="1", task="text", load=load, score=score,
    measures=(Measure(name="cer", higher_is_better=False),),
)
'''

LOOP = "And the ship sailed on over the sea. " * 400
RATE = {"Retry-After": "0"}
#: fault → (what the server answers to each try, class, text that must be stored, part of the error)
FAULTS: dict[str, tuple[list[Reply], str, str, str]] = {
    "fine": ([Reply(text="right")], "ok", "right", ""),
    "busy": ([Reply(status=429, headers=RATE, error="slow down")] * 5 + [Reply(text="right")], "ok", "right", ""),
    "once-500": ([Reply(status=500, error="oops"), Reply(text="right")], "ok", "right", ""),
    "ever-500": ([Reply(status=500, error="oops")], "error", "", "500"),
    "once-503": ([Reply(status=503, error="loading"), Reply(text="right")], "ok", "right", ""),
    "slow": ([Reply(text="right", delay=0.3)], "ok", "right", ""),
    "never": ([Reply(hang=True)], "timeout", "", "1 s"),
    "cut": ([Reply(text="right" * 100, cut=40)], "error", "", "payload is not completed"),
    "drop": ([Reply(drop=True)], "error", "", "disconnected"),
    "not-json": ([Reply(raw=b"<html>bad gateway</html>")], "error", "", "<html>bad gateway"),
    "no-choices": ([Reply(raw=b'{"object": "chat.completion"}')], "error", "", "choices"),
    "empty-choices": ([Reply(raw=b'{"choices": []}')], "error", "", "choices"),
    "null": ([Reply(text=None)], "empty", "", ""),
    "null-once": ([Reply(text=None), Reply(text="right")], "ok", "right", ""),
    "html-type": ([Reply(text="right", content_type="text/html")], "ok", "right", ""),
    "ten-megabytes": ([Reply(text="x y z " * 1_700_000, finish_reason="length")], "repeated", "x y z " * 1_700_000, ""),
    "loop": ([Reply(text=LOOP, finish_reason="length")], "repeated", LOOP, ""),
    "cut-off": ([Reply(text="righ", finish_reason="length")], "truncated", "righ", ""),
    "too-long": ([Reply(status=400, error="image too large")], "rejected", "", "image too large"),
    "not-found": ([Reply(status=404, error="no such model")], "rejected", "", "no such model"),
}


def _said(finish: str | None = "stop", beside: dict[str, Any] | None = None, /, **message: Any) -> Reply:
    """A reply with these keys of its message, and others beside `choices`."""
    choice = {"message": {"role": "assistant", "content": None, **message}, "finish_reason": finish}
    return Reply(raw=json.dumps({"choices": [choice], **(beside or {})}).encode())


def _chosen(**choice: Any) -> Reply:
    return Reply(raw=json.dumps({"choices": [{"message": {"content": ""}, **choice}]}).encode())


def _streamed(*events: dict[str, Any]) -> Reply:
    lines = [*(json.dumps(event) for event in events), "[DONE]"]
    return Reply(raw="".join(f"data: {line}\n\n" for line in lines).encode(), content_type="text/event-stream")


def _event(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


_HATE = {"hate": {"filtered": True, "severity": "high"}, "violence": {"filtered": False, "severity": "safe"}}
_CALL = {"id": "c", "type": "function", "function": {"name": "read", "arguments": '{"text": "right"}'}}
_AZURE = b'{"error": {"message": "The response was filtered", "code": "content_filter", "status": 400}}'
_FLAGGED = b'{"error": {"code": 403, "message": "Your chosen model requires moderation and your input was flagged"}}'
_RIGHT = Reply(text="right")
#: HTTP 200 and yet no answer, by what providers and servers document; none of them is an empty page.
FAULTS |= {
    "filter": ([_said("content_filter", content="")], "refused", "", "content filter"),
    "filter-half": ([_said("content_filter", content="righ")], "refused", "", "content filter"),
    "gemini-safety": ([_said("SAFETY", content="")], "refused", "", "safety"),
    "gemini-enum": ([_said("FinishReason.PROHIBITED_CONTENT")], "refused", "", "prohibited_content"),
    "native-safety": ([_chosen(finish_reason="stop", native_finish_reason="SAFETY")], "refused", "", "safety"),
    "azure-answer": ([_chosen(finish_reason="stop", content_filter_results=_HATE)], "refused", "", "(hate)"),
    "azure-prompt": (
        [Reply(raw=json.dumps({"choices": [], "prompt_filter_results": [{"content_filter_results": _HATE}]}).encode())],
        "refused",
        "",
        "(hate)",
    ),
    "gemini-prompt": ([Reply(raw=b'{"promptFeedback": {"blockReason": "SAFETY"}}')], "refused", "", "(safety)"),
    "azure-400": ([Reply(status=400, raw=_AZURE)], "refused", "", "was filtered"),
    "flagged-403": ([Reply(status=403, raw=_FLAGGED)], "refused", "", "flagged"),
    "refusal": ([_said(refusal="I cannot help.")], "refused", "", "I cannot help."),
    "refusal-part": ([_said(content=[{"type": "refusal", "refusal": "I cannot."}])], "refused", "", "I cannot."),
    "no-refusal": ([_said(content="right", refusal=None)], "ok", "right", ""),
    "thinking": ([_said("length", reasoning_content="A page")], "unfinished", "", "before the answer"),
    "thinking-native": ([_said("MAX_TOKENS", content="")], "unfinished", "", "before the answer"),
    "think-tag": ([_said("length", content="<think>A page")], "unfinished", "", "before the answer"),
    "only-reasoning": ([_said(reasoning="right")], "empty", "", ""),
    "tool": ([_said("tool_calls", tool_calls=[_CALL])], "error", "", "tool call instead of text (read)"),
    "function": ([_said("function_call", function_call=_CALL["function"])], "error", "", "tool call"),
    "tool-and-text": (
        [_said("tool_calls", content="Here is", tool_calls=[_CALL])],
        "error",
        "",
        "text beside it (read)",
    ),
    "tool-and-text-stop": ([_said(content="Here is", tool_calls=[_CALL])], "error", "", "text beside it (read)"),
    "no-tool": ([_said(content="right", tool_calls=[], function_call={"name": ""})], "ok", "right", ""),
    "odd-end": ([_said("OTHER", content="")], "error", "", "finish_reason 'other'"),
    "odd-end-text": ([_said("OTHER", content="right")], "ok", "right", ""),
    "abort-once": ([_said("abort", content="rig"), _RIGHT], "ok", "right", ""),
    "abort-ever": ([_said("abort", content="rig")], "error", "", "finish_reason 'abort'"),
    "error-end": ([_said("error", content="rig")], "error", "", "finish_reason 'error'"),
    "choice-error": (
        [_chosen(finish_reason="error", error={"code": 502, "message": "upstream broke"}), _RIGHT],
        "ok",
        "right",
        "",
    ),
    "error-beside": ([_said("stop", {"error": {"message": "upstream broke"}}, content="rig")], "error", "", "broke"),
    "rate-inside": ([Reply(raw=b'{"error": {"code": 429, "message": "slow down"}}')] * 5 + [_RIGHT], "ok", "right", ""),
    "400-inside": ([Reply(raw=b'{"error": {"code": 400, "message": "bad image"}}')], "rejected", "", "bad image"),
    "stream": ([_streamed(_event(content="rig"), _event("stop", content="ht"))], "ok", "right", ""),
    "stream-filter": ([_streamed(_event(content="rig"), _event("content_filter"))], "refused", "", "content filter"),
    "stream-refusal": ([_streamed(_event(refusal="I ca"), _event("stop", refusal="nnot"))], "refused", "", "I cannot"),
    "stream-error": ([_streamed(_event(content="rig"), {"error": {"message": "broke"}})], "error", "", "broke"),
    "stream-abort": ([_streamed(_event(content="rig"), _event("abort"))], "error", "", "abort"),
    "stream-tool": (
        [_streamed(_event(tool_calls=[{"index": 0, **_CALL}]), _event("tool_calls"))],
        "error",
        "",
        "tool call instead of text (read)",
    ),
    "stream-thinking": ([_streamed(_event(reasoning="A page"), _event("length"))], "unfinished", "", "before"),
    "stream-blocked": (
        [_streamed({"choices": [], "prompt_filter_results": [{"content_filter_results": _HATE}]})],
        "refused",
        "",
        "(hate)",
    ),
}


def run_faults(tmp_path: Path, server: ChatServer, names: list[str]) -> Plan:
    (tmp_path / "faults.py").write_text(BENCHMARK)
    overrides = {"base_url": server.url, "model": "test-model", "concurrency": 4, "timeout": 1.0, "retries": 2}
    label, profile = load_profile("openai", overrides)
    policy = Policy(concurrency=4, retries=2, backoff=0.001, backoff_cap=0.002, health_poll=0.01, health_limit=0.1)
    options = {"names": "+".join(names)}
    return Plan(
        benchmark=str(tmp_path / "faults.py"),
        label=label,
        profile=profile,
        runs=tmp_path,
        policy=policy,
        options=options,
    )


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Prediction], Result]:
    """One run over all faults at once, as it happens with a bad server."""
    tmp_path = tmp_path_factory.mktemp("faults")
    tries: dict[str, int] = {}

    def script(request: Received) -> Reply:
        number = tries.get(request.prompt, 0)
        tries[request.prompt] = number + 1
        replies = FAULTS[request.prompt][0]
        return replies[min(number, len(replies) - 1)]

    async def go() -> Path:
        async with chat_server(script) as server:
            return (await run(run_faults(tmp_path, server, list(FAULTS)), Progress())).path

    folder = RunFolder.open(asyncio.run(go()))
    result = folder.stored_result()
    assert result is not None
    return folder.predictions(), result


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_ends_in_its_class(fault: str, outcome: tuple[dict[str, Prediction], Result]) -> None:
    _, expected, text, reason = FAULTS[fault]
    prediction = outcome[0][fault]
    assert prediction.outcome == expected
    assert prediction.text == text
    assert bool(reason) == bool(prediction.error) == prediction.failed
    assert reason in prediction.error


def test_the_result_names_every_failure(outcome: tuple[dict[str, Prediction], Result]) -> None:
    _, result = outcome
    failing = {name for name, fault in FAULTS.items() if fault[1] not in ("ok", "empty", "truncated", "repeated")}
    assert {failure.sample for failure in result.failures} == failing
    assert result.total == result.measures["cer"].n == len(FAULTS)
    assert (result.outcomes["empty"], result.outcomes["truncated"], result.outcomes["repeated"]) == (2, 1, 2)
    assert "1 of 59 answers have reasoning and no content" in result.warnings


@pytest.mark.parametrize("fault", ["filter", "refusal", "thinking", "tool", "stream-refusal"])
def test_what_the_server_means_is_not_asked_again_and_is_paid_for(
    fault: str, outcome: tuple[dict[str, Prediction], Result]
) -> None:
    prediction = outcome[0][fault]
    assert prediction.attempt == 1
    assert prediction.response and prediction.endpoint


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_stops_the_run_and_leaves_it_resumable(tmp_path: Path, status: int) -> None:
    async def go() -> None:
        async with chat_server([Reply(text="right"), Reply(status=status, error="bad key sk-secret")]) as server:
            await run(run_faults(tmp_path, server, ["a", "b", "c", "d", "e", "f"]), Progress())

    with pytest.raises(EngineUnavailableError) as error:
        asyncio.run(go())
    assert error.value.exit_code == 4
    kept = (tmp_path / "openai" / "faults" / "predictions.jsonl").read_text()
    assert '"class":"ok"' in kept and '"class":"error"' not in kept


def test_a_server_that_is_gone_stops_the_run_after_its_health_check(tmp_path: Path) -> None:
    async def go() -> None:
        async with chat_server("right") as server:
            plan = run_faults(tmp_path, server, [f"s{number}" for number in range(20)])
        await run(plan, Progress())

    with pytest.raises(EngineUnavailableError):
        asyncio.run(go())
