"""Meaning of a failing HTTP answer: which error it becomes, whether trying again helps, and how long to wait.

Source: docs/protocols/engines.md#outcomes and #retries.
"""

from __future__ import annotations

import re

from loupe.data.hub.patience import retry_after_seconds
from loupe.engines.chat.answers import error_message
from loupe.errors import (
    AccountError,
    EngineError,
    EngineUnavailableError,
    NoAnswerError,
    RejectedError,
    TransientEngineError,
    word,
)

#: A server that asks for a longer pause than this, in seconds, is not waited for: the run stops, to be continued.
LONGEST_WAIT = 300.0
#: Words after which a server answers nothing sensible any more (docs/protocols/engines.md#outcomes); compared in lower
#: case.
FATAL_MARKERS = (
    "free memory on device",
    "less than desired gpu memory utilization",
    "cuda out of memory",
    "torch.outofmemoryerror",
    "illegal memory access",
    "torch.acceleratorerror",
)
#: What servers say, in code, type or message, where no waiting of minutes helps: OpenAI, Azure, Google, Anthropic,
#: Mistral, DeepSeek, xAI and OpenRouter. Compared in lower case.
_OUT_OF_QUOTA = re.compile(
    r"insufficient[_ ](?:quota|balance|credits?|funds)|exceeded your current quota|billing[_ ]hard[_ ]limit|"
    r"billing_not_active|out of call volume quota|credit balance is too low|api usage limits|"
    r"(?:monthly|weekly|spending|spend|credit)[_ ]?(?:usage |spending )?limit|used all available credits|"
    r"quota_exhausted"
)
#: A limit by the day; one that Google words like a used-up quota may be by the minute, which passes.
_BY_THE_DAY = re.compile(r"per[-_ ]?day|daily|\((?:rpd|tpd)\)")
_BY_THE_MINUTE = re.compile(r"per[-_ ]?min")
_CONTEXT = re.compile(r"(?:maximum context length (?:is|of)|context length is only|max_model_len=)\D{0,20}(\d+)", re.I)
_PROMPT = re.compile(
    r"(\d+)\s+(?:in the (?:messages|prompt)|input tokens|prompt tokens)|prompt contains at least (\d+)", re.I
)
#: The most tokens that may be asked for, whatever the prompt: vLLM, OpenAI, Groq, Ark, Anthropic and DeepSeek.
_MOST_TOKENS = re.compile(
    r"max_(?:completion_|output_|new_)?tokens\b.{0,120}?(?:"
    r"cannot be greater than (?:max_model_len=)?|supports at most |(?:less than or equal to|<=) `?|"
    r"\d > |\[1, ?)(\d{1,9})(?!\d)",
    re.I,
)
#: An input that is too long for a server, whatever number it answers with: llama-server's embeddings say 500.
_TOO_LARGE = re.compile(rb"too large to process|exceeds the available context size")
#: What servers say whose model gets no images, with any number: llama-server, Ollama, OpenRouter, LM Studio.
_NO_IMAGES = re.compile(
    rb"image input is not supported|missing data required for image input|"
    rb"no endpoints found that support image|does not support (?:images|image input|vision)"
)
#: A prompt that a provider refuses for its content, in lower case. First by the code or type of the error, in JSON that
#: may be quoted in JSON; then by words that no other error has; then by a sentence that says it of what was sent.
#: What only talks of filters, policies or guardrails is about settings. OpenAI, Azure, OpenRouter, DashScope, GLM.
_FILTERED = re.compile(
    rb'"(?:code|type|status|reason)\\*"\s*:\s*\\*"(?:content_?filter(?:ed)?|content_?blocked|content_moderation|'
    rb'moderation_(?:blocked|failed)|prohibited_content|guardrail_intervened|(?:image_)?safety)\\*"|'
    rb'"contentfilter\\*"\s*:|'
    rb"content_?policy_?violation|responsibleaipolicyviolation|data_?inspection_?failed|"
    rb"\b(?:prompt|image|content|input|output|response)s? (?:(?:was|were|is|are|has|have|been|got) ){0,3}"
    rb"(?:flagged|filtered|blocked(?! (?:for (?:this|your|the|you)|on|until|unless)\b))|"
    rb"\brequests? (?:(?:was|were|is|has|been|got) ){0,3}(?:flagged|filtered|blocked|rejected) "
    rb"(?:by|due to|because of|as a result of) [^.]{0,40}(?:content|safety|moderation|guardrail)|"
    rb"\bflagged (?:prompt|image|content|input)"
)
_KEPT = "finished samples are kept"


