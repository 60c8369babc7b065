"""Tell replies with HTTP 200 that are not an answer: refusals, filters, provider errors, tool calls, mere thinking.

Source: docs/protocols/engines.md#outcomes. A reply without text is an empty answer only if the server says no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from loupe.engines.adapters.steps import think
from loupe.engines.shared.foreign_formats import error_reply
from loupe.errors import NoAnswerError, TransientEngineError
from loupe.typed import decode_json, encode_json
from loupe.types import UNDECODABLE, Output

#: Where an answer is taken from (`answer_from` of a profile): reasoning only if `content` is empty.
AnswerFrom: TypeAlias = Literal["content", "reasoning", "tool_call"]

#: Values of `finish_reason`, in lower case. OpenAI, Azure, Gemini, Anthropic, Mistral, Bedrock, GLM, DeepSeek, TGI.
_DONE = frozenset(
    {
        *("stop", "stopped", "eos", "eos_token", "end", "end_turn", "stop_sequence", "stop_token", "complete"),
        *("completed", "done", "finish", "finished", "success", "succeeded"),
    }
)
_LENGTH = frozenset(
    {"length", "max_tokens", "max_output_tokens", "max_length", "model_length", "model_context_window_exceeded"}
)
#: The server gave up: asking again may help.
_BROKEN = frozenset(
    {
        *("error", "abort", "aborted", "cancelled", "canceled", "interrupted", "failed", "timeout", "network_error"),
        "insufficient_system_resource",
    }
)
_FILTERED = frozenset(
    {
        *("content_filter", "content_filtered", "contentfilter", "content_policy", "content_policy_violation"),
        *("moderation", "blocked", "safety", "recitation", "language", "blocklist", "prohibited_content", "spii"),
        *("image_safety", "image_prohibited_content", "image_recitation", "model_armor", "sensitive"),
        *("refusal", "refused", "guardrail_intervened"),
    }
)
#: Names under which a tool gets a page's text; arguments with others are an answer as they are.
_TEXT_ARGUMENTS = frozenset({"text", "content", "markdown", "answer", "output", "result", "html", "latex"})
_LONGEST_SAID = 500

TOOL_CALL = "the answer is a tool call"
UNFINISHED = "cut off at the token limit before the answer began"


class ProviderError(TransientEngineError):
    """An error inside a reply with HTTP 200. `status` is the HTTP status that it names (0: none), `body` the error."""

    def __init__(self, message: str, *, status: int = 0, body: bytes = b"") -> None:
        super().__init__(message)
        self.status = status
        self.body = body


def provider_error(error: Any, message: str) -> ProviderError:
    """Return the error that an `error` object inside a reply stands for; `message` is what it says."""
    code = error.get("code") if isinstance(error, Mapping) else None
    code = int(code) if isinstance(code, str) and code.isdecimal() and len(code) == 3 else code
    status = code if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600 else 0
    body = encode_json({"error": error})
    return ProviderError(f"the server answered with an error: {message}", status=status, body=body)


def checked(output: Output, answer_from: AnswerFrom = "content") -> Output:
    """Return the output of a chat completion, with its answer as text.

    Raises NoAnswerError for a refusal, filtered content, a tool call, an error as text and an end that no empty answer
    has, TransientEngineError if the server gave up the answer. Loupe offers no tools: if there is a call, the server
    filed the answer there, and text beside it ("Here is the page:") is no answer.
    """
    choice, message = _choice(output)
    reasons = (output.finish_reason, choice.get("finish_reason"), choice.get("native_finish_reason"))
    words = set(map(_word, reasons)) - {""}
    if broken := words & _BROKEN:
        raise TransientEngineError(f"the server gave up the answer (finish_reason {min(broken)!r})")
    if refused := _refusal(output, choice, message, words):
        raise NoAnswerError(refused, outcome="refused", output=_without_text(output))
    if words & _LENGTH:
        output = replace(output, finish_reason="length")
    if answer_from == "reasoning" and output.reasoning and not output.text.strip():
        return replace(output, text=output.reasoning, reasoning=None)
    if (call := _tool_call(message)) is not None:
        if answer_from != "tool_call":
            name = call.get("name")
            called = f" ({name[:60]})" if isinstance(name, str) and name else ""
            how = "with text beside it" if output.text.strip() else "instead of text"
            raise NoAnswerError(f"{TOOL_CALL} {how}{called}", output=_without_text(output))
        return replace(_without_text(output), text=_arguments(call))
    if said := error_reply(output.text):
        raise NoAnswerError(f"the answer is an error: {said}", output=_without_text(output))
    if not output.text.strip() and (unknown := words - _DONE - _LENGTH):
        raise NoAnswerError(f"no text, and the server ended with finish_reason {min(unknown)!r}", output=output)
    return output


def begun(output: Output) -> Output:
    """Return an output unless it was cut off before its answer began. Raises NoAnswerError (`unfinished`) if it was."""
    if output.finish_reason == "length" and not think(output.text).strip():
        reasoning = output.reasoning or output.text or None
        raise NoAnswerError(UNFINISHED, outcome="unfinished", output=replace(output, text="", reasoning=reasoning))
    return output


def is_only_reasoning(text: str, reasoning: str | None) -> bool:
    """Return whether a model gave reasoning and no answer."""
    return not think(text).strip() and bool((reasoning or text).strip())


def blocked_prompt(reply: Any) -> bool:
    """Return whether a reply without choices says that the prompt was blocked (Azure, Gemini)."""
    return isinstance(reply, Mapping) and any(_blocked_by(reply))


def _choice(output: Output) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the first choice as it came, and its message."""
    choices = (output.response or {}).get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], Mapping) else {}
    message = choice.get("message")
    return choice, message if isinstance(message, Mapping) else {}


