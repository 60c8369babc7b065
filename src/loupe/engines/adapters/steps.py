"""Output adapters: named steps that prepare a raw answer for scoring; the stored prediction stays as it is.

Protocol: docs/adapters.md. Every step maps text to text in one pass over it, so a hostile megabyte costs no more than
an honest one. Steps run in the order of `STEPS`, whatever order a profile lists them in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from loupe.engines.adapters.html_pages import chandra_layout, html_text
from loupe.engines.adapters.marks import deepseek_grounding, nanonets_page_numbers, nanonets_tags
from loupe.engines.adapters.model_json import dots_layout, dots_layout_whole, front_matter, olmocr_json
from loupe.engines.adapters.paddle import hunyuan15_repeats, hunyuan_repeats, paddle_math, paddle_repeats, paddle_tables
from loupe.engines.adapters.service_json import service_json
from loupe.errors import ProfileError, did_you_mean

#: The look behind keeps this linear where thousands of `\r` stand in a row.
_LINE_END = re.compile(r"(?<!\r)\r+\n")
_THINK_TAG = re.compile(r"(</?think>)")
#: Tokens that mean "stop" to one model or another; none of them is ever printed on a page.
_END_TOKEN = re.compile(r"<(?:\|endoftext\||\|im_end\||\|eot_id\||｜end▁of▁sentence｜|\|user\||\|end_of_sentence\|)>")
_STOP = "</s>"
_FENCE = re.compile(r" {0,3}(`{3,})([^`]*)")
#: Languages of a fence that wraps an answer ("" is a bare one); code of any other language is content.
_WRAPPERS = frozenset({"", "markdown", "md", "html", "json", "latex", "text"})
#: Only these hold code blocks of their own; in the others the first closing fence ends the answer.
_NESTING = frozenset({"markdown", "md"})


_REF_BOX = re.compile(r"<\|ref\|>[^<]{0,200}<\|/ref\|><\|box\|>\[[\d\s,.\[\]-]{0,2000}\](?:<\|/box\|>)?[ \t]*\n?")


def newlines(text: str) -> str:
    r"""Drop byte order marks at the start and end every line with a plain `\n` (for `\r\n`; a lone `\r` stays)."""
    text = text.lstrip("\ufeff")
    return _LINE_END.sub("\n", text) if "\r" in text else text


def think(text: str) -> str:
    """Drop `<think>…</think>`, an unclosed one at the start, and all before a `</think>` that nothing opened."""
    kept: list[str] = []
    block: list[str] | None = None
    for part in _THINK_TAG.split(text):
        if part == "<think>":
            block = [] if block is None else block
        elif part == "</think>":
            if block is None:
                kept.clear()
            block = None
        elif block is None:
            kept.append(part)
        else:
            block.append(part)
    answer = "".join(kept)
    return answer + "<think>" + "".join(block) if block is not None and answer.strip() else answer


def end_tokens(text: str) -> str:
    """Drop leaked stop tokens such as `<|im_end|>`; `</s>` only at the end and where it closes no `<s>`."""
    text = _END_TOKEN.sub("", text)
    surplus = text.count(_STOP) - text.count("<s>")
    kept = end = len(text)
    while surplus > 0:
        while end and text[end - 1].isspace():
            end -= 1
        if not text.endswith(_STOP, 0, end):
            break
        kept = end = end - len(_STOP)
        surplus -= 1
    return text[:kept]


def unfence(text: str) -> str:
    """Unwrap one code fence around the whole answer, also one that never closes; fences inside stay."""
    stripped = text.strip()
    opening = _FENCE.fullmatch(stripped, 0, stripped.find("\n") if "\n" in stripped else len(stripped))
    language = opening[2].strip().lower() if opening else None
    if opening is None or language not in _WRAPPERS:
        return text
    _, *body = stripped.split("\n")
    close = _closing_line(body, len(opening[1]), nesting=language in _NESTING)
    if close is not None:
        return "\n".join(body[:close]) if close == len(body) - 1 else text
    return _without_close_in_line(body, opening[1]) if language else text


def _closing_line(body: list[str], marks: int, *, nesting: bool) -> int | None:
    """The line that closes the outer fence, None if there is none.

    With `nesting`, fence lines are taken in pairs as blocks inside; the one left over is the outer close. A bare fence
    followed by one with a language cannot have opened a block: it closed the outer one.
    """
    inner: int | None = None
    bare = False
    for number, line in enumerate(body):
        fence = _FENCE.fullmatch(line)
        if fence is None or len(fence[1]) < marks:
            continue
        named = bool(fence[2].strip())
        if not nesting:
            if not named:
                return number
        elif inner is None:
            inner, bare = number, not named
        elif named and bare:
            return inner
        elif not named:
            inner = None
    return inner if bare else None


def _without_close_in_line(body: list[str], marks: str) -> str:
    """The body of an outer fence without a closing line; marks that end its last line of text go too."""
    last = body[-1] if body else ""
    if last.endswith(marks) and last.count("`") == len(marks) and not _FENCE.fullmatch(last):
        return "\n".join([*body[:-1], last[: -len(marks)]])
    return "\n".join(body)


def html_comments(text: str) -> str:
    """Drop `<!-- … -->`, in which services put breaks, headers and numbers of pages; one that never ends stays."""
    kept, end = [], 0
    while (start := text.find("<!--", end)) >= 0 and (close := text.find("-->", start + 4)) >= 0:
        kept.append(text[end:start])
        end = close + 3
    return "".join([*kept, text[end:]])


def ref_boxes(text: str) -> str:
    """Drop the label and boxes in front of each block: `<|ref|>text<|/ref|><|box|>[[1, 2, 3, 4]]<|/box|>`."""
    return _REF_BOX.sub("", text)


def strip(text: str) -> str:
    """Drop white space around the answer."""
    return text.strip()


#: Every step by name, in the order in which they run: what any model may need, then what one model needs.
STEPS: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {
        "newlines": newlines,
        "think": think,
        "end_tokens": end_tokens,
        "unfence": unfence,
        "front_matter": front_matter,
        "olmocr_json": olmocr_json,
        "service_json": service_json,
        "deepseek_grounding": deepseek_grounding,
        "dots_layout": dots_layout,
        "dots_layout_whole": dots_layout_whole,
        "chandra_layout": chandra_layout,
        "hunyuan_repeats": hunyuan_repeats,
        "hunyuan15_repeats": hunyuan15_repeats,
        "paddle_repeats": paddle_repeats,
        "paddle_math": paddle_math,
        "paddle_tables": paddle_tables,
        "nanonets_page_numbers": nanonets_page_numbers,
        "nanonets_tags": nanonets_tags,
        "html_text": html_text,
        "html_comments": html_comments,
        "ref_boxes": ref_boxes,
        "strip": strip,
    }
)


def apply_adapters(text: str, steps: Sequence[str]) -> str:
    """The text that is scored: `text` after the named steps, in the order of `STEPS`, each at most once."""
    for name, step in STEPS.items():
        if name in steps:
            text = step(text)
    return text


def check_adapters(names: Iterable[str]) -> tuple[str, ...]:
    """The steps in the order in which they run, each once. Raises ProfileError for a name that is no step."""
    wanted = tuple(names)
    for name in wanted:
        if name not in STEPS:
            raise ProfileError(
                f"adapters: no step {name!r}{did_you_mean(name, STEPS)}", hint=f"adapters = {list(STEPS)}"
            )
    return tuple(name for name in STEPS if name in wanted)
