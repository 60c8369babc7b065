"""What a person can do about a failed sample, by its outcome and what the engine said. Each begins with a verb."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from loupe.engines.chat.endings import TOOL_CALL
from loupe.types import Prediction

#: What servers say of a prompt that does not fit: vLLM, OpenAI, SGLang, llama-server, Ollama, Anthropic, Gemini.
_CONTEXT = re.compile(
    r"context[_ -](?:length|window|size)|max_model_len|num_ctx|(?:prompt|input|request)s? (?:is|are)? ?too long|"
    r"too many (?:input )?tokens|input token count|reduce the length|exceeds? the (?:maximum|limit) .{0,40}tokens",
    re.I,
)
_HTTP = re.compile(r"\bHTTP (\d{3}): ")


def remedies(failed: Iterable[Prediction]) -> list[tuple[int, str]]:
    """Return what to do about failed samples, with how many of them each is about, most first."""
    found = Counter(remedy(one.outcome, one.error) for one in failed)
    return [(count, what) for what, count in found.most_common() if what]


def remedy(outcome: str, error: str) -> str:
    """Return what to do about a sample that failed so; "" if nobody can know."""
    http = _HTTP.search(error[:200])
    if http is not None and http[1] == "413":
        return "send smaller images: add --image fit1024 --fresh"
    if http is not None and _CONTEXT.search(error):
        return (
            "ask for shorter answers or send smaller images (--max-tokens N or --image fit1024, with --fresh), or "
            "start the server with more context (vLLM: --max-model-len N; llama-server: --ctx-size N)"
        )
    if outcome == "refused":
        return "ask another model, or change the provider's content filter; then add --redo refused"
    if outcome == "unfinished":
        return "raise the limit or turn thinking off: add --max-tokens N or --retry-truncated N, with --fresh"
    if TOOL_CALL in error:
        return (
            "start the server without its tool parser, or take the call's arguments: "
            "add -o answer_from=tool_call --fresh"
        )
    if http is not None and outcome == "rejected":
        return "check --base-url, --model and what the server says; then add --redo rejected"
    return ""