def _word(value: Any) -> str:
    """Return a finish reason in the spelling of the sets above: `FinishReason.SAFETY` is `safety`."""
    return value.rpartition(".")[2].strip().lower().replace("-", "_")[:60] if isinstance(value, str) else ""


def _refusal(output: Output, choice: Mapping[str, Any], message: Mapping[str, Any], words: set[str]) -> str:
    """Say what was refused or filtered; return "" if nothing was."""
    said = message.get("refusal")
    if isinstance(said, str) and said.strip():
        return f"the model refuses: {_short(said)}"
    by = [*_filters(choice.get("content_filter_results")), *_blocked_by(output.response or {})]
    if filtered := sorted(words & _FILTERED):
        return f"blocked by a content filter ({', '.join(dict.fromkeys(by)) or filtered[0]})"
    if by and not output.text.strip():
        return f"blocked by a content filter ({', '.join(dict.fromkeys(by))})"
    return ""


def _blocked_by(reply: Mapping[str, Any]) -> Iterator[str]:
    """Yield the reasons why a prompt was blocked: Azure's `prompt_filter_results`, Gemini's `promptFeedback`."""
    for name in ("prompt_filter_results", "prompt_annotations"):
        listed = reply.get(name)
        for entry in listed if isinstance(listed, list) else ():
            yield from _filters(entry.get("content_filter_results") if isinstance(entry, Mapping) else None)
    for name in ("promptFeedback", "prompt_feedback"):
        feedback = reply.get(name)
        if isinstance(feedback, Mapping):
            reason = feedback.get("blockReason") or feedback.get("block_reason")
            if isinstance(reason, str) and reason:
                yield _short(reason.lower())


def _filters(results: Any) -> Iterator[str]:
    """Yield the categories for which Azure filtered: `{"hate": {"filtered": true, "severity": "high"}}`."""
    for name, found in results.items() if isinstance(results, Mapping) else ():
        if isinstance(found, Mapping) and found.get("filtered") is True:
            yield _short(str(name))


def _tool_call(message: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the first function that a message calls, in the current or the former spelling; an empty one is none."""
    calls = message.get("tool_calls")
    first = calls[0] if isinstance(calls, list) and calls else None
    call = first.get("function") if isinstance(first, Mapping) else message.get("function_call")
    return call if isinstance(call, Mapping) and (call.get("name") or call.get("arguments")) else None


def _arguments(call: Mapping[str, Any]) -> str:
    """Return the arguments of a call as text: the only one, if it is a text under a usual name, else all as JSON."""
    given = call.get("arguments")
    try:
        found = decode_json(given.encode()) if isinstance(given, str) else given
    except UNDECODABLE:
        return given if isinstance(given, str) else ""
    if isinstance(found, dict) and len(found) == 1:
        [(name, value)] = found.items()
        if name in _TEXT_ARGUMENTS and isinstance(value, str):
            return value
    return given if isinstance(given, str) else encode_json(found).decode() if found is not None else ""


def _without_text(output: Output) -> Output:
    """Return the reply without its text as the answer; its response keeps that text."""
    begun_text = {"content": output.text} if output.text else {}
    return replace(output, text="", response={**(output.response or {}), **begun_text})


def _short(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_SAID]
