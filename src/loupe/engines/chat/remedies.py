"""Remedies for a failed sample, by its outcome and what the engine said. Each begins with a verb."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable

from loupe.engines.chat.endings import TOOL_CALL
from loupe.engines.pages.page_images import parse_rule
from loupe.types import Prediction

#: What servers say of a prompt that does not fit: vLLM, OpenAI, SGLang, llama-server, Ollama, Anthropic, Gemini.
_CONTEXT = re.compile(
    r"context[_ -](?:length|window|size)|max_model_len|num_ctx|(?:prompt|input|request)s? (?:is|are)? ?too long|"
    r"too many (?:input )?tokens|input token count|reduce the length|exceeds? the (?:maximum|limit) .{0,40}tokens",
    re.I,
)
_HTTP = re.compile(r"\bHTTP (\d{3}): ")
#: Longer sides of images to try: the first, and the least on which anything can be read.
_FIRST, _LEAST = 1024, 128


def remedies(failed: Iterable[Prediction], image: object = None) -> list[tuple[int, str]]:
    """Return what to do about failed samples, with how many of them each is about, most first."""
    found = Counter(remedy(one.outcome, one.error, image) for one in failed)
    return [(count, what) for what, count in found.most_common() if what]


def remedy(outcome: str, error: str, image: object = None) -> str:
    """Return what to do about a sample that failed so; "" if nobody can know. `image` is the image rule of the run."""
    http = _HTTP.search(error[:200])
    if http is not None and http[1] == "413":
        smaller = _smaller(image)
        return f"send smaller images: add {smaller} --fresh" if smaller else "raise the server's limit for a request"
    if http is not None and _CONTEXT.search(error):
        smaller = _smaller(image)
        less = f" or send smaller images (--max-tokens N or {smaller}, with" if smaller else " (--max-tokens N with"
        return (
            f"ask for shorter answers{less} --fresh), or "
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


def _smaller(image: object) -> str:
    """Return the option for smaller images than those of an image rule; "" if they are small already."""
    try:
        rule = parse_rule(str(image))
    except ValueError:
        return f"--image fit{_FIRST}"
    longest = math.isqrt(rule.numbers[-1]) if rule.kind == "smart" else next(iter(rule.numbers), 2 * _FIRST)
    size = _FIRST if longest > _FIRST else longest // 2
    return f"--image fit{size}" if size >= _LEAST else ""