class UnreachableError(TransientEngineError):
    """No connection to a server, or one that broke: it may be dead."""


class NoConnectionError(UnreachableError):
    """No connection was made at all: the server has never seen the request."""


class NotFoundError(RejectedError):
    """404 and 405: the server knows no such model, or no such address."""


class OutOfMemoryError(EngineUnavailableError):
    """A server whose GPU cannot go on. Of several servers, the others may."""


def used_up(said: str) -> AccountError:
    """Return the error that ends a run because nothing more can be had for hours."""
    return AccountError(f"the quota is used up: {said}", hint=f"run the same command when there is more: {_KEPT}")


def is_fatal(message: str) -> bool:
    """True if these words say that nothing sensible will be answered any more."""
    lowered = message[:100_000].lower()
    return any(marker in lowered for marker in FATAL_MARKERS)


def failure(status: int, body: bytes, retry_after: str | None, *, key_hint: str, location: str = "") -> EngineError:
    """The error that an HTTP answer other than 200 stands for; `key_hint` says where its key comes from."""
    said = f"HTTP {status}: {error_message(body)}"
    lowered = body[:100_000].lower()
    if any(marker.encode() in lowered for marker in FATAL_MARKERS):
        return OutOfMemoryError(
            f"the server cannot go on: {said}", hint="start it again with less memory per request or fewer at a time"
        )
    if status in (400, 403, 422, 451) and _FILTERED.search(lowered):
        return NoAnswerError(f"blocked by a content filter: {said}", outcome="refused")
    if status == 402 or (status in (400, 403, 429) and _is_used_up(status, lowered.decode(errors="replace"))):
        return used_up(said)
    if status in (401, 403):
        return AccountError(f"the server refuses the key: {said}", hint=key_hint)
    if 300 <= status < 400:
        return EngineUnavailableError(
            f"the server redirects requests: {said}",
            hint=f"change --base-url to {word(location) if location else 'the new address'}",
        )
    if _NO_IMAGES.search(lowered):
        return EngineUnavailableError(
            f"the model does not accept images: {said}",
            hint="llama-server wants the model's image projector: --server-arg=--mmproj=FILE.gguf "
            "(started by hand: --mmproj FILE.gguf)"
            if b"mmproj" in lowered
            else "name a model that reads images: --model ID",
        )
    if status == 501:
        return EngineUnavailableError(f"the server cannot do this: {said}", hint="start it as it says, or another one")
    if status >= 500 and _TOO_LARGE.search(lowered):
        return RejectedError(said)
    wait = retry_after_seconds(retry_after)
    if status == 429 or (status == 503 and wait is not None):
        return TransientEngineError(said, retry_after=wait, rate=True)
    if status >= 500 or status in (408, 425):
        return TransientEngineError(said, retry_after=wait)
    return NotFoundError(said) if status in (404, 405) else RejectedError(said)


def _is_used_up(status: int, said: str) -> bool:
    """True if a refusal, in lower case, means that there is no more to be had for hours."""
    if status == 429 and _BY_THE_DAY.search(said):
        return True
    return bool(_OUT_OF_QUOTA.search(said)) and not (status == 429 and _BY_THE_MINUTE.search(said))


def check_wait(error: TransientEngineError) -> None:
    """Raise AccountError, which ends the run, where a server wants to be left alone for longer than anybody waits."""
    if error.retry_after is not None and error.retry_after > LONGEST_WAIT:
        raise AccountError(
            f"the server asks to wait {error.retry_after:,.0f} s, longer than the {LONGEST_WAIT:.0f} s that Loupe waits"
            f": {error.message}",
            hint=f"run the same command after that: {_KEPT}",
        )


def fitting_max_tokens(message: str, asked: int) -> int | None:
    """Return how many tokens may be asked for after a refusal of too many, None if the message does not say.

    >>> fitting_max_tokens("maximum context length is 100 tokens. However, you requested 130 (80 in the messages)", 50)
    19
    >>> fitting_max_tokens("max_tokens=5000 cannot be greater than max_model_len=2048. Please request fewer", 5000)
    2048
    """
    limit, prompt = _CONTEXT.search(message), _PROMPT.search(message)
    if limit and prompt:
        fitting = int(limit[1]) - int(prompt[1] or prompt[2]) - 1
    elif stated := _MOST_TOKENS.search(message):
        fitting = int(stated[1])
    else:
        return None
    return fitting if 1 <= fitting < asked else None
